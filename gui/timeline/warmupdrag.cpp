// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/warmupdrag.h"

#include "core/schedule/warmup.h"
#include "gui/document/namededits.h"
#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QMouseEvent>

#include <algorithm>

namespace pipewright {

bool WarmUpDrag::press(TimelineParts& d, const QMouseEvent& event)
{
    const std::optional<int> device = d.map.warmUpEdgeAt(event.position().toPoint());
    if (!device || event.modifiers() != Qt::NoModifier)
        return false;
    // Its last forward is selected, so that numbers and memory are of this device.
    const std::vector<Block>& order = d.document.design().schedule.order[*device];
    d.document.select(order[warmUp(order) - 1]);
    d.hand.left = std::make_unique<WarmUpDrag>(d, *device);
    return true;
}

void WarmUpDrag::move(const QMouseEvent& event)
{
    d.overlay.setCursor(event.position().toPoint());
    const std::vector<Block>& order = d.document.design().schedule.order[m_device];
    const std::vector<LaneBlock>& blocks = d.shown.present().lanes()[m_device].blocks();
    // As many forwards as would end by the cursor if they ran one after the other.
    const double time = d.map.axis().timeAt(d.overlay.cursor().x());
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
    d.drop.holdOrder(order.front(), warmUpChange(d.document.design(), m_device, forwards));
}

void WarmUpDrag::release(const QMouseEvent&)
{
    d.drop.commit();
    d.overlay.update();
}

} // namespace pipewright
