// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/gatherdrag.h"

#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/words.h"

#include <QMouseEvent>

#include <algorithm>
#include <cmath>

namespace pipewright {

GatherDrag::GatherDrag(TimelineParts& d, int device, std::size_t index, QPoint pressedAt)
    : Gesture(d), m_device(device), m_reader(d.transfers.of(device)[index].transfer.producer), m_pressedAt(pressedAt)
{
    const Prediction& prediction = *d.document.prediction();
    Nanoseconds free = 0;
    for (const Instruction& instruction : prediction.program.devices[static_cast<std::size_t>(device)].instructions)
        if (instruction.kind == InstructionKind::Compute) {
            m_order.push_back(prediction.program.tasks[instruction.task].block());
            m_gaps.push_back(free);
            free = prediction.timeline.end[instruction.task];
        }
    m_readerPlace = static_cast<std::size_t>(std::find(m_order.begin(), m_order.end(), m_reader) - m_order.begin());
    const Nanoseconds start = prediction.timeline.start[d.transfers.of(device)[index].task];
    m_grip = pressedAt.x() - d.map.axis().xOf(static_cast<double>(start));
}

void GatherDrag::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (m_readerPlace >= m_order.size() || (!m_moving && !isBeyondStart(m_pressedAt, position)))
        return;
    m_moving = true;
    d.overlay.setCursor(position);
    d.view.viewport()->setCursor(Qt::ClosedHandCursor);
    const auto time = static_cast<Nanoseconds>(std::llround(d.map.axis().timeAt(position.x() - m_grip)));
    const auto behind = m_gaps.begin() + static_cast<std::ptrdiff_t>(m_readerPlace) + 1;
    auto gap = std::lower_bound(m_gaps.begin(), behind, time);
    if (gap == behind || (gap != m_gaps.begin() && time - *std::prev(gap) < *gap - time))
        --gap;
    const auto place = static_cast<std::size_t>(gap - m_gaps.begin());
    m_caret = d.map.axis().xOf(static_cast<double>(*gap));
    const MoveGather request{m_reader, m_order[place]};
    if (!d.drop.plan() || d.drop.plan()->request != EditRequest(request))
        d.drop.holdGather(request, m_device, titleAt(place));
    d.overlay.update();
}

QString GatherDrag::titleAt(std::size_t place) const
{
    const QString name = d.transfers.name({m_reader, Transfer::gathers});
    const auto reader = m_order.begin() + static_cast<std::ptrdiff_t>(m_readerPlace);
    const auto earlier = std::find_if(m_order.begin() + static_cast<std::ptrdiff_t>(place), reader,
                                      [this](const Block& block) { return block.stage == m_reader.stage; });
    return earlier != reader ? TimelineView::tr("%1 left out: stage %2 is held").arg(name).arg(m_reader.stage)
                             : TimelineView::tr("%1 before %2").arg(name, blockText(m_order[place]));
}

void GatherDrag::addTo(OverlayContent& content) const
{
    if (!m_moving)
        return;
    const QRectF area = d.lanes.places().transfers(m_device);
    content.caret = QLineF(m_caret, area.top(), m_caret, area.bottom());
}

void GatherDrag::release(const QMouseEvent&)
{
    if (m_moving)
        d.drop.commit();
    d.view.viewport()->setCursor(Qt::ArrowCursor);
    if (m_moving)
        d.view.selectTransfer(m_device, {m_reader, Transfer::gathers});
    d.overlay.update();
}

} // namespace pipewright
