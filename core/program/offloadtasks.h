// SPDX-License-Identifier: GPL-3.0-or-later
// The copies between a device and the host's memory, as tasks: written while the blocks of the global order are. One
// direction of a device carries one copy after the other.
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

    /// Before the task of a block is begun: what is asked back before it. `last`: the last task of its device.
    [[gnu::noinline]] void askBack(BlockIndex block, TaskId last);
    /// The task waits until its device may have freed what lies there for copies out.
    [[gnu::noinline]] void begin(TaskId task, int device);
    /// Behind the task of a block with all its buffers: what it kept (until input and until weight gradient) leaves, if
    /// the plan says so; of an overlapped pair behind both.
    [[gnu::noinline]] void leave(BlockIndex block, TaskId task, std::array<BufferId, 2> kept);
    /// The block, no forward, reads what came back: W what is kept for it, others all, since it came back as a whole.
    /// False where it never left.
    [[gnu::noinline]] bool readBack(TaskId task, const Block& block);

private:
    struct Trip {
        TaskId offload = none, reload = none;
        std::array<BufferId, 2> onHost{none, none}, back{none, none};
    };
    struct Leaving {
        BlockIndex block = noBlock;
        TaskId task = none;
        std::array<BufferId, 2> kept{none, none};
    };
    struct Wires { ///< of a device
        TaskId lastOut = none, lastIn = none;
        TaskId open = none, openBefore = none; ///< offloads whose values are still there: the last, the one before it
        TaskId waitedFor = none;               ///< the offload that the next block waits for
        Leaving firstOfPair;
    };

    Trip& tripOf(const Block& block);
    void addOffload(const Leaving& leaving);
    void addReload(const Block& block, int device, TaskId last);
    std::array<BufferId, 2> copies(std::array<BufferId, 2> of, std::array<BufferKind, 2> kinds);

    const OrderGraph& m_graph;
    const OffloadPlan& m_plan;
    std::vector<Trip> m_trips;  ///< per microbatch and stage
    std::vector<Wires> m_wires; ///< per device
};

} // namespace pipewright
