// SPDX-License-Identifier: GPL-3.0-or-later
// The collectives of a simulated machine (devicesimulation.h) with copies of the pipeline that are only counted: each
// device does them one after the other, in the order of its instruction list, beside its blocks.
#pragma once

#include "core/design/costs.h"
#include "core/program/program.h"
#include "devicestreams.h"

#include <map>
#include <utility>
#include <vector>

namespace pipewright::test {

class CollectiveSimulation {
public:
    CollectiveSimulation(const Program& program, const Costs& costs)
        : m_program(program), m_costs(costs), m_wires(program.devices.size())
    {
    }

    Nanoseconds timeOf(TaskId collective) const
    {
        const Task& task = m_program.tasks[collective];
        const StageCosts& stage = m_costs.stages[static_cast<std::size_t>(task.stage)];
        return task.kind == TaskKind::Gather ? stage.gather : stage.reduceGradients;
    }

    /// Its device comes to it.
    void issue(TaskId collective)
    {
        const Task& task = m_program.tasks[collective];
        m_wires[static_cast<std::size_t>(task.device)].queue.push_back(collective);
        if (task.op != Op::U)
            (task.kind == TaskKind::Gather ? m_gather : m_sum)[task.stage] = collective;
    }

    /// A block waits for its stage's parameters; an update and the sum of a shared parameter for its gradients.
    bool holdBack(const Task& task, const std::vector<Nanoseconds>& end, Nanoseconds now) const
    {
        const auto isOpen = [&](const std::map<int, TaskId>& collectives, int stage) {
            const auto found = collectives.find(stage);
            return found != collectives.end() && end[found->second] > now;
        };
        switch (task.kind) {
        case TaskKind::Compute: return isOpen(m_gather, task.stage);
        case TaskKind::Update: return isOpen(m_sum, task.stage);
        case TaskKind::Reduce: return isOpen(m_sum, task.stage) || isOpen(m_sum, task.otherStage());
        case TaskKind::Transfer:
        case TaskKind::ReplicaSum:
        case TaskKind::CopyWeightsIn:
        case TaskKind::CopyWeightsOut:
        case TaskKind::Collective:
        case TaskKind::Offload:
        case TaskKind::Reload:
        case TaskKind::Gather:
        case TaskKind::ReduceGradients: return false;
        }
        return false;
    }

    /// Begins what can begin: begin(collective). True when something did.
    template<typename Begin>
    bool advance(Nanoseconds now, DeviceStreams* streams, const std::vector<Nanoseconds>& end, Begin begin)
    {
        bool moved = false;
        for (Wire& wire : m_wires) {
            if (wire.queue.empty() || wire.freeFrom > now)
                continue;
            const TaskId t = wire.queue.front();
            const Task& task = m_program.tasks[t];
            if (streams && !streams->comeTo(t, task, now))
                continue;
            wire.queue.erase(wire.queue.begin());
            begin(t);
            wire.freeFrom = end[t];
            if (streams) {
                streams->take(task);
                streams->end(task, end[t]);
            }
            moved = true;
        }
        return moved;
    }

    template<typename See>
    void eachEnd(See see) const
    {
        for (const Wire& wire : m_wires)
            see(wire.freeFrom);
    }

private:
    struct Wire {
        std::vector<TaskId> queue;
        Nanoseconds freeFrom = 0;
    };
    const Program& m_program;
    const Costs& m_costs;
    std::vector<Wire> m_wires;             ///< per device
    std::map<int, TaskId> m_gather, m_sum; ///< per stage: the last that was issued
};

} // namespace pipewright::test
