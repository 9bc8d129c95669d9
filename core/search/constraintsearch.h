// SPDX-License-Identifier: GPL-3.0-or-later
// Constraint programming with Gecode, where the build found it: every device is a unary resource, memory is a set of
// precedences and a cumulative resource, and the best known value is the upper bound. Two searches alternate: one
// branches over start times, which is quick where durations differ, the other over the order of pairs of blocks on a
// device, which also handles equal durations. Local search usually finds the best schedule first; this adds the proof
// of optimality, for designs of up to some hundred blocks. Only for symmetric microbatches without pins and locks:
// every pass takes them in the same order, which removes most of the symmetry.
#pragma once

#include "core/search/incumbent.h"

#include <functional>
#include <memory>

namespace pipewright {

/// Larger designs are not solved in useful time.
inline constexpr std::size_t mostTasksToConstrain = 320;

class ConstraintSearch {
public:
    virtual ~ConstraintSearch() = default;
    /// Searches at most some thousand nodes. False when the search is finished: the bound is proved or cannot be
    /// proved.
    virtual bool resume(const std::function<bool()>& stop) = 0;
};

/// Null without Gecode, or for a design outside the limits above.
std::unique_ptr<ConstraintSearch> makeConstraintSearch(const SearchModel& model, const SearchOptions& options,
                                                       Incumbent& incumbent);

/// The least time over all schedules from the start of stage 0's first forward to the start or the end of a block,
/// computed in slices as above.
class LeastTimeSearch {
public:
    virtual ~LeastTimeSearch() = default;
    virtual bool resume(const std::function<bool()>& stop) = 0; ///< false when it is known
    virtual Nanoseconds least() const = 0;                      ///< 0 until then
};

/// `known`: a time that some schedule reaches. Null as for makeConstraintSearch().
std::unique_ptr<LeastTimeSearch> makeLeastTimeSearch(const SearchModel& model, std::int32_t task, bool toItsEnd,
                                                     Nanoseconds known);

} // namespace pipewright
