// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of the overview: one row of at least a pixel per device, with its blocks on the time axis and its busy share
// and memory peak as bars at the left (of the side that the charts show filled). With more devices than pixels, a row
// is the average of several devices, none left out. Painting costs O(pixels), independent of the blocks; the numbers
// come from the document.
#pragma once

#include "core/base/units.h"
#include "gui/widgets/timecoordinates.h"

#include <QRect>
#include <QString>

#include <optional>
#include <utility>

class QPainter;

namespace pipewright {

struct Theme;
class TimelineView;

class OverviewRows {
public:
    /// `area`: of all rows, from the left edge; the blocks begin where the axis does.
    OverviewRows(const TimelineView& timeline, const QRect& area);

    int count() const { return m_count; }
    QRect rect(int row) const;
    int at(int y) const;                          ///< the row there; -1: none
    std::pair<int, int> devicesOf(int row) const; ///< first, and one behind the last
    struct Numbers {
        double busy = 0;           ///< mean share of the step
        std::optional<Bytes> peak; ///< the highest; none: not recorded
        Bytes limit = 0;           ///< of the device with that peak; 0: unknown
    };
    Numbers numbers(int row, bool measured) const;
    /// "GPU 12 · busy 72.0 % · peak 61.0 GiB, predicted", below it the same of the measured range; empty beside the
    /// rows.
    QString textAt(int y) const;
    void paint(QPainter& painter, const TimeAxis& axis, const Theme& theme, double scale) const;
    static constexpr int barsLeft = 72; ///< space left of the bars

private:
    int topOf(int row) const { return m_area.top() + row * m_area.height() / m_count; }
    void paintAverage(QPainter& painter, int row, const TimeAxis& axis, const Theme& theme, double scale) const;
    void paintBars(QPainter& painter, const Theme& theme) const;

    const TimelineView& m_timeline;
    QRect m_area;
    int m_count;
};

} // namespace pipewright
