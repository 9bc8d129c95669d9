// SPDX-License-Identifier: GPL-3.0-or-later
// The available backends, from `pipewright devices --json`, with the reason for those that are not. A child process
// probes drivers, so that a crash there does not harm the designer.
#pragma once

#include "core/design/design.h"
#include "executor/cuda/table.h"

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QString>

#include <vector>

namespace pipewright {

struct BackendChoice {
    QString name; ///< "host", as for --backend
    bool available = false;
    QString description;                      ///< what it would run on, or why it is off
    std::vector<PipewrightCudaDevice> gpus{}; ///< of "cuda": multiprocessors and architecture
};

/// The choice for this design: unavailable, with the reason, when the named GPUs cannot be used.
BackendChoice forDesign(BackendChoice choice, const Design& design);

/// Invalid input gives the host backend alone, which is in every build.
std::vector<BackendChoice> parseBackends(const QByteArray& json);

class BackendQuery : public QObject {
    Q_OBJECT

public:
    explicit BackendQuery(QObject* parent = nullptr);
    ~BackendQuery() override;
    /// `program` empty: this binary.
    void start(const QString& program = {});

Q_SIGNALS:
    void ready(const std::vector<BackendChoice>& backends);

private:
    QProcess m_process;
};

} // namespace pipewright
