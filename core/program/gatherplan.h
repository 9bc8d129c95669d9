// SPDX-License-Identifier: GPL-3.0-or-later
// Before which blocks a device gathers the parameters of its stages when copies of the pipeline share them out (ZeRO 3,
// FSDP). As PyTorch's pipeline schedules do: of the stages that come next on the device, the one that runs and
// `prefetch` more are gathered; any other of which the schedule says so (Reshard) is freed, and gathered again for its
// next visit. All passes are readers, W too: PyTorch runs none on parameters that are shared out. O(blocks x stages of
// a device). Source: torch/distributed/pipelining/schedules.py.
#pragma once

#include "core/schedule/ordergraph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

class GatherPlan {
public:
    struct Gather {
        BlockIndex before = noBlock; ///< the first of an overlapped pair, when it is for the second one
        BlockIndex reader = noBlock; ///< the first block that reads what is gathered
        bool operator==(const Gather&) const = default;
    };

    /// Of the stages with `gathered` alone, by stage.
    GatherPlan(const Schedule& schedule, const std::vector<bool>& gathered, const OrderGraph& graph);

    /// In the order of the device's blocks.
    std::span<const Gather> ofDevice(int device) const { return m_gathers[static_cast<std::size_t>(device)]; }

private:
    std::vector<std::vector<Gather>> m_gathers;
};

} // namespace pipewright
