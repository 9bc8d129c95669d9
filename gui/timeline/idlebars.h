// SPDX-License-Identifier: GPL-3.0-or-later
// Every device's idle time as a bar at the right of its lane, by cause, with its share of the makespan. On side Both
// the measured bar is filled and the predicted one is an outline. Causes differ by tone and texture, and have no colour
// that means something elsewhere.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/theme.h"

#include <QRectF>

#include <vector>

class QPainter;

namespace pipewright {

class IdleBars {
public:
    struct Cause {
        QString name;
        QString brief; ///< the same beside a bar
        QColor color;
        Qt::BrushStyle texture = Qt::SolidPattern;
        std::vector<double> shares; ///< per device, of the makespan
    };

    void show(const Design& design, const Prediction* prediction, const Document::Overlay* overlay, Side side);
    std::vector<Cause> causes(const Theme& theme) const; ///< in the order of the bars
    /// Idle share of the makespan as written beside a device's bar.
    QString percentLabel(int device) const;
    QString mainCause(int device) const; ///< what most of it is; empty where there is none, and on side Both
    /// Where a share of the makespan ends in a bar that begins at `left` and may be `room` long.
    double xOf(double share, double left, double room) const { return left + share / m_scale * room; }
    /// `area`: of the bar and its words, beside the lane's blocks.
    void paint(QPainter& painter, int device, const QRectF& area, const Theme& theme, double scale) const;

private:
    Side m_side = Side::Predicted;
    std::vector<double> m_predicted;          ///< idle share, by device
    std::vector<double> m_measured;           ///< likewise; empty without an overlay
    std::vector<std::vector<double>> m_parts; ///< by cause, then device: of the side that is filled
    double m_scale = 0.5;                     ///< share of the longest possible bar
};

} // namespace pipewright
