// SPDX-License-Identifier: GPL-3.0-or-later
// Marks, the measured range, the crosshair and the legend: what TimelineView lays over the lanes for reading.
#include "core/base/units.h"
#include "gui/timeline/timelineviewprivate.h"
#include "gui/widgets/timetext.h"
#include "gui/widgets/words.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr double snapReach = 8; // pixels beside an edge of a block to which a range snaps

} // namespace

double TimelineView::Private::markReach() const
{
    constexpr double pixels = 5; // beside a mark that still mean it
    return pixels * view.m_axis.nsPerPixel;
}

void TimelineView::toggleMark(Nanoseconds time)
{
    if (d->readings.toggleMark(time, d->markReach()))
        d->chosen = Private::Chosen::Ruler;
    d->updateOverlay();
}

const std::vector<Nanoseconds>& TimelineView::marks() const
{
    return d->readings.marks();
}

void TimelineView::setRange(std::optional<std::pair<Nanoseconds, Nanoseconds>> range)
{
    if (!d->readings.setRange(range))
        return;
    if (range)
        d->chosen = Private::Chosen::Ruler;
    d->updateOverlay();
    Q_EMIT rangeChanged();
}

std::optional<std::pair<Nanoseconds, Nanoseconds>> TimelineView::range() const
{
    return d->readings.range();
}

const TimelineLayout& TimelineView::layout() const
{
    return d->shown();
}

Nanoseconds TimelineView::total() const
{
    return d->total();
}

Nanoseconds TimelineView::Private::snapped(double x, int y, Qt::KeyboardModifiers modifiers) const
{
    const auto time =
        static_cast<Nanoseconds>(std::llround(std::clamp(view.m_axis.timeAt(x), 0.0, static_cast<double>(total()))));
    if (modifiers & Qt::AltModifier)
        return time;
    // Edges of the lane under the cursor; on the ruler, of every lane.
    const int lane = places.at(y);
    const double reach = snapReach * view.m_axis.nsPerPixel;
    Nanoseconds best = time;
    double distance = reach;
    const auto consider = [&](Nanoseconds edge) {
        if (const double off = std::abs(static_cast<double>(edge - time)); off < distance) {
            distance = off;
            best = edge;
        }
    };
    const std::vector<Lane>& all = shown().lanes();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (lane >= 0 && static_cast<int>(i) != lane)
            continue;
        const std::vector<LaneBlock>& blocks = all[i].blocks();
        const std::size_t next = all[i].firstEndingAfter(static_cast<double>(time));
        if (next > 0)
            consider(blocks[next - 1].end);
        if (next < blocks.size()) {
            consider(blocks[next].start);
            consider(blocks[next].end);
        }
    }
    return best;
}

void TimelineView::Private::addReadings(OverlayContent& content) const
{
    const TimeAxis& axis = view.m_axis;
    for (const Nanoseconds mark : readings.marks())
        content.marks.push_back({axis.xOf(static_cast<double>(mark)), timeText(mark, axis.nsPerPixel)});
    if (const auto& range = readings.range()) {
        content.range = {{axis.xOf(static_cast<double>(range->first)), axis.xOf(static_cast<double>(range->second))}};
        content.rangeText = durationText(range->second - range->first);
    }
}

const std::vector<double>& TimelineView::Private::ticks() const
{
    if (knownTicks.empty() || !(ticksOf == view.m_axis)) {
        ticksOf = view.m_axis;
        knownTicks = rulerTicks(view.m_axis);
    }
    return knownTicks;
}

TimeReadings TimelineView::readings() const
{
    TimeReadings result{d->ticks(), d->readings.marks(), d->readings.range(), d->pointed};
    if (const OverlayContent& content = d->overlay->content(); content.crosshair)
        result.crosshair = static_cast<Nanoseconds>(std::llround(m_axis.timeAt(content.crosshair->x + 0.5)));
    return result;
}

void TimelineView::pointAt(std::optional<double> time)
{
    d->pointed = time ? std::optional(static_cast<Nanoseconds>(std::llround(*time))) : std::nullopt;
    d->updateOverlay();
}

QString TimelineView::crosshairText() const
{
    const OverlayContent& content = d->overlay->content();
    return content.crosshair ? QStringLiteral("%1, %2, %3").arg(content.crosshair->text, content.title, content.detail)
                             : QString();
}

