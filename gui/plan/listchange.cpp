// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plan/listchange.h"

#include <QObject>
#include <QStringList>

namespace pipewright {

namespace {

bool samePins(const PlanSpace& a, const PlanSpace& b)
{
    return a.tensor == b.tensor && a.context == b.context && a.expert == b.expert && a.foldedExperts == b.foldedExperts
           && a.pipeline == b.pipeline && a.data == b.data && a.chunks == b.chunks
           && a.microbatchSize == b.microbatchSize && a.zero == b.zero && a.reshard == b.reshard
           && a.recompute == b.recompute;
}

} // namespace

QString changesText(const PlanRequest& a, const PlanRequest& b)
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
    return changes.join(QStringLiteral(", "));
}

QString changeText(const QString& changes, const PlanDifference& difference, bool complete)
{
    QStringList lines{QObject::tr("Against the list before (%1), predicted:").arg(changes)};
    for (const std::string& line : differenceText(difference))
        lines << QString::fromStdString(line);
    if (!complete)
        lines << QObject::tr("Not both lists are complete.");
    return lines.join(QLatin1Char('\n'));
}

} // namespace pipewright
