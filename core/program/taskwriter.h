// SPDX-License-Identifier: GPL-3.0-or-later
// Appends tasks, buffers and operands to a Program: the part of building a task sequence that does not know what the
// tasks mean. A task is begun, its reads are listed and ended, then its writes; the next one begins where they end.
// Forced inline, because it is called several times per block.
#pragma once

#include "core/design/costs.h"
#include "core/program/program.h"
#include "core/program/replicasums.h"
#include "core/schedule/schedule.h"

#include <algorithm>

namespace pipewright {

class TaskWriter {
public:
    /// Keeps references to all.
    TaskWriter(Program& program, const Schedule& schedule, const Costs& costs)
        : m_program(program), m_schedule(schedule), m_costs(costs)
    {
    }

protected:
    /// Room for a step with so many blocks, transfers and shared parameters.
    void reserveTasks(std::size_t blocks, std::size_t transfers, std::size_t shared)
    {
        std::size_t kept = 0; // buffers that the stages' blocks write for themselves
        for (const StageCosts& stage : m_costs.stages)
            for (const Bytes bytes :
                 {stage.savedUntilInputGrad, stage.savedUntilWeightGrad, stage.savedFromInputGrad,
                  stage.recomputedUntilInputGrad, stage.recomputedUntilWeightGrad, stage.output, stage.output,
                  stage.workspaceForward, stage.workspaceInputGrad, stage.workspaceWeightGrad})
                kept += bytes > 0;
        kept *= static_cast<std::size_t>(m_program.microbatches);
        const std::size_t replicas = static_cast<std::size_t>(m_program.replicas());
        const std::size_t tasks = blocks + transfers + replicas * (2 * m_costs.stages.size() + shared);
        m_program.tasks.reserve(tasks);
        m_program.afterOnDevice.reserve(tasks);
        m_program.afterData.reserve(tasks);
        m_program.operandBegin.reserve(tasks + 1);
        m_program.operandSplit.reserve(tasks);
        m_program.operands.reserve(4 * transfers + 2 * kept);
        m_program.buffers.reserve(2 * transfers + kept + 3 * m_costs.stages.size() * replicas);
    }

    void addPersistentBuffers(const Dataflow& dataflow)
    {
        const std::vector<HeldBesides> besides = heldBesides(m_schedule, m_costs);
        for (std::size_t d = 0; d < besides.size(); ++d)
            if (besides[d].bytes > 0)
                addBuffer(BufferKind::Framework, static_cast<std::int32_t>(d), besides[d].stage, -1, besides[d].bytes);
        for (std::int32_t r = 0; r < m_program.replicas(); ++r)
            for (std::int32_t s = 0; s < m_program.stages(); ++s) {
                const int device = deviceOf(s, r);
                const StageState held =
                    keptBy(m_program, m_costs.stages[s], stageState(m_schedule, m_costs, dataflow, s, r), r);
                const auto add = [&](BufferKind kind, Bytes bytes) {
                    addBuffer(kind, device, s, -1, bytes, -1, false, r);
                };
                add(BufferKind::Parameters, held.parameters);
                add(BufferKind::Gradients, held.gradients);
                add(BufferKind::OptimizerState, held.optimizer);
                if (!m_schedule.dataParallelDevices.empty() && !m_schedule.shardedStates)
                    addCopies(s, device);
            }
    }

    /// Buffers on the other devices that work on a stage; the optimizer state is only on the owner, which makes the
    /// updates.
    void addCopies(int stage, int owner)
    {
        const StageCosts& costs = m_costs.stages[stage];
        std::vector<int> devices = m_schedule.dataParallelDevices[stage];
        std::sort(devices.begin(), devices.end());
        devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
        for (const int device : devices)
            if (device != owner) {
                addBuffer(BufferKind::Parameters, device, stage, -1, costs.parameters);
                addBuffer(BufferKind::Gradients, device, stage, -1, costs.gradients);
            }
    }

    int deviceOf(int stage, int replica) const { return m_schedule.placement(replica)[stage]; }

    /// A microbatch's buffer, scaled by the size of the microbatch.
    BufferId addBufferOf(const Block& block, BufferKind kind, std::int32_t device, Bytes bytes,
                         std::int32_t consumerStage = -1, bool skip = false)
    {
        return addBuffer(kind, device, block.stage, block.microbatch,
                         m_costs.microbatches.empty() ? bytes : m_costs.scaled(bytes, block.microbatch), consumerStage,
                         skip, block.replica);
    }

    [[gnu::always_inline]] inline BufferId addBuffer(BufferKind kind, std::int32_t device, std::int32_t stage,
                                                     std::int32_t microbatch, Bytes bytes,
                                                     std::int32_t consumerStage = -1, bool skip = false,
                                                     std::int32_t replica = 0)
    {
        m_program.buffers.push_back(
            {bytes, kind, static_cast<std::uint16_t>(replica), device, stage, microbatch, consumerStage, skip});
        return static_cast<BufferId>(m_program.buffers.size() - 1);
    }

    [[gnu::always_inline]] inline TaskId beginTask(TaskKind kind, Op op, std::int32_t stage, std::int32_t microbatch,
                                                   std::int32_t device, std::int32_t peer, TaskId afterOnDevice,
                                                   TaskId afterData = none, std::int32_t replica = 0)
    {
        m_program.tasks.emplace_back(kind, op, replica, stage, microbatch, device, peer);
        m_program.afterOnDevice.push_back(afterOnDevice);
        m_program.afterData.push_back(afterData);
        m_program.operandBegin.push_back(static_cast<std::uint32_t>(m_program.operands.size()));
        return static_cast<TaskId>(m_program.tasks.size() - 1);
    }

    void operand(BufferId buffer)
    {
        if (buffer != none)
            m_program.operands.push_back(buffer);
    }
    void endReads() { m_program.operandSplit.push_back(static_cast<std::uint32_t>(m_program.operands.size())); }

    // A buffer of the present task, among its writes; nothing where there are no bytes.
    void write(BufferId& slot, BufferKind kind, const Block& block, int device, Bytes bytes)
    {
        if (bytes > 0)
            operand(slot = addBufferOf(block, kind, device, bytes));
    }

    void writeWorkspace(const Block& block, int device, Bytes bytes)
    {
        if (bytes > 0)
            operand(addBufferOf(block, BufferKind::Workspace, device, bytes));
    }

    /// A blocking transfer: neither device computes meanwhile, so it is part of both devices' orders.
    void holdUp(TaskId transfer, int source, int destination, std::vector<TaskId>& lastOnDevice)
    {
        TaskId& lastOfSource = lastOnDevice[source];
        TaskId& lastOfDestination = lastOnDevice[destination];
        m_program.afterOnDevice[transfer] = lastOfSource;
        if (lastOfDestination != none)
            m_program.extraDependencies.push_back({transfer, lastOfDestination, 0});
        lastOfSource = lastOfDestination = transfer;
    }

    void waitFor(TaskId task, TaskId arrival)
    {
        if (arrival == none || task == none)
            return;
        if (m_program.afterData[task] == none)
            m_program.afterData[task] = arrival;
        else
            m_program.extraDependencies.push_back({task, arrival, 0});
    }

    Program& m_program;
    const Schedule& m_schedule;
    const Costs& m_costs;
};

} // namespace pipewright
