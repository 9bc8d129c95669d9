// SPDX-License-Identifier: GPL-3.0-or-later
// A run of a design as a child process: `pipewright run`. Progress comes back as JSON lines on standard error, the
// result as one JSON object on standard output, and everything else on standard error is a diagnostic to show.
#pragma once

#include "gui/run/childprocess.h"

#include <QByteArray>
#include <QElapsedTimer>
#include <QStringList>

#include <optional>

namespace pipewright {

struct ChildRequest {
    QString program; ///< the binary to start; empty: this one
    QString design;  ///< file to run
    QString trace;   ///< file to write
    QString backend = QStringLiteral("host");
    int steps = 10;
    QString data;       ///< training text; empty: the built-in one
    QString transport;  ///< empty: the backend's own choice
    QStringList more{}; ///< further options of `run`, passed on unchanged

    QStringList arguments() const;
};

struct ChildProgress {
    double share = 0; ///< 0 to 1
    int step = -1, steps = -1;
    std::optional<double> loss;
    std::optional<double> stepTime; ///< nanoseconds, of the last step
    double secondsLeft = -1;        ///< negative: not known yet
};

struct ChildResult {
    enum Kind { Done, Cancelled, Failed } kind = Failed;
    QString reason;       ///< why it failed
    QStringList messages; ///< diagnostics that the child printed
    QString trace;
    bool gradientsChecked = false, bitEqual = false;
    double maxRelativeError = 0;
    bool gradientsHold = false; ///< they are within the required tolerance
    QByteArray json;            ///< the child's own report
};

class RunProcess : public QObject {
    Q_OBJECT

public:
    explicit RunProcess(QObject* parent = nullptr);

    void start(const ChildRequest& request);
    void cancel() { m_child.cancel(); }
    void setGrace(int milliseconds) { m_child.setGrace(milliseconds); }
    bool isRunning() const { return m_child.isRunning(); }

    /// One line of the child's standard error; nothing when it is not progress.
    static std::optional<ChildProgress> parseProgress(const QByteArray& line);

Q_SIGNALS:
    void progressed(const ChildProgress& progress);
    void message(const QString& line);
    void finished(const ChildResult& result);

private:
    void takeLine(const QByteArray& line);
    void end(const ChildEnd& child);

    ChildProcess m_child;
    QElapsedTimer m_clock;
    ChildRequest m_request;
    QStringList m_messages;
};

} // namespace pipewright
