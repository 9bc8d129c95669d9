// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/experiment/experimentprocess.h"

#include "core/json/jsontext.h"
#include "executor/experiment/experimentreport.h"

#include <nlohmann/json.hpp>

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
    const auto json = tryJsonFromText(line.toStdString());
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

#include "moc_experimentprocess.cpp"
