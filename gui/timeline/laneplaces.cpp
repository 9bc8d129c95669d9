// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/laneplaces.h"

#include "gui/timeline/timelinepainter.h"

#include <QAbstractScrollArea>
#include <QScrollBar>

#include <algorithm>

namespace pipewright {

int LanePlaces::pitch() const
{
    // The lanes without a height of their own share what the others leave.
    int own = 0, common = 0;
    for (int device = 0; device < m_strip.lanes(); ++device) {
        own += m_strip.hasOwnHeight(device) ? m_strip.height(device) : m_strip.subHeight(device);
        common += !m_strip.hasOwnHeight(device);
    }
    if (common == 0)
        return roomyLane;
    const int available = m_view.viewport()->height() - TimelinePainter::rulerHeight - own;
    return std::clamp(available / common, common > manyLanes ? stripLane : lowLane, greatLane);
}

int LanePlaces::heightWith(int lanes, int pitch) const
{
    LaneStrip such = m_strip;
    such.setLanes(lanes);
    such.setCommonHeight(pitch);
    return TimelinePainter::rulerHeight + std::max(such.total(), tightLane);
}

QRect LanePlaces::lane(int device) const
{
    if (device < 0 || device >= m_strip.lanes())
        return {};
    const int scrolled = m_strip.isPinned(device) ? 0 : m_view.verticalScrollBar()->value();
    return {0, TimelinePainter::rulerHeight + m_strip.top(device) - scrolled, m_view.viewport()->width(),
            m_strip.height(device)};
}

int LanePlaces::memoryHeight(int device) const
{
    if (device < 0 || device >= m_strip.lanes())
        return 0;
    const int height = m_strip.height(device) - m_strip.subHeight(device);
    return height < leastWithMemory ? 0 : std::clamp(height * 2 / 5, 32, 80);
}

bool LanePlaces::showMemory() const
{
    for (int device = 0; device < m_strip.lanes(); ++device)
        if (memoryHeight(device) > 0)
            return true;
    return false;
}

QRectF LanePlaces::memory(int device) const
{
    const int height = memoryHeight(device);
    if (height == 0)
        return {};
    const QRect whole = lane(device);
    return QRectF(whole.left(), whole.bottom() - m_strip.subHeight(device) - height, whole.width(), height - 5);
}

QRectF LanePlaces::idle(int device) const
{
    const QRectF beside = blocks(device);
    const int width = idleWidth(m_view.viewport()->width());
    return width == 0 ? QRectF()
                      : QRectF(m_view.viewport()->width() - width + 12, beside.top(), width - 24, beside.height());
}

QRectF LanePlaces::blocks(int device) const
{
    const bool known = device >= 0 && device < m_strip.lanes();
    const QRect above = lane(device).adjusted(0, 0, 0, known ? -m_strip.subHeight(device) - memoryHeight(device) : 0);
    const int inset = above.height() >= 60          ? 10
                      : above.height() >= tightLane ? 7
                      : above.height() >= namedLane ? 3
                                                    : 0; // outlines and critical marks stand in it
    return QRectF(above).adjusted(0, inset, 0, -inset - 1);
}

QRectF LanePlaces::transfers(int device) const
{
    const int height = m_strip.transferHeight(device);
    if (height == 0)
        return {};
    const QRect whole = lane(device);
    return QRectF(whole.left(), whole.bottom() - height, whole.width(), height - 2);
}

QRectF LanePlaces::kernels(int device) const
{
    const int height = m_strip.kernelHeight(device);
    if (height == 0)
        return {};
    const QRect whole = lane(device);
    return QRectF(whole.left(), whole.bottom() - m_strip.subHeight(device) + m_strip.memberHeight(device),
                  whole.width(), height - 2);
}

QRectF LanePlaces::members(int device) const
{
    const int height = m_strip.memberHeight(device);
    if (height == 0)
        return {};
    const QRect whole = lane(device);
    return QRectF(whole.left(), whole.bottom() - m_strip.subHeight(device), whole.width(), height - 2);
}

QRect LanePlaces::unfolder(int device) const
{
    const QRect whole = lane(device);
    constexpr int side = 16;
    return whole.height() < lowLane ? QRect() : QRect(m_headers - side - 2, whole.top() + 3, side, side);
}

int LanePlaces::at(int y) const
{
    const int below = y - TimelinePainter::rulerHeight;
    if (below < 0)
        return -1;
    return m_strip.laneAt(below < m_strip.pinnedTotal() ? below : below + m_view.verticalScrollBar()->value());
}

int LanePlaces::partAt(QPoint position, QRectF (LanePlaces::*part)(int) const) const
{
    const int lane = at(position.y());
    return lane >= 0 && (this->*part)(lane).contains(position) ? lane : -1;
}

std::optional<int> LanePlaces::edgeAt(QPoint position) const
{
    constexpr int reach = 4; // pixels beside the line below a lane that still grip it
    if (position.x() >= m_headers)
        return std::nullopt;
    const int above = at(position.y() - reach), here = at(position.y());
    if (above >= 0 && above != here)
        return above;
    if (here >= 0 && lane(here).bottom() - position.y() < reach)
        return here;
    return std::nullopt;
}

} // namespace pipewright
