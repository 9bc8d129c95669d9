// SPDX-License-Identifier: GPL-3.0-or-later
// Constraint programming with Gecode, where it was found when this was built: every device a unary resource, memory
// as precedence where a stage's microbatches alone fill it and as a cumulative resource beside, the best value found
// by anybody as the bound. Two searches take turns: by start times, quick where times differ, and by the order of
// pairs of blocks on a device, which does not stall where they are equal. Local search finds the best schedule first
// nearly always; what this adds is the proof that none is better, for designs of some hundred blocks.
// Only for microbatches that are alike, without pins and locks: these keep their order within a pass, which takes
// most of the symmetry out.
#pragma once

#include "core/search/incumbent.h"

#include <functional>
#include <memory>

namespace pipewright {

/// Beyond so many blocks it gets nowhere.
inline constexpr std::size_t mostTasksToConstrain = 320;

class ConstraintSearch {
public:
    virtual ~ConstraintSearch() = default;
    /// Goes on for a slice of some thousand nodes at most. False when there is nothing left to do: it proved the
    /// bound, or cannot.
    virtual bool goOn(const std::function<bool()>& stop) = 0;
};

/// Nothing when the program was built without Gecode, or the design is not one for it.
std::unique_ptr<ConstraintSearch> makeConstraintSearch(const SearchModel& model, const SearchOptions& options,
                                                       Incumbent& incumbent);

/// The least time from the start of stage 0's first forward to the start of a block, or to its end, that any schedule
/// of the model has, in slices as above.
class LeastTimeSearch {
public:
    virtual ~LeastTimeSearch() = default;
    virtual bool goOn(const std::function<bool()>& stop) = 0; ///< false when it is known
    virtual Nanoseconds least() const = 0;                    ///< 0 until then
};

/// `known`: a time that some schedule has. Nothing as for makeConstraintSearch().
std::unique_ptr<LeastTimeSearch> makeLeastTimeSearch(const SearchModel& model, std::int32_t task, bool toItsEnd,
                                                     Nanoseconds known);

} // namespace pipewright
