// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/calibration.h"

#include "core/base/diagnostic.h"
#include "core/base/median.h"
#include "core/design/stagecosts.h"
#include "core/predict/evaluator.h"
#include "core/program/compile.h"
#include "core/program/overlaps.h"
#include "traces/analysis/handoff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

namespace pipewright {

namespace {

/// The finished steps whose length lies in the middle half, the warm-up step left out when there are others.
std::vector<int> centralSteps(const TraceReader& trace, const std::string& traceName)
{
    std::vector<StepRecord> steps = trace.steps();
    if (steps.empty())
        throw Error(traceName, "the trace has no finished step", "let the run finish at least one step");
    if (steps.size() > 1)
        steps.erase(steps.begin());
    std::stable_sort(steps.begin(), steps.end(),
                     [](const StepRecord& a, const StepRecord& b) { return a.end - a.start < b.end - b.start; });
    const std::size_t margin = steps.size() / 4;
    std::vector<int> central;
    for (std::size_t i = margin; i < steps.size() - margin; ++i)
        central.push_back(steps[i].step);
    return central;
}

struct Mean {
    double sum = 0;
    std::int64_t count = 0;
    std::vector<Nanoseconds> samples;
    void add(Nanoseconds value)
    {
        sum += static_cast<double>(value);
        ++count;
        samples.push_back(value);
    }
    double value() const { return sum / static_cast<double>(count); }
    void assignTo(Nanoseconds& cost) const
    {
        if (count > 0)
            cost = std::llround(value());
    }
};

CalibrationFit fitOf(const Mean& mean, Op op, int stage)
{
    CalibrationFit fit;
    fit.op = op;
    fit.stage = stage;
    fit.samples = mean.count;
    fit.value = std::llround(mean.value());
    fit.median = medianOf(mean.samples);
    std::vector<Nanoseconds> distances = mean.samples;
    for (Nanoseconds& value : distances)
        value = std::abs(value - fit.median);
    fit.spread = medianOf(std::move(distances));
    return fit;
}

struct StageMeans {
    std::array<Mean, opCount> ofOp;
    bool forward = false, backward = false; ///< whether any was recorded, overlapped ones among them
    const Mean& of(Op op) const { return ofOp[indexOf(op)]; }
    bool knows(Op op) const { return of(op).count > 0; }
};

/// A full backward and its halves follow from each other where only one of them was measured. `share`: the input
/// gradient's of the two in the model.
void completeBackward(const StageMeans& means, std::optional<double> share, const StageCosts& before, StageCosts& cost)
{
    const bool full = means.knows(Op::B), input = means.knows(Op::I), weight = means.knows(Op::W);
    const auto estimate = [&cost](Op op, Nanoseconds value) {
        cost.*timeField(op) = std::max<Nanoseconds>(0, value);
        cost.origin[indexOf(op)] = CostOrigin::Estimated;
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

/// Every time of the stage with where it comes from: what was not measured and does not follow keeps both.
void assignTimes(const StageMeans& means, std::optional<double> share, int stage, const Costs& before, StageCosts& cost)
{
    for (const Op op : allOps) {
        means.of(op).assignTo(cost.*timeField(op));
        cost.origin[indexOf(op)] = means.knows(op) ? CostOrigin::Measured : before.originOf(op, stage);
    }
    completeBackward(means, share, before.stages[stage], cost);
    if (means.knows(Op::F) && !means.knows(Op::R) && cost.recompute > 0) { // it is the forward again
        cost.recompute = cost.forward;
        cost.origin[indexOf(Op::R)] = CostOrigin::Estimated;
    }
}

/// Stages of which the traces have no forward or no backward.
std::vector<int> unmeasuredStages(const Program& program, const std::vector<StageMeans>& stages)
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
                       unmeasured.size() == 1 ? "" : "s", fmt::join(unmeasured, ", "));
}

/// What the block would have taken on a microbatch of the usual length.
Nanoseconds ofUsualMicrobatch(const Costs& costs, const Task& task, Nanoseconds duration)
{
    if (costs.microbatches.empty() || task.kind != TaskKind::Compute)
        return duration;
    const double scale = costs.microbatches[task.microbatch].time;
    return scale > 0 ? std::llround(static_cast<double>(duration) / scale) : duration;
}

/// Overlapped pairs. Where the two really ran at once, a block's time says nothing about the block alone; what
/// is learnt is how long pairs take against the times of their blocks elsewhere.
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
            ++m_steps[pair.first];
            m_together[pair.first] += std::max(timeline.end[pair.first], timeline.end[pair.second])
                                      - std::min(timeline.start[pair.first], timeline.start[pair.second]);
        }
    }

    /// From the pairs of which `known(task)` says that both blocks' own times were seen; keeps the factor without.
    template<typename Known>
    void assignTo(Costs& costs, Known known) const
    {
        double together = 0, apart = 0;
        for (const auto& [first, sum] : m_together) {
            const Task &one = m_program.tasks[first], &other = m_program.tasks[m_partner[first]];
            if (!known(one) || !known(other))
                continue;
            together += static_cast<double>(sum) / m_steps.at(first);
            apart += static_cast<double>(costs.duration(one.op, one.stage, one.microbatch)
                                         + costs.duration(other.op, other.stage, other.microbatch));
        }
        if (apart > 0)
            costs.overlapFactor = together / apart;
    }

