// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lanecanvas.h"

#include "gui/timeline/blockselection.h"
#include "gui/timeline/dropsession.h"
#include "gui/timeline/gesture.h"
#include "gui/timeline/idlebars.h"
#include "gui/timeline/lanememory.h"
#include "gui/timeline/lanes.h"
#include "gui/timeline/shownschedule.h"
#include "gui/timeline/timelinemap.h"
#include "gui/timeline/timelinescroll.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/words.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

// A block is late when it exceeds its prediction by more than its variation between steps, and by more than 3 %.
bool isLate(Nanoseconds measured, Nanoseconds expected, Nanoseconds spread)
{
    return measured - expected > std::max(spread, expected * 3 / 100);
}

constexpr double fullHeat = 0.5; ///< relative error with the strongest colour
constexpr double deepestHeat = 0.7;

} // namespace

void LaneCanvas::reload()
{
    refreshHeaders();
    m_slack.setPrediction(m.document.sharedPrediction());
}

void LaneCanvas::refreshHeaders()
{
    const Document::Overlay* trace = m.document.overlay();
    m_headers = laneHeaders(m.document.design(), m.document.prediction(), trace ? &trace->comparison : nullptr,
                            m.document.side(), m.document.pendingMemory().value_or(PendingMemory{}).words);
}

void LaneCanvas::show(Mark mark, bool on)
{
    m_marks[static_cast<std::size_t>(mark)] = on;
}

std::optional<Nanoseconds> LaneCanvas::slackOf(TaskId task)
{
    return m_slack.isEmpty() || task == none ? std::nullopt : std::optional(m_slack.slackOf(task));
}

void LaneCanvas::paint(QPainter& painter, const QRect& viewport, const QRect& exposed, int scrolled)
{
    const Theme& theme = Theme::of(m_view);
    if (!m_painter || !m_painter->isFor(theme, m.map.scale()))
        m_painter.emplace(theme, m.map.scale());
    const LaneStrip& strip = m.lanes.strip();
    const int belowPinned = TimelinePainter::rulerHeight + strip.pinnedTotal();
    const int bottom = TimelinePainter::rulerHeight + strip.total() - scrolled;
    // Lanes scroll underneath the pinned ones.
    const auto paintLanes = [&](bool pinned, const QRect& area) {
        const QRect visible = exposed.intersected(area);
        for (int row = 0; row < strip.lanes() && !visible.isEmpty(); ++row) {
            const int device = strip.deviceAt(row);
            painter.setClipRect(visible);
            if (strip.isPinned(device) == pinned && m.map.places().lane(device).intersects(visible))
                paintLane(painter, device, visible);
        }
        painter.setClipRect(visible);
        paintStripNames(painter, visible, pinned);
    };
    paintLanes(false, viewport.adjusted(0, belowPinned, 0, 0));
    paintLanes(true, QRect(0, TimelinePainter::rulerHeight, viewport.width(), strip.pinnedTotal()));
    painter.setClipRect(exposed);
    painter.fillRect(QRect(0, bottom, viewport.width(), viewport.height() - bottom), theme.background);
    if (strip.pinnedTotal() > 0)
        painter.fillRect(QRect(0, belowPinned - 2, viewport.width(), 2), theme.hairline);

    // The ruler comes last: lanes scroll underneath it.
    painter.setClipRect(exposed);
    m_painter->ruler(painter, m.map.axis(), QRect(0, 0, viewport.width(), TimelinePainter::rulerHeight),
                     m.scroll.ticks());
    if (const int idle = viewport.width() - m.map.axis().right(); idle > 1) {
        painter.setFont(Theme::words(TextSize::Small));
        painter.setPen(theme.dim);
        painter.fillRect(QRect(m.map.axis().right(), 0, idle, TimelinePainter::rulerHeight - 1), theme.background);
        painter.drawText(QRect(m.map.axis().right() + 12, 0, idle - 12, TimelinePainter::rulerHeight - 8),
                         Qt::AlignLeft | Qt::AlignBottom, idle > 100 ? tr("idle, by cause") : tr("idle"));
    }
    paintLegend(painter);
}

// ---- One lane -------------------------------------------------------------------------------------

