// SPDX-License-Identifier: GPL-3.0-or-later
// Ranges as the zero-bubble runtimes name them: F, B or W with the microbatch, the rank's chunk and the piece of the
// sequence, "F3", "F3.0" or "F3.0.1". They name no stage, and B is what we call I (input gradient). A design's names
// are "F0.3", forward of stage 0 and microbatch 3, so names of two numbers are read as a runtime's only where they
// cannot be a design's:
// - they have a W and a B of the same numbers and no I (a design has B, or I and W), or a range W_clear; or
// - several ranks have the same names, with more first numbers than second ones (a stage lies on one rank).
// Names of one or three numbers are a runtime's where an F and a B have the same.
#pragma once

#include "core/exchange/pytorchaction.h"
#include "traces/store/activity.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace pipewright {

/// Whether the slice can be a range that names a block: by its kind, and as it was recorded.
bool mayNameBlock(const TraceData& data, const Activity& activity);

class ZeroBubbleNames {
public:
    /// Stages are counted over the ranks that have such ranges, in their order: chunk c of rank r among n is stage
    /// c n + r, or with a V, when the last rank runs chunk 1 first, odd chunks from the last rank back. Pieces count as
    /// microbatches, as in designs that cut sequences. Reports how the names were read. O(slices + ranges log ranges).
    explicit ZeroBubbleNames(TraceData& data);

    /// Nothing for other names, and always in traces whose names are a design's.
    std::optional<PytorchAction> actionOf(int rank, std::uint32_t name) const;

private:
    std::map<std::pair<int, std::uint32_t>, PytorchAction> m_actions; ///< by rank and name
};

} // namespace pipewright
