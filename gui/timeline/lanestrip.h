// SPDX-License-Identifier: GPL-3.0-or-later
// The arrangement of a view's lanes: their order, heights, which are folded and which stay on top while the others
// scroll. It belongs to the view and not to the design, and needs no window, so it is tested without one. Lanes are
// identified by their device; a row is a place from the top.
#pragma once

#include <vector>

namespace pipewright {

class LaneStrip {
public:
    static constexpr int foldedHeight = 20;
    static constexpr int transferLane = 24; ///< of the sub-lane below a lane's blocks, on top of the lane's own height
    static constexpr int copyRow = 17;      ///< of each further row, for exchanges with copies or copies to the host
    static constexpr int kernelLane = 26;   ///< likewise, of the kernels that a recording has of the lane's blocks
    static constexpr int memberLane = 20;   ///< likewise, of each member of the lane's group
    static constexpr int leastHeight = 26, greatestHeight = 240;

    /// As many lanes as the design has devices. With the same number the lanes keep their arrangement; with another
    /// number the arrangement is reset.
    void setLanes(int lanes);
    /// Height of the lanes that were given none of their own.
    void setCommonHeight(int height);
    void setCopyRows(int rows); ///< further rows below the transfers of every lane that shows them

    int lanes() const { return static_cast<int>(m_lanes.size()); }
    int deviceAt(int row) const { return m_order[row]; }
    int rowOf(int device) const;
    int height(int device) const;
    int top(int device) const { return m_lanes[device].top; } ///< from the first row's
    int total() const { return m_total; }
    int pinnedTotal() const { return m_pinnedTotal; } ///< height of the pinned lanes, which come first
    /// The lane at a distance from the first row's top; -1 behind the last.
    int laneAt(int y) const;

    bool isFolded(int device) const { return m_lanes[device].folded; }
    bool showsTransfers(int device) const { return m_lanes[device].transfers; }
    /// Of the lane's sub-lane: 0 while it is not shown, or the lane is folded.
    int transferHeight(int device) const;
    bool showsKernels(int device) const { return m_lanes[device].kernels; }
    int kernelHeight(int device) const;                               ///< likewise
    int members(int device) const { return m_lanes[device].members; } ///< rows; 0: they are not shown
    int memberHeight(int device) const;                               ///< likewise, of all of them
    int subHeight(int device) const { return transferHeight(device) + kernelHeight(device) + memberHeight(device); }
    bool isPinned(int device) const { return m_lanes[device].pinned; }
    bool hasOwnHeight(int device) const;
    bool isAsGiven() const; ///< nothing was changed

    void setHeight(int device, int height); ///< of one lane, clamped; unfolds it
    void setHeightOfAll(int height);
    void setFolded(int device, bool folded);
    void setPinned(int device, bool pinned);
    void setTransfers(int device, bool shown); ///< unfolds a lane whose sub-lane is to be shown
    void setKernels(int device, bool shown);   ///< likewise
    void setMembers(int device, int rows);     ///< likewise; 0 hides them
    /// Puts a lane where another row is; pinned lanes stay above the others, so the row is clamped.
    void move(int device, int row);
    void reset();

private:
    struct Lane {
        int height = 0; ///< 0: the common height
        int top = 0;
        int members = 0;
        bool folded = false, pinned = false, transfers = false, kernels = false;
    };
    void arrange();

    std::vector<Lane> m_lanes; ///< by device
    std::vector<int> m_order;  ///< devices by row
    int m_common = foldedHeight;
    int m_copyRows = 0;
    int m_total = 0, m_pinnedTotal = 0;
};

} // namespace pipewright