void LaneCanvas::paintLane(QPainter& painter, int device, const QRect& exposed)
{
    const TimeAxis& axis = m.map.axis();
    const LanePlaces& places = m.map.places();
    const QRect lane = places.lane(device);
    const DropPlan* const plan = m.drop.plan();
    const bool target = plan && plan->device == device && plan->request;
    LaneGround ground{lane, target && plan->isLegal() && !plan->room, std::nullopt, {}};
    if (target && plan->room)
        ground.room = {axis.xOf(static_cast<double>(plan->room->first)),
                       axis.xOf(static_cast<double>(plan->room->second))};
    // The line and the sub-lanes are below.
    const QRect above = lane.adjusted(0, 0, 0, -m.lanes.strip().subHeight(device) - 1);
    const QRectF memory = places.memory(device);
    const bool isShown = device < std::ssize(m.shown.layout().lanes());
    if (isShown)
        ground.painted =
            memory.isEmpty() ? above : QRect(above.topLeft(), QPoint(above.right(), int(memory.top()) - 1));
    m_painter->ground(painter, axis, ground, m.scroll.ticks());
    if (exposed.left() < TimelineView::plotLeft() || above.height() < LanePlaces::namedLane)
        paintHeader(painter, device, above, ground);

    if (m.members.membersOf(device) > 0 && !m.lanes.strip().isFolded(device)) {
        painter.setFont(Theme::words(TextSize::Normal));
        painter.setPen(Theme::of(m_view).dim);
        painter.drawText(places.unfolder(device), Qt::AlignCenter,
                         m.lanes.strip().members(device) > 0 ? QStringLiteral("▾") : QStringLiteral("▸"));
    }
    m.memory.paint(painter, device, memory, axis, Theme::of(m_view), m.map.scale());
    m.idle.paint(painter, device, places.idle(device), Theme::of(m_view), m.map.scale());
    m.members.paint(painter, device, places.members(device), axis, Theme::of(m_view), m.shown.showsMeasured(),
                    !m.shown.showsMeasured() || m.shown.showsBoth());
    m.kernels.paint(painter, device, places.kernels(device), axis, Theme::of(m_view), m.shown.showsMeasured());
    // Finding the selected transfer walks along its device's list, so it is done only for lanes that show transfers.
    if (const QRectF subLane = places.transfers(device); !subLane.isEmpty()) {
        const auto transfer = m.selection.transfer();
        m.transfers.paint(painter, device, subLane, axis, m.shown.transferTimes(), Theme::of(m_view),
                          transfer ? std::optional(transfer->second) : std::nullopt);
    }

    painter.save();
    painter.setClipRect(QRect(axis.left, lane.top(), axis.width, lane.height()), Qt::IntersectClip);
    if (isShown)
        paintBlocks(painter, device, ground);
    paintSelection(painter, device);
    painter.restore();
}

void LaneCanvas::paintHeader(QPainter& painter, int device, const QRect& above, const LaneGround& ground)
{
    const bool isPressed = device == m.lanes.pressed();
    if (above.height() < LanePlaces::namedLane) { // paintStripNames() has its name
        if (isPressed)
            painter.fillRect(QRect(ground.lane.left(), ground.lane.top(), 3, ground.lane.height()),
                             Theme::of(m_view).accent);
        return;
    }
    const std::vector<LaneHeader>& headers = m.drop.headers().empty() ? m_headers : m.drop.headers();
    if (device >= std::ssize(headers))
        return;
    const QRect place(above.left(), above.top(), TimelineView::plotLeft(), above.height());
    const QRectF memory = m.map.places().memory(device);
    const LaneStanding standing{isPressed, m.lanes.strip().isPinned(device), m.lanes.strip().isFolded(device),
                                memory.isEmpty() ? 0 : int(memory.top()) - above.top()};
    if (ground.target)
        m_painter->header(painter, place, headers[device], standing);
    else
        m_painter->keptHeader(painter, device, place, headers[device], standing);
}

LaneGeometry LaneCanvas::geometryOf(const TimelineLayout& layout, int device, const QRectF& area) const
{
    return laneGeometry(layout.lanes()[device], m.map.axis(), area, std::max(layout.makespan(), Nanoseconds{0}),
                        m.map.scale());
}