void TimelineView::Private::addCrosshair(OverlayContent& content) const
{
    if (!plotRect().contains(cursor))
        return;
    const double at = view.m_axis.timeAt(cursor.x() + 0.5);
    if (at < 0 || at > static_cast<double>(shown().makespan()))
        return;
    const auto time = static_cast<Nanoseconds>(std::llround(at));
    content.crosshair = {{static_cast<double>(cursor.x()), timeText(time, view.m_axis.nsPerPixel)}};
    const int device = places.at(cursor.y());
    if (device < 0)
        return;
    content.title = deviceLabel(document.design(), device);
    if (const std::optional<Block> block = view.blockAt(cursor))
        content.title += QStringLiteral(" · ") + blockText(*block);
    else
        content.title += QStringLiteral(" · ") + tr("idle");
    // What is live is what the last sample until then says; a recording's samples where there are some.
    const auto index = static_cast<std::size_t>(device);
    const auto liveAt = [&](const Timeline& timeline) -> std::optional<Bytes> {
        if (index >= timeline.memory.size() || timeline.memory[index].empty())
            return std::nullopt;
        const std::vector<MemorySample>& samples = timeline.memory[index];
        const auto next = std::upper_bound(samples.begin(), samples.end(), time,
                                           [](Nanoseconds t, const MemorySample& s) { return t < s.time; });
        return next == samples.begin() ? samples.front().bytes : std::prev(next)->bytes;
    };
    const Document::Overlay* trace = document.overlay();
    const auto textAt = [&](const Timeline* timeline) {
        const std::optional<Bytes> live = timeline ? liveAt(*timeline) : std::nullopt;
        return live ? sizeText(*live) : QString();
    };
    const QString predicted = textAt(document.prediction() ? &document.prediction()->timeline : nullptr);
    const QString recorded = textAt(trace ? &trace->measured : nullptr);
    if (trace)
        content.detail = tr("%1 live, %2").arg(sidedText(shownSide(), predicted, recorded), sideName(shownSide()));
    else if (!predicted.isEmpty())
        content.detail = tr("%1 live").arg(predicted);
}

void TimelineView::Private::paintLegend(QPainter& painter)
{
    const bool heat = showHeat && showsBoth();
    if (!showCritical && !showSlack && !heat)
        return;
    const Theme& theme = Theme::of(view);
    painter.setFont(Theme::words(TextSize::Small));
    constexpr int left = 8; // the header's own indent would leave too little room for a time
    painter.fillRect(QRect(0, 0, plotLeft(), TimelinePainter::rulerHeight - 1), theme.background);
    int top = int(showCritical) + int(showSlack) + int(heat) > 1 ? 3 : 11;
    if (showCritical) {
        painter.fillRect(QRect(left, top + 7, 14, 3), theme.selection);
        painter.setPen(theme.dim);
        painter.drawText(QRect(left + 20, top, plotLeft() - left - 20, 17), Qt::AlignLeft | Qt::AlignVCenter,
                         tr("critical path"));
        top += 17;
    }
    if (showSlack) {
        QLinearGradient shade(left, 0, left + 14, 0);
        const QColor full = theme.fill(Op::F);
        QColor faint = full;
        faint.setAlphaF(static_cast<float>(1 - SlackAnalysis::deepestShade));
        shade.setColorAt(0, full);
        shade.setColorAt(1, faint);
        painter.fillRect(QRect(left, top + 4, 14, 9), shade);
        painter.setPen(theme.dim);
        const Nanoseconds greatest = slack.greatestSlack();
        const QString most = greatest > 0 ? durationText(greatest) : QStringLiteral("0");
        const QString text = tr("slack %1").arg(most);
        painter.drawText(QRect(left + 20, top, plotLeft() - left - 20, 17), Qt::AlignLeft | Qt::AlignVCenter, text);
        top += 17;
    }
    if (heat) {
        painter.fillRect(QRect(left, top + 4, 7, 9), theme.bad);
        painter.fillRect(QRect(left + 7, top + 4, 7, 9), theme.good);
        painter.setPen(theme.dim);
        painter.drawText(QRect(left + 20, top, plotLeft() - left - 20, 17), Qt::AlignLeft | Qt::AlignVCenter,
                         tr("longer, shorter"));
    }
}

} // namespace pipewright
