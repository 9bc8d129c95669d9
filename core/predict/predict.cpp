// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/predict.h"

#include "core/base/freedmemory.h"
#include "core/predict/evaluator.h"
#include "core/predict/throughput.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "core/program/outline.h"
#include "core/program/replicasums.h"

#include <utility>

namespace pipewright {

namespace {

/// Fills the fields that follow from the program and its times.
void finish(Prediction& prediction)
{
    for (int device = 0; device < static_cast<int>(prediction.program.devices.size()); ++device)
        prediction.timeline.memory.push_back(memoryCurve(prediction.program, prediction.timeline, device));
    prediction.metrics = measure(prediction.program, prediction.timeline);
    prediction.transfers = prediction.program.transferCount();
    prediction.transferred = transferBytes(prediction.program);
}

Prediction predictWith(const Design& design, const CompileOptions& options)
{
    Prediction prediction;
    prediction.program = compile(design.schedule, design.costs, design.dataflow, options);
    Evaluator(prediction.program, design.costs).evaluate(prediction.timeline);
    finish(prediction);
    return prediction;
}

std::vector<TaskAmounts> amountsOf(const Program& program, const Costs& costs)
{
    const Evaluator evaluator(program, costs);
    std::vector<TaskAmounts> amounts(program.tasks.size());
    for (TaskId t = 0; t < amounts.size(); ++t) {
        amounts[t].duration = evaluator.duration(t);
        if (program.tasks[t].kind == TaskKind::Transfer)
            amounts[t].moved = movedBytes(program, t);
    }
    return amounts;
}

} // namespace

Prediction predict(const Design& design)
{
    return predictWith(design, {});
}

std::vector<MemorySample> OutlinedPrediction::memoryOf(int device) const
{
    return memoryCurve(program, timeline, listsOf(program, device));
}

OutlinedPrediction predictOutline(const Design& design, Curves curves)
{
    if (std::optional<OutlinedPrediction> steady = predictSteady(design, curves))
        return *std::move(steady);
    WithoutLists made = compileWithoutLists(design.schedule, design.costs, design.dataflow);
    OutlinedPrediction prediction;
    Program& program = prediction.program = std::move(made.program);
    prediction.cannotHang = design.schedule.transferOrder.empty() && waitsInTaskOrder(program);
    prediction.transfers = program.transferCount();
    prediction.transferred = transferBytes(program);
    const auto dropBuffers = [&program] {
        program.operandBegin = program.operandSplit = {};
        program.operands = {};
        program.buffers = {};
        releaseFreedMemory();
    };
    std::optional<Evaluator> evaluator(std::in_place, program, design.costs);
    if (curves == Curves::OneByOne)
        prediction.listsOf = std::move(made.listsOf);
    else if (program.busOfLink.empty()) // who passes a bus when depends on the bytes of all
        dropBuffers();
    evaluator->evaluate(prediction.timeline);
    evaluator.reset();
    if (curves == Curves::NotNeeded)
        dropBuffers();
    prediction.metrics = measure(program, prediction.timeline);
    return prediction;
}

std::optional<OutlinedPrediction> predictSteady(const Design& design, Curves curves)
{
    bool cannotHang = false;
    std::optional<Outline> outline =
        compileOutline(design.schedule, design.costs, design.dataflow, [&](const Program& shortened) {
            if (!shortened.busOfLink.empty()) // who passes it when depends on the bytes of all
                return std::vector<TaskAmounts>();
            cannotHang = issuesInTaskOrder(shortened); // and so do copies of it
            return amountsOf(shortened, design.costs);
        });
    if (!outline)
        return std::nullopt;
    OutlinedPrediction prediction;
    prediction.cannotHang = cannotHang;
    prediction.program = std::move(outline->program);
    if (curves == Curves::OneByOne)
        prediction.listsOf = std::move(outline->listsOf);
    else
        outline->listsOf = {};
    {
        std::vector<TaskAmounts> amounts = std::move(outline->amounts);
        Evaluator evaluator(prediction.program);
        for (TaskId t = 0; t < amounts.size(); ++t) {
            evaluator.node(t).duration = amounts[t].duration;
            prediction.transferred += amounts[t].moved;
        }
        amounts = {};
        evaluator.setHostGaps(design.costs);
        evaluator.evaluate(prediction.timeline);
    }
    prediction.metrics = measure(prediction.program, prediction.timeline);
    prediction.transfers = prediction.program.transferCount();
    return prediction;
}

Prediction predictMembers(const MemberProgram& members)
{
    Prediction prediction;
    prediction.program = members.program;
    Evaluator evaluator(prediction.program);
    evaluator.setDurations(members.durations);
    evaluator.evaluate(prediction.timeline);
    finish(prediction);
    return prediction;
}

void takeMembers(Prediction& groups, const Prediction& members, const GroupStages& stages)
{
    for (int device = 0; device < std::ssize(groups.program.devices); ++device) {
        const auto fullest = static_cast<std::size_t>(fullestMember(members.program, stages, device));
        const auto own = static_cast<std::size_t>(device);
        groups.program.devices[own].peakBytes = members.program.devices[fullest].peakBytes;
        groups.program.devices[own].persistentBytes = members.program.devices[fullest].persistentBytes;
        groups.metrics.devices[own].peakBytes = members.metrics.devices[fullest].peakBytes;
        groups.timeline.memory[own] = members.timeline.memory[fullest];
    }
    groups.memoryOfMembers = true;
    groups.membersMakespan = members.metrics.makespan;
}

Prediction predictPlaced(const Design& design)
{
    CompileOptions options;
    options.allowMissing = true;
    return predictWith(design, options);
}

} // namespace pipewright