void LaneCanvas::paintBlocks(QPainter& painter, int device, const LaneGround& ground)
{
    const QRectF area = m.map.places().blocks(device);
    const Lane& blocks = m.shown.layout().lanes()[device];
    const bool isPreview = m.shown.preview() != nullptr;
    const LaneGeometry geometry = geometryOf(m.shown.layout(), device, area);
    const std::optional<LaneGeometry> outlined = this->outlined(device, area);
    m_painter->blocks(painter, m.map.axis(), ground, m.scroll.ticks(), area, blocks, geometry,
                      outlined ? &*outlined : nullptr);
    m_painter->gradientSums(painter, m.map.axis(), area, blocks);
    if (shows(Mark::Slack) && !isPreview)
        m_slack.shade(painter, blocks, m.map.axis(), area, m.map.scale(), Theme::of(m_view).lane);
    if (m.selection.isGroup())
        m_painter->group(painter, blocks, geometry,
                         [this](const LaneBlock& block) { return m.selection.isInGroup(block.block); });
    if (shows(Mark::Critical) && !m_slack.isEmpty() && !isPreview)
        m_painter->critical(painter, blocks, geometry, [this](const LaneBlock& block) {
            return block.task != none && m_slack.isCritical(block.task);
        });
    if (m.shown.showsBoth())
        paintMeasured(painter, device, blocks, geometry, area);
}

void LaneCanvas::paintSelection(QPainter& painter, int device)
{
    const Gesture::HeldBlock* const moving = m.hand.moving();
    const std::optional<Block> selected = moving ? std::optional(moving->block) : m.document.selection();
    int on = -1;
    if (selected && m.shown.find(*selected, &on) && on == device)
        m_painter->selection(painter, m.map.rectOf(*selected), Theme::of(m_view).selection);
}

void LaneCanvas::paintStripNames(QPainter& painter, const QRect& visible, bool pinned) const
{
    if (visible.left() >= TimelineView::plotLeft())
        return;
    const Theme& theme = Theme::of(m_view);
    const LaneStrip& strip = m.lanes.strip();
    painter.setFont(Theme::words(TextSize::Small, QFont::DemiBold));
    int free = 0; // from here on no name is in the way
    for (int row = 0; row < strip.lanes(); ++row) {
        const int device = strip.deviceAt(row);
        const QRect lane = m.map.places().lane(device);
        if (strip.isPinned(device) != pinned || lane.height() >= LanePlaces::namedLane
            || device >= std::ssize(m_headers))
            continue;
        QRect place(18, lane.center().y() - LanePlaces::namedLane / 2, TimelineView::plotLeft() - 32,
                    LanePlaces::namedLane + 1);
        if (row == 0) // at the first and last row a name taller than its lane would be cut off
            place.moveTop(lane.top());
        else if (row + 1 == strip.lanes())
            place.moveBottom(lane.bottom());
        if (row > 0 && place.top() < free)
            continue;
        free = place.bottom() + 1;
        painter.setPen(device == m.lanes.pressed() ? theme.text : theme.dim);
        if (place.intersects(visible))
            painter.drawText(place, Qt::AlignLeft | Qt::AlignVCenter, m_headers[device].name);
    }
}

std::optional<LaneGeometry> LaneCanvas::outlined(int device, const QRectF& area) const
{
    if (m.shown.showsMeasured()) {
        const TimelineLayout* const outlines = m.shown.outlines();
        if (!m.shown.showsBoth() || shows(Mark::Heat) || !outlines || device >= std::ssize(outlines->lanes()))
            return std::nullopt; // heat is painted over them, see paintMeasured()
        return laneGeometry(outlines->lanes()[device], m.map.axis(), area,
                            std::max(m.shown.layout().makespan(), Nanoseconds{0}), m.map.scale());
    }
    // A preview is compared with the present state, and the present state with the one before it. Blocks that did not
    // move need no outline.
    const TimelineLayout* from = m.shown.preview()     ? &m.shown.present()
                                 : shows(Mark::Before) ? m.shown.before()
                                                       : nullptr;
    if (!from || device >= std::ssize(from->lanes()))
        return std::nullopt;
    const Lane& lane = from->lanes()[device];
    LaneGeometry geometry = geometryOf(*from, device, area);
    const TimelineLayout& now = m.shown.layout();
    std::erase_if(geometry.blocks, [&](const BlockRect& item) {
        const LaneBlock& block = lane.blocks()[item.index];
        const LaneBlock* stands = now.blockOf(block.block);
        return stands && stands->start == block.start && stands->end == block.end;
    });
    return geometry;
}

// ---- A recorded step over the prediction ----------------------------------------------------------
// Measured blocks are filled, predicted ones are outlines on top of them. Both count from their first block, as the
// numbers of the comparison do.

