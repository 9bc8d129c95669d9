// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/rulerdrag.h"

#include "gui/timeline/timelineviewprivate.h"

#include <QMouseEvent>

namespace pipewright {

bool RulerDrag::press(TimelineView::Private& d, const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (position.y() >= TimelinePainter::rulerHeight || position.x() < d.view.axis().left)
        return false;
    auto drag = std::make_unique<RulerDrag>(d);
    drag->m_from = d.snapped(event.position().x(), position.y(), event.modifiers());
    drag->m_before = d.readings.range();
    d.gesture = std::move(drag);
    return true;
}

void RulerDrag::move(const QMouseEvent& event)
{
    m_moving = true;
    view.setRange(
        std::pair(m_from, d.snapped(event.position().x(), event.position().toPoint().y(), event.modifiers())));
}

void RulerDrag::release(const QMouseEvent&)
{
    if (!m_moving || (d.readings.range() && d.readings.range()->first == d.readings.range()->second))
        view.setRange(std::nullopt);
}

void RulerDrag::cancel()
{
    view.setRange(m_before);
}

// ---- By key ---------------------------------------------------------------------------------------

std::optional<std::pair<Nanoseconds, Nanoseconds>> TimelineView::Private::measurable() const
{
    if (reason)
        return {{reason->start, reason->end}};
    std::optional<std::pair<Nanoseconds, Nanoseconds>> all;
    for (const Block& block : view.selectedBlocks())
        if (const std::optional<LaneBlock> found = findShown(block, nullptr))
            all = all ? std::pair(std::min(all->first, found->start), std::max(all->second, found->end))
                      : std::pair(found->start, found->end);
    if (all)
        return all;
    if (readings.marks().size() >= 2)
        return {{readings.marks().front(), readings.marks().back()}};
    const std::pair<Nanoseconds, Nanoseconds> visible = view.visibleRange();
    return readings.range() || visible.first >= visible.second ? std::nullopt : std::optional(visible);
}

void TimelineView::measure()
{
    const auto wanted = d->measurable();
    setRange(wanted == d->readings.range() ? std::nullopt : wanted);
}

void TimelineView::measureByNumbers()
{
    if (!d->readings.range())
        setRange(d->measurable());
    if (d->readings.range())
        Q_EMIT rangeWantedByNumbers();
}

} // namespace pipewright
