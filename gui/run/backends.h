// SPDX-License-Identifier: GPL-3.0-or-later
// The backends from `pipewright devices --json`, with a reason for each unavailable one, and PyTorch from the chosen
// Python. Child processes ask for them, so that a crashing driver does not affect the designer.
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
    QString description;                      ///< the hardware it would run on, or why it is unavailable
    std::vector<PipewrightCudaDevice> gpus{}; ///< of "cuda": multiprocessors, architecture and memory
    Bytes memory = 0;                         ///< of "host": total memory; 0: not known
};

/// The choice for this design: unavailable, with a reason, when the design's GPUs cannot be used.
BackendChoice forDesign(BackendChoice choice, const Design& design);

/// Invalid input gives only the host backend, which is in every build.
std::vector<BackendChoice> parseBackends(const QByteArray& json);
/// The backend "torch", from the answer of a Python process that was asked for PyTorch's version.
BackendChoice torchBackend(const QString& python, bool started, int exitCode, const QByteArray& output);
MachineMemory machineMemory(const std::vector<BackendChoice>& backends);

class BackendQuery : public QObject {
    Q_OBJECT

public:
    explicit BackendQuery(QObject* parent = nullptr);
    ~BackendQuery() override;
    /// `program` empty: this binary; `python` empty: PyTorch is not queried. A later call only queries its Python, and
    /// ends the query of an earlier one.
    void start(const QString& program, const QString& python);
    const QString& python() const { return m_pythonName; }

Q_SIGNALS:
    void ready(const std::vector<BackendChoice>& backends);

private:
    void askPython(const QString& python);
    void tell(); ///< emits ready() once both have answered

    QProcess m_process, m_python;
    QTimer m_patience;         ///< ends a query of Python that takes too long
    bool m_isOutdated = false; ///< the running query is for another Python than m_pythonName
    QString m_pythonName;
    std::vector<BackendChoice> m_backends; ///< empty: not known yet
    std::optional<BackendChoice> m_torch;
};

} // namespace pipewright
