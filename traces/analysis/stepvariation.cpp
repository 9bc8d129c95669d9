// SPDX-License-Identifier: GPL-3.0-or-later
// Reads at most 24 steps and takes medians and percentiles per task. O(steps × tasks).
#include "traces/analysis/stepvariation.h"

#include "core/base/median.h"

#include <algorithm>
#include <cstdlib>

namespace pipewright {

namespace {

constexpr std::size_t stepsRead = 24;
constexpr std::size_t fewestToCallOutliers = 4;
constexpr Nanoseconds usualDistances = 5, shareOfMedian = 20;

Nanoseconds percentile(const std::vector<Nanoseconds>& sorted, std::size_t tenths)
{
    return sorted[(sorted.size() - 1) * tenths / 10];
}

Nanoseconds spreadOf(const std::vector<Nanoseconds>& sorted)
{
    return sorted.empty() ? 0 : percentile(sorted, 9) - percentile(sorted, 1);
}

std::vector<StepRecord> withoutWarmUp(std::vector<StepRecord> steps)
{
    if (steps.size() > 1)
        steps.erase(steps.begin());
    return steps;
}

} // namespace

StepLengths stepLengths(const std::vector<StepRecord>& steps)
{
    return lengthsOf(withoutWarmUp(steps));
}

StepLengths lengthsOf(const std::vector<StepRecord>& steps)
{
    std::vector<Nanoseconds> lengths;
    for (const StepRecord& step : steps)
        lengths.push_back(step.end - step.start);
    StepLengths result;
    result.steps = static_cast<std::int64_t>(lengths.size());
    if (lengths.empty())
        return result;
    std::sort(lengths.begin(), lengths.end());
    result.shortest = lengths.front();
    result.median = percentile(lengths, 5);
    result.longest = lengths.back();
    result.spread = spreadOf(lengths);
    std::vector<Nanoseconds> distances;
    for (const Nanoseconds length : lengths)
        distances.push_back(std::abs(length - result.median));
    const Nanoseconds usual = std::max(usualDistances * medianOf(distances), result.median / shareOfMedian);
    for (const StepRecord& step : steps) {
        const Nanoseconds length = step.end - step.start;
        if (lengths.size() >= fewestToCallOutliers && std::abs(length - result.median) > usual)
            result.outliers.push_back({step.step, length});
        else
            result.typical.push_back(step.step);
    }
    return result;
}

Nanoseconds coreWaitIn(const std::vector<StepRecord>& steps, int step)
{
    const std::vector<int> typical = stepLengths(steps).typical;
    std::vector<Nanoseconds> waits;
    for (const StepRecord& record : steps) {
        if (step >= 0 ? record.step != step : !std::binary_search(typical.begin(), typical.end(), record.step))
            continue;
        if (record.coreWait < 0)
            return -1;
        waits.push_back(record.coreWait);
    }
    return waits.empty() ? -1 : medianOf(std::move(waits));
}

StepVariation stepVariation(const TraceReader& trace, const Program& program)
{
    const std::vector<int> typical = stepLengths(trace.steps()).typical;
    std::vector<StepRecord> steps = withoutWarmUp(trace.steps());
    if (steps.size() > stepsRead)
        steps.resize(stepsRead);
    const std::size_t count = program.tasks.size();
    std::vector<std::vector<Nanoseconds>> starts(count), ends(count), durations(count);
    std::size_t counted = 0;
    for (const StepRecord& step : steps) {
        const Timeline timeline = trace.timeline(program, step.step);
        const bool isTypical = std::binary_search(typical.begin(), typical.end(), step.step);
        counted += isTypical ? 1 : 0;
        for (std::size_t task = 0; task < count; ++task) {
            if (timeline.start[task] == notRun)
                continue;
            if (isTypical) {
                starts[task].push_back(timeline.start[task]);
                ends[task].push_back(timeline.end[task]);
            }
            durations[task].push_back(timeline.end[task] - timeline.start[task]);
        }
    }
    StepVariation result;
    result.spread.assign(count, 0);
    result.typical.start.assign(count, notRun);
    result.typical.end.assign(count, notRun);
    for (std::size_t task = 0; task < count; ++task) {
        // Tasks missing in some steps would mix medians of different sets of steps.
        const bool always = counted > 0 && starts[task].size() == counted;
        for (auto* values : {&starts[task], &ends[task], &durations[task]})
            std::sort(values->begin(), values->end());
        result.spread[task] = spreadOf(durations[task]);
        if (!always)
            continue;
        result.typical.start[task] = percentile(starts[task], 5);
        result.typical.end[task] = percentile(ends[task], 5);
    }
    return result;
}

} // namespace pipewright
