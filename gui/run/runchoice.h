// SPDX-License-Identifier: GPL-3.0-or-later
// The choices of the run's settings; kept between sessions.
#pragma once

#include "gui/run/runprocess.h"

class QSettings;

namespace pipewright {

struct RunChoice {
    static constexpr int mostReplicas = 64; ///< of one machine; a cluster's are started from the command line
    enum class Blocks {
        Train,   ///< the model, on data
        Sleep,   ///< for the design's times
        KeepBusy ///< for the design's times, touching their bytes
    };
    QString backend = QStringLiteral("host");
    int steps = 5;
    Blocks blocks = Blocks::Train;
    double memoryScale = 1; ///< of blocks that do not train: chosen anew for each design and machine
    QString data, transport;
    bool calibrate = false; ///< the measured costs become the design's
    // Of the backend "torch":
    QString module; ///< FILE.py:build
    bool syntheticStages = false;
    int replicas = 1;     ///< copies of the pipeline, which the module joins
    bool profile = false; ///< PyTorch's profiler runs along
    QString python = QStringLiteral("python3");

    static RunChoice load(const QSettings& settings);
    void save(QSettings& settings) const;
    bool isTorch() const { return backend == QLatin1String("torch"); }
    ChildRequest request(int devices) const; ///< of the design; without files and program
};

} // namespace pipewright
