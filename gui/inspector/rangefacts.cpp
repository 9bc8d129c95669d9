// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/rangefacts.h"

#include "gui/timeline/timelineview.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/section.h"
#include "gui/widgets/words.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pipewright {

namespace {

constexpr double leastShare = 0.0005; // less is written as 0.0 %

double shareOf(Nanoseconds time, const RangeStatistics& range)
{
    const double all = static_cast<double>(range.length()) * static_cast<double>(range.devices.size());
    return all > 0 ? static_cast<double>(time) / all : 0;
}

/// Idle time by cause, as a share of devices × range. A recording says that data was late; a prediction also says
/// whether a gradient or an activation.
std::vector<std::pair<QString, double>> idleCauses(const Document::Range& range, Side side)
{
    if (side == Side::Predicted) {
        const IdleCauses causes = range.predicted->total().causes;
        const auto share = [&](Nanoseconds time) { return shareOf(time, *range.predicted); };
        return {{RangeFacts::tr("warm-up and cool-down"), share(causes.warmUp + causes.coolDown)},
                {RangeFacts::tr("waits for gradient"), share(causes.waitGradient)},
                {RangeFacts::tr("waits for activation"), share(causes.waitActivation)},
                {RangeFacts::tr("transfer"), share(causes.transfer)},
                {RangeFacts::tr("gathers and sums"), share(causes.copies)},
                {RangeFacts::tr("host"), share(causes.host)},
                {RangeFacts::tr("pins and reductions"), share(causes.other)}};
    }
    if (!range.measured)
        return {};
    const IdleGap& idle = range.measuredIdle;
    const auto share = [&](Nanoseconds time) { return shareOf(time, *range.measured); };
    return {{RangeFacts::tr("warm-up and cool-down"), share(idle.warmUp + idle.coolDown)},
            {RangeFacts::tr("late data"), share(idle.lateData)},
            {RangeFacts::tr("transfer"), share(idle.transfer)},
            {RangeFacts::tr("host"), share(idle.hostGap)},
            {RangeFacts::tr("waits for memory"), share(idle.memoryWait)},
            {RangeFacts::tr("pinned or not recorded"), share(idle.pinned + idle.notRecorded)}};
}

} // namespace

RangeFacts::RangeFacts(TimelineView& timeline, QWidget* parent)
    : QWidget(parent), m_timeline(timeline), m_facts(new FactList(this)),
      m_section(new Section(tr("Range"), m_facts, true, this))
{
    setAccessibleName(tr("Numbers of the measured range"));
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0});
    layout->addWidget(m_section);
    connect(&timeline, &TimelineView::rangeChanged, this, &RangeFacts::refresh);
    connect(&timeline.document(), &Document::designChanged, this, &RangeFacts::refresh);
    connect(&timeline.document(), &Document::overlayChanged, this, &RangeFacts::refresh);
    connect(&timeline.document(), &Document::sideChanged, this, &RangeFacts::refresh);
    refresh();
}

QString RangeFacts::heading() const
{
    return m_section->title();
}

void RangeFacts::refresh()
{
    const auto chosen = m_timeline.range();
    const Document& document = m_timeline.document();
    const Document::Range range = chosen ? document.statistics(chosen->first, chosen->second) : Document::Range();
    setVisible(range.predicted.has_value());
    if (!range.predicted)
        return;
    const Side side = document.side();
    m_section->setTitle(tr("Range · %1").arg(sideName(side)));
    std::vector<Fact> facts;
    const RangeStatistics &predicted = *range.predicted, none{};
    const RangeStatistics& measured = range.measured ? *range.measured : none;
    const auto add = [&](const QString& name, const QString& of, const QString& ofMeasured, const QString& source) {
        facts.push_back(
            {name, sidedText(side, of, ofMeasured), QStringLiteral("%1, %2").arg(source, sideName(side)), Tone::Plain});
    };
    const auto addShare = [&](const QString& name, double of, double ofMeasured, const QString& source) {
        add(name, percentText(of), percentText(ofMeasured), source);
    };
    facts.push_back({tr("length"), durationText(chosen->second - chosen->first),
                     tr("From %1 to %2").arg(durationText(chosen->first), durationText(chosen->second)), Tone::Plain});
    addShare(tr("busy"), predicted.busyShare(), measured.busyShare(),
             tr("Share of devices × range in which a device computes; what lies outside of the step does not count"));
    const RangeStatistics::Device sum = predicted.total(), sumMeasured = measured.total();
    for (const Op op : allOps)
        if (sum.perOp[indexOf(op)] + sumMeasured.perOp[indexOf(op)] > 0)
            addShare(QStringLiteral("%1, %2")
                         .arg(QLatin1Char(letter(op)))
                         .arg(QString::fromStdString(std::string(describe(op)))),
                     shareOf(sum.perOp[indexOf(op)], predicted), shareOf(sumMeasured.perOp[indexOf(op)], measured),
                     tr("Share of devices × range; of blocks that overlap each counts in full"));
    addShare(tr("idle"), predicted.length() > 0 ? 1 - predicted.busyShare() : 0,
             measured.length() > 0 ? 1 - measured.busyShare() : 0, tr("Share of devices × range"));
    const QString ofIdle = sideName(side == Side::Predicted ? Side::Predicted : Side::Measured);
    for (const auto& [cause, share] : idleCauses(range, side))
        if (share >= leastShare)
            facts.push_back({side == Side::Both ? tr("%1, measured").arg(cause) : cause, percentText(share),
                             tr("Idle time for this reason as a share of devices × range, %1").arg(ofIdle),
                             Tone::Plain});
    // The least busy and the busiest device, on the side that is filled in the charts.
    const RangeStatistics& shown = side == Side::Predicted ? predicted : measured;
    if (shown.length() > 0 && shown.devices.size() > 1) {
        const auto [least, most] = std::minmax_element(shown.devices.begin(), shown.devices.end(),
                                                       [](const auto& a, const auto& b) { return a.busy < b.busy; });
        const auto addDevice = [&](const QString& name, std::size_t device) {
            facts.push_back({name,
                             QStringLiteral("%1 %2").arg(
                                 sidedText(side, percentText(predicted.busyShare(device)),
                                           range.measured ? percentText(measured.busyShare(device)) : QString()),
                                 deviceLabel(document.design(), static_cast<int>(device))),
                             tr("Busy share of the range, %1").arg(sideName(side)), Tone::Plain});
        };
        addDevice(tr("busiest"), most - shown.devices.begin());
        addDevice(tr("least busy"), least - shown.devices.begin());
    }
    const int fullest = shown.fullest() >= 0 ? shown.fullest() : predicted.fullest();
    if (fullest >= 0) {
        const auto peak = [fullest](const RangeStatistics& of) {
            return fullest < std::ssize(of.devices) ? of.devices[fullest].peak : std::nullopt;
        };
        const QString device = deviceLabel(document.design(), fullest);
        facts.push_back(
            {tr("peak"), QStringLiteral("%1 %2").arg(sidedSizes(side, peak(predicted), peak(measured)), device),
             tr("Highest memory of any device in the range, of %1, %2").arg(device, sideName(side)), Tone::Plain});
    }
    m_facts->setFacts(facts);
}

} // namespace pipewright

#include "moc_rangefacts.cpp"
