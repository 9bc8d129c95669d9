// SPDX-License-Identifier: GPL-3.0-or-later
// Cyclic Data Parallelism with sharded states: only the device that updates a stage keeps its weights. A copy of every
// version starts there and is passed from block to block in the order of the cyclic timetable, in which one worker is
// at a stage per time step. A device thus holds the weights in use and those of its next block. Copies of two versions
// may be in flight at once. O(blocks log blocks).
#pragma once

#include "core/schedule/weightplan.h"

#include <map>
#include <utility>
#include <vector>

namespace pipewright {

/// The block from which each reader receives its weights; empty unless the schedule's states are sharded.
class WeightHops {
public:
    WeightHops(const OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule);

    /// The block that reads a version first; noBlock: none does.
    BlockIndex first(int stage, int version) const { return lookUp(m_first, std::pair{stage, version}); }
    /// The block that receives the weights from this one; noBlock: none does.
    BlockIndex after(BlockIndex reader) const { return lookUp(m_after, reader); }

    /// Calls see(reader, from): `from` is the reader before, or the update that made the version; not for the first
    /// reader of version 0, which exists from the start.
    template<typename See>
    void eachHop(const WeightPlan& plan, See see) const
    {
        for (const auto& [version, reader] : m_first)
            if (const auto& updates = plan.updates[version.first];
                version.second > 0 && static_cast<std::size_t>(version.second) <= updates.size())
                see(reader, updates[version.second - 1]);
        for (const auto& [from, reader] : m_after)
            see(reader, from);
    }

private:
    template<typename Map>
    static BlockIndex lookUp(const Map& map, const typename Map::key_type& key)
    {
        const auto found = map.find(key);
        return found == map.end() ? noBlock : found->second;
    }

    std::map<std::pair<int, int>, BlockIndex> m_first; ///< by stage and version
    std::map<BlockIndex, BlockIndex> m_after;
};

} // namespace pipewright
