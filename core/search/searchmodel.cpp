// SPDX-License-Identifier: GPL-3.0-or-later
// Flattens a design into tasks: one pass over stages and microbatches for times and dependencies; memorylimit.cpp adds
// the bytes that each task allocates, holds while it runs and frees. O(blocks).
#include "core/search/searchmodel.h"

#include "core/schedule/ordergraph.h"
#include "core/schedule/weightplan.h"
#include "core/search/modelled.h"

#include <fmt/format.h>

#include <limits>
#include <map>

namespace pipewright {

namespace {

void refuseUnknownKinds(const Design& design)
{
    const Schedule& schedule = design.schedule;
    const auto refuse = [](std::string what, std::string hint) {
        throw Error("schedule", std::move(what), std::move(hint));
    };
    if (hasUpdates(schedule))
        throw Error("schedule.order", "the schedule updates its stages amid the run, which the search does not place",
                    "search a synchronous schedule, such as 1f1b");
    if (std::find(schedule.offload.begin(), schedule.offload.end(), true) != schedule.offload.end())
        throw Error("schedule.offload", "the search counts what stages keep as if none of it left the device",
                    "use --offload auto, which chooses the stages too, or --offload none");
    if (schedule.replicas() > 1)
        refuse(fmt::format("the search knows one copy of the model, and this schedule has {} replicas",
                           schedule.replicas()),
               "search a schedule that runs one way");
    if (schedule.sequencePieces > 1)
        refuse("the search does not order pieces of sequences yet", "search a schedule of whole microbatches");
    if (!schedule.overlaps.empty())
        refuse("the search does not place overlapped pairs", "remove the overlaps first");
    if (!isPlacedWhole(schedule))
        refuse("it states what the search does not place", "search a schedule of a family, such as 1f1b");
    if (schedule.microbatches < 1 || schedule.stages() < 1 || schedule.devices() < 1)
        refuse("it has no stages, devices or microbatches", "start from a design of a family");
    for (const int device : schedule.deviceOfStage)
        if (device < 0 || device >= schedule.devices())
            refuse(fmt::format("a stage is placed on the unknown device {}", device),
                   fmt::format("devices are numbered 0 to {}", schedule.devices() - 1));
    if (design.costs.stages.size() != design.schedule.deviceOfStage.size())
        throw Error(
            "costs.stages",
            fmt::format("costs of {} stages for a schedule of {}", design.costs.stages.size(), schedule.stages()),
            "give one entry per stage");
    if (!design.costs.microbatches.empty() && std::ssize(design.costs.microbatches) != schedule.microbatches)
        throw Error("costs.microbatches", "the scales do not fit the microbatches",
                    "give one entry per microbatch, or none");
    for (const StageCosts& stage : design.costs.stages)
        if (std::min({stage.forward, stage.inputGrad, stage.weightGrad, stage.backward, stage.update}) < 0)
            throw Error("costs.stages", "a negative time", "times are 0 or more");
}

} // namespace

SearchModel::SearchModel(const Design& design, const MemoryLimit& limit, std::span<const Block> locked,
                         Patience patience)
{
    refuseUnknownKinds(design);
    stages = design.schedule.stages();
    microbatches = design.schedule.microbatches;
    devices = design.schedule.devices();
    deviceOfStage = design.schedule.deviceOfStage;
    stagesOfDevice = ByDevice<std::vector<int>>(devices);
    updates = ByDevice<Nanoseconds>(devices);
    hostGaps = design.costs.hasHostGaps();
    transfersWait = design.costs.communication != Communication::Overlapped || design.costs.hasBus()
                    || !design.schedule.transferOrder.empty() || design.schedule.zero.sharesGradients();
    for (int d = 0; d < devices; ++d)
        firstGap.push_back(design.costs.hostGap(Op::F, d));
    for (int s = 0; s < stages; ++s) {
        const DeviceIndex d = design.schedule.deviceOfStage[s];
        stagesOfDevice[d].push_back(s);
        updates[d] += design.costs.stages[s].update + design.costs.hostGap(Op::U, d);
    }
    addTasks(design, patience);
    addInputs(design, patience);
    addMemory(design, limit, patience);
    lock(design.schedule, locked);
    // Model times include the host's gap before the step's first block, which the step does not count: they are later
    // by it. The model leaves out gathers of parameters, which may hold the step's first block up, and all that is not
    // pinned with it; what is pinned waits less long behind a first block that is later.
    const DeviceIndex first = deviceOfStage.front();
    Nanoseconds heldUp = 0;
    for (const int s : stagesOfDevice[first])
        heldUp += design.schedule.zero.sharesParameters() ? design.costs.stages[s].gather : 0;
    for (const Pin& pin : design.schedule.pins)
        if (const std::int32_t task = taskOf(pin.block); task >= 0)
            tasks[task].earliest = std::max(tasks[task].earliest, pin.earliestStart + firstGap[first] - heldUp);
}

void SearchModel::addTasks(const Design& design, Patience& patience)
{
    // Placed blocks determine whether their backward is split.
    ByStageAndMicrobatch<std::uint8_t> split(stages, microbatches, design.schedule.backward == BackwardStyle::Split);
    for (const std::vector<Block>& lane : design.schedule.order)
        for (const Block& block : lane)
            if (isBackward(block.op) && block.stage >= 0 && block.stage < stages && block.microbatch >= 0
                && block.microbatch < microbatches)
                split(block.stage, block.microbatch) = isHalfBackward(block.op);
    m_first = ByStageAndMicrobatch<std::int32_t>(stages, microbatches);
    for (int s = 0; s < stages; ++s)
        m_recomputes.push_back(design.schedule.recomputeOf(s).byBlock());
    tasks.reserve((recomputes() ? 4 : 3) * split.size());
    for (int s = 0; s < stages; ++s)
        for (int m = 0; m < microbatches; ++m) {
            const auto first = static_cast<std::int32_t>(tasks.size());
            m_first(s, m) = first;
            patience.spend(1);
            const auto add = [&](Op op, std::int32_t local) {
                SearchTask& task = tasks.emplace_back();
                task.device = design.schedule.deviceOfStage[s];
                task.stage = s;
                task.microbatch = m;
                task.op = op;
                task.duration = design.costs.duration(op, s, m) + design.costs.hostGap(op, task.device);
                task.local = local;
            };
            add(Op::F, -1);
            if (m_recomputes[s] != 0)
                add(Op::R, first);
            for (const Op op : allOps)
                if (isBackward(op) && isNeeded(op, split(s, m) != 0 ? BackwardStyle::Split : BackwardStyle::Full))
                    add(op, static_cast<std::int32_t>(tasks.size()) - 1);
        }
}

void SearchModel::addInputs(const Design& design, Patience& patience)
{
    const Costs& costs = design.costs;
    const auto delay = [&](std::int32_t from, std::int32_t to, Bytes bytes) {
        const SearchTask &a = tasks[from], &b = tasks[to];
        return a.device == b.device
                   ? 0
                   : costs.linkBetween(a.device, b.device).transferTime(costs.scaled(bytes, b.microbatch));
    };
    for (SearchTask& task : tasks) {
        patience.spend(1);
        const auto self = static_cast<std::int32_t>(&task - tasks.data());
        const int step = stageStep(task.op), from = task.stage - step;
        if (step == 0)
            continue;
        const bool down = step > 0;
        if (from >= 0 && from < stages) {
            task.input = down ? forward(from, task.microbatch) : backward(from, task.microbatch);
            const int sender = down ? from : task.stage; // of the activation; its gradient has the same size
            task.delay = delay(task.input, self, costs.stages[sender].output);
        }
        for (std::size_t i = 0; i < design.dataflow.skips.size(); ++i)
            if (const SkipConnection& skip = design.dataflow.skips[i];
                (down ? skip.toStage : skip.fromStage) == task.stage) {
                const std::int32_t input =
                    down ? forward(skip.fromStage, task.microbatch) : backward(skip.toStage, task.microbatch);
                extras.push_back({self, input, delay(input, self, design.dataflow.skipBytes(i))});
            }
    }
}

void SearchModel::lock(const Schedule& schedule, std::span<const Block> locked)
{
    std::vector<std::uint8_t> isLocked(tasks.size(), 0);
    for (const Block& block : locked)
        if (const std::int32_t task = taskOf(block); task >= 0)
            isLocked[task] = 1;
    for (const std::vector<Block>& lane : schedule.order) {
        std::int32_t last = -1;
        for (const Block& block : lane)
            if (const std::int32_t task = taskOf(block); task >= 0 && isLocked[task] != 0) {
                tasks[task].lockedAfter = last;
                last = task;
            }
    }
}

std::int32_t SearchModel::weightGrad(StageIndex stage, MicrobatchIndex microbatch) const
{
    const std::int32_t back = backward(stage, microbatch);
    return tasks[back].op == Op::I ? back + 1 : -1;
}

bool SearchModel::recomputes() const
{
    return std::find(m_recomputes.begin(), m_recomputes.end(), 1) != m_recomputes.end();
}

SearchModel::Kept SearchModel::kept(StageIndex stage, MicrobatchIndex microbatch) const
{
    const auto change = [&](std::int32_t task) { return task < 0 ? 0 : tasks[task].taken - tasks[task].freed; };
    Kept kept;
    kept.afterForward = change(forward(stage, microbatch));
    kept.beforeBackward = kept.afterForward + change(recompute(stage, microbatch));
    kept.afterBackward = kept.beforeBackward + change(backward(stage, microbatch));
    return kept;
}

std::int32_t SearchModel::consumerOf(std::int32_t id) const
{
    const SearchTask& task = tasks[id];
    const int step = stageStep(task.op), to = task.stage + step;
    if (step == 0 || to < 0 || to >= stages)
        return -1;
    return step > 0 ? forward(to, task.microbatch) : backward(to, task.microbatch);
}

std::int32_t SearchModel::taskOf(int kind, StageIndex stage, MicrobatchIndex microbatch) const
{
    return kind == forwardKind     ? forward(stage, microbatch)
           : kind == recomputeKind ? recompute(stage, microbatch)
           : kind == backwardKind  ? backward(stage, microbatch)
           : kind == weightKind    ? weightGrad(stage, microbatch)
                                   : -1;
}

std::int32_t SearchModel::taskOf(const Block& block) const
{
    if (block.stage < 0 || block.stage >= stages || block.microbatch < 0 || block.microbatch >= microbatches
        || block.replica != 0)
        return -1;
    const std::int32_t task = taskOf(kindOf(block.op), block.stage, block.microbatch);
    return task >= 0 && tasks[task].op == block.op ? task : -1;
}

std::span<const ExtraInput> SearchModel::extrasOf(std::int32_t task) const
{
    if (extras.empty())
        return {};
    const auto less = [](const ExtraInput& a, const ExtraInput& b) { return a.task < b.task; };
    const auto [from, to] = std::equal_range(extras.begin(), extras.end(), ExtraInput{task, -1, 0}, less);
    return {from, to};
}

std::optional<Lanes> SearchModel::lanesOf(const Schedule& schedule) const
{
    if (schedule.stages() != stages || schedule.microbatches != microbatches || schedule.devices() != devices)
        return std::nullopt;
    Lanes lanes(static_cast<std::size_t>(devices));
    std::vector<std::uint8_t> seen(tasks.size(), 0);
    std::size_t count = 0;
    const auto add = [&](std::int32_t task) {
        if (task < 0 || seen[task] != 0)
            return;
        seen[task] = 1;
        lanes[tasks[task].device].push_back(task);
        ++count;
    };
    for (const std::vector<Block>& lane : schedule.order)
        for (const Block& block : lane) {
            if (block.stage < 0 || block.stage >= stages || block.microbatch < 0 || block.microbatch >= microbatches)
                return std::nullopt;
            const std::int32_t w = weightGrad(block.stage, block.microbatch);
            if (makesActivation(block.op))
                add(forward(block.stage, block.microbatch));
            if (isRecompute(block.op) || makesInputGrad(block.op))
                add(recompute(block.stage, block.microbatch));
            if (makesInputGrad(block.op))
                add(backward(block.stage, block.microbatch));
            if (makesWeightGrad(block.op))
                add(w);
        }
    return count == tasks.size() ? std::optional(std::move(lanes)) : std::nullopt;
}

Schedule SearchModel::scheduleOf(const Lanes& lanes, const Schedule& like) const
{
    Schedule schedule = like;
    schedule.family = "custom";
    for (std::size_t d = 0; d < lanes.size(); ++d) {
        schedule.order[d].clear();
        for (std::size_t i = 0; i < lanes[d].size(); ++i) {
            const SearchTask& task = tasks[lanes[d][i]];
            schedule.order[d].push_back(schedule.block(task.op, task.stage, task.microbatch));
            if (task.op == Op::I && task.stage == 0 && (i + 1 == lanes[d].size() || lanes[d][i + 1] != lanes[d][i] + 1))
                schedule.firstStageMaySplit = true;
        }
    }
    return schedule;
}

} // namespace pipewright
