// SPDX-License-Identifier: GPL-3.0-or-later
// The same binary as a child process, so that a crash or hang of an executor does not affect the designer. Standard
// error is read by line; a cancel interrupts it and kills it after a grace period.
#pragma once

#include <QObject>
#include <QProcess>
#include <QTimer>

namespace pipewright {

struct ChildEnd {
    enum Kind { NotStarted, Crashed, Exited } kind = Exited;
    int code = 0; ///< the exit code, or the signal that ended it
    bool cancelled = false;
    QByteArray output{}; ///< all of its standard output
    QString whyNot{};    ///< it could not be started
};

class ChildProcess : public QObject {
    Q_OBJECT

public:
    explicit ChildProcess(QObject* parent = nullptr);
    ~ChildProcess() override; ///< kills a child that still runs

    /// An empty program is this one.
    void start(const QString& program, const QStringList& arguments);
    void cancel();
    void setGrace(int milliseconds) { m_grace.setInterval(milliseconds); }
    bool isRunning() const { return m_process.state() != QProcess::NotRunning; }

Q_SIGNALS:
    void line(const QByteArray& text); ///< of standard error: never empty, without spaces at its ends
    void ended(const ChildEnd& end);   ///< once for each start; every line has come by then

private:
    void readErrors();
    void takeLine(const QByteArray& text);

    QProcess m_process;
    QTimer m_grace;
    QByteArray m_pending;
    bool m_cancelled = false;
};

} // namespace pipewright
