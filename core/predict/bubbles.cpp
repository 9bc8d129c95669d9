// SPDX-License-Identifier: GPL-3.0-or-later
// Adds up busy and idle time per device in one pass over the tasks; an idle interval is split between computing its
// input, moving it and everything else. O(tasks + devices + samples of the memory curves).
#include "core/predict/bubbles.h"

#include "core/predict/lanemeter.h"

#include <algorithm>

namespace pipewright {

std::span<const Program::ExtraDependency> ExtraCursor::of(TaskId task)
{
    const std::size_t count = m_extras.size();
    if (count == 0)
        return {};
    const auto isBefore = [&](std::size_t i) { return m_extras[i].task < task; };
    // The first that is not before the task lies in [low, high].
    std::size_t low = m_at, high = m_at;
    for (std::size_t step = 1; high < count && isBefore(high); step *= 2) {
        low = high + 1;
        high = std::min(count, high + step);
    }
    for (std::size_t step = 1; low > 0 && !isBefore(low - 1); step *= 2) {
        high = low - 1;
        low -= std::min(low, step);
    }
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (isBefore(middle))
            low = middle + 1;
        else
            high = middle;
    }
    m_at = low;
    std::size_t end = low;
    while (end < count && m_extras[end].task == task)
        ++end;
    return m_extras.subspan(low, end - low);
}

void LaneMeter::addGap(const Program& program, const Timeline& timeline, TaskId t, ExtraCursor& extras)
{
    const Nanoseconds from = previousEnd, to = timeline.start[t];
    TaskId arrival = program.afterData[t]; // its input that arrives last
    // Blocking transfers and reductions are also part of the device's order.
    const TaskId before = program.afterOnDevice[t];
    Nanoseconds ready = before == none ? from : std::max(from, timeline.end[before]);
    for (const Program::ExtraDependency& extra : extras.of(t)) {
        ready = std::max(ready, extra.earliestStart);
        if (extra.after != none && extra.when == Program::ExtraDependency::When::Ended
            && (arrival == none || timeline.end[extra.after] > timeline.end[arrival]))
            arrival = extra.after;
    }
    Nanoseconds arrived = from;
    if (arrival != none) {
        if (timeline.start[arrival] == notRun) {
            causes.other += to - from;
            return;
        }
        arrived = std::clamp(timeline.end[arrival], from, to);
        if (isCopyCollective(program.tasks[arrival].kind)) {
            causes.copies += arrived - from;
        } else if (program.tasks[t].kind == TaskKind::Compute) {
            const bool moved = moves(program.tasks[arrival].kind);
            // Waiting for a bus, or for transfers before it in a stream, counts as transfer time.
            const bool queues = !program.busOfLink.empty() || program.communication == Communication::OneStream;
            const TaskId maker = queues ? program.afterData[arrival] : none;
            const Nanoseconds madeAt = !moved                                             ? arrived
                                       : maker != none && timeline.start[maker] != notRun ? timeline.end[maker]
                                                                                          : timeline.start[arrival];
            const Nanoseconds made = std::clamp(madeAt, from, arrived);
            (isBackward(program.tasks[t].op) ? causes.waitGradient : causes.waitActivation) += made - from;
            causes.transfer += arrived - made;
        } else {
            causes.other += arrived - from;
        }
    }
    ready = std::clamp(ready, arrived, to);
    causes.other += ready - arrived;
    causes.host += to - ready;
}

Metrics measure(const Program& program, const Timeline& timeline)
{
    std::vector<LaneMeter> lanes(program.devices.size());
    ExtraCursor extras(program);
    Nanoseconds begin = std::numeric_limits<Nanoseconds>::max(), finish = 0;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        if (timeline.start[t] == notRun)
            continue;
        begin = std::min(begin, timeline.start[t]);
        finish = std::max(finish, timeline.end[t]);
        const Task& task = program.tasks[t];
        if (task.kind == TaskKind::Collective) {
            for (std::int32_t member = task.firstMember(); member <= task.lastMember(); ++member)
                lanes[member].add(program, timeline, t, true, extras);
            continue;
        }
        if (!isBesideBlocks(task.kind))
            lanes[task.device].add(program, timeline, t, task.kind == TaskKind::Compute, extras);
    }
    return summarize(program, timeline, lanes, begin, finish);
}

Metrics summarize(const Program& program, const Timeline& timeline, std::span<const LaneMeter> lanes, Nanoseconds begin,
                  Nanoseconds finish)
{
    Metrics metrics;
    const std::size_t devices = program.devices.size();
    metrics.devices.resize(devices);
    metrics.idleCauses.resize(devices);
    metrics.makespan = finish > begin ? finish - begin : 0;

    Nanoseconds idle = 0, workOfLongestSpan = 0;
    for (std::size_t d = 0; d < devices; ++d) {
        const LaneMeter& lane = lanes[d];
        DeviceMetrics& device = metrics.devices[d];
        device.busy = lane.busy;
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
        idle += device.idle;
        IdleCauses& causes = metrics.idleCauses[d] = lane.causes;
        causes.warmUp = lane.previousEnd < 0 ? device.idle : lane.first - begin;
        causes.coolDown = lane.previousEnd < 0 ? 0 : finish - lane.previousEnd;
    }
    if (metrics.makespan > 0 && devices > 0)
        metrics.rateMakespan =
            static_cast<double>(idle) / (static_cast<double>(metrics.makespan) * static_cast<double>(devices));
    if (metrics.span > 0) {
        metrics.rateSpan = static_cast<double>(metrics.span - workOfLongestSpan) / static_cast<double>(metrics.span);
        metrics.ratePapers = static_cast<double>(metrics.span - metrics.ideal) / static_cast<double>(metrics.span);
    }
    if (metrics.ideal > 0)
        metrics.ratioIdeal = static_cast<double>(metrics.makespan - metrics.ideal) / static_cast<double>(metrics.ideal);
    return metrics;
}

} // namespace pipewright
