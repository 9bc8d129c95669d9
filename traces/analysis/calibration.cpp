// SPDX-License-Identifier: GPL-3.0-or-later
// Groups the measured times of the typical steps by stage and operation, by link and by device, and takes medians;
// links are fitted by their own file (handoff.h). O(records log records).
#include "traces/analysis/calibration.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/base/median.h"
#include "core/design/recutcosts.h"
#include "core/design/stagecosts.h"
#include "core/program/compile.h"
#include "core/program/overlaps.h"
#include "traces/analysis/missingblocks.h"
#include "traces/analysis/recordedorder.h"
#include "traces/analysis/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

namespace pipewright {

namespace {

constexpr std::string_view pytorchTool = "PyTorch Kineto";

/// The trace's typical steps; throws Error when there are none.
StepLengths typicalSteps(const NamedTrace& trace, const std::optional<StepRange>& only)
{
    (void)trace.trace->medianStep(); // throws Error with the reason when there is no finished step
    std::vector<StepRecord> steps = trace.trace->steps();
    if (!only)
        return stepLengths(steps);
    const std::string all = fmt::format("its finished steps are {} to {}", steps.front().step, steps.back().step);
    std::erase_if(steps, [&](const StepRecord& step) { return step.step < only->first || step.step > only->last; });
    if (steps.empty())
        throw Error(trace.name, fmt::format("has no finished step from {} to {}", only->first, only->last), all);
    return lengthsOf(steps);
}

/// Smaller shares of waiting for processor cores are not reported; larger ones make the costs half as long again.
constexpr double tellsOfWaits = 0.05, refusesWaits = 1.0 / 3;

/// The share of these steps in which the devices' threads waited for a processor core; nullopt: not recorded.
std::optional<double> coreWaitShare(const TraceReader& trace, const std::vector<int>& steps)
{
    Nanoseconds waited = 0, all = 0;
    for (const StepRecord& step : trace.steps()) {
        if (!std::binary_search(steps.begin(), steps.end(), step.step))
            continue;
        if (step.coreWait < 0)
            return std::nullopt;
        waited += step.coreWait;
        all += step.end - step.start;
    }
    return all > 0 ? std::optional(static_cast<double>(waited) / static_cast<double>(all)) : std::nullopt;
}

using Samples = std::vector<Nanoseconds>;

struct StageSamples {
    std::array<Samples, opCount> ofOp;
    bool forward = false, backward = false; ///< whether any was recorded, also in an overlapped pair
    const Samples& of(Op op) const { return ofOp[indexOf(op)]; }
    bool knows(Op op) const { return !of(op).empty(); }
};

/// Estimates the missing ones of a full backward and its two halves from the measured ones. `share`: of the input
/// gradient in both halves, by the model.
void completeBackward(const StageSamples& samples, std::optional<double> share, const StageCosts& before,
                      StageCosts& cost)
{
    const bool full = samples.knows(Op::B), input = samples.knows(Op::I), weight = samples.knows(Op::W);
    double spread = 0; // of the measured ones; the estimated ones get the same
    for (const Op op : {Op::B, Op::I, Op::W})
        if (samples.knows(op))
            spread = std::max(spread, cost.spread[indexOf(op)]);
    const auto estimate = [&cost, spread](Op op, Nanoseconds value) {
        cost.*timeField(op) = std::max<Nanoseconds>(0, value);
        cost.origin[indexOf(op)] = CostOrigin::Estimated;
        cost.spread[indexOf(op)] = spread;
    };
    if (!share && before.inputGrad + before.weightGrad > 0)
        share = static_cast<double>(before.inputGrad) / static_cast<double>(before.inputGrad + before.weightGrad);
    const double part = share.value_or(0.5);
    if (full && !input && !weight)
        estimate(Op::I, std::llround(static_cast<double>(cost.backward) * part));
    if (full && input != weight)
        estimate(input ? Op::W : Op::I, cost.backward - (input ? cost.inputGrad : cost.weightGrad));
    else if (full && !weight)
        estimate(Op::W, cost.backward - cost.inputGrad);
    if (!full && input && !weight && part > 0)
        estimate(Op::W, std::llround(static_cast<double>(cost.inputGrad) * (1 - part) / part));
    if (!full && weight && !input && part < 1)
        estimate(Op::I, std::llround(static_cast<double>(cost.weightGrad) * part / (1 - part)));
    if (!full && (input || weight))
        estimate(Op::B, cost.inputGrad + cost.weightGrad);
}

/// Sets every time of the stage and its origin; a time that was neither measured nor estimated keeps both.
void assignTimes(const StageSamples& samples, std::optional<double> share, int stage, const Costs& before,
                 StageCosts& cost)
{
    for (const Op op : allOps) {
        if (samples.knows(op)) {
            const Typical time = typicalOf(samples.of(op));
            cost.*timeField(op) = time.value;
            cost.spread[indexOf(op)] = relativeDeviation(time);
        }
        cost.origin[indexOf(op)] = samples.knows(op) ? CostOrigin::Measured : before.originOf(op, stage);
    }
    completeBackward(samples, share, before.stages[stage], cost);
    cost.fitParts();
    if (samples.knows(Op::F) && !samples.knows(Op::R) && cost.recompute > 0) { // scales with the measured forward
        const Nanoseconds forward = before.stages[stage].forward, again = before.stages[stage].recompute;
        cost.recompute = forward > 0 ? std::llround(static_cast<double>(cost.forward) * static_cast<double>(again)
                                                    / static_cast<double>(forward))
                                     : cost.forward;
        cost.origin[indexOf(Op::R)] = CostOrigin::Estimated;
        cost.spread[indexOf(Op::R)] = cost.spread[indexOf(Op::F)];
        cost.fitParts();
    }
}

/// Stages whose forward or backward is missing in the traces.
std::vector<int> unmeasuredStages(const Program& program, const std::vector<StageSamples>& stages)
{
    std::vector<bool> computes(stages.size(), false);
    for (const Task& task : program.tasks)
        if (task.kind == TaskKind::Compute && isPass(task.op))
            computes[task.stage] = true;
    std::vector<int> unmeasured;
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        if (computes[stage] && !(stages[stage].forward && stages[stage].backward))
            unmeasured.push_back(static_cast<int>(stage));
    return unmeasured;
}

std::string refusal(const std::vector<int>& unmeasured, int stages)
{
    return fmt::format("of {} stages it has nothing, or no whole microbatch, of stage{} {}", stages,
                       unmeasured.size() == 1 ? "" : "s", joined(unmeasured, ", "));
}

/// Scales a block's time to a microbatch of the usual length.
Nanoseconds ofUsualMicrobatch(const Costs& costs, const Task& task, Nanoseconds duration)
{
    if (costs.microbatches.empty() || task.kind != TaskKind::Compute)
        return duration;
    const double scale = costs.microbatches[task.microbatch()].time;
    return scale > 0 ? std::llround(static_cast<double>(duration) / scale) : duration;
}

/// Overlapped pairs. When the two blocks really ran at once, their times say nothing about each block alone. They only
/// give the factor: a pair's time relative to the times of its blocks elsewhere. Pairs with parts are left out.
class Pairs {
public:
    explicit Pairs(const Program& program) : m_program(program), m_partner(overlapPartners(program)) {}

