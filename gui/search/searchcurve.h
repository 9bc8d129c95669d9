// SPDX-License-Identifier: GPL-3.0-or-later
// Progress of a search: the best time so far, the lower bound, and the hatched gap between them. One point per change,
// so the data stays small.
#pragma once

#include "core/base/units.h"

#include <QWidget>

#include <vector>

namespace pipewright {

class SearchCurve : public QWidget {
    Q_OBJECT

public:
    explicit SearchCurve(QWidget* parent = nullptr);

    struct Point {
        double seconds = 0;
        Nanoseconds best = 0; ///< 0: none found yet
        Nanoseconds bound = 0;
    };
    /// Starts over. `present`: the present design's time, drawn as a line; 0: none.
    void clear(Nanoseconds present = 0);
    void append(const Point& point);
    const std::vector<Point>& points() const { return m_points; }
    QSize sizeHint() const override { return {520, 150}; }

protected:
    void paintEvent(QPaintEvent*) override;

private:
    std::vector<Point> m_points; ///< where best or bound changed, and the last
    Nanoseconds m_present = 0;
};

} // namespace pipewright
