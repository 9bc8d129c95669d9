// SPDX-License-Identifier: GPL-3.0-or-later
// Compares bit by bit. O(one training step) on the calling thread.
#include "executor/run/gradientcheck.h"

#include "core/model/transformer.h"
#include "executor/run/trainabledesign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

namespace pipewright {

void addTensor(GradientCheck& check, std::string_view name, std::span<const float> ours, std::span<const float> theirs)
{
    if (ours.size() == theirs.size() && std::memcmp(ours.data(), theirs.data(), ours.size_bytes()) == 0)
        return;
    check.bitEqual = false;
    double difference = 0, reference = 0;
    for (std::size_t i = 0; i < theirs.size() && ours.size() == theirs.size(); ++i) {
        difference += (double(ours[i]) - double(theirs[i])) * (double(ours[i]) - double(theirs[i]));
        reference += double(theirs[i]) * double(theirs[i]);
    }
    const bool comparable = ours.size() == theirs.size() && std::isfinite(difference) && reference > 0;
    const double error = comparable                                        ? std::sqrt(difference / reference)
                         : difference == 0 && ours.size() == theirs.size() ? 0 // zeros of two signs
                                                                           : std::numeric_limits<double>::infinity();
    if (error >= check.maxRelativeError) {
        check.maxRelativeError = error;
        check.worst = name;
    }
}

namespace {

GradientCheck compareGradients(const TrainingWork& work, const ReferenceTrainer& reference, double bound)
{
    GradientCheck check{.bitEqual = true, .within = bound};
    for (int share = 0; share < work.stages() * work.replicas(); ++share) {
        const int stage = share % work.stages();
        const std::vector<float> found = work.gradients(stage, share / work.stages());
        const std::span<const float> ours = found, theirs = reference.gradients(stage);
        for (const Parameter& parameter : reference.maths(stage).parameters().parameters())
            addTensor(check, parameter.name, parameter.in(ours), parameter.in(theirs));
    }
    return check;
}

GradientCheck compareParameters(const StageValues& found, const ReferenceTrainer& reference,
                                const std::vector<StageStart>& start, double bound)
{
    GradientCheck check{.bitEqual = true, .within = bound, .lagged = true};
    // A difference of up to one fp32 rounding per update is no error: a norm's gamma is near 1 and its changes are
    // small.
    const auto isRounding = [&](int stage, std::span<const float> ours, std::span<const float> theirs) {
        double difference = 0, size = 0;
        for (std::size_t i = 0; i < theirs.size(); ++i) {
            difference += (double(ours[i]) - double(theirs[i])) * (double(ours[i]) - double(theirs[i]));
            size += double(theirs[i]) * double(theirs[i]);
        }
        return std::sqrt(difference) <= 0x1p-23 * reference.updates(stage) * std::sqrt(size);
    };
    const auto changed = [](std::span<const float> now, std::span<const float> before) {
        std::vector<float> difference(now.begin(), now.end());
        for (std::size_t i = 0; i < before.size(); ++i)
            difference[i] -= before[i];
        return difference;
    };
    for (int stage = 0; stage < reference.stages(); ++stage) {
        const std::span<const float> ours = found[stage], theirs = reference.parameters(stage);
        const std::vector<float>& before = start[stage].parameters;
        if (std::memcmp(ours.data(), theirs.data(), ours.size_bytes()) == 0)
            continue;
        for (const Parameter& parameter : reference.maths(stage).parameters().parameters()) {
            const std::span<const float> from = parameter.in(std::span<const float>(before));
            if (isRounding(stage, parameter.in(ours), parameter.in(theirs)))
                continue;
            addTensor(check, parameter.name, changed(parameter.in(ours), from), changed(parameter.in(theirs), from));
        }
        check.bitEqual = false;
    }
    return check;
}

/// The trainer that does the last step.
ReferenceTrainer referenceOf(const LastStep& last, std::vector<StageStart> start)
{
    const auto& [design, program, optimizer, data, number, bound] = last;
    const Workload workload =
        withWidened(withAttention(*design.workload, attentionOnHost(design.workload->shape)), true);
    ReferenceTrainer reference(workload, design.layersPerStage, program.microbatches, optimizer, data, 1,
                               design.dataflow.skips, microbatchesPerUpdate(program));
    reference.startAt(number, std::move(start));
    return reference;
}

class SingleDeviceCheck final : public LastStepCheck {
public:
    SingleDeviceCheck(const TrainingWork& work, const LastStep& last) : m_work(work), m_last(last) {}

