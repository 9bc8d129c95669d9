// SPDX-License-Identifier: GPL-3.0-or-later
// What one lane looks like in one window of time, as rectangles: the part of painting that can be tested
// without looking. Blocks are drawn one by one or merged (levelofdetail), with labels where they have room
// (blocklabel). Cost and result are bounded by the pixels of the window, not by the blocks
// (LaneGeometry::visited counts them).
#pragma once

#include "gui/timeline/blocklabel.h"
#include "gui/widgets/timecoordinates.h"

#include <QRectF>

#include <array>
#include <cstdint>
#include <vector>

namespace pipewright {

struct BlockRect {
    QRectF rect;           ///< on device pixels
    std::size_t index = 0; ///< into the lane's blocks
    BlockLabel label = BlockLabel::None;
};

struct LaneGeometry {
    std::vector<BlockRect> blocks;                   ///< in time order
    std::array<std::vector<QRectF>, opCount> merged; ///< stacked shares, per operation
    std::vector<QRectF> idle;
    std::int64_t visited = 0; ///< blocks looked at

    std::int64_t primitives() const;
};

/// `area` is where the blocks of the lane stand (its height and y; x comes from the axis), `total` the end
/// of the time in which a device can be idle, `scale` the device pixels per pixel.
LaneGeometry laneGeometry(const Lane& lane, const TimeAxis& axis, const QRectF& area, Nanoseconds total, double scale);

/// Where one block of a lane is drawn, also outside of the window.
QRectF blockRect(const LaneBlock& block, const TimeAxis& axis, const QRectF& area, double scale);

QRectF gradientSumRect(const LaneSum& sum, const TimeAxis& axis, const QRectF& area);

} // namespace pipewright
