// SPDX-License-Identifier: GPL-3.0-or-later
// The available backends, from `pipewright devices --json`, with the reason for those that are not, and PyTorch, from
// the Python that was named. Child processes ask, so that a driver that crashes does not harm the designer.
#pragma once

#include "core/design/design.h"
#include "executor/run/machinefit.h"

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QString>
#include <QTimer>

#include <optional>
#include <vector>

namespace pipewright {

struct BackendChoice {
    QString name; ///< "host", as for --backend
    bool available = false;
    QString description;                      ///< what it would run on, or why it is off
    std::vector<PipewrightCudaDevice> gpus{}; ///< of "cuda": multiprocessors, architecture and memory
    Bytes memory = 0;                         ///< of "host", in all; 0: not known
};

/// The choice for this design: unavailable, with the reason, when the named GPUs cannot be used.
BackendChoice forDesign(BackendChoice choice, const Design& design);

/// Invalid input gives the host backend alone, which is in every build.
std::vector<BackendChoice> parseBackends(const QByteArray& json);
/// PyTorch, by what a Python answered that was asked for its version.
BackendChoice torchBackend(const QString& python, bool started, int exitCode, const QByteArray& output);
MachineMemory machineMemory(const std::vector<BackendChoice>& backends);

class BackendQuery : public QObject {
    Q_OBJECT

public:
    explicit BackendQuery(QObject* parent = nullptr);
    ~BackendQuery() override;
    /// `program` empty: this binary; `python` empty: PyTorch is not asked for. A further call only asks its Python, and
    /// ends the query of an earlier one.
    void start(const QString& program, const QString& python);
    const QString& python() const { return m_pythonName; }

Q_SIGNALS:
    void ready(const std::vector<BackendChoice>& backends);

private:
    void askPython(const QString& python);
    void tell(); ///< once both have answered

    QProcess m_process, m_python;
    QTimer m_patience;         ///< ends a query of Python that takes too long
    bool m_isOutdated = false; ///< the running query is of another Python than m_pythonName
    QString m_pythonName;
    std::vector<BackendChoice> m_backends; ///< empty: not known yet
    std::optional<BackendChoice> m_torch;
};

} // namespace pipewright
