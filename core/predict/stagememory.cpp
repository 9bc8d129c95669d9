// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/stagememory.h"

#include "core/design/stagestate.h"
#include "core/program/replicasums.h"

#include <algorithm>
#include <map>

namespace pipewright {

Bytes savedByShardedOptimizer(const Design& design)
{
    const int replicas = design.schedule.replicas();
    std::map<int, Bytes> savedOn; // by device
    Bytes most = 0;
    for (int replica = 0; replica < replicas; ++replica)
        for (int stage = 0; stage < std::min(design.schedule.stages(), int(design.costs.stages.size())); ++stage) {
            const Bytes whole = stageState(design.schedule, design.costs, design.dataflow, stage, replica).optimizer;
            Bytes& saved = savedOn[design.schedule.placement(replica)[stage]];
            saved += whole - shareOfBytes(whole, design.costs.stages[stage], replica, replicas);
            most = std::max(most, saved);
        }
    return most;
}

namespace {

/// Adds up the stages of a device, or of its group's fullest member, and the parts of the peak.
DeviceMemory sumUp(const Design& design, int device, const MemoryPeak& peak, MemoryBreakdown& breakdown)
{
    const auto stages = static_cast<std::size_t>(design.schedule.stages());
    for (const MemoryPeak::Saved& saved : peak.saved) {
        StageBytes& stage =
            breakdown.stages[static_cast<std::size_t>(saved.replica) * stages + static_cast<std::size_t>(saved.stage)];
        stage.activations = saved.bytes;
        stage.microbatches = saved.microbatches;
    }
    DeviceMemory memory;
    memory.device = device;
    for (const StageBytes& stage : breakdown.stages) {
        if (stage.device != device)
            continue;
        memory.weights += stage.weights;
        memory.gradients += stage.gradients;
        memory.optimizer += stage.optimizer;
    }
    memory.weights += peak.weights;
    memory.gradients += peak.wholeGradients;
    memory.gathered = peak.gathered;
    memory.framework = peak.framework;
    memory.activations = peak.savedBytes();
    memory.buffers = peak.received + peak.made;
    memory.workspace = peak.workspace;
    memory.peak = peak.peak;
    memory.time = peak.time;
    if (static_cast<std::size_t>(device) < design.cluster.devices.size())
        memory.limit = design.cluster.devices[static_cast<std::size_t>(device)].memory;
    return memory;
}

/// What a copy of a stage with these costs keeps of its state.
void setState(const Design& design, const StageCosts& costs, const StageState& whole, StageBytes& memory)
{
    const StageState kept = keptBy(design.schedule, costs, whole, memory.replica);
    memory.weights = kept.parameters;
    memory.gradients = kept.gradients;
    memory.optimizer = kept.optimizer;
}

/// Of every copy of every stage, without activations.
std::vector<StageBytes> statesOf(const Design& design)
{
    std::vector<StageBytes> states;
    for (int replica = 0; replica < design.schedule.replicas(); ++replica)
        for (int stage = 0; stage < design.schedule.stages(); ++stage) {
            StageBytes& memory = states.emplace_back();
            memory.stage = stage;
            memory.replica = replica;
            memory.device = design.schedule.placement(replica)[stage];
            if (static_cast<std::size_t>(stage) < design.costs.stages.size())
                setState(design, design.costs.stages[stage],
                         stageState(design.schedule, design.costs, design.dataflow, stage, replica), memory);
        }
    return states;
}

} // namespace

MemoryBreakdown memoryBreakdown(const Design& design, const Prediction& prediction)
{
    MemoryBreakdown breakdown;
    breakdown.stages = statesOf(design);
    for (int device = 0; device < static_cast<int>(prediction.program.devices.size()); ++device)
        breakdown.devices.push_back(
            sumUp(design, device, memoryPeak(prediction.program, prediction.timeline, device), breakdown));
    return breakdown;
}

DeviceMemory deviceMemory(const Design& design, const Prediction& prediction, int device)
{
    MemoryBreakdown breakdown;
    breakdown.stages = statesOf(design);
    return sumUp(design, device, memoryPeak(prediction.program, prediction.timeline, device), breakdown);
}

MemoryBreakdown memberBreakdown(const Design& design, const Prediction& members, const GroupStages& stages)
{
    MemoryBreakdown breakdown;
    for (int copy = 0; copy < std::ssize(stages.stages); ++copy) {
        const auto at = static_cast<std::size_t>(copy);
        StageBytes& memory = breakdown.stages.emplace_back();
        memory.stage = copy % stages.perReplica;
        memory.replica = copy / stages.perReplica;
        memory.device = stages.deviceOfCopy[at];
        const int member = fullestMember(members.program, stages, memory.device) - stages.firstOf(memory.device);
        const StageCosts& costs = stages.stages[at].members[static_cast<std::size_t>(member)];
        setState(design, costs, {costs.parameters, costs.gradients, costs.optimizerState}, memory);
    }
    for (int device = 0; device < std::ssize(stages.membersOfDevice); ++device)
        breakdown.devices.push_back(sumUp(
            design, device,
            memoryPeak(members.program, members.timeline, fullestMember(members.program, stages, device)), breakdown));
    return breakdown;
}

} // namespace pipewright