private:
    const Program& m_program;
    std::vector<TaskId> m_partner;
    std::map<TaskId, Nanoseconds> m_together; ///< by first block, summed over steps
    std::map<TaskId, int> m_steps;
};

Nanoseconds makespanOf(const Timeline& timeline)
{
    Nanoseconds first = notRun, last = 0;
    for (std::size_t id = 0; id < timeline.start.size(); ++id) {
        if (timeline.start[id] == notRun)
            continue;
        first = first == notRun ? timeline.start[id] : std::min(first, timeline.start[id]);
        last = std::max(last, timeline.end[id]);
    }
    return first == notRun ? 0 : last - first;
}

LinkCosts scaled(LinkCosts link, double factor)
{
    link.latency = std::llround(static_cast<double>(link.latency) * factor);
    link.bytesPerSecond /= factor;
    return link;
}

Costs withScaledLinks(Costs costs, double factor)
{
    costs.link = scaled(costs.link, factor);
    for (auto& [pair, link] : costs.linkOfPair)
        link = scaled(link, factor);
    return costs;
}

/// Block times are averages of what was seen, but of hand-offs only those are seen that someone waited for,
/// which are the long ones. So where the calibrated program would not take as long as the measured steps
/// did, the hand-offs are what is corrected: by the factor, at most 2, that makes the makespans agree.
void correctHandoffs(const Program& program, double measuredMakespan, Costs& costs)
{
    constexpr double goodEnough = 0.002, least = 0.01, most = 2;
    Evaluator evaluator(program, costs);
    Timeline timeline;
    const auto makespan = [&](double factor) {
        evaluator.setCosts(withScaledLinks(costs, factor));
        evaluator.evaluate(timeline);
        return static_cast<double>(makespanOf(timeline));
    };
    if (std::abs(makespan(1) - measuredMakespan) <= goodEnough * measuredMakespan)
        return;
    // The makespan grows with the factor, hence bisection; a hundred thousandth of it is near enough.
    double low = least, high = most;
    for (int i = 0; i < 18; ++i) {
        const double middle = (low + high) / 2;
        (makespan(middle) < measuredMakespan ? low : high) = middle;
    }
    costs = withScaledLinks(std::move(costs), (low + high) / 2);
}

} // namespace

Design calibrate(const Design& design, const TraceReader& trace, const std::string& traceName)
{
    return calibrate(design, std::vector<NamedTrace>{{&trace, traceName}}).design;
}

Calibration calibrate(const Design& design, const std::vector<NamedTrace>& traces, UnmeasuredStages rest)
{
    const Program program = compile(design.schedule, design.costs, design.dataflow);
    std::vector<StageMeans> stages(static_cast<std::size_t>(program.stages()));
    Mean reduce, makespan;
    Handoffs handoffs(program);
    Pairs pairs(program);
    for (const auto& [trace, traceName] : traces)
        for (const int step : centralSteps(*trace, traceName)) {
            const Timeline timeline = trace->timeline(program, step);
            for (TaskId id = 0; id < program.tasks.size(); ++id) {
                const Task& task = program.tasks[id];
                if (timeline.start[id] == notRun || task.kind == TaskKind::Transfer)
                    continue;
                if (task.kind == TaskKind::Compute && isPass(task.op))
                    (task.op == Op::F ? stages[task.stage].forward : stages[task.stage].backward) = true;
                if (pairs.ranTogether(timeline, id))
                    continue;
                const Nanoseconds duration = timeline.end[id] - timeline.start[id];
                if (!isReduction(task.kind))
                    stages[task.stage].ofOp[indexOf(task.op)].add(ofUsualMicrobatch(design.costs, task, duration));
                else if (task.kind == TaskKind::Reduce) // over replicas a sum takes its links' time
                    reduce.add(duration);
            }
            pairs.add(timeline);
            handoffs.add(timeline);
            makespan.add(makespanOf(timeline));
        }

    Calibration result{design, {}, unmeasuredStages(program, stages)};
    if (!result.unmeasured.empty() && rest == UnmeasuredStages::Refuse)
        throw Error(traces.front().name, refusal(result.unmeasured, program.stages()),
                    "give the traces of all ranks; or let the design's own costs stand for these stages: "
                    "--keep-unmeasured");
    std::vector<std::optional<double>> shares(stages.size());
    if (design.workload && !design.layersPerStage.empty())
        shares = inputGradShares(*design.workload, design.layersPerStage);
    Costs& costs = result.design.costs;
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        assignTimes(stages[stage], shares[stage], static_cast<int>(stage), design.costs, costs.stages[stage]);
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        for (const Op op : allOps)
            if (const Mean& mean = stages[stage].of(op); mean.count > 0)
                result.fits.push_back(fitOf(mean, op, static_cast<int>(stage)));
    reduce.assignTo(costs.reduce);
    pairs.assignTo(costs, [&](const Task& task) { return stages[task.stage].knows(task.op); });
    // A makespan of which a part was not measured corrects nothing.
    if (handoffs.fit(costs) && result.unmeasured.empty())
        correctHandoffs(program, makespan.value(), costs);
    costs.source = "measured: ";
    for (const NamedTrace& trace : traces)
        costs.source += (&trace == &traces.front() ? "" : ", ") + trace.name;
    return result;
}

} // namespace pipewright
