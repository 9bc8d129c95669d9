// SPDX-License-Identifier: GPL-3.0-or-later
// The sub-lanes of members: below a group's blocks, a row for each member with its parts of the blocks, the collectives
// of all members, and its wait before each collective for the slowest member; at the left its share and its memory.
// With a recording the rows show the measured parts, and the prediction is drawn as outlines.
#pragma once

#include "gui/document/memberforecast.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/timecoordinates.h"

#include <QRectF>

#include <optional>
#include <vector>

class QPainter;

namespace pipewright {

class MemberLanes {
public:
    MemberLanes(const Document& document, const MemberForecast& forecast) : m_document(document), m_forecast(forecast)
    {
    }
    int membersOf(int device) const; ///< of its group; 0: a single device

    struct Rect {
        QRectF rect;
        QRectF wait;                      ///< before a collective; null: none
        int member = 0;                   ///< within the group
        std::size_t index = 0, count = 1; ///< into its parts: the first of those that share the pixel
    };
    /// Predicted parts. `area`: the device's sub-lanes. One rectangle per member and pixel at most.
    std::vector<Rect> rects(int device, const QRectF& area, const TimeAxis& axis) const;
    const MemberForecast::Part* part(int device, const Rect& rect) const; ///< null: several
    /// What a group sends to others from one time to another.
    std::vector<Transfer> sentBetween(int device, double from, double to) const;
    /// The last collective before what the group sends, or the first one behind it.
    std::optional<Transfer> collectiveBeside(int device, const Transfer& sent, bool before) const;
    QString text(int device, const Rect& part) const; ///< "part 2 of 3 of F0.1 on member 1: 1.2 ms"
    QString rowText(int device, int member) const;    ///< "member 1 (slow CPU): 40.0 % of stage 0, 3.1 MiB; busy …"
    /// "all-reduce of F0.1 on member 1: 1.2 ms, measured"; empty where the recording has nothing of the member.
    QString measuredText(int device, int member, double time) const;
    int rowAt(int device, const QRectF& area, double y) const; ///< -1: none
    /// `measured`: the lanes show a recording; `predicted`: they show a prediction. Both may be set.
    void paint(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis, const Theme& theme,
               bool measured, bool predicted) const;

private:
    QRectF row(int device, const QRectF& area, int member) const;
    const MemberForecast::Members* members(int device) const; ///< null: none are known of this device
    /// Null: no recording of this device's members.
    const Document::Overlay::Kernels* recorded(int device) const;
    void paintMeasured(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis,
                       const Theme& theme) const;

    const Document& m_document;
    const MemberForecast& m_forecast;
};

} // namespace pipewright
