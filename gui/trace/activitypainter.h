// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the tracks and counters of an imported trace. Each pixel's content comes from the track's index, so painting
// costs O(pixels). Slices of one name have one colour; pipeline blocks (ranges named PP:…) have the designer's colours.
#pragma once

#include "gui/widgets/theme.h"
#include "gui/widgets/timecoordinates.h"
#include "traces/store/activitystore.h"

#include <QImage>
#include <QRect>
#include <QString>

#include <span>
#include <vector>

class QPainter;

namespace pipewright {

class ActivityPainter {
public:
    /// Keeps references.
    ActivityPainter(const Theme& theme, const StoredActivities& trace, double scale);

    /// Paints one track in a strip of the plot and returns the number of painted intervals. `ground`: one row of the
    /// background (TimelinePainter::groundRow). `dimOthers`: by name id, false paints its slices pale (a search);
    /// empty: none are pale.
    std::size_t track(QPainter& painter, const TimeAxis& axis, const QRect& area, const Track& track,
                      std::span<const QRgb> ground, const std::vector<bool>& dimOthers) const;
    void counter(QPainter& painter, const TimeAxis& axis, const QRect& area, const TraceCounter& counter) const;
    QRgb colour(ActivityKind kind, std::uint32_t name) const;
    const QString&
    name(std::uint32_t id) const; ///< the label of a slice: block names without "PP:", functions without scope
    bool isFor(const Theme& theme, double scale) const { return &theme == &m_theme && scale == m_scale; }

private:
    struct Text {
        double left, width;
        std::uint32_t name;
    };
    const Theme& m_theme;
    const StoredActivities& m_trace;
    double m_scale;
    QFont m_font;
    double m_letter = 7;                  ///< width of a letter; the font is monospaced
    double m_capitals = 9;                ///< height of a capital
    mutable std::vector<QString> m_names; ///< by id, filled on demand
    mutable std::vector<QRgb> m_colours;  ///< by name, filled on demand; 0: not yet
    mutable QImage m_strip;               ///< the current track
    mutable std::vector<Text> m_texts;    ///< the texts on it
    mutable std::vector<VisibleSlice> m_visible;
};

} // namespace pipewright
