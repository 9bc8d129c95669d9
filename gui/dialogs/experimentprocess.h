// SPDX-License-Identifier: GPL-3.0-or-later
// An experiment as a child process of the same binary: `pipewright experiment`. It reports every update and every
// finished run as a JSON line; a cancel interrupts it, and what it has finished by then stays.
#pragma once

#include "executor/experiment.h"

#include <QObject>
#include <QProcess>
#include <QTimer>

namespace pipewright {

struct ExperimentRequest {
    QString program;   ///< the binary to start; empty: this one
    QStringList files; ///< the designs
    int updates = 300, seeds = 1;
    QString optimizer; ///< "sgd", "adamw", …
    double learningRate = 0, momentum = 0;
    QString data; ///< empty: what the program takes by itself

    QStringList arguments() const;
};

class ExperimentProcess : public QObject {
    Q_OBJECT

public:
    explicit ExperimentProcess(QObject* parent = nullptr);
    ~ExperimentProcess() override; ///< ends a child that still runs

    void start(const ExperimentRequest& request);
    void cancel(); ///< interrupts the child; after a grace time it is killed
    bool isRunning() const { return m_process.state() != QProcess::NotRunning; }

Q_SIGNALS:
    void progressed(const ExperimentProgress& progress, double secondsLeft);
    void runFinished(const ExperimentRun& run);
    void message(const QString& line); ///< a diagnostic
    /// `reason` is empty when all runs are done.
    void finished(bool cancelled, const QString& reason);

private:
    void readErrors();
    void takeLine(const QByteArray& line);

    QProcess m_process;
    QTimer m_grace;
    QByteArray m_pending;
    QString m_lastMessage;
    bool m_cancelled = false;
};

} // namespace pipewright
