// SPDX-License-Identifier: GPL-3.0-or-later
// The part of building a task sequence that is about weights: which buffer a block reads its version from, what
// an update sets aside because a later block still wants it, and what goes from device to device where several
// work on a stage. A stage's newest weights are its persistent Parameters; an older version is copied out by the
// update that replaces it, and only when somebody will read it, so liveness of these buffers is the memory of a
// weight policy. Sharded states are copied out for their way from block to block instead (core/schedule/weighthops.h).
// O(1) per block.
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

    /// A value for another device, and where its arrival is to be noted.
    struct Outgoing {
        TaskId producer;
        int device;
        BlockIndex consumer;
        BufferId buffer;
        Arrival* arrival;
    };

    /// Sharded states: before a block begins, lets the weights of the next one on its device come, that they are there
    /// in time and not earlier; the first ones of a stage are copied by its keeper. Fills `outgoing`.
    void sendOut(BlockIndex block, std::vector<TaskId>& lastOnDevice, std::vector<Outgoing>& outgoing);
    /// Before the task of a block begins: puts newer weights in place on its device when it wants them. `last` is
    /// the device's last task and becomes the new one.
    void prepare(BlockIndex block, TaskId& last);
    void read(TaskId task, BlockIndex block); ///< among the reads of its task
    /// Among the writes of its task; fills `outgoing`.
    void write(TaskId task, BlockIndex block, std::vector<Outgoing>& outgoing);
    /// The tail of the step, when everything is sent: the devices that do not have the last version yet take it.
    void finish(std::vector<TaskId>& lastOnDevice);

private:
    struct Copy {                                   ///< of a stage on a device
        std::int32_t resident = 0;                  ///< version in its Parameters
        std::map<std::int32_t, std::int32_t> reads; ///< per version, how many tasks will still read it here
        std::map<std::int32_t, BufferId> older;     ///< set aside
    };
    struct Flow { ///< partial sums into one block
        BlockIndex from;
        Arrival arrival;
    };

    Copy& copyOf(int stage, int device) { return m_copies[{stage, device}]; }
    bool readsWeights(BlockIndex block) const;
    void setAside(Copy& copy, int stage, int device);
    void putInPlace(int stage, int device, int version, TaskId& last);
    void handOut(TaskId task, int stage, int version, std::vector<Outgoing>& outgoing);
    void handOn(TaskId task, int device, BufferId buffer, BlockIndex next, std::vector<Outgoing>& outgoing);
    WeightUse useOf(BlockIndex block) const;

    const OrderGraph& m_graph;
    const WeightPlan& m_plan;
    WeightHops m_hops;
    std::map<BlockIndex, Arrival> m_handedOn; ///< by reader: where it finds the weights handed on to it
    std::set<int> m_setOut;                   ///< stages whose first weights are under way
    std::vector<bool> m_expected;             ///< per block: its weights may come, …
    std::map<BlockIndex, Outgoing> m_waiting; ///< … and by reader those that may not yet
    std::map<std::pair<int, int>, Copy> m_copies;
    std::map<BlockIndex, BufferId> m_predicted;                           ///< by the block that made it
    std::map<BlockIndex, std::vector<Flow>> m_partial;                    ///< by the block that takes the sums
    std::map<BlockIndex, std::pair<BlockIndex, std::size_t>> m_partialTo; ///< by the block that hands one on
    std::map<std::tuple<int, int, int>, Arrival> m_sent;                  ///< stage, version, device
};

/// What a sent buffer of this kind is called where it arrives.
BufferKind receivedKind(BufferKind sent);

} // namespace pipewright
