// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/metrics.h"

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

bool isBackward(Op op)
{
    return op == Op::B || op == Op::I || op == Op::W;
}

struct LaneState {
    Nanoseconds first = std::numeric_limits<Nanoseconds>::max();
    Nanoseconds last = 0;         ///< end of the last compute block
    Nanoseconds previousEnd = -1; ///< end of the last task of any kind on this device
    Nanoseconds compute = 0;
};

/// What arrives last of a task's inputs; none when it has none but its device's.
TaskId lastArrival(const Program& program, const Timeline& timeline, TaskId t)
{
    TaskId arrival = program.afterData[t];
    const auto& extras = program.extraDependencies;
    if (extras.empty())
        return arrival;
    auto extra = std::lower_bound(extras.begin(), extras.end(), t,
                                  [](const Program::ExtraDependency& e, TaskId task) { return e.task < task; });
    for (; extra != extras.end() && extra->task == t; ++extra)
        if (extra->after != none && extra->when == Program::ExtraDependency::When::Ended
            && (arrival == none || timeline.end[extra->after] > timeline.end[arrival]))
            arrival = extra->after;
    return arrival;
}

/// Splits the gap before a task between computing its input, moving it, and anything else.
void attributeGap(const Program& program, const Timeline& timeline, TaskId t, Nanoseconds from, Nanoseconds gap,
                  IdleCauses& causes)
{
    const TaskId arrival = lastArrival(program, timeline, t);
    if (arrival == none || program.tasks[t].kind != TaskKind::Compute || timeline.start[arrival] == notRun) {
        causes.other += gap;
        return;
    }
    const Nanoseconds to = timeline.start[t];
    const bool moved = program.tasks[arrival].kind == TaskKind::Transfer;
    const Nanoseconds made = std::clamp(moved ? timeline.start[arrival] : timeline.end[arrival], from, to);
    const Nanoseconds arrived = std::clamp(timeline.end[arrival], made, to);
    (isBackward(program.tasks[t].op) ? causes.waitGradient : causes.waitActivation) += made - from;
    causes.transfer += arrived - made;
    causes.other += to - arrived;
}

} // namespace

Metrics measure(const Program& program, const Timeline& timeline, std::span<const TaskId> sequence)
{
    Metrics metrics;
    const std::size_t devices = program.devices.size();
    metrics.devices.resize(devices);
    metrics.idleCauses.resize(devices);
    std::vector<LaneState> lanes(devices);
    Nanoseconds begin = std::numeric_limits<Nanoseconds>::max(), finish = 0;

    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
        const TaskId t = sequence.empty() ? static_cast<TaskId>(i) : sequence[i];
        if (timeline.start[t] == notRun)
            continue;
        const Task& task = program.tasks[t];
        const Nanoseconds start = timeline.start[t], end = timeline.end[t];
        begin = std::min(begin, start);
        finish = std::max(finish, end);
        if (task.kind == TaskKind::Transfer || task.kind == TaskKind::Reduce)
            continue;
        const auto d = static_cast<std::size_t>(task.device);
        LaneState& lane = lanes[d];
        if (lane.previousEnd >= 0 && start > lane.previousEnd)
            attributeGap(program, timeline, t, lane.previousEnd, start - lane.previousEnd, metrics.idleCauses[d]);
        // Blocks that overlap keep the device busy once.
        const Nanoseconds busy = std::max<Nanoseconds>(0, end - std::max(start, lane.previousEnd));
        lane.previousEnd = std::max(lane.previousEnd, end);
        metrics.devices[d].busy += busy;
        if (task.kind == TaskKind::Compute) {
            lane.first = std::min(lane.first, start);
            lane.last = std::max(lane.last, end);
            lane.compute += busy;
        } else {
            lane.first = std::min(lane.first, start);
        }
    }
    metrics.makespan = finish > begin ? finish - begin : 0;

    Nanoseconds compute = 0, workOfLongestSpan = 0;
    for (std::size_t d = 0; d < devices; ++d) {
        const LaneState& lane = lanes[d];
        DeviceMetrics& device = metrics.devices[d];
        device.idle = metrics.makespan - device.busy;
        device.span = std::max<Nanoseconds>(0, lane.last - lane.first);
        device.peakActivations = program.devices[d].peakActivations;
        device.peakBytes = program.devices[d].peakBytes;
        if (!timeline.memory.empty() && !timeline.memory[d].empty())
            device.peakBytes = std::max_element(timeline.memory[d].begin(), timeline.memory[d].end(),
                                                [](const auto& a, const auto& b) { return a.bytes < b.bytes; })
                                   ->bytes;
        if (device.span > metrics.span) {
            metrics.span = device.span;
            workOfLongestSpan = 0;
        }
        if (device.span == metrics.span)
            workOfLongestSpan = std::max(workOfLongestSpan, lane.compute);
        metrics.ideal = std::max(metrics.ideal, lane.compute);
        compute += lane.compute;
        IdleCauses& causes = metrics.idleCauses[d];
        causes.warmUp = lane.previousEnd < 0 ? device.idle : lane.first - begin;
        causes.coolDown = lane.previousEnd < 0 ? 0 : finish - lane.previousEnd;
    }
    if (metrics.makespan > 0 && devices > 0)
        metrics.rateMakespan = 1.0 - static_cast<double>(compute) / (static_cast<double>(metrics.makespan) * static_cast<double>(devices));
    if (metrics.span > 0)
        metrics.rateSpan = static_cast<double>(metrics.span - workOfLongestSpan) / static_cast<double>(metrics.span);
    if (metrics.ideal > 0)
        metrics.ratioIdeal = static_cast<double>(metrics.makespan - metrics.ideal) / static_cast<double>(metrics.ideal);
    return metrics;
}

} // namespace pipewright
