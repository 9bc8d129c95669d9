// SPDX-License-Identifier: GPL-3.0-or-later
// Counts copies of weights by walking each device's instruction list, and staleness by reading every task's
// WeightUse. O(tasks + instructions log versions).
#include "core/program/weightreport.h"

#include <algorithm>
#include <map>

namespace pipewright {

namespace {

/// Walks a device's list and notes how many copies of the stages that it updates are live.
void countCopies(const Program& program, int device, std::vector<StageWeights>& report)
{
    std::vector<int> older(report.size(), 0), predicted(report.size(), 0);
    const auto change = [&](BufferId id, int by) {
        const Buffer& buffer = program.buffers[id];
        const auto stage = static_cast<std::size_t>(buffer.stage);
        if (buffer.device != device || program.deviceOfStage[stage] != device)
            return;
        if (buffer.kind == BufferKind::WeightVersion)
            older[stage] += by;
        else if (buffer.kind == BufferKind::PredictedWeights)
            predicted[stage] += by;
        else
            return;
        report[stage].versions = std::max(report[stage].versions, 1 + older[stage]);
        report[stage].copies = std::max(report[stage].copies, 1 + older[stage] + predicted[stage]);
        report[stage].bytes = std::max(report[stage].bytes, buffer.bytes * (1 + older[stage] + predicted[stage]));
    };
    for (const Instruction& instruction : program.devices[device].instructions) {
        if (instruction.kind == InstructionKind::Free && instruction.buffer != none)
            change(instruction.buffer, -1);
        else if (instruction.kind == InstructionKind::Compute || instruction.kind == InstructionKind::Update)
            for (const BufferId id : program.writes(instruction.task))
                change(id, 1);
    }
}

/// Sharded states: counts the resident copy and the copies in flight on all devices. A hop moves a copy and makes none.
void countCopiesInFlight(const Program& program, std::vector<StageWeights>& report)
{
    std::vector<TaskId> lastUse(program.buffers.size(), none);
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        for (const BufferId id : program.reads(t))
            lastUse[id] = t;
        for (const BufferId id : program.writes(t))
            lastUse[id] = t;
    }
    std::vector<std::map<int, int>> inFlight(report.size()); // version -> copies
    std::vector<int> newest(report.size(), 0);
    const auto change = [&](BufferId id, int by) {
        const Buffer& buffer = program.buffers[id];
        if (!isPassedOnWeights(buffer.kind))
            return;
        auto& versions = inFlight[buffer.stage];
        if ((versions[buffer.microbatch] += by) == 0)
            versions.erase(buffer.microbatch);
    };
    const auto leave = [&](TaskId t) {
        for (const auto operands : {program.reads(t), program.writes(t)})
            for (const BufferId id : operands)
                if (lastUse[id] == t)
                    change(id, -1);
    };
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        const auto s = static_cast<std::size_t>(task.stage);
        const bool hop = task.kind == TaskKind::Transfer;
        if (hop)
            leave(t);
        for (const BufferId id : program.writes(t))
            change(id, 1);
        if (task.kind == TaskKind::Update)
            newest[s] = program.weights[t].update + 1;
        int copies = 1;
        for (const auto& [version, count] : inFlight[s])
            copies += count;
        report[s].copies = std::max(report[s].copies, copies);
        report[s].versions =
            std::max(report[s].versions, static_cast<int>(inFlight[s].size()) + !inFlight[s].contains(newest[s]));
        if (!hop)
            leave(t);
    }
    for (StageWeights& stage : report)
        stage.bytes *= stage.copies; // so far those of one copy
}

} // namespace

std::vector<StageWeights> weightReport(const Program& program)
{
    std::vector<StageWeights> report;
    if (!program.versioned())
        return report;
    report.resize(static_cast<std::size_t>(program.stages()));
    for (int stage = 0; stage < program.stages(); ++stage) {
        report[stage].stage = stage;
        report[stage].versions = report[stage].copies = 1;
    }
    for (const Buffer& buffer : program.buffers)
        if (buffer.kind == BufferKind::Parameters && buffer.device == program.deviceOfStage[buffer.stage])
            report[buffer.stage].bytes = buffer.bytes;
    std::vector<int> live(report.size(), 0);
    std::vector<std::int64_t> sum(report.size(), 0), forwards(report.size(), 0);
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        const WeightUse& use = program.weights[t];
        const auto s = static_cast<std::size_t>(task.stage);
        StageWeights& stage = report[s];
        if (task.kind == TaskKind::Update)
            ++stage.updates;
        if (task.kind != TaskKind::Compute)
            continue;
        if (makesActivation(task.op)) {
            stage.staleness = std::max(stage.staleness, use.staleness());
            stage.forwardSteps = std::max(stage.forwardSteps, use.steps);
            stage.inFlight = std::max(stage.inFlight, ++live[s]);
            sum[s] += use.staleness();
            ++forwards[s];
        } else if (makesInputGrad(task.op)) {
            stage.backwardSteps = std::max(stage.backwardSteps, use.steps);
        }
        live[s] -= makesWeightGrad(task.op);
    }
    for (std::size_t s = 0; s < report.size(); ++s)
        report[s].meanStaleness = forwards[s] > 0 ? static_cast<double>(sum[s]) / static_cast<double>(forwards[s]) : 0;
    if (program.shardedStates)
        countCopiesInFlight(program, report);
    for (int device = 0; device < static_cast<int>(program.devices.size()); ++device)
        countCopies(program, device, report);
    return report;
}

WeightTraffic weightTraffic(const Program& program)
{
    WeightTraffic traffic;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.tasks[t].kind == TaskKind::Transfer)
            for (const BufferId id : program.reads(t)) {
                const Buffer& buffer = program.buffers[id];
                if (buffer.kind == BufferKind::PartialGradient || buffer.kind == BufferKind::Gradients)
                    traffic.gradients += buffer.bytes;
                else if (isPassedOnWeights(buffer.kind))
                    traffic.weights += buffer.bytes;
            }
    return traffic;
}

} // namespace pipewright
