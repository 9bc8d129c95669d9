// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/rubberband.h"

#include "gui/timeline/timelineviewprivate.h"

#include <QMouseEvent>

namespace pipewright {
namespace {

std::vector<Block> blocksIn(const TimelineView::Private& d, const QRect& rect)
{
    const double from = d.view.axis().timeAt(rect.left()), to = d.view.axis().timeAt(rect.right() + 1);
    std::vector<Block> blocks;
    for (int device = 0; device < static_cast<int>(d.shown().lanes().size()); ++device) {
        if (!d.places.blocks(device).intersects(rect))
            continue;
        const Lane& lane = d.shown().lanes()[device];
        const std::vector<LaneBlock>& all = lane.blocks();
        for (std::size_t i = lane.firstEndingAfter(from); i < all.size() && static_cast<double>(all[i].start) < to; ++i)
            if (isPass(all[i].block.op))
                blocks.push_back(all[i].block);
    }
    return blocks;
}

} // namespace

bool RubberBand::press(TimelineView::Private& d, const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    d.document.select(std::nullopt);
    d.chosen = TimelineView::Private::Chosen::Block;
    if (!d.plotRect().contains(position))
        return false;
    d.cursor = position;
    d.gesture = std::make_unique<RubberBand>(d, position);
    return true;
}

void RubberBand::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (d.cursor != m_from || isBeyondStart(m_from, position))
        d.cursor = position;
    d.updateOverlay();
}

void RubberBand::release(const QMouseEvent&)
{
    if (d.cursor != m_from)
        view.selectBlocks(blocksIn(d, QRect(m_from, d.cursor).normalized()));
    else if (const std::optional<TimelineView::Private::Idle> idle = d.idleAt(m_from))
        Q_EMIT view.gapClicked(idle->device, idle->start, idle->end);
    d.updateOverlay();
}

void RubberBand::addTo(OverlayContent& content) const
{
    if (d.cursor != m_from)
        content.band = QRectF(QRect(m_from, d.cursor).normalized());
}

} // namespace pipewright
