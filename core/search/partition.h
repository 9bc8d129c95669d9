// SPDX-License-Identifier: GPL-3.0-or-later
// Which layers make up a stage and which device holds it, found together with the order of the blocks. From each
// shape of placement, cut so that every device has work by its rate, single layers are carried from one stage to
// another, devices change places where they differ, and in a free placement stages do too, as long as it pays. What
// counts is the time of a handful of schedules made by rules under the memory limit, not the work of the fullest
// device: a stage that is first keeps more activations than one that is last, and a head that is heavy and late
// hides less. A lower bound rules most candidates out before a schedule is made. The best few are searched in full.
// Where a placement has no more than 64 cuts (those of the devices' orders counted, where they differ), all are looked
// at instead, and in a design of up to 300 blocks each is searched in full, as far as time allows, unless its bound
// rules it out: the result is then the best of all cuts that the search of orders gives. One candidate costs O(blocks);
// there are some hundred to some ten thousand.
#pragma once

#include "core/search/placement.h"
#include "core/search/search.h"

namespace pipewright {

struct PartitionOptions {
    SearchOptions search; ///< its time is shared out: a third for the cut, the rest for orders. Locks are refused.
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

/// Throws Error: nothing to cut, locked blocks, or no cut that fits into memory.
PartitionResult searchPartition(const Design& design, const PartitionOptions& options);

} // namespace pipewright
