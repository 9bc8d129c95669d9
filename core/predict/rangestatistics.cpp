// SPDX-License-Identifier: GPL-3.0-or-later
// Prefix sums at every 64th task of a device and maxima of every 64 memory samples; a range is the difference of two
// prefixes plus the tasks around its ends.
#include "core/predict/rangestatistics.h"

namespace pipewright {
namespace {

constexpr std::size_t keptEvery = 64; // tasks, and memory samples, between two that are kept

/// The parts of idle time between tasks; a gap has them in this order, see LaneMeter::addGap().
constexpr Nanoseconds IdleCauses::*partsOfGap[] = {&IdleCauses::waitActivation, &IdleCauses::waitGradient,
                                                   &IdleCauses::transfer,       &IdleCauses::copies,
                                                   &IdleCauses::other,          &IdleCauses::host};
constexpr Nanoseconds IdleCauses::*allCauses[] = {
    &IdleCauses::warmUp, &IdleCauses::waitActivation, &IdleCauses::waitGradient, &IdleCauses::transfer,
    &IdleCauses::copies, &IdleCauses::other,          &IdleCauses::host,         &IdleCauses::coolDown};

} // namespace

double RangeStatistics::busyShare(std::size_t device) const
{
    return length() > 0 ? static_cast<double>(devices[device].busy) / static_cast<double>(length()) : 0;
}

double RangeStatistics::busyShare() const
{
    const double all = static_cast<double>(length()) * static_cast<double>(devices.size());
    return all > 0 ? static_cast<double>(total().busy) / all : 0;
}

RangeStatistics::Device RangeStatistics::total() const
{
    Device sum;
    for (const Device& device : devices) {
        sum.busy += device.busy;
        for (std::size_t op = 0; op < opCount; ++op)
            sum.perOp[op] += device.perOp[op];
        for (const auto cause : allCauses)
            sum.causes.*cause += device.causes.*cause;
        sum.peak = std::max(sum.peak, device.peak);
    }
    return sum;
}

int RangeStatistics::fullest() const
{
    int found = -1;
    for (std::size_t d = 0; d < devices.size(); ++d)
        if (devices[d].peak && (found < 0 || devices[d].peak > devices[static_cast<std::size_t>(found)].peak))
            found = static_cast<int>(d);
    return found;
}

RangeIndex::RangeIndex(const Program& program, const Timeline& timeline, const MemoryCurves& memory)
    : m_program(program), m_timeline(timeline), m_memory(memory), m_lanes(program.devices.size())
{
    std::vector<Sums> sums(m_lanes.size());
    ExtraCursor extras(program);
    m_begin = std::numeric_limits<Nanoseconds>::max();
    const auto take = [&](std::size_t device, TaskId task) {
        Lane& lane = m_lanes[device];
        if (lane.tasks.size() % keptEvery == 0)
            lane.before.push_back(sums[device]);
        lane.tasks.push_back(task);
        addTo(sums[device], task, extras);
    };
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        if (timeline.start[t] == notRun)
            continue;
        m_begin = std::min(m_begin, timeline.start[t]);
        m_finish = std::max(m_finish, timeline.end[t]);
        const Task& task = program.tasks[t];
        if (task.kind == TaskKind::Collective) {
            for (std::int32_t member = task.firstMember(); member <= task.lastMember(); ++member)
                take(static_cast<std::size_t>(member), t);
        } else if (!isBesideBlocks(task.kind)) {
            take(static_cast<std::size_t>(task.device), t);
        }
    }
    m_begin = std::min(m_begin, m_finish);
    for (std::size_t d = 0; d < std::min(m_lanes.size(), memory.size()); ++d)
        for (std::size_t i = 0; i < memory[d].size(); ++i) {
            std::vector<Bytes>& peaks = m_lanes[d].peaks;
            if (i % keptEvery == 0)
                peaks.push_back(memory[d][i].bytes);
            peaks.back() = std::max(peaks.back(), memory[d][i].bytes);
        }
}

void RangeIndex::addTo(Sums& sums, TaskId task, ExtraCursor& extras) const
{
    const Task& what = m_program.tasks[task];
    sums.meter.add(m_program, m_timeline, task, isOfBlock(what.kind), extras);
    const Op op = isUpdate(what.kind) ? Op::U : what.op;
    sums.perOp[indexOf(op)] += m_timeline.end[task] - m_timeline.start[task];
}

