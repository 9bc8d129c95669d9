// SPDX-License-Identifier: GPL-3.0-or-later
// What a device exchanges with the same devices of the copies of the pipeline that the model's degrees only count
// (data and context parallel ones), as tasks of their own beside its blocks: the sum of a stage's gradients after its
// last backward, or after each, and the gathering of parameters, of updated ones after the update (ZeRO 1 and 2) or
// before their readers (ZeRO 3, gatherplan.h). A device does one after the other. Added while the blocks are written in
// global order. O(1) per task.
#pragma once

#include "core/program/gatherplan.h"
#include "core/program/taskwriter.h"

#include <optional>
#include <vector>

namespace pipewright {

class CopyCollectives : TaskWriter {
public:
    /// Whether a step has these tasks. With update blocks, and between drawn replicas, the update's time includes them:
    /// updateTime().
    static bool areIn(const PipelineShape& shape, bool hasUpdates, const Costs& costs);

    /// Keeps references to all.
    CopyCollectives(Program& program, const Schedule& schedule, const Costs& costs, const Dataflow& dataflow,
                    const OrderGraph& graph);

    /// Before the task of a block is begun. `last`: the last task of its device.
    [[gnu::noinline]] void addGathersBefore(BlockIndex block, TaskId& last);
    /// Makes the task wait for the sum whose gradients its device must free first, if there is one.
    [[gnu::noinline]] void begin(TaskId task, int device);
    /// The task of a block reads its stage's gathered parameters, and what it adds gradients to …
    [[gnu::noinline]] void read(TaskId task, const Block& block);
    /// … or makes the buffer for them.
    [[gnu::noinline]] void write(const Block& block, int device);
    /// After the task of a block and all its buffers; for an overlapped pair, after both.
    [[gnu::noinline]] void addSumAfter(BlockIndex block, TaskId task, TaskId& last);

    /// The last sum of a stage's gradients; none without any.
    TaskId sumOf(int stage) const { return m_stages[static_cast<std::size_t>(stage)].summed; }
    /// After a stage's update, where others need the device's share of it.
    void addGatherAfter(int stage, TaskId update, TaskId& last);

private:
    struct Stage {
        int gradientsLeft = 0; ///< blocks
        TaskId gather = none, summed = none;
        BufferId parameters = none, gradients = none;
        Bytes parameterBytes = 0, gradientBytes = 0; ///< to be made there; 0: not shared out
    };
    struct Device {
        TaskId last = none;        ///< collective
        std::vector<TaskId> open;  ///< sums whose gradients are still there, oldest first
        std::size_t next = 0;      ///< gather of the plan
        BlockIndex held = noBlock; ///< the first of a pair, with its task
        TaskId heldTask = none;
    };
    bool isSummedEach() const
    {
        return m_schedule.zero.sharesGradients() && m_schedule.zero.reduce == Zero::Reduce::Each;
    }
    Stage& stageOf(const Block& block) { return m_stages[static_cast<std::size_t>(block.stage)]; }
    TaskId beginCollective(TaskKind kind, const Block& block, int device, TaskId behind, TaskId& last);
    void addSum(BlockIndex block, TaskId task, TaskId& last);

    const OrderGraph& m_graph;
    std::optional<GatherPlan> m_plan;
    std::vector<Stage> m_stages;
    std::vector<Device> m_devices;
};

} // namespace pipewright
