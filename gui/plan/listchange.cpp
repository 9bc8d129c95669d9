// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plan/listchange.h"

#include "gui/plan/plandetails.h"
#include "gui/widgets/words.h"

#include <QLocale>
#include <QObject>
#include <QStringList>

namespace pipewright {

namespace {

bool samePins(const PlanSpace& a, const PlanSpace& b)
{
    return a.tensor == b.tensor && a.context == b.context && a.expert == b.expert && a.pipeline == b.pipeline
           && a.data == b.data && a.chunks == b.chunks && a.microbatchSize == b.microbatchSize && a.zero == b.zero
           && a.reshard == b.reshard && a.recompute == b.recompute;
}

QStringList changesOf(const PlanRequest& a, const PlanRequest& b)
{
    QStringList changes;
    const auto from = [&](const QString& text, const auto& was, const auto& is) {
        if (was != is)
            changes << text.arg(was).arg(is);
    };
    const auto name = [](const std::string& text) { return QString::fromStdString(text); };
    from(QObject::tr("%1 → %2"), name(a.shape.name), name(b.shape.name));
    from(QObject::tr("%1 → %2"), name(a.cluster(1, 1)->name), name(b.cluster(1, 1)->name));
    from(QObject::tr("%1 → %2 devices"), a.devices, b.devices);
    from(QObject::tr("%1 → %2 sequences"), a.batch, b.batch);
    from(QObject::tr("sequences of %1 → %2 tokens"), qlonglong(a.shape.sequence), qlonglong(b.shape.sequence));
    if (a.memoryLimit != b.memoryLimit)
        changes << QObject::tr("another memory limit");
    if (a.shape.framework != b.shape.framework)
        changes << QObject::tr("another framework");
    if (a.families != b.families)
        changes << QObject::tr("other families");
    if (!samePins(a, b))
        changes << QObject::tr("other pins");
    return changes;
}

} // namespace

ListBefore listBefore(const PlanRequest& request, const PlanResult& result)
{
    const TrainingPlan& best = result.plans.front();
    return {request, best.step, best.tokensPerSecondPerDevice * request.devices,
            planText(best.setting, *best.family, best.chunks), result.complete};
}

QString changeText(const ListBefore& before, const ListBefore& now)
{
    const QStringList changes = changesOf(before.request, now.request);
    if (changes.isEmpty() || before.step <= 0 || before.tokensPerSecond <= 0)
        return {};
    QString text = QObject::tr("Against the list before (%1): the best step goes from %2 to %3, %4; tokens a second of "
                               "all devices from %5 to %6, %7; predicted.")
                       .arg(changes.join(QStringLiteral(", ")), durationText(before.step), durationText(now.step),
                            signedPercent(static_cast<double>(now.step) / static_cast<double>(before.step) - 1),
                            rateText(before.tokensPerSecond), rateText(now.tokensPerSecond),
                            signedPercent(now.tokensPerSecond / before.tokensPerSecond - 1));
    if (before.plan != now.plan)
        text += QObject::tr(" The best was %1.").arg(before.plan);
    if (!before.complete || !now.complete)
        text += QObject::tr(" Not both lists are complete.");
    return text;
}

} // namespace pipewright
