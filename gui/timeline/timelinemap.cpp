// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelinemap.h"

#include "core/schedule/warmup.h"
#include "gui/timeline/lanegeometry.h"
#include "gui/timeline/lanes.h"
#include "gui/timeline/shownschedule.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/timeline/timelinescroll.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineview.h"

#include <QWidget>

#include <algorithm>
#include <cmath>

namespace pipewright {

TimelineMap::TimelineMap(const QWidget& viewport, const Document& document, const ShownSchedule& shown,
                         const Lanes& lanes, const TimelineScroll& scroll, const SubLanes& sub)
    : m_viewport(viewport), m_document(document), m_shown(shown), m_lanes(lanes), m_scroll(scroll), m_sub(sub)
{
}

const TimeAxis& TimelineMap::axis() const
{
    return m_scroll.axis();
}

const LanePlaces& TimelineMap::places() const
{
    return m_lanes.places();
}

double TimelineMap::scale() const
{
    return m_viewport.devicePixelRatioF();
}

QRect TimelineMap::plot() const
{
    return {TimelineView::plotLeft(), TimelinePainter::rulerHeight, axis().width,
            m_viewport.height() - TimelinePainter::rulerHeight};
}

// ---- Blocks ---------------------------------------------------------------------------------------

QRectF TimelineMap::rectOf(const Block& block) const
{
    int device = -1;
    const std::optional<LaneBlock> found = m_shown.find(block, &device);
    return found ? blockRect(*found, axis(), places().blocks(device), scale()) : QRectF();
}

std::optional<Block> TimelineMap::blockAt(QPoint position) const
{
    const int lane = places().at(position.y());
    const TimelineLayout& layout = m_shown.layout();
    if (lane < 0 || lane >= std::ssize(layout.lanes()) || position.x() < axis().left || position.x() >= axis().right()
        || places().memoryAt(position) >= 0 || places().transfersAt(position) >= 0 || places().kernelsAt(position) >= 0
        || places().membersAt(position) >= 0)
        return std::nullopt;
    const Lane& blocks = layout.lanes()[lane];
    // The middle of the pixel; blocks narrower than one are found by the pixel's whole extent.
    if (const auto index = blocks.at(axis().timeAt(position.x() + 0.5)))
        return blocks.blocks()[*index].block;
    const std::size_t next = blocks.firstEndingAfter(axis().timeAt(position.x()));
    if (next < blocks.blocks().size()
        && static_cast<double>(blocks.blocks()[next].start) < axis().timeAt(position.x() + 1))
        return blocks.blocks()[next].block;
    return std::nullopt;
}

std::vector<Block> TimelineMap::blocksIn(const QRect& rect) const
{
    const double from = axis().timeAt(rect.left()), to = axis().timeAt(rect.right() + 1);
    std::vector<Block> blocks;
    const std::vector<Lane>& lanes = m_shown.layout().lanes();
    for (int device = 0; device < static_cast<int>(lanes.size()); ++device) {
        if (!places().blocks(device).intersects(rect))
            continue;
        const std::vector<LaneBlock>& all = lanes[device].blocks();
        for (std::size_t i = lanes[device].firstEndingAfter(from);
             i < all.size() && static_cast<double>(all[i].start) < to; ++i)
            if (isPass(all[i].block.op))
                blocks.push_back(all[i].block);
    }
    return blocks;
}

std::vector<Block> TimelineMap::visibleBlocks(int device) const
{
    std::vector<Block> result;
    if (device < 0 || device >= m_shown.lanes())
        return result;
    const Lane& lane = m_shown.layout().lanes()[device];
    std::size_t i = lane.firstEndingAfter(axis().start);
    while (i < lane.blocks().size() && static_cast<double>(lane.blocks()[i].start) < axis().end()) {
        result.push_back(lane.blocks()[i].block);
        const double nextPixel = static_cast<double>(lane.blocks()[i].start) + axis().nsPerPixel;
        i = std::max(i + 1, lane.firstStartingFrom(nextPixel, i + 1));
    }
    return result;
}

std::optional<IdleTime> TimelineMap::idleAt(QPoint position) const
{
    const int lane = places().at(position.y());
    if (lane < 0 || !plot().contains(position) || places().memoryAt(position) >= 0)
        return std::nullopt;
    const Lane& filled = m_shown.layout().lanes()[lane];
    const std::vector<LaneBlock>& blocks = filled.blocks();
    const std::size_t next = filled.firstEndingAfter(axis().timeAt(position.x() + 0.5));
    const Nanoseconds start = next > 0 ? blocks[next - 1].end : 0;
    const Nanoseconds end = next < blocks.size() ? blocks[next].start : m_shown.layout().makespan();
    return end > start ? std::optional(IdleTime{lane, start, end}) : std::nullopt;
}

std::optional<int> TimelineMap::warmUpEdgeAt(QPoint position) const
{
    constexpr int reach = 4; // pixels beside the edge that still grip it
    const int device = places().at(position.y());
    if (device < 0 || m_shown.showsMeasured() || !plot().contains(position))
        return std::nullopt;
    const std::vector<Block>& order = m_document.design().schedule.order[device];
    const std::vector<LaneBlock>& blocks = m_shown.present().lanes()[device].blocks();
    const int forwards = warmUp(order);
    if (forwards == 0 || forwards >= longestWarmUp(order) || blocks.size() < order.size())
        return std::nullopt;
    const auto last = static_cast<std::size_t>(forwards) - 1;
    const double edge = axis().xOf(static_cast<double>(blocks[last].end));
    if (edge - axis().xOf(static_cast<double>(blocks[last].start)) < 4 * reach)
        return std::nullopt; // on a narrow block the edge would leave no room to grip the block
    return std::abs(position.x() - edge) <= reach ? std::optional(device) : std::nullopt;
}

// ---- Sub-lanes ------------------------------------------------------------------------------------

TransferLanes::Chips TimelineMap::chips(int device) const
{
    return m_sub.transfers.chips(device, places().transfers(device), axis(), m_shown.transferTimes());
}

std::optional<std::size_t> TimelineMap::chipAt(QPoint position) const
{
    const int device = places().transfersAt(position);
    if (device < 0 || position.x() < TimelineView::plotLeft())
        return std::nullopt;
    return chips(device).at(position);
}

std::vector<KernelLanes::Rect> TimelineMap::kernels(int device) const
{
    if (!m_shown.showsMeasured())
        return {};
    return m_sub.kernels.rects(device, places().kernels(device), axis());
}

QString TimelineMap::kernelTextAt(QPoint position) const
{
    const int device = places().kernelsAt(position);
    if (device < 0 || position.x() < TimelineView::plotLeft())
        return {};
    for (const KernelLanes::Rect& kernel : kernels(device))
        if (kernel.rect.adjusted(-0.5, -4, 0.5, 6).contains(position))
            return m_sub.kernels.text(kernel);
    return {};
}

QString TimelineMap::gradientSumTextAt(QPoint position) const
{
    const int device = places().at(position.y());
    const Prediction* const prediction = m_document.prediction();
    if (device < 0 || !prediction || static_cast<std::size_t>(device) >= m_shown.layout().lanes().size()
        || position.x() < TimelineView::plotLeft())
        return {};
    const QRectF area = places().blocks(device);
    for (const LaneSum& sum : m_shown.layout().lanes()[static_cast<std::size_t>(device)].gradientSums())
        if (gradientSumRect(sum, axis(), area).contains(position) && sum.task < prediction->program.tasks.size())
            return gradientSumText(m_document.design(), prediction->program, sum,
                                   m_shown.showsMeasured() ? Side::Measured : Side::Predicted);
    return {};
}

QString TimelineMap::memberTextAt(QPoint position) const
{
    const int device = places().membersAt(position);
    if (device < 0)
        return {};
    const MemberLanes& members = m_sub.members;
    const QRectF area = places().members(device);
    const int row = members.rowAt(device, area, position.y());
    if (position.x() >= TimelineView::plotLeft() && m_shown.showsMeasured())
        if (const QString measured = members.measuredText(device, row, axis().timeAt(position.x()));
            !measured.isEmpty())
            return measured;
    if (const std::optional<MemberLanes::Rect> part = memberPartAt(position))
        return members.text(device, *part);
    return members.rowText(device, row);
}

std::optional<MemberLanes::Rect> TimelineMap::memberPartAt(QPoint position) const
{
    const int device = places().membersAt(position);
    if (device >= 0 && position.x() >= TimelineView::plotLeft() && !m_shown.showsMeasured())
        for (const MemberLanes::Rect& part : m_sub.members.rects(device, places().members(device), axis()))
            if (part.rect.united(part.wait).contains(position))
                return part;
    return std::nullopt;
}

int TimelineMap::unfolderAt(QPoint position) const
{
    const int lane = places().at(position.y());
    return lane >= 0 && m_sub.members.membersOf(lane) > 0 && places().unfolder(lane).contains(position) ? lane : -1;
}

// ---- Times ----------------------------------------------------------------------------------------

Nanoseconds TimelineMap::timeNear(double x, int y, Qt::KeyboardModifiers modifiers) const
{
    const auto time =
        static_cast<Nanoseconds>(std::llround(std::clamp(axis().timeAt(x), 0.0, static_cast<double>(m_shown.total()))));
    if (modifiers & Qt::AltModifier)
        return time;
    constexpr double snapReach = 8; // pixels beside an edge of a block
    const int lane = places().at(y);
    Nanoseconds best = time;
    double distance = snapReach * axis().nsPerPixel;
    const auto consider = [&](Nanoseconds edge) {
        if (const double off = std::abs(static_cast<double>(edge - time)); off < distance) {
            distance = off;
            best = edge;
        }
    };
    const std::vector<Lane>& all = m_shown.layout().lanes();
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

double TimelineMap::markReach() const
{
    constexpr double pixels = 5;
    return pixels * axis().nsPerPixel;
}

} // namespace pipewright