    bool ranTogether(const Timeline& timeline, TaskId task) const
    {
        const TaskId other = m_partner.empty() ? none : m_partner[task];
        return other != none && timeline.start[other] != notRun && timeline.start[task] < timeline.end[other]
               && timeline.start[other] < timeline.end[task];
    }

    void add(const Timeline& timeline)
    {
        for (const Program::Overlap& pair : m_program.overlaps) {
            if (timeline.start[pair.first] == notRun || timeline.start[pair.second] == notRun)
                continue;
            m_together[pair.first].push_back(std::max(timeline.end[pair.first], timeline.end[pair.second])
                                             - std::min(timeline.start[pair.first], timeline.start[pair.second]));
        }
    }

    /// Uses the pairs for which `known(task)` says that both blocks' own times were measured; without any the factor
    /// stays.
    template<typename Known>
    void assignTo(Costs& costs, Known known) const
    {
        double together = 0, apart = 0;
        for (const auto& [first, times] : m_together) {
            const Task &one = m_program.tasks[first], &other = m_program.tasks[m_partner[first]];
            const bool computed =
                !costs.parts(one.op, one.stage).empty() || !costs.parts(other.op, other.stage).empty();
            if (computed || !known(one) || !known(other))
                continue;
            together += static_cast<double>(medianOf(times));
            apart += static_cast<double>(costs.duration(one.op, one.stage, one.microbatch())
                                         + costs.duration(other.op, other.stage, other.microbatch()));
        }
        if (apart > 0)
            costs.overlapFactor = together / apart;
    }

private:
    const Program& m_program;
    std::vector<TaskId> m_partner;
    std::map<TaskId, Samples> m_together; ///< by first block
};

/// With another schedule's order, times of blocks would be right, but the times between them wrong.
void refuseOtherOrder(const Program& program, const Timeline& timeline, const std::string& traceName)
{
    if (const std::optional<Disorder> other = disorderOf(program, timeline))
        throw Error(traceName,
                    fmt::format("another schedule ran: on device {} {} came before {}, which the design has first",
                                other->device, program.label(other->early), program.label(other->late)),
                    "calibrate a design of the schedule that ran, and carry its costs over with `pipewright new FAMILY "
                    "--costs-from THAT_DESIGN`");
}

} // namespace

Design calibrate(const Design& design, const TraceReader& trace, const std::string& traceName)
{
    return calibrate(design, std::vector<NamedTrace>{{&trace, traceName}}).design;
}

Calibration calibrate(const Design& design, const std::vector<NamedTrace>& traces, UnmeasuredStages rest,
                      const std::optional<StepRange>& only, BusyMachine busy)
{
    const Program program = compile(design.schedule, design.costs, design.dataflow);
    std::vector<StageSamples> stages(program.stages());
    Samples reduce, makespans;
    Handoffs handoffs(program, design.costs);
    HostGapSamples gaps(program, design.costs);
    Pairs pairs(program);
    Calibration result{design, {}};
    std::vector<std::string> heldUp; // per trace: the share of time waiting for a core, or empty
    bool pytorch = true;
    for (const NamedTrace& named : traces) {
        const TraceReader* const trace = named.trace;
        Diagnostics missing; // of the step that lacks most blocks
        std::size_t mostMissing = 0;
        pytorch = pytorch && trace->header().tool == pytorchTool;
        trace->eachStep(
            program, result.steps.emplace_back(typicalSteps(named, only)).typical,
            [&](int step, const Timeline& timeline) {
                refuseOtherOrder(program, timeline, named.name);
                if (const std::size_t count = missingBlocks(program, timeline).size(); count > mostMissing) {
                    mostMissing = count;
                    missing = warningOfMissing(program, timeline, named.name, "step " + std::to_string(step));
                }
                for (TaskId id = 0; id < program.tasks.size(); ++id) {
                    const Task& task = program.tasks[id];
                    if (timeline.start[id] == notRun || moves(task.kind))
                        continue;
                    if (task.kind == TaskKind::Compute && isPass(task.op))
                        (task.op == Op::F ? stages[task.stage].forward : stages[task.stage].backward) = true;
                    if (pairs.ranTogether(timeline, id))
                        continue;
                    const Nanoseconds duration = timeline.end[id] - timeline.start[id];
                    if (isUpdate(task.kind) && !traitsOf(task.kind).computes)
                        continue; // weight transfer tasks: no time is predicted for them
                    if (program.sharesOptimizer() && task.kind == TaskKind::Update) // this replica's share only
                        stages[task.stage].ofOp[indexOf(task.op)].push_back(duration * program.replicas());
                    else if (!isReduction(task.kind))
                        stages[task.stage].ofOp[indexOf(task.op)].push_back(
                            ofUsualMicrobatch(design.costs, task, duration));
                    else if (task.kind == TaskKind::Reduce) // sums over replicas take the time of their links
                        reduce.push_back(duration);
                }
                pairs.add(timeline);
                handoffs.add(timeline);
                gaps.add(timeline);
                makespans.push_back(lengthOf(timeline));
            });
        for (const Diagnostic& lacks : missing)
            result.notes.push_back(lacks.where + ": " + lacks.what);
        const std::optional<double> share = coreWaitShare(*trace, result.steps.back().typical);
        if (share && *share > refusesWaits && busy == BusyMachine::Refuse)
            throw Error(named.name,
                        fmt::format("for {:.0f} % of their time devices waited for a processor core that other threads "
                                    "or programs had: its times are not those of the blocks",
                                    100 * *share),
                        "record again when the machine is quiet, or with no more devices than cores; or take the times "
                        "as they are: --busy-machine");
        heldUp.push_back(share && *share >= tellsOfWaits ? fmt::format("{:.0f} %", 100 * *share) : "");
    }

    result.unmeasured = unmeasuredStages(program, stages);
    if (!result.unmeasured.empty() && rest == UnmeasuredStages::Refuse)
        throw Error(traces.front().name, refusal(result.unmeasured, program.stages()),
                    "give the traces of all ranks; or let the design's own costs stand for these stages: "
                    "--keep-unmeasured");
    std::vector<std::optional<double>> shares(stages.size());
    if (design.workload && !design.layersPerStage.empty())
        shares = inputGradShares(*design.workload, design.layersPerStage);
    if (pytorch && !stages.front().knows(Op::I) && (stages.front().knows(Op::B) || stages.front().knows(Op::W))) {
        shares.front() = 0;
        result.notes.push_back("stage 0: PyTorch's first stage has nothing to do in its input gradient, for no input "
                               "wants one, so all of its backward is estimated to be in the weight gradient");
    }
    Costs& costs = result.design.costs;
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        assignTimes(stages[stage], shares[stage], static_cast<int>(stage), design.costs, costs.stages[stage]);
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        for (const Op op : allOps)
            if (stages[stage].knows(op))
                result.fits.push_back({op, static_cast<int>(stage), typicalOf(stages[stage].of(op))});
    if (!reduce.empty())
        costs.reduce = medianOf(reduce);
    if (costs.hasParts())
        result.notes.push_back("the parts of blocks keep their shares of them: no trace tells their times apart");
    pairs.assignTo(costs, [&](const Task& task) { return stages[task.stage].knows(task.op); });
    for (std::string& note : handoffs.assignTo(costs))
        result.notes.push_back(std::move(note));
    gaps.assignTo(costs);
    result.links = handoffs.fits();
    result.gaps = gaps.fits();
    if (result.unmeasured.empty())
        result.makespan = medianOf(makespans);
    const std::string counted = !only                       ? ""
                                : only->first == only->last ? fmt::format(" (step {})", only->first)
                                                            : fmt::format(" (steps {} to {})", only->first, only->last);
    costs.source = "measured: ";
    for (std::size_t i = 0; i < traces.size(); ++i) {
        const auto& [trace, name] = traces[i];
        costs.source += (i == 0 ? "" : ", ") + name + counted
                        + (trace->blockTime() == BlockTime::Kernels ? " (times of kernels)" : "");
        if (heldUp[i].empty())
            continue;
        costs.source += " (held up: " + heldUp[i] + " of the time waited for a core)";
        result.notes.push_back(name + ": for " + heldUp[i]
                               + " of their time devices waited for a processor core that other threads or programs "
                                 "had: these costs may be too long by as much; record again when it is quiet, or with "
                                 "no more devices than cores");
    }
    return result;
}

} // namespace pipewright
