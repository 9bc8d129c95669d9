// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/experimentprocess.h"

#include "executor/experimentreport.h"

#include <nlohmann/json.hpp>

#include <QCoreApplication>

#include <cmath>
#include <csignal>

namespace pipewright {

QStringList ExperimentRequest::arguments() const
{
    QStringList words{QStringLiteral("experiment")};
    words << files << QStringLiteral("--steps") << QString::number(updates) << QStringLiteral("--seeds") << QString::number(seeds)
          << QStringLiteral("--optimizer") << optimizer << QStringLiteral("--learning-rate") << QString::number(learningRate, 'g', 12)
          << QStringLiteral("--momentum") << QString::number(momentum, 'g', 12) << QStringLiteral("--progress") << QStringLiteral("json")
          << QStringLiteral("--json");
    if (!data.isEmpty())
        words << QStringLiteral("--data") << data;
    return words;
}

ExperimentProcess::ExperimentProcess(QObject* parent)
    : QObject(parent)
{
    m_grace.setSingleShot(true);
    m_grace.setInterval(4000);
    connect(&m_grace, &QTimer::timeout, &m_process, &QProcess::kill);
    connect(&m_process, &QProcess::readyReadStandardError, this, &ExperimentProcess::readErrors);
    connect(&m_process, &QProcess::readyReadStandardOutput, this, [this] { m_process.readAllStandardOutput(); }); // known by then
    connect(&m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart)
            Q_EMIT finished(false, tr("The experiment could not be started: %1").arg(m_process.errorString()));
    });
    connect(&m_process, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
        m_grace.stop();
        readErrors();
        takeLine(m_pending.trimmed());
        m_pending.clear();
        QString reason;
        if (!m_cancelled && status == QProcess::CrashExit)
            reason = tr("The experiment ended unexpectedly (signal %1). The designer is not affected.").arg(code);
        else if (!m_cancelled && code != 0)
            reason = m_lastMessage.isEmpty() ? tr("The experiment failed (exit code %1).").arg(code) : m_lastMessage;
        Q_EMIT finished(m_cancelled, reason);
    });
}

ExperimentProcess::~ExperimentProcess()
{
    m_process.disconnect(this);
    if (isRunning()) {
        m_process.kill();
        m_process.waitForFinished(2000);
    }
}

void ExperimentProcess::start(const ExperimentRequest& request)
{
    m_pending.clear();
    m_lastMessage.clear();
    m_cancelled = false;
    m_process.start(request.program.isEmpty() ? QCoreApplication::applicationFilePath() : request.program, request.arguments());
    m_process.closeWriteChannel();
}

void ExperimentProcess::cancel()
{
    if (!isRunning() || m_cancelled)
        return;
    m_cancelled = true;
    if (const qint64 pid = m_process.processId(); pid > 0)
        ::kill(static_cast<pid_t>(pid), SIGINT);
    m_grace.start();
}

void ExperimentProcess::readErrors()
{
    m_pending += m_process.readAllStandardError();
    qsizetype begin = 0;
    for (qsizetype end = m_pending.indexOf('\n'); end >= 0; end = m_pending.indexOf('\n', begin)) {
        takeLine(m_pending.mid(begin, end - begin).trimmed());
        begin = end + 1;
    }
    m_pending.remove(0, begin);
}

void ExperimentProcess::takeLine(const QByteArray& line)
{
    if (line.isEmpty())
        return;
    const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    if (json.is_object() && json.contains("finished")) {
        Q_EMIT runFinished(experimentRunFrom(json["finished"]));
    } else if (json.is_object() && json.contains("progress")) {
        ExperimentProgress now;
        now.run = json.value("run", 0);
        now.runs = std::max(1, json.value("runs", 1));
        now.design = json.value("design", std::string());
        now.seed = json.value("seed", std::uint64_t{1});
        now.update = json.value("update", 0);
        now.updates = std::max(1, json.value("updates", 1));
        now.loss = json.contains("loss") && json["loss"].is_number() ? json["loss"].get<double>() : NAN;
        Q_EMIT progressed(now, json.value("eta_ns", 0.0) / 1e9);
    } else {
        m_lastMessage = QString::fromUtf8(line);
        Q_EMIT message(m_lastMessage);
    }
}

} // namespace pipewright
