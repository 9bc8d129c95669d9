// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/experiment/experimentprocess.h"

#include "core/json/jsonvalue.h"
#include "executor/experiment/experimentreport.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

QStringList ExperimentRequest::arguments() const
{
    QStringList words{QStringLiteral("experiment")};
    words << files << QStringLiteral("--steps") << QString::number(updates) << QStringLiteral("--seeds")
          << QString::number(seeds) << QStringLiteral("--optimizer") << optimizer << QStringLiteral("--learning-rate")
          << QString::number(learningRate, 'g', 12) << QStringLiteral("--momentum")
          << QString::number(momentum, 'g', 12) << QStringLiteral("--progress") << QStringLiteral("json")
          << QStringLiteral("--json");
    if (!data.isEmpty())
        words << QStringLiteral("--data") << data;
    return words;
}

ExperimentProcess::ExperimentProcess(QObject* parent) : QObject(parent)
{
    connect(&m_child, &ChildProcess::line, this, &ExperimentProcess::takeLine);
    connect(&m_child, &ChildProcess::ended, this, &ExperimentProcess::end);
}

void ExperimentProcess::start(const ExperimentRequest& request)
{
    m_lastMessage.clear();
    m_child.start(request.program, request.arguments());
}

void ExperimentProcess::end(const ChildEnd& child)
{
    QString reason;
    if (child.kind == ChildEnd::NotStarted)
        reason = tr("The experiment could not be started: %1").arg(child.whyNot);
    else if (!child.cancelled && child.kind == ChildEnd::Crashed)
        reason = tr("The experiment ended unexpectedly (signal %1). The designer is not affected.").arg(child.code);
    else if (!child.cancelled && child.code != 0)
        reason = m_lastMessage.isEmpty() ? tr("The experiment failed (exit code %1).").arg(child.code) : m_lastMessage;
    Q_EMIT finished(child.cancelled, reason);
}

void ExperimentProcess::takeLine(const QByteArray& line)
{
    const JsonValue json = JsonValue::fromText(line.toStdString());
    const auto whole = [&](const char* key, int without) {
        return static_cast<int>(json.member(key).integer().value_or(without));
    };
    if (json.contains("finished")) {
        Q_EMIT runFinished(experimentRunFrom(json.member("finished")));
    } else if (json.contains("progress")) {
        ExperimentProgress now;
        now.run = whole("run", 0);
        now.runs = std::max(1, whole("runs", 1));
        now.design = json.member("design").text().value_or(std::string());
        now.seed = json.member("seed").unsignedInteger().value_or(1);
        now.update = whole("update", 0);
        now.updates = std::max(1, whole("updates", 1));
        now.loss = json.member("loss").number().value_or(NAN);
        Q_EMIT progressed(now, json.member("eta_ns").number().value_or(0) / 1e9);
    } else {
        m_lastMessage = QString::fromUtf8(line);
        Q_EMIT message(m_lastMessage);
    }
}

} // namespace pipewright

#include "moc_experimentprocess.cpp"
