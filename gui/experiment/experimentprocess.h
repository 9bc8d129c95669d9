// SPDX-License-Identifier: GPL-3.0-or-later
// An experiment as a child process: `pipewright experiment`. It reports every update and every finished run as a JSON
// line; a cancel interrupts it and keeps the finished runs.
#pragma once

#include "executor/experiment/experiment.h"
#include "gui/run/childprocess.h"

#include <QStringList>

namespace pipewright {

struct ExperimentRequest {
    QString program;   ///< the binary to start; empty: this one
    QStringList files; ///< the designs
    int updates = 300, seeds = 1;
    QString optimizer; ///< "sgd", "adamw", …
    double learningRate = 0, momentum = 0;
    QString data; ///< empty: the program's default

    QStringList arguments() const;
};

class ExperimentProcess : public QObject {
    Q_OBJECT

public:
    explicit ExperimentProcess(QObject* parent = nullptr);

    void start(const ExperimentRequest& request);
    void cancel() { m_child.cancel(); }
    bool isRunning() const { return m_child.isRunning(); }

Q_SIGNALS:
    void progressed(const ExperimentProgress& progress, double secondsLeft);
    void runFinished(const ExperimentRun& run);
    void message(const QString& line); ///< a diagnostic
    /// `reason` is empty when all runs are done.
    void finished(bool cancelled, const QString& reason);

private:
    void takeLine(const QByteArray& line);
    void end(const ChildEnd& child);

    ChildProcess m_child;
    QString m_lastMessage;
};

} // namespace pipewright
