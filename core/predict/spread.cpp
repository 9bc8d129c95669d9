// SPDX-License-Identifier: GPL-3.0-or-later
// Monte Carlo over log-normal factors of median 1. Random numbers are hashes of their key (seed, sample, block or
// device), so they depend neither on the schedule nor on the order of the calls.
#include "core/predict/spread.h"

#include "core/base/median.h"
#include "core/predict/evaluator.h"
#include "core/program/pairtimes.h"
#include "core/program/replicasums.h"

#include <cmath>
#include <numbers>

namespace pipewright {

namespace {

std::uint64_t mixed(std::uint64_t value) // SplitMix64
{
    value += 0x9e37'79b9'7f4a'7c15;
    value = (value ^ (value >> 30)) * 0xbf58'476d'1ce4'e5b9;
    value = (value ^ (value >> 27)) * 0x94d0'49bb'1331'11eb;
    return value ^ (value >> 31);
}

/// Above 0, at most 1.
double uniform(std::uint64_t bits)
{
    return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

/// A factor of median 1; `spread`: its standard deviation, nearly.
double factor(double spread, std::uint64_t sample, std::uint64_t key)
{
    if (spread <= 0)
        return 1;
    const std::uint64_t bits = mixed(sample ^ mixed(key));
    const double normal =
        std::sqrt(-2 * std::log(uniform(bits))) * std::cos(2 * std::numbers::pi * uniform(mixed(bits)));
    return std::exp(std::sqrt(std::log1p(spread * spread)) * normal);
}

std::uint64_t keyOf(const Task& task)
{
    return std::uint64_t{indexOf(task.op)} << 56 | static_cast<std::uint64_t>(task.stage) << 32
           | static_cast<std::uint64_t>(task.microbatch()) << 8 | task.replica;
}

std::uint64_t keyOfDevice(int device)
{
    return std::uint64_t{0xff} << 56 | static_cast<std::uint64_t>(device);
}

/// The times that blocks take alone, and the tasks that take them.
struct SampledTask {
    TaskId task = none;
    Nanoseconds alone = 0;
    double spread = 0;
};

std::vector<SampledTask> sampledTasks(const Program& program, const Costs& costs, const SpreadOptions& options)
{
    std::vector<SampledTask> sampled;
    const auto spreadOf = [&](const Task& task) {
        const double own = options.measured ? costs.stages[task.stage].spread[indexOf(task.op)] : 0;
        return own > 0 ? own : options.block;
    };
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind == TaskKind::Compute)
            sampled.push_back({t, costs.duration(task.op, task.stage, task.microbatch()), spreadOf(task)});
        else if (task.kind == TaskKind::Update)
            sampled.push_back({t, updateTime(program, program.versioned(), costs, task.stage), spreadOf(task)});
    }
    return sampled;
}

int samplesOf(const Program& program, const SpreadOptions& options)
{
    constexpr std::size_t fewest = 20;
    if (options.tasks == 0 || program.tasks.empty())
        return std::max(1, options.samples);
    const std::size_t affordable = std::max(fewest, options.tasks / program.tasks.size());
    return static_cast<int>(std::min<std::size_t>(affordable, static_cast<std::size_t>(std::max(1, options.samples))));
}

} // namespace

SpreadOptions shownNoise(const Costs& costs, const NoiseChoice& choice)
{
    constexpr std::size_t tasks = 2'000'000;
    if (!choice.block && costs.hasSpread())
        return {.measured = true, .device = choice.device, .tasks = tasks};
    return {.block = choice.block.value_or(usualSpread), .device = choice.device, .tasks = tasks};
}

StepSpread spreadOfStep(const Program& program, const Costs& costs, const SpreadOptions& options)
{
    Evaluator evaluator(program, costs);
    PairTimes pairs(costs);
    const std::vector<SampledTask> sampled = sampledTasks(program, costs, options);
    std::vector<double> ofDevice(program.devices.size());
    std::vector<Nanoseconds> steps;
    Timeline timeline;
    for (int s = 0; s < samplesOf(program, options); ++s) {
        const std::uint64_t sample = mixed(options.seed ^ mixed(static_cast<std::uint64_t>(s)));
        for (std::size_t d = 0; d < ofDevice.size(); ++d)
            ofDevice[d] = factor(options.device, sample, keyOfDevice(static_cast<int>(d)));
        for (const auto& [t, alone, spread] : sampled) {
            const Task& task = program.tasks[t];
            const double slower = ofDevice[static_cast<std::size_t>(task.device)] * factor(spread, sample, keyOf(task));
            evaluator.node(t).duration = std::llround(static_cast<double>(alone) * slower);
        }
        for (const Program::Overlap& pair : program.overlaps) {
            Nanoseconds &first = evaluator.node(pair.first).duration, &second = evaluator.node(pair.second).duration;
            first = second = pairs.length(program, pair, first, second);
        }
        evaluator.evaluate(timeline);
        if (!timeline.end.empty())
            steps.push_back(*std::max_element(timeline.end.begin(), timeline.end.end())
                            - *std::min_element(timeline.start.begin(), timeline.start.end()));
    }
    if (steps.empty())
        return {};
    std::sort(steps.begin(), steps.end());
    const std::size_t rank = (steps.size() * 95 + 99) / 100; // the nearest rank
    return {medianOf(steps), steps[rank - 1]};
}

} // namespace pipewright
