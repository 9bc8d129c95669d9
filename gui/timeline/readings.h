// SPDX-License-Identifier: GPL-3.0-or-later
// Times that a person has marked on the axis: marks, and one measured range. Values only; the view draws them.
#pragma once

#include "core/base/units.h"

#include <optional>
#include <utility>
#include <vector>

namespace pipewright {

class Readings {
public:
    using Range = std::pair<Nanoseconds, Nanoseconds>;

    const std::vector<Nanoseconds>& marks() const { return m_marks; } ///< sorted
    /// The mark within `reach` of a time.
    std::optional<Nanoseconds> markNear(Nanoseconds time, double reach) const;
    /// Sets a mark, or takes away the one within reach; true when it was set.
    bool toggleMark(Nanoseconds time, double reach);
    void clearMarks();
    std::optional<Nanoseconds> lastMark() const { return m_last; } ///< the one set last; none once a mark was removed

    const std::optional<Range>& range() const { return m_range; }
    bool setRange(std::optional<Range> range); ///< in either order of its ends; false when it is as before

private:
    std::vector<Nanoseconds> m_marks;
    std::optional<Nanoseconds> m_last;
    std::optional<Range> m_range;
};

} // namespace pipewright