    void begin() override
    {
        StageValues state;
        for (int stage = 0; stage < m_work.stages(); ++stage)
            state.push_back(m_last.program.versioned() ? m_work.optimizerState(stage) : std::vector<float>());
        m_start = startOfStages(m_last, m_work.values(BufferKind::Parameters), std::move(state));
    }

    GradientCheck compare() override
    {
        const Program& program = m_last.program;
        std::optional<FollowedRun> followed;
        if (const KeptChoices* const kept = m_work.choices(); kept && kept->isAnywhere())
            followed.emplace(FollowedRun{kept->byBlock(program), m_last.bound});
        ReferenceTrainer reference = referenceOf(m_last, m_start);
        reference.follow(followed ? &*followed : nullptr);
        reference.step(m_last.design.schedule);
        return withRouting(program.versioned() ? compareParameters(m_work.values(BufferKind::Parameters), reference,
                                                                   m_start, m_last.bound)
                                               : compareGradients(m_work, reference, m_last.bound),
                           followed ? followed->check : RoutingCheck{});
    }

private:
    const TrainingWork& m_work;
    LastStep m_last;
    std::vector<StageStart> m_start; ///< per stage
};

} // namespace

std::unique_ptr<LastStepCheck> checkOf(const TrainingWork& work, const LastStep& last)
{
    return std::make_unique<SingleDeviceCheck>(work, last);
}

std::vector<StageStart> startOfStages(const LastStep& last, StageValues parameters, StageValues state)
{
    std::vector<StageStart> start;
    for (std::size_t stage = 0; stage < parameters.size(); ++stage) {
        std::set<int> updates; // by their microbatch; members of a group each have a task for one
        for (const Task& task : last.program.tasks)
            if (task.kind == TaskKind::Update && task.stage == static_cast<int>(stage))
                updates.insert(task.microbatch());
        // Every step updates a stage the same number of times.
        start.push_back({std::move(parameters[stage]), std::move(state[stage]),
                         last.program.versioned() ? static_cast<int>(updates.size()) * last.number : 0});
    }
    return start;
}

GradientCheck checkUpdates(const LastStep& last, const std::vector<StageStart>& start, const StageValues& found)
{
    ReferenceTrainer reference = referenceOf(last, start);
    reference.step(last.design.schedule);
    return compareParameters(found, reference, start, last.bound);
}

GradientCheck withRouting(GradientCheck check, const RoutingCheck& followed)
{
    check.routing = {followed.tokens, followed.otherwise, followed.unexplained, followed.first};
    return check;
}

GradientCheck notCompared(const RunResult& result, bool trains, bool versioned)
{
    GradientCheck check;
    check.lagged = versioned;
    check.skipped = !trains              ? "blocks that take the design's times have no mathematics"
                    : result.cancelled   ? "the run was cancelled"
                    : !result.isRankZero ? "another process compares"
                                         : "it was not asked for";
    return check;
}

void noteOfGradients(const GradientCheck& check, Diagnostics& notes)
{
    const GradientCheck::Routing& routing = check.routing;
    if (routing.unexplained > 0)
        notes.push_back({Severity::Error, routing.first,
                         fmt::format("it visited experts that rounding does not explain, one of {} such choices of {}",
                                     routing.unexplained, routing.tokens),
                         "this is a fault of the program or of the machine: please report it with the design"});
    else if (routing.otherwise > 0)
        notes.push_back({Severity::Note,
                         "experts",
                         fmt::format("{} of {} choices of a token differ from the sequential reference's, between "
                                     "experts that score alike up to rounding; the reference was given the run's",
                                     routing.otherwise, routing.tokens),
                         {}});
    if (check.maxRelativeError > check.within)
        notes.push_back({Severity::Error, check.worst,
                         fmt::format("its gradient differs from the sequential reference's by {:.3g} relative, and "
                                     "{:.3g} is the most for this precision",
                                     check.maxRelativeError, check.within),
                         "this is a fault of the program or of the machine: please report it with the design"});
}

void checkReads(const VersionedWeights& versions, const Program& program, Diagnostics& notes)
{
    if (const TaskId wrong = versions.firstDifference(); wrong != none)
        throw Error(program.label(wrong),
                    fmt::format("read version {} predicted by {}, and version {} by {} was compiled",
                                versions.readings()[wrong].version, versions.readings()[wrong].steps,
                                program.weights[wrong].version, program.weights[wrong].steps),
                    "this is a fault of the program: please report it with the design");
    notes.push_back({Severity::Note, "weights", "every block read the version that the schedule says", {}});
}

} // namespace pipewright
