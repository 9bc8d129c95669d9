// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lanestrip.h"

#include <algorithm>
#include <numeric>

namespace pipewright {

void LaneStrip::setLanes(int lanes)
{
    if (lanes == this->lanes())
        return;
    m_lanes.assign(std::max(0, lanes), {});
    m_order.resize(m_lanes.size());
    std::iota(m_order.begin(), m_order.end(), 0);
    arrange();
}

void LaneStrip::setCommonHeight(int height)
{
    if (height == m_common)
        return;
    m_common = height;
    arrange();
}

void LaneStrip::setCopyRows(int rows)
{
    if (rows == m_copyRows)
        return;
    m_copyRows = rows;
    arrange();
}

int LaneStrip::rowOf(int device) const
{
    return static_cast<int>(std::find(m_order.begin(), m_order.end(), device) - m_order.begin());
}

int LaneStrip::height(int device) const
{
    const Lane& lane = m_lanes[device];
    return lane.folded ? foldedHeight : (lane.height > 0 ? lane.height : m_common) + subHeight(device);
}

int LaneStrip::transferHeight(int device) const
{
    const Lane& lane = m_lanes[device];
    return lane.transfers && !lane.folded ? transferLane + m_copyRows * copyRow : 0;
}

int LaneStrip::kernelHeight(int device) const
{
    const Lane& lane = m_lanes[device];
    return lane.kernels && !lane.folded ? kernelLane : 0;
}

int LaneStrip::memberHeight(int device) const
{
    const Lane& lane = m_lanes[device];
    return lane.folded || lane.members == 0 ? 0 : lane.members * memberLane + 4;
}

int LaneStrip::laneAt(int y) const
{
    if (y < 0 || y >= m_total)
        return -1;
    const auto next =
        std::upper_bound(m_order.begin(), m_order.end(), y, [this](int at, int device) { return at < top(device); });
    return *std::prev(next);
}

bool LaneStrip::hasOwnHeight(int device) const
{
    const Lane& lane = m_lanes[device];
    return lane.folded || lane.height > 0;
}

bool LaneStrip::isAsGiven() const
{
    return std::is_sorted(m_order.begin(), m_order.end())
           && std::none_of(m_lanes.begin(), m_lanes.end(), [](const Lane& lane) {
                  return lane.height > 0 || lane.folded || lane.pinned || lane.transfers || lane.kernels
                         || lane.members > 0;
              });
}

void LaneStrip::setHeight(int device, int height)
{
    Lane& lane = m_lanes[device];
    lane.folded = false;
    lane.height = std::clamp(height - subHeight(device), leastHeight, greatestHeight);
    arrange();
}

void LaneStrip::setTransfers(int device, bool shown)
{
    Lane& lane = m_lanes[device];
    lane.transfers = shown;
    lane.folded = lane.folded && !shown;
    arrange();
}

void LaneStrip::setKernels(int device, bool shown)
{
    Lane& lane = m_lanes[device];
    lane.kernels = shown;
    lane.folded = lane.folded && !shown;
    arrange();
}

void LaneStrip::setMembers(int device, int rows)
{
    Lane& lane = m_lanes[device];
    lane.members = rows;
    lane.folded = lane.folded && rows == 0;
    arrange();
}

void LaneStrip::setHeightOfAll(int height)
{
    for (Lane& lane : m_lanes) {
        lane.height = std::clamp(height, leastHeight, greatestHeight);
        lane.folded = false;
    }
    arrange();
}

void LaneStrip::setFolded(int device, bool folded)
{
    m_lanes[device].folded = folded;
    arrange();
}

void LaneStrip::setPinned(int device, bool pinned)
{
    m_lanes[device].pinned = pinned;
    // An unpinned lane becomes the first of the other lanes, where it was seen last.
    std::stable_partition(m_order.begin(), m_order.end(), [this](int each) { return isPinned(each); });
    arrange();
}

void LaneStrip::move(int device, int row)
{
    const auto pinned =
        static_cast<int>(std::count_if(m_lanes.begin(), m_lanes.end(), [](const Lane& lane) { return lane.pinned; }));
    const int to = isPinned(device) ? std::clamp(row, 0, pinned - 1) : std::clamp(row, pinned, lanes() - 1);
    m_order.erase(m_order.begin() + rowOf(device));
    m_order.insert(m_order.begin() + to, device);
    arrange();
}

void LaneStrip::reset()
{
    std::fill(m_lanes.begin(), m_lanes.end(), Lane{});
    std::iota(m_order.begin(), m_order.end(), 0);
    arrange();
}

void LaneStrip::arrange()
{
    m_total = m_pinnedTotal = 0;
    for (const int device : m_order) {
        m_lanes[device].top = m_total;
        m_total += height(device);
        if (isPinned(device))
            m_pinnedTotal = m_total;
    }
}

} // namespace pipewright
