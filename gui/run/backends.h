// SPDX-License-Identifier: GPL-3.0-or-later
// What can run here, as `pipewright devices --json` says it: per backend whether it is available, and the
// reason when it is not. Asked of a child process, so that probing a driver cannot harm the designer.
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

/// The choice as it is for this design: off, with the reason, where its devices cannot have the GPUs that it names.
BackendChoice forDesign(BackendChoice choice, const Design& design);

/// Nothing understandable gives the host backend alone, which is in every build.
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
