// SPDX-License-Identifier: GPL-3.0-or-later
// Before which blocks a device gathers the parameters of its stages when copies of the pipeline share them out (ZeRO 3,
// FSDP). As PyTorch's pipeline schedules do: of the stages that come next on the device, the one that runs and
// `prefetch` more are gathered; any other of which the schedule says so (Reshard) is freed, and gathered again for its
// next visit. All passes are readers, W too: PyTorch runs none on parameters that are shared out. What the schedule
// states of single gathers (schedule/statedgather.h) takes the place of this: one comes earlier or later, is left out,
// or is one more. O(blocks x stages of a device). Source: torch/distributed/pipelining/schedules.py.
#pragma once

#include "core/design/costs.h"
#include "core/design/dataflow.h"
#include "core/schedule/ordergraph.h"

#include <compare>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace pipewright {

class GatherPlan {
public:
    struct Gather {
        BlockIndex before = noBlock; ///< the first of an overlapped pair, when it is for the second one
        BlockIndex reader = noBlock; ///< the first block that reads what is gathered
        auto operator<=>(const Gather&) const = default;
    };
    /// A stated gather that cannot be, and is not: nothing of it counts.
    struct WithoutEffect {
        StatedGather stated;
        std::string_view reason;
    };

    /// Of the stages with `gathered` alone, by stage. Keeps a reference to the graph.
    GatherPlan(const Schedule& schedule, const std::vector<bool>& gathered, const OrderGraph& graph);

    /// In the order of the device's blocks.
    std::span<const Gather> ofDevice(int device) const { return m_gathers[static_cast<std::size_t>(device)]; }

    const std::vector<WithoutEffect>& withoutEffect() const { return m_withoutEffect; }

    /// The earliest block before which what this block reads can be gathered: behind the reader before it of the same
    /// stage. noBlock when the block reads nothing that is gathered. O(log readers).
    BlockIndex earliest(BlockIndex reader) const;
    /// Whether no block before it reads the same.
    bool isFirstReader(BlockIndex reader) const;

private:
    void state(const PipelineShape& shape, const StatedGather& stated);

    const OrderGraph& m_graph;
    std::vector<std::vector<Gather>> m_gathers;
    std::vector<std::map<int, std::vector<BlockIndex>>> m_readers; ///< by device, by stage; ascending
    std::vector<WithoutEffect> m_withoutEffect;
};

/// By stage, whether its parameters are gathered in a step of this schedule: those that counted copies share out, or
/// drawn replicas.
std::vector<bool> gatheredStages(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow);

/// A note for each of the first stated gathers that have no effect in the design, and one that counts the others. The
/// schedule must be valid. O(blocks) when some are stated.
Diagnostics notesOnGathers(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow);

} // namespace pipewright
