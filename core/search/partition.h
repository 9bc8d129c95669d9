// SPDX-License-Identifier: GPL-3.0-or-later
// The cut of the layers into stages and the placement of the stages, found together with the order of the blocks. For
// each placement shape the search starts from a cut that gives every device work in proportion to its rate; it then
// moves single layers between stages, swaps unequal devices and, in a free placement, swaps stages, as long as the
// value improves. The value of a candidate is the time of a few rule-based schedules under the memory limit, not the
// work of the fullest device: the first stage keeps more activations than the last, and a heavy head is hard to hide. A
// lower bound rejects most candidates before a schedule is made, and the best few are searched in full, the design's
// own cut first and with its own order, so that the result is never worse. A placement with at most 64 cuts (times the
// orders of unequal devices) is enumerated; in a design of up to 300 blocks each cut is then searched in full, as time
// allows, unless its bound rules it out. O(blocks) per candidate, a hundred to ten thousand candidates.
#pragma once

#include "core/search/placement.h"
#include "core/search/search.h"

namespace pipewright {

struct PartitionOptions {
    SearchOptions search; ///< a third of its time is for the cut, the rest for orders. Locks are refused.
    std::vector<PlacementShape> shapes{PlacementShape::Given};
    bool moveLayers = true; ///< false: the even split of each placement
};

/// A cut whose order was searched.
struct PartitionTrial {
    PlacementShape shape = PlacementShape::Given;
    std::vector<int> layersPerStage, deviceOfStage;
    Nanoseconds value = 0, bound = 0;
};

struct PartitionResult {
    Design design;       ///< with the schedule found
    SearchResult result; ///< its proof and its bound hold for this cut and this placement
    std::vector<PartitionTrial> trials;
};

/// Throws Error: no model to cut, locked blocks, or no cut that fits into memory.
PartitionResult searchPartition(const Design& design, const PartitionOptions& options);

} // namespace pipewright