/// The sums before `time`; a task or gap that contains `time` counts in part.
RangeIndex::Sums RangeIndex::until(const Lane& lane, Nanoseconds time, ExtraCursor& extras) const
{
    // The last stored state whose tasks have all ended by `time`.
    const auto kept = std::partition_point(lane.before.begin(), lane.before.end(),
                                           [time](const Sums& sums) { return sums.meter.previousEnd <= time; });
    if (kept == lane.before.begin())
        return {};
    Sums sums = *std::prev(kept);
    LaneMeter& meter = sums.meter;
    for (auto i = static_cast<std::size_t>(kept - lane.before.begin() - 1) * keptEvery; i < lane.tasks.size(); ++i) {
        const TaskId task = lane.tasks[i];
        const Nanoseconds start = m_timeline.start[task], end = m_timeline.end[task];
        if (start >= time) {
            if (meter.previousEnd < 0)
                return sums;
            LaneMeter next = meter;
            next.add(m_program, m_timeline, task, false, extras);
            Nanoseconds left = time - meter.previousEnd;
            for (const auto part : partsOfGap) {
                const Nanoseconds taken = std::clamp<Nanoseconds>(next.causes.*part - meter.causes.*part, 0, left);
                meter.causes.*part += taken;
                left -= taken;
            }
            return sums;
        }
        if (end <= time) {
            addTo(sums, task, extras);
            continue;
        }
        LaneMeter next = meter;
        next.add(m_program, m_timeline, task, false, extras);
        meter.causes = next.causes; // the gap before it
        meter.busy += time - std::max(start, std::min(meter.previousEnd, time));
        meter.first = std::min(meter.first, start);
        meter.previousEnd = time;
        sums.perOp[indexOf(isUpdate(m_program.tasks[task].kind) ? Op::U : m_program.tasks[task].op)] += time - start;
    }
    return sums;
}

std::optional<Bytes> RangeIndex::peak(std::size_t device, Nanoseconds from, Nanoseconds to) const
{
    if (device >= m_memory.size() || m_memory[device].empty())
        return std::nullopt;
    const std::vector<MemorySample>& samples = m_memory[device];
    const auto startsBy = [&](Nanoseconds time) {
        return static_cast<std::size_t>(std::partition_point(samples.begin(), samples.end(),
                                                             [time](const MemorySample& s) { return s.time <= time; })
                                        - samples.begin());
    };
    // The sample before `from` gives the bytes live at `from`.
    std::size_t i = startsBy(from);
    i -= i > 0;
    const std::size_t end = std::max(i + 1, startsBy(to - 1));
    Bytes most = 0;
    while (i < end) {
        const bool whole = i % keptEvery == 0 && i + keptEvery <= end;
        most = std::max(most, whole ? m_lanes[device].peaks[i / keptEvery] : samples[i].bytes);
        i += whole ? keptEvery : 1;
    }
    return most;
}

RangeStatistics RangeIndex::between(Nanoseconds from, Nanoseconds to) const
{
    RangeStatistics result;
    result.from = std::clamp(from, m_begin, m_finish);
    result.to = std::clamp(to, result.from, m_finish);
    result.devices.resize(m_lanes.size());
    ExtraCursor extras(m_program);
    for (std::size_t d = 0; d < m_lanes.size(); ++d) {
        const Lane& lane = m_lanes[d];
        const Sums before = until(lane, result.from, extras), after = until(lane, result.to, extras);
        RangeStatistics::Device& device = result.devices[d];
        device.busy = after.meter.busy - before.meter.busy;
        for (std::size_t op = 0; op < opCount; ++op)
            device.perOp[op] = after.perOp[op] - before.perOp[op];
        for (const auto part : partsOfGap)
            device.causes.*part = after.meter.causes.*part - before.meter.causes.*part;
        if (lane.tasks.empty()) {
            device.causes.warmUp = result.length();
        } else {
            const Nanoseconds first = m_timeline.start[lane.tasks.front()];
            device.causes.warmUp = std::max<Nanoseconds>(0, std::min(first, result.to) - result.from);
            device.causes.coolDown = std::max<Nanoseconds>(0, result.length() - device.busy - device.causes.sum());
        }
        if (result.length() > 0)
            device.peak = peak(d, result.from, result.to);
    }
    return result;
}

} // namespace pipewright
