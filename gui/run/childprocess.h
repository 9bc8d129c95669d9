// SPDX-License-Identifier: GPL-3.0-or-later
// The same binary as a child process, so that a crash or hang of an executor does not affect the designer. Its standard
// error is read line by line. cancel() interrupts the child and kills it after a grace period.
#pragma once

#include <QObject>
#include <QProcess>
#include <QTimer>

namespace pipewright {

struct ChildEnd {
    enum Kind { NotStarted, Crashed, Exited } kind = Exited;
    int code = 0; ///< the exit code, or the signal that ended it
    bool cancelled = false;
    QByteArray output{}; ///< all of its standard output, trimmed
    QString whyNot{};    ///< why it could not be started
};

class ChildProcess : public QObject {
    Q_OBJECT

public:
    explicit ChildProcess(QObject* parent = nullptr);
    ~ChildProcess() override; ///< kills a child that still runs

    /// `program` empty: this binary.
    void start(const QString& program, const QStringList& arguments);
    void cancel();
    void setGrace(int milliseconds) { m_grace.setInterval(milliseconds); }
    bool isRunning() const { return m_process.state() != QProcess::NotRunning; }

Q_SIGNALS:
    void line(const QByteArray& text); ///< of standard error: trimmed, never empty
    void ended(const ChildEnd& end);   ///< once for each start, after all lines

private:
    void readErrors();
    void takeLine(const QByteArray& text);

    QProcess m_process;
    QTimer m_grace;
    QByteArray m_pending;
    bool m_cancelled = false;
};

} // namespace pipewright
