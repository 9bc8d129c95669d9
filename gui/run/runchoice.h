// SPDX-License-Identifier: GPL-3.0-or-later
// The choices of the run's settings; kept between sessions.
#pragma once

#include "gui/run/runprocess.h"

class QSettings;

namespace pipewright {

struct RunChoice {
    static constexpr int mostReplicas = 64; ///< on one machine; runs on a cluster are started from the command line
    enum class Blocks {
        Train,   ///< train the model on data
        Sleep,   ///< sleep for the design's times
        KeepBusy ///< stay busy for the design's times, touching their bytes
    };
    QString backend = QStringLiteral("host");
    int steps = 5;
    Blocks blocks = Blocks::Train;
    double memoryScale = 1; ///< for Sleep and KeepBusy; chosen anew for each design and machine
    QString data, transport;
    bool calibrate = false; ///< the measured costs become the design's
    // Of the backend "torch":
    QString module; ///< FILE.py:build
    bool syntheticStages = false;
    int replicas = 1;     ///< copies of the pipeline; the module joins them
    bool profile = false; ///< run PyTorch's profiler too
    QString python = QStringLiteral("python3");

    static RunChoice load(const QSettings& settings);
    void save(QSettings& settings) const;
    bool isTorch() const { return backend == QLatin1String("torch"); }
    ChildRequest request() const; ///< without files and program
};

} // namespace pipewright
