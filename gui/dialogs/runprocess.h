// SPDX-License-Identifier: GPL-3.0-or-later
// A run of a design as a child process of the same binary, so that a crash or a hang of an executor can
// never take the designer down. Progress comes back as JSON lines on standard error, the result as one
// JSON object on standard output, and everything else on standard error is a diagnostic to show.
#pragma once

#include <QByteArray>
#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTimer>

#include <optional>

namespace pipewright {

struct ChildRequest {
    QString program;   ///< the binary to start; empty: this one
    QString design;    ///< file to run
    QString trace;     ///< file to write
    QString backend = QStringLiteral("host");
    int steps = 10;
    QString data;      ///< training text; empty: the built-in one
    QString transport; ///< empty: the backend's own choice

    QStringList arguments() const;
};

struct ChildProgress {
    double share = 0; ///< 0 to 1
    int step = -1, steps = -1;
    std::optional<double> loss;
    double secondsLeft = -1; ///< negative: not known yet
};

struct ChildResult {
    enum Kind { Done, Cancelled, Failed } kind = Failed;
    QString reason;         ///< why it failed
    QStringList messages;   ///< diagnostics that the child printed
    QString trace;
    bool gradientsChecked = false, bitEqual = false;
    double maxRelativeError = 0;
    QByteArray json;        ///< the child's own report
};

class RunProcess : public QObject {
    Q_OBJECT

public:
    explicit RunProcess(QObject* parent = nullptr);
    ~RunProcess() override; ///< ends a child that still runs

    void start(const ChildRequest& request);
    /// Interrupts the child; after the grace time it is killed.
    void cancel();
    void setGrace(int milliseconds) { m_grace.setInterval(milliseconds); }
    bool isRunning() const { return m_process.state() != QProcess::NotRunning; }

    /// One line of the child's standard error; nothing when it is not progress.
    static std::optional<ChildProgress> parseProgress(const QByteArray& line);

Q_SIGNALS:
    void progressed(const ChildProgress& progress);
    void message(const QString& line);
    void finished(const ChildResult& result);

private:
    void readErrors();
    void takeLine(const QByteArray& line);
    void end(QProcess::ExitStatus status, int code);
    void finishOnce(ChildResult result);

    QProcess m_process;
    QTimer m_grace;
    QElapsedTimer m_clock;
    ChildRequest m_request;
    QByteArray m_pending;
    QStringList m_messages;
    bool m_cancelled = false;
    bool m_reported = false;
};

} // namespace pipewright
