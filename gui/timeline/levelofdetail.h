// SPDX-License-Identifier: GPL-3.0-or-later
// The level of detail of a lane in one window of time: every block by itself, or all but the wide ones merged into
// columns that show the share of every operation inside them.
#pragma once

#include "gui/document/timelinelayout.h"
#include "gui/widgets/timecoordinates.h"

#include <QRectF>

#include <array>
#include <vector>

namespace pipewright {

/// In device pixels.
struct LevelOfDetail {
    int individual = 0; ///< blocks at least this wide are drawn by themselves; 0: all are
    int column = 1;     ///< the width of a column of merged blocks
};
LevelOfDetail levelOfDetail(const Lane& lane, const TimeAxis& axis, double scale);

/// Shares of the operations in the columns of a lane, from left to right.
class MergedColumns {
public:
    MergedColumns(const Lane& lane, const TimeAxis& axis, const QRectF& area, double scale)
        : m_lane(lane), m_axis(axis), m_area(area), m_scale(scale)
    {
    }
    /// Appends one column between two x, filled from below in the order of the operations. `index`: of a block that
    /// begins in it.
    void stack(double first, double last, std::size_t index, std::array<std::vector<QRectF>, opCount>& merged);

private:
    const Lane& m_lane;
    const TimeAxis& m_axis;
    const QRectF m_area;
    const double m_scale;
    // The time per operation until an x; a column begins where the one before ended, so each is looked up once.
    double m_spentUntil = -1;
    std::array<double, opCount> m_spent{};
};

} // namespace pipewright