void LaneCanvas::paintMeasured(QPainter& painter, int device, const Lane& blocks, const LaneGeometry& geometry,
                               const QRectF& area)
{
    if (shows(Mark::Heat)) {
        veilByError(painter, blocks, area);
        const TimelineLayout* const outlines = m.shown.outlines();
        if (outlines && device < std::ssize(outlines->lanes())) // else blocks() has painted them
            m_painter->outlines(painter,
                                laneGeometry(outlines->lanes()[device], m.map.axis(), area,
                                             std::max(m.shown.layout().makespan(), Nanoseconds{0}), m.map.scale()));
    }
    const Prediction& prediction = *m.document.prediction();
    const std::vector<Nanoseconds>& spread = m.document.overlay()->spread;
    m_painter->feet(painter, blocks, geometry, [&](const LaneBlock& block) {
        const Nanoseconds expected = prediction.timeline.end[block.task] - prediction.timeline.start[block.task];
        const Nanoseconds noise = block.task < spread.size() ? spread[block.task] : 0;
        return isLate(block.end - block.start, expected, noise);
    });
}

void LaneCanvas::veilByError(QPainter& painter, const Lane& lane, const QRectF& area) const
{
    const Timeline& predicted = m.document.prediction()->timeline;
    const Theme& theme = Theme::of(m_view);
    const TimeAxis& axis = m.map.axis();
    const double scale = m.map.scale();
    const std::vector<LaneBlock>& blocks = lane.blocks();
    std::size_t i = lane.firstEndingAfter(axis.start);
    // At most one block per pixel column: where several share one, the first stands for them.
    while (i < blocks.size() && static_cast<double>(blocks[i].start) < axis.end()) {
        const LaneBlock& block = blocks[i];
        const std::size_t next =
            std::max(i + 1, lane.firstStartingFrom(static_cast<double>(block.start) + axis.nsPerPixel, i + 1));
        if (block.task != none && predicted.start[block.task] != notRun) {
            const double expected = double(predicted.end[block.task] - predicted.start[block.task]);
            const double took = double(block.runsUntil() - block.runsFrom());
            const double error = took > 0 ? (took - expected) / took : 0; // relative to the measured, as everywhere
            QColor veil = error > 0 ? theme.bad : theme.good;
            veil.setAlphaF(static_cast<float>(deepestHeat * std::min(1.0, std::fabs(error) / fullHeat)));
            const auto [first, last] =
                columns(axis, static_cast<double>(block.start), static_cast<double>(block.end), scale);
            const QRectF rect(first / scale, area.top(), (last - first) / scale, area.height());
            QColor ground = theme.lane; // the colours of operations give way; their letters can still be read
            ground.setAlphaF(0.7f);
            painter.fillRect(rect, ground);
            painter.fillRect(rect, veil);
        }
        i = next;
    }
}

// ---- Legend ---------------------------------------------------------------------------------------

void LaneCanvas::paintLegend(QPainter& painter)
{
    const bool heat = shows(Mark::Heat) && m.shown.showsBoth(), critical = shows(Mark::Critical),
               bySlack = shows(Mark::Slack);
    if (!critical && !bySlack && !heat)
        return;
    const Theme& theme = Theme::of(m_view);
    painter.setFont(Theme::words(TextSize::Small));
    constexpr int left = 8; // the header's own indent would leave too little room for a time
    painter.fillRect(QRect(0, 0, TimelineView::plotLeft(), TimelinePainter::rulerHeight - 1), theme.background);
    int top = int(critical) + int(bySlack) + int(heat) > 1 ? 3 : 11;
    const auto write = [&](const QString& text) {
        painter.setPen(theme.dim);
        painter.drawText(QRect(left + 20, top, TimelineView::plotLeft() - left - 20, 17),
                         Qt::AlignLeft | Qt::AlignVCenter, text);
        top += 17;
    };
    if (critical) {
        painter.fillRect(QRect(left, top + 7, 14, 3), theme.selection);
        write(tr("critical path"));
    }
    if (bySlack) {
        QLinearGradient shade(left, 0, left + 14, 0);
        const QColor full = theme.fill(Op::F);
        QColor faint = full;
        faint.setAlphaF(static_cast<float>(1 - SlackAnalysis::deepestShade));
        shade.setColorAt(0, full);
        shade.setColorAt(1, faint);
        painter.fillRect(QRect(left, top + 4, 14, 9), shade);
        const Nanoseconds greatest = m_slack.greatestSlack();
        write(tr("slack %1").arg(greatest > 0 ? durationText(greatest) : QStringLiteral("0")));
    }
    if (heat) {
        painter.fillRect(QRect(left, top + 4, 7, 9), theme.bad);
        painter.fillRect(QRect(left + 7, top + 4, 7, 9), theme.good);
        write(tr("longer, shorter"));
    }
}

} // namespace pipewright
