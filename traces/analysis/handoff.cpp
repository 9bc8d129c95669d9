// SPDX-License-Identifier: GPL-3.0-or-later
// Collects the times of transfers per pair and size and fits latency and bandwidth by least squares. O(tasks) per step.
#include "traces/analysis/handoff.h"

#include "core/program/replicasums.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

Handoffs::Handoffs(const Program& program)
    : m_program(program), m_bytes(program.tasks.size(), 0), m_beforeOnTarget(program.tasks.size(), none)
{
    for (TaskId id = 0; id < program.tasks.size(); ++id)
        if (program.tasks[id].kind == TaskKind::Transfer)
            m_bytes[id] = movedBytes(program, id);
    for (const Program::Device& device : program.devices) {
        TaskId before = none;
        for (const Instruction& instruction : device.instructions)
            if (instruction.kind == InstructionKind::Receive)
                m_beforeOnTarget[instruction.task] = before;
            else if (instruction.kind == InstructionKind::Compute || instruction.kind == InstructionKind::Update)
                before = instruction.task;
    }
}

void Handoffs::add(const Timeline& timeline)
{
    const auto endOf = [&](TaskId id) { return id == none ? Nanoseconds{notRun} : timeline.end[id]; };
    for (TaskId id = 0; id < m_program.tasks.size(); ++id) {
        if (m_program.tasks[id].kind != TaskKind::Transfer || timeline.start[id] == notRun)
            continue;
        Nanoseconds from = timeline.start[id];
        if (const TaskId producer = m_program.afterData[id]; producer != none && timeline.start[producer] != notRun) {
            Nanoseconds free = std::max(timeline.end[producer], endOf(m_beforeOnTarget[id]));
            free = std::max(free, endOf(m_program.afterOnDevice[id]));
            const auto& extras = m_program.extraDependencies;
            auto extra = std::lower_bound(extras.begin(), extras.end(), id,
                                          [](const Program::ExtraDependency& e, TaskId t) { return e.task < t; });
            for (; extra != extras.end() && extra->task == id; ++extra)
                free = std::max(free, endOf(extra->after));
            // A receive may have waited for long. The transfer cannot begin before its value was made.
            from = std::max(timeline.end[producer], std::min(from, free));
        }
        const Task& task = m_program.tasks[id];
        m_pairs[{task.device, task.peer}][m_bytes[id]].push_back(std::max<Nanoseconds>(0, timeline.end[id] - from));
    }
}

/// `bytesPerSecond`: the bandwidth to assume when these sizes do not determine one; 0: unlimited.
LinkCosts Handoffs::fitOne(const BySize& sizes, double bytesPerSecond)
{
    struct Point {
        double bytes, seconds, weight;
    };
    std::vector<Point> points;
    double weight = 0, meanBytes = 0, meanSeconds = 0;
    for (const auto& [bytes, times] : sizes) {
        const Point point{static_cast<double>(bytes), static_cast<double>(medianOf(times)) * 1e-9,
                          static_cast<double>(times.size())};
        points.push_back(point);
        weight += point.weight;
        meanBytes += point.weight * point.bytes;
        meanSeconds += point.weight * point.seconds;
    }
    meanBytes /= weight;
    meanSeconds /= weight;
    double covariance = 0, variance = 0;
    for (const Point& point : points) {
        const double distance = point.bytes - meanBytes;
        covariance += point.weight * distance * (point.seconds - meanSeconds);
        variance += point.weight * distance * distance;
    }
    double secondsPerByte = bytesPerSecond > 0 ? 1 / bytesPerSecond : 0;
    if (variance > 0)
        secondsPerByte = std::max(0.0, covariance / variance);
    // A negative latency is extrapolation: fit a line through the origin instead.
    if (secondsPerByte * meanBytes > meanSeconds)
        secondsPerByte = meanBytes > 0 ? meanSeconds / meanBytes : 0;
    LinkCosts link;
    link.bytesPerSecond = secondsPerByte > 0 ? 1 / secondsPerByte : 0;
    link.latency = std::llround((meanSeconds - secondsPerByte * meanBytes) * 1e9);
    return link;
}

std::vector<LinkFit> Handoffs::fits() const
{
    std::vector<LinkFit> fits;
    for (const auto& [pair, sizes] : m_pairs)
        for (const auto& [bytes, times] : sizes)
            fits.push_back({pair.first, pair.second, bytes, typicalOf(times)});
    return fits;
}

void Handoffs::assignTo(Costs& costs) const
{
    if (m_pairs.empty())
        return;
    BySize all;
    for (const auto& [pair, sizes] : m_pairs)
        for (const auto& [bytes, times] : sizes)
            all[bytes].insert(all[bytes].end(), times.begin(), times.end());
    const Costs before = costs;
    const auto take = [](LinkCosts& link, LinkCosts fitted, const LinkCosts& was, CostOrigin origin) {
        link = std::move(fitted);
        link.bus = was.bus; // records do not tell the wire
        link.origin = origin;
    };
    take(costs.link, fitOne(all, 0), before.link, CostOrigin::Estimated); // for pairs that were not measured
    costs.linkOfPair.clear();
    for (const auto& [pair, sizes] : m_pairs)
        take(costs.linkOfPair[pair], fitOne(sizes, costs.link.bytesPerSecond),
             before.linkBetween(pair.first, pair.second), CostOrigin::Measured);
}

} // namespace pipewright
