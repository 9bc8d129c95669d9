// SPDX-License-Identifier: GPL-3.0-or-later
// The copies between a device and the host's memory as tasks, added while the blocks are written in global order. Each
// direction of a device carries one copy at a time.
#pragma once

#include "core/program/offloadplan.h"
#include "core/program/taskwriter.h"

#include <array>
#include <vector>

namespace pipewright {

class OffloadTasks : TaskWriter {
public:
    /// Keeps references to all.
    OffloadTasks(Program& program, const Schedule& schedule, const Costs& costs, const OrderGraph& graph,
                 const OffloadPlan& plan);

    /// Before the task of a block is begun: adds the reloads planned before it. `last`: the last task of its device.
    [[gnu::noinline]] void addReloadsBefore(BlockIndex block, TaskId last);
    /// Makes the task wait for the offload whose source its device must free first, if there is one.
    [[gnu::noinline]] void begin(TaskId task, int device);
    /// After the task of a block and all its buffers: adds the offload of what it saved (until input gradient, until
    /// weight gradient), if planned. For an overlapped pair, after both of its blocks; for the pieces of a sequence,
    /// after the last of them.
    [[gnu::noinline]] void addOffloadAfter(BlockIndex block, TaskId task, std::array<BufferId, 2> kept);
    /// Makes the task of a block that is no forward read the reloaded buffers: W those saved for it, other blocks all.
    /// False where nothing was offloaded.
    [[gnu::noinline]] bool readReloaded(TaskId task, const Block& block);
    /// Likewise, what the block reads of an earlier piece of its sequence: what that kept until its input gradient.
    [[gnu::noinline]] bool readReloadedPiece(TaskId task, const Block& block, int piece);

private:
    struct Trip {
        std::array<BufferId, 2> kept{none, none}; ///< the buffers that its forward saved
        TaskId offload = none, reload = none;
        std::array<BufferId, 2> onHost{none, none}, back{none, none};
    };
    struct Forward {
        BlockIndex block = noBlock;
        TaskId task = none;
    };
    struct Wires { ///< of a device
        TaskId lastOut = none, lastIn = none;
        TaskId open = none, openBefore = none; ///< offloads whose values are still there: the last, the one before it
        TaskId waitedFor = none;               ///< the offload that the next block waits for
        Forward firstOfPair;
    };

    Trip& tripOf(const Block& block) { return tripOf(block.stage, block.microbatch); }
    Trip& tripOf(int stage, int microbatch);
    /// Adds the offload of this forward; for the last piece of a sequence, the offloads of all pieces.
    void addOffloads(const Forward& last);
    void addOffload(BlockIndex forward, TaskId behind);
    void addReload(const Block& block, int device, TaskId last);
    std::array<BufferId, 2> copies(std::array<BufferId, 2> of);

    const OrderGraph& m_graph;
    const OffloadPlan& m_plan;
    std::vector<Trip> m_trips;  ///< per microbatch and stage
    std::vector<Wires> m_wires; ///< per device
};

} // namespace pipewright
