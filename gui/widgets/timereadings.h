// SPDX-License-Identifier: GPL-3.0-or-later
// The positions on the time axis that all views show: the ruler's ticks, marks, the measured range and the crosshair.
// The lanes pass them to the charts below, which draw the same lines at the same x.
#pragma once

#include "gui/widgets/theme.h"
#include "gui/widgets/timecoordinates.h"

#include <QRectF>

#include <optional>
#include <vector>

class QPainter;

namespace pipewright {

struct TimeReadings {
    std::vector<double> ticks; ///< of the ruler, in nanoseconds
    std::vector<Nanoseconds> marks;
    std::optional<std::pair<Nanoseconds, Nanoseconds>> range;
    std::optional<Nanoseconds> crosshair;
    bool operator==(const TimeReadings&) const = default;
};

/// The ruler's lines in an area, beneath a chart. O(ticks).
void paintTicks(QPainter& painter, const TimeReadings& readings, const TimeAxis& axis, const QRectF& area,
                const Theme& theme);
/// Range, marks and crosshair over it.
void paintReadings(QPainter& painter, const TimeReadings& readings, const TimeAxis& axis, const QRectF& area,
                   const Theme& theme);

} // namespace pipewright
