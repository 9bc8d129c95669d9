// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/childprocess.h"

#include <QCoreApplication>

#include <csignal>
#include <utility>

namespace pipewright {

namespace {

constexpr int graceMilliseconds = 4000;

} // namespace

ChildProcess::ChildProcess(QObject* parent) : QObject(parent)
{
    m_grace.setSingleShot(true);
    m_grace.setInterval(graceMilliseconds);
    connect(&m_grace, &QTimer::timeout, &m_process, &QProcess::kill);
    connect(&m_process, &QProcess::readyReadStandardError, this, &ChildProcess::readErrors);
    connect(&m_process, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
        m_grace.stop();
        readErrors();
        takeLine(std::exchange(m_pending, {}));
        Q_EMIT ended({.kind = status == QProcess::CrashExit ? ChildEnd::Crashed : ChildEnd::Exited,
                      .code = code,
                      .cancelled = m_cancelled,
                      .output = m_process.readAllStandardOutput().trimmed()});
    });
    connect(&m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) // after any other error, finished() follows
            Q_EMIT ended({.kind = ChildEnd::NotStarted, .cancelled = m_cancelled, .whyNot = m_process.errorString()});
    });
}

ChildProcess::~ChildProcess()
{
    m_process.disconnect(this);
    if (isRunning()) {
        m_process.kill();
        m_process.waitForFinished(2000);
    }
}

void ChildProcess::start(const QString& program, const QStringList& arguments)
{
    m_pending.clear();
    m_cancelled = false;
    m_process.start(program.isEmpty() ? QCoreApplication::applicationFilePath() : program, arguments);
    m_process.closeWriteChannel();
}

void ChildProcess::cancel()
{
    if (!isRunning() || m_cancelled)
        return;
    m_cancelled = true;
    if (const qint64 pid = m_process.processId(); pid > 0)
        ::kill(static_cast<pid_t>(pid), SIGINT); // the child closes its files and exits
    m_grace.start();
}

void ChildProcess::readErrors()
{
    m_pending += m_process.readAllStandardError();
    qsizetype begin = 0;
    for (qsizetype end = m_pending.indexOf('\n'); end >= 0; end = m_pending.indexOf('\n', begin)) {
        takeLine(m_pending.mid(begin, end - begin));
        begin = end + 1;
    }
    m_pending.remove(0, begin);
}

void ChildProcess::takeLine(const QByteArray& text)
{
    if (const QByteArray trimmed = text.trimmed(); !trimmed.isEmpty())
        Q_EMIT line(trimmed);
}

} // namespace pipewright

#include "moc_childprocess.cpp"
