// SPDX-License-Identifier: GPL-3.0-or-later
// Helpers of the family files: placements, and builders of a device's list.
#pragma once

#include "core/families/family.h"

namespace pipewright {

/// Stage s on device s.
std::vector<int> linearPlacement(int devices);
/// Stage s on device s mod p (p devices, v chunks each).
std::vector<int> loopedPlacement(int devices, int chunks);

/// The placement of a second replica that runs the other way.
std::vector<int> reversed(const std::vector<int>& deviceOfStage);

/// Two replicas in opposite directions need an even number of devices and of microbatches.
Diagnostics checkTwoWays(const FamilyParameters&);

/// Appends blocks of one stage and counts them, so that "the next F" needs no index.
class LaneBuilder {
public:
    LaneBuilder(std::vector<Block>& lane, int stage, int microbatches);
    void next(Op op); ///< the next microbatch of this operation, if any is left
    void rest(Op op); ///< all microbatches left
    int placed(Op op) const { return m_placed[static_cast<int>(op)]; }
    bool left(Op op) const { return placed(op) < m_microbatches; }

private:
    std::vector<Block>& m_lane;
    int m_stage, m_microbatches;
    int m_placed[opCount] = {};
};

/// A device's 1F1B list with `warmUp` forwards before the first backward (arXiv 2006.15704 and Megatron): then one
/// backward and one forward in turn, then the backwards left.
std::vector<Block> alternate(int stage, int microbatches, int warmUp);

/// The handcrafted zero-bubble list (arXiv 2401.10241): `warmUp` forwards; then for each microbatch an I, a W whenever
/// more than `delay` of them are owed, and the next F; then the Ws left.
std::vector<Block> zeroBubble(int stage, int microbatches, int warmUp, int delay);

/// Stage s on device s, which runs the blocks of list(s).
template<class List>
Schedule linearSchedule(const FamilyParameters& p, List list)
{
    Schedule schedule;
    schedule.deviceOfStage = linearPlacement(p.devices);
    for (int device = 0; device < p.devices; ++device)
        schedule.order.push_back(list(device));
    return schedule;
}

} // namespace pipewright
