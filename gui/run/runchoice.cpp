// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/runchoice.h"

#include <QSettings>

#include <algorithm>

namespace pipewright {

namespace {

QString choiceKey(const char* name)
{
    return QStringLiteral("run/%1").arg(QLatin1String(name));
}

/// The value of `--maths`; empty: the run's own choice.
QString mathsOf(RunChoice::Blocks blocks)
{
    switch (blocks) {
    case RunChoice::Blocks::Train: return QStringLiteral("training");
    case RunChoice::Blocks::Sleep: return QStringLiteral("timed");
    case RunChoice::Blocks::KeepBusy: return QStringLiteral("synthetic");
    }
    return {};
}

} // namespace

RunChoice RunChoice::load(const QSettings& settings)
{
    RunChoice choice;
    choice.backend = settings.value(choiceKey("backend"), choice.backend).toString();
    choice.steps = std::clamp(settings.value(choiceKey("steps"), choice.steps).toInt(), 1, 1'000'000);
    choice.data = settings.value(choiceKey("data")).toString();
    choice.transport = settings.value(choiceKey("transport")).toString();
    choice.calibrate = settings.value(choiceKey("calibrate"), false).toBool();
    choice.module = settings.value(choiceKey("module")).toString();
    choice.syntheticStages = settings.value(choiceKey("syntheticStages"), false).toBool();
    choice.replicas = std::clamp(settings.value(choiceKey("replicas"), choice.replicas).toInt(), 1, mostReplicas);
    choice.profile = settings.value(choiceKey("profile"), false).toBool();
    choice.python = settings.value(choiceKey("python"), choice.python).toString();
    return choice;
}

void RunChoice::save(QSettings& settings) const
{
    settings.setValue(choiceKey("backend"), backend);
    settings.setValue(choiceKey("steps"), steps);
    settings.setValue(choiceKey("data"), data);
    settings.setValue(choiceKey("transport"), transport);
    settings.setValue(choiceKey("calibrate"), calibrate);
    settings.setValue(choiceKey("module"), module);
    settings.setValue(choiceKey("syntheticStages"), syntheticStages);
    settings.setValue(choiceKey("replicas"), replicas);
    settings.setValue(choiceKey("profile"), profile);
    settings.setValue(choiceKey("python"), python);
}

ChildRequest RunChoice::request() const
{
    ChildRequest request;
    request.backend = backend;
    request.steps = steps;
    if (isTorch()) {
        request.more = {QStringLiteral("--python"), python}; // the design says how many ranks there are
        if (profile)
            request.more << QStringLiteral("--record") << QStringLiteral("kernels");
        if (replicas > 1)
            request.more << QStringLiteral("--replicas") << QString::number(replicas);
        if (syntheticStages)
            request.more << QStringLiteral("--synthetic-stages");
        else
            request.more << QStringLiteral("--module") << module;
        return request;
    }
    request.transport = transport;
    request.more = {QStringLiteral("--maths"), mathsOf(blocks)};
    if (blocks == Blocks::Train)
        request.data = data;
    else if (memoryScale != 1)
        request.more << QStringLiteral("--memory-scale") << QString::number(memoryScale, 'g', 17);
    return request;
}

} // namespace pipewright
