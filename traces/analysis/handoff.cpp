// SPDX-License-Identifier: GPL-3.0-or-later
// Collects the times of transfers and sums per pair and size and fits latency and bandwidth by least squares.
#include "traces/analysis/handoff.h"

#include "core/base/formattedtext.h"
#include "core/predict/busqueues.h"
#include "core/program/replicasums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <tuple>

namespace pipewright {

namespace {

using BySize = std::map<Bytes, std::vector<Nanoseconds>>;

void merge(BySize& all, const BySize& more)
{
    for (const auto& [bytes, times] : more)
        all[bytes].insert(all[bytes].end(), times.begin(), times.end());
}

struct Line {
    double meanBytes = 0, meanSeconds = 0;
    std::optional<double> secondsPerByte; ///< unset: the sizes do not tell it
};

/// Weighted least squares over the medians.
Line lineThrough(const BySize& sizes)
{
    struct Point {
        double bytes, seconds, weight;
    };
    std::vector<Point> points;
    double weight = 0;
    Line line;
    for (const auto& [bytes, times] : sizes) {
        const Point point{static_cast<double>(bytes), static_cast<double>(medianOf(times)) * 1e-9,
                          static_cast<double>(times.size())};
        points.push_back(point);
        weight += point.weight;
        line.meanBytes += point.weight * point.bytes;
        line.meanSeconds += point.weight * point.seconds;
    }
    line.meanBytes /= weight;
    line.meanSeconds /= weight;
    double covariance = 0, variance = 0;
    for (const Point& point : points) {
        const double distance = point.bytes - line.meanBytes;
        covariance += point.weight * distance * (point.seconds - line.meanSeconds);
        variance += point.weight * distance * distance;
    }
    // With sizes that hardly differ, the slope is that of the noise.
    constexpr double alike = 1.5;
    if (static_cast<double>(sizes.rbegin()->first) > alike * static_cast<double>(sizes.begin()->first) && variance > 0)
        line.secondsPerByte = std::max(0.0, covariance / variance);
    return line;
}

/// `otherwise`: where the sizes do not tell the seconds per byte.
LinkCosts fitted(const Line& line, double otherwise)
{
    double secondsPerByte = line.secondsPerByte.value_or(otherwise);
    // A negative latency is extrapolation: take a line through the origin instead.
    if (secondsPerByte * line.meanBytes > line.meanSeconds)
        secondsPerByte = line.meanBytes > 0 ? line.meanSeconds / line.meanBytes : 0;
    LinkCosts link;
    link.bytesPerSecond = secondsPerByte > 0 ? 1 / secondsPerByte : 0;
    link.latency = std::llround((line.meanSeconds - secondsPerByte * line.meanBytes) * 1e9);
    return link;
}

double secondsPerByte(const LinkCosts& link)
{
    return link.bytesPerSecond > 0 ? 1 / link.bytesPerSecond : 0;
}

/// Links that the design takes for alike.
auto kindOf(const LinkCosts& link)
{
    return std::tuple(link.latency, link.bytesPerSecond, link.bus);
}

} // namespace

Handoffs::Handoffs(const Program& program, const Costs& costs)
    : m_program(program), m_costs(costs), m_evaluator(program, Evaluator::Times::Measured),
      m_beforeOnTarget(program.tasks.size(), none)
{
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
    const std::vector<TaskId> before = passedBefore(m_program, timeline); // empty without a bus
    for (TaskId id = 0; id < m_program.tasks.size(); ++id) {
        if (timeline.start[id] == notRun)
            continue;
        const TaskKind kind = m_program.tasks[id].kind;
        const TaskId ahead = before.empty() ? none : before[id];
        if (kind == TaskKind::Transfer)
            addTransfer(id, timeline, ahead);
        else if (kind == TaskKind::ReplicaSum)
            addSum(id, timeline, ahead);
        else if (isHostCopy(kind))
            m_hostCopies[movedBytes(m_program, id)].push_back(timeline.end[id] - timeline.start[id]);
    }
}

void Handoffs::addTransfer(TaskId id, const Timeline& timeline, TaskId before)
{
    const auto endOf = [&](TaskId task) { return task == none ? Nanoseconds{notRun} : timeline.end[task]; };
    Nanoseconds from = timeline.start[id];
    if (const TaskId producer = m_program.afterData[id]; producer != none && timeline.start[producer] != notRun) {
        Nanoseconds free = std::max(timeline.end[producer], endOf(m_beforeOnTarget[id]));
        free = std::max(free, endOf(m_program.afterOnDevice[id]));
        for (const Program::ExtraDependency& extra : m_evaluator.extras(id))
            free = std::max(free, endOf(extra.after));
        // A receive may have waited for long. The transfer cannot begin before its value was made.
        from = std::max(timeline.end[producer], std::min(from, free));
    }
    const Task& task = m_program.tasks[id];
    take({task.device, task.destination()}, movedBytes(m_program, id), from, id, timeline, before);
}

/// A sum sends gradients both ways at once and lasts as long as the slower way, or as both on one bus.
void Handoffs::addSum(TaskId id, const Timeline& timeline, TaskId before)
{
    const Task& task = m_program.tasks[id];
    if (!task.joinsTwoDevices())
        return;
    const ExchangedGradients bytes =
        exchangedGradients(m_program, m_costs.stages[task.stage].gradients, pairOf(m_program, task));
    if (bytes.toOther == 0 && bytes.toRoot == 0)
        return;
    const Nanoseconds from = std::max(timeline.start[id], m_evaluator.ready(id, timeline));
    const int other = task.otherDevice();
    const LinkCosts &there = m_costs.linkBetween(task.device, other), &back = m_costs.linkBetween(other, task.device);
    if (!there.bus.empty() && there.bus == back.bus) {
        take({task.device, other}, bytes.toOther + bytes.toRoot, from, id, timeline, before);
        take({other, task.device}, bytes.toOther + bytes.toRoot, from, id, timeline, before);
        return;
    }
    // Which way is the slower one only the design's links can tell.
    const Nanoseconds thereTime = there.transferTime(bytes.toOther), backTime = back.transferTime(bytes.toRoot);
    if (thereTime >= backTime)
        take({task.device, other}, bytes.toOther, from, id, timeline, before);
    if (backTime >= thereTime)
        take({other, task.device}, bytes.toRoot, from, id, timeline, before);
}

/// `before`: what used the same bus before it. What had to wait for its bus tells the link's time less surely.
void Handoffs::take(Pair pair, Bytes bytes, Nanoseconds from, TaskId task, const Timeline& timeline, TaskId before)
{
    const bool waited = before != none && timeline.end[before] > from;
    if (waited)
        from = std::max(from, timeline.start[task]);
    (waited ? m_waited : m_pairs)[pair][bytes].push_back(std::max<Nanoseconds>(0, timeline.end[task] - from));
}

Handoffs::ByPair Handoffs::measured() const
{
    ByPair pairs = m_pairs;
    for (const auto& [pair, sizes] : m_waited)
        for (const auto& [bytes, times] : sizes)
            pairs[pair].try_emplace(bytes, times);
    return pairs;
}

std::vector<LinkFit> Handoffs::fits() const
{
    std::vector<LinkFit> fits;
    for (const auto& [pair, sizes] : measured())
        for (const auto& [bytes, times] : sizes)
            fits.push_back({pair.first, pair.second, bytes, typicalOf(times)});
    return fits;
}

std::vector<std::string> Handoffs::assignTo(Costs& costs) const
{
    const Costs before = costs;
    const auto take = [](LinkCosts& link, LinkCosts found, const LinkCosts& was, CostOrigin origin) {
        link = std::move(found);
        link.bus = was.bus; // records do not tell the wire
        link.origin = origin;
    };
    if (before.hostLink && !m_hostCopies.empty())
        take(*costs.hostLink, fitted(lineThrough(m_hostCopies), secondsPerByte(*before.hostLink)), *before.hostLink,
             CostOrigin::Measured);
    const ByPair pairs = measured();
    if (pairs.empty())
        return {};
    using Kind = decltype(kindOf(before.link));
    std::map<Kind, BySize> ofKind;
    BySize all;
    for (const auto& [pair, sizes] : pairs) {
        merge(ofKind[kindOf(before.linkBetween(pair.first, pair.second))], sizes);
        merge(all, sizes);
    }
    const double ofAll = lineThrough(all).secondsPerByte.value_or(0);
    std::map<double, std::vector<std::string>> kept; ///< by the design's bandwidth: the pairs that keep it
    /// The seconds per byte of links that carried sizes that do not tell them.
    const auto usual = [&](const LinkCosts& was) {
        if (const auto kind = ofKind.find(kindOf(was)); kind != ofKind.end())
            if (const Line line = lineThrough(kind->second); line.secondsPerByte)
                return *line.secondsPerByte;
        return was.bytesPerSecond > 0 ? secondsPerByte(was) : ofAll;
    };
    const auto estimate = [&](LinkCosts& link, const LinkCosts& was) { // for pairs that were not measured
        if (const auto kind = ofKind.find(kindOf(was)); kind != ofKind.end())
            take(link, fitted(lineThrough(kind->second), usual(was)), was, CostOrigin::Estimated);
    };
    estimate(costs.link, before.link);
    for (std::size_t node = 0; node < costs.nodeLinks.nodes.size(); ++node) {
        estimate(costs.nodeLinks.nodes[node].network, before.nodeLinks.nodes[node].network);
        estimate(costs.nodeLinks.nodes[node].beyondSwitch, before.nodeLinks.nodes[node].beyondSwitch);
    }
    for (auto& [pair, link] : costs.linkOfPair)
        if (!pairs.contains(pair))
            estimate(link, before.linkBetween(pair.first, pair.second));
    for (const auto& [pair, sizes] : pairs) {
        const LinkCosts& was = before.linkBetween(pair.first, pair.second);
        const Line line = lineThrough(sizes);
        LinkCosts& link = costs.linkOfPair[pair];
        take(link, fitted(line, usual(was)), was, CostOrigin::Measured);
        if (!line.secondsPerByte && was.bytesPerSecond > 0 && link.bytesPerSecond == was.bytesPerSecond)
            kept[was.bytesPerSecond].push_back(fmt::format("{} -> {}", pair.first, pair.second));
    }
    std::vector<std::string> notes;
    for (const auto& [bandwidth, names] : kept) {
        constexpr std::size_t shown = 4;
        std::string text = joined(std::span(names).first(std::min(shown, names.size())), ", ");
        if (names.size() > shown)
            text += fmt::format(" and {} more", names.size() - shown);
        notes.push_back(fmt::format("link{} {}: all sizes are alike, which does not tell bandwidth from latency: the "
                                    "design's bandwidth, {:.3g} GB/s, holds, and the rest is latency",
                                    names.size() == 1 ? "" : "s", text, bandwidth * 1e-9));
    }
    return notes;
}

} // namespace pipewright
