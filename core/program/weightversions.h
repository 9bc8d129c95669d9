// SPDX-License-Identifier: GPL-3.0-or-later
// The part of transfer inference for weights: which buffer a block reads its weight version from, which versions an
// update copies because later blocks read them, and what is sent between devices that work on the same stage. A stage's
// newest weights are its persistent Parameters; an older version is copied by the update that replaces it, and only if
// a later block reads it, so that liveness gives the memory that a weight policy takes. With sharded states, copies are
// passed from block to block (core/schedule/weighthops.h).
#pragma once

#include "core/program/pendingtransfers.h"
#include "core/program/taskwriter.h"
#include "core/schedule/weighthops.h"
#include "core/schedule/weightinputs.h"
#include "core/schedule/weightplan.h"

#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace pipewright {

class WeightTasks : TaskWriter {
public:
    WeightTasks(Program& program, const Schedule& schedule, const Costs& costs, const OrderGraph& graph,
                const WeightPlan& plan);

    /// A value for another device, and the Arrival to be filled in when its transfer is written out.
    struct Outgoing {
        TaskId producer;
        int device;
        BlockIndex consumer;
        BufferId buffer;
        Arrival* arrival;
    };

    /// Sharded states: before a block begins, sends the weights for the next block on its device, so that they arrive
    /// just in time. The owner of a stage makes the first copies. Fills `outgoing`.
    [[gnu::noinline]] void sendOut(BlockIndex block, std::vector<TaskId>& lastOnDevice,
                                   std::vector<Outgoing>& outgoing);
    /// Before the task of a block begins: a CopyWeightsIn task when it reads weights newer than those in its device's
    /// Parameters. `last` is the device's last task and becomes the new one.
    [[gnu::noinline]] void prepare(BlockIndex block, TaskId& last);
    [[gnu::noinline]] void read(TaskId task, BlockIndex block); ///< among the reads of its task
    /// Among the writes of its task; fills `outgoing`.
    void write(TaskId task, BlockIndex block, std::vector<Outgoing>& outgoing);
    /// At the end of the step, after all transfers: CopyWeightsIn on devices that do not have the last version yet.
    [[gnu::noinline]] void finish(std::vector<TaskId>& lastOnDevice);

private:
    struct Copy {                                   ///< the weights of a stage on a device
        std::int32_t resident = 0;                  ///< version in its Parameters
        std::map<std::int32_t, std::int32_t> reads; ///< per version, how many tasks will still read it here
        std::map<std::int32_t, BufferId> older;     ///< copies of older versions
    };
    struct Flow { ///< partial sums into one block
        BlockIndex from;
        Arrival arrival;
    };

    Copy& copyOf(int stage, int device) { return m_copies[{stage, device}]; }
    bool readsWeights(BlockIndex block) const;
    void setAside(Copy& copy, int stage, int device);
    void copyWeightsIn(int stage, int device, int version, TaskId& last);
    void handOut(TaskId task, int stage, int version, std::vector<Outgoing>& outgoing);
    void handOn(TaskId task, int device, BufferId buffer, BlockIndex next, std::vector<Outgoing>& outgoing);
    WeightUse useOf(BlockIndex block) const;

    const OrderGraph& m_graph;
    const WeightPlan& m_plan;
    WeightHops m_hops;
    std::map<BlockIndex, Arrival> m_handedOn; ///< by reader: where it finds the weights handed on to it
    std::set<int> m_copiedOut;                ///< stages whose first copies have been made
    std::vector<bool> m_expected;             ///< per block: its weights may come, …
    std::map<BlockIndex, Outgoing> m_waiting; ///< … and by reader those that may not yet
    std::map<std::pair<int, int>, Copy> m_copies;
    std::map<BlockIndex, BufferId> m_predicted;                           ///< by the block that made it
    std::map<BlockIndex, std::vector<Flow>> m_partial;                    ///< by the block that takes the sums
    std::map<BlockIndex, std::pair<BlockIndex, std::size_t>> m_partialTo; ///< by the block that hands one on
    std::map<std::tuple<int, int, int>, Arrival> m_sent;                  ///< stage, version, device
};

} // namespace pipewright
