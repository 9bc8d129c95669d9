// SPDX-License-Identifier: GPL-3.0-or-later
// The vertical layout of an imported trace: a heading per device and process, below it its streams or threads, each as
// high as its nesting, and its counters. Groups and lanes fold. No horizontal coordinates, no painting.
#pragma once

#include "traces/store/activitystore.h"

#include <QString>

#include <optional>
#include <vector>

namespace pipewright {

class ActivityRows {
public:
    static constexpr int groupHeight = 28, trackHeight = 18, laneMargin = 4, counterHeight = 46;

    enum class Kind { Group, Lane, Counter };
    struct Row {
        Kind kind = Kind::Group;
        QString name;
        std::size_t group = 0;
        std::size_t firstTrack = 0, tracks = 0; ///< Lane: into StoredActivities::tracks
        std::size_t counter = 0;                ///< Counter
        bool folded = false; ///< a folded group shows nothing below it, a folded lane only its outermost slices
        bool visible = true; ///< its group is open
        int top = 0, height = 0;
    };

    /// Devices first, then processes; within them as the trace sorts them.
    explicit ActivityRows(const StoredActivities& trace);

    const std::vector<Row>& rows() const { return m_rows; }
    int height() const { return m_height; }
    void toggle(std::size_t row);
    /// The row at a height; nullopt outside all rows.
    std::optional<std::size_t> at(int y) const;
    /// The track of a lane at a height, an index into StoredActivities::tracks.
    std::optional<std::size_t> trackAt(int y) const;
    /// Top of a track; nullopt when it is folded.
    std::optional<int> topOf(std::size_t track) const;
    std::optional<std::size_t> rowOf(std::size_t track) const;

private:
    void place();

    std::vector<Row> m_rows;
    int m_height = 0;
};

} // namespace pipewright
