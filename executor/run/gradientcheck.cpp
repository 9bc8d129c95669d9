// SPDX-License-Identifier: GPL-3.0-or-later
// Compares bit by bit. O(one training step) on the calling thread.
#include "executor/run/gradientcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

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
        const std::span<const float> ours = work.gradients(stage, share / work.stages());
        const std::span<const float> theirs = reference.gradients(stage);
        if (ours.size() != theirs.size())
            addTensor(check, "stage " + std::to_string(stage), ours, theirs);
        else
            for (const Parameter& parameter : reference.maths(stage).parameters().parameters())
                addTensor(check, parameter.name, parameter.in(ours), parameter.in(theirs));
    }
    return check;
}

GradientCheck compareParameters(const TrainingWork& work, const ReferenceTrainer& reference,
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
    for (int stage = 0; stage < work.stages(); ++stage) {
        const std::span<const float> ours = work.parameters(stage), theirs = reference.parameters(stage);
        const std::vector<float>& before = start[stage].parameters;
        if (ours.size() != theirs.size()) {
            addTensor(check, "stage " + std::to_string(stage), ours, theirs);
            continue;
        }
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

} // namespace

std::vector<StageStart> startOfLastStep(const TrainingWork& work, const Program& program, int steps)
{
    std::vector<StageStart> starts;
    for (int stage = 0; stage < work.stages(); ++stage) {
        const auto parameters = work.parameters(stage);
        StageStart& start = starts.emplace_back(StageStart{{parameters.begin(), parameters.end()}, {}, 0});
        if (!program.versioned())
            continue;
        const auto state = work.optimizerState(stage);
        start.state.assign(state.begin(), state.end());
        // Every step updates a stage the same number of times.
        const auto each = std::count_if(program.tasks.begin(), program.tasks.end(), [stage](const Task& task) {
            return task.kind == TaskKind::Update && task.stage == stage;
        });
        start.updates = static_cast<int>(each) * (steps - 1);
    }
    return starts;
}

GradientCheck withRouting(GradientCheck check, const RoutingCheck& followed)
{
    check.routing = {followed.tokens, followed.otherwise, followed.unexplained, followed.first};
    return check;
}

GradientCheck checkLastStep(const LastStep& last, const TrainingWork& work, double bound)
{
    const Design& design = last.design;
    std::optional<FollowedRun> followed;
    if (const KeptChoices* const kept = work.choices(); kept && kept->isAnywhere())
        followed.emplace(FollowedRun{kept->byBlock(last.program), bound});
    ReferenceTrainer reference(last.workload, design.layersPerStage, last.program.microbatches, last.optimizer,
                               last.data, 1, design.dataflow.skips, microbatchesPerUpdate(last.program));
    reference.startAt(last.number, last.start);
    reference.follow(followed ? &*followed : nullptr);
    reference.step(design.schedule);
    return withRouting(last.program.versioned() ? compareParameters(work, reference, last.start, bound)
                                                : compareGradients(work, reference, bound),
                       followed ? followed->check : RoutingCheck{});
}

GradientCheck notCompared(const RunResult& result, bool trains, bool versioned)
{
    GradientCheck check;
    check.lagged = versioned;
    check.skipped = !trains            ? "blocks that take the design's times have no mathematics"
                    : result.cancelled ? "the run was cancelled"
                    : !result.speaks   ? "another process compares"
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

void checkReads(const TrainingWork& work, const Program& program, Diagnostics& notes)
{
    const VersionedWeights& versions = work.versions();
    if (const TaskId wrong = versions.firstDifference(); wrong != none)
        throw Error(program.label(wrong),
                    fmt::format("read version {} predicted by {}, and version {} by {} was compiled",
                                versions.readings()[wrong].version, versions.readings()[wrong].steps,
                                program.weights[wrong].version, program.weights[wrong].steps),
                    "this is a fault of the program: please report it with the design");
    notes.push_back({Severity::Note, "weights", "every block read the version that the schedule says", {}});
}

} // namespace pipewright
