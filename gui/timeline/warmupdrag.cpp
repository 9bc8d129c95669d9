// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/warmupdrag.h"

#include "core/schedule/warmup.h"
#include "gui/document/namededits.h"
#include "gui/timeline/timelineviewprivate.h"

#include <QMouseEvent>

#include <algorithm>

namespace pipewright {

std::optional<int> TimelineView::Private::warmUpEdgeAt(QPoint position) const
{
    constexpr int reach = 4; // pixels beside the edge that still grip it
    const int device = places.at(position.y());
    if (device < 0 || showsMeasured() || !plotRect().contains(position))
        return std::nullopt;
    const std::vector<Block>& order = document.design().schedule.order[device];
    const std::vector<LaneBlock>& blocks = layout().lanes()[device].blocks();
    const int forwards = warmUp(order);
    if (forwards == 0 || forwards >= longestWarmUp(order) || blocks.size() < order.size())
        return std::nullopt;
    const auto last = static_cast<std::size_t>(forwards) - 1;
    const double edge = view.m_axis.xOf(static_cast<double>(blocks[last].end));
    if (edge - view.m_axis.xOf(static_cast<double>(blocks[last].start)) < 4 * reach)
        return std::nullopt; // the block itself could no longer be gripped
    return std::abs(position.x() - edge) <= reach ? std::optional(device) : std::nullopt;
}

bool WarmUpDrag::press(TimelineView::Private& d, const QMouseEvent& event)
{
    const std::optional<int> device = d.warmUpEdgeAt(event.position().toPoint());
    if (!device || event.modifiers() != Qt::NoModifier)
        return false;
    // Its last forward is selected, so that numbers and memory are of this device.
    const std::vector<Block>& order = d.document.design().schedule.order[*device];
    d.document.select(order[warmUp(order) - 1]);
    d.gesture = std::make_unique<WarmUpDrag>(d, *device);
    return true;
}

void WarmUpDrag::move(const QMouseEvent& event)
{
    d.cursor = event.position().toPoint();
    const std::vector<Block>& order = d.document.design().schedule.order[m_device];
    const std::vector<LaneBlock>& blocks = d.layout().lanes()[m_device].blocks();
    // As many forwards as would end by the cursor if they ran one after the other.
    const double time = view.axis().timeAt(d.cursor.x());
    double end = static_cast<double>(blocks.front().start);
    int forwards = 0;
    for (const LaneBlock& block : blocks) {
        if (block.block.op != Op::F)
            continue;
        const bool within = forwards < warmUp(order); // there the blocks stand already, with the gaps between them
        const double next =
            within ? static_cast<double>(block.end) : end + static_cast<double>(block.end - block.start);
        if ((end + next) / 2 > time)
            break;
        end = next;
        ++forwards;
    }
    forwards = std::clamp(forwards, 1, longestWarmUp(order));
    ReorderDevice wanted = warmUpChange(d.document.design(), m_device, forwards);
    const QString title = QString::fromStdString(wanted.name);
    d.setPlan(d.planner.planOrder(order.front(), std::move(wanted), title, d.plan ? &*d.plan : nullptr));
}

void WarmUpDrag::release(const QMouseEvent&)
{
    d.commitPlan();
    d.updateOverlay();
}

// ---- By key ---------------------------------------------------------------------------------------

void TimelineView::changeWarmUp(int forwards)
{
    const std::optional<Block> selected = d->document.selection();
    const Schedule& schedule = d->document.design().schedule;
    const int device = selected ? placeOf(schedule, d->layout(), *selected).device : -1;
    if (device < 0 || d->held()) {
        Q_EMIT editRefused(tr("Select a block of the device whose warm-up is to change"));
        return;
    }
    d->commitOrder(warmUpChange(d->document.design(), device, warmUp(schedule.order[device]) + forwards));
}

} // namespace pipewright
