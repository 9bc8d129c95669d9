// SPDX-License-Identifier: GPL-3.0-or-later
// Walks each device's blocks and splits every gap backwards from its end: memory, host, transfer, late data. O(tasks
// log tasks).
#include "traces/analysis/idletime.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace pipewright {

std::vector<Nanoseconds> memoryWaits(const Program& program, const Replay& replay)
{
    std::vector<Nanoseconds> waits(program.tasks.size(), 0);
    const Timeline& timeline = replay.measured();
    for (const Program::Device& device : program.devices) {
        Nanoseconds freed = notRun; // when the last awaited buffer since the last block was freed
        for (const Instruction& instruction : device.instructions) {
            if (instruction.kind == InstructionKind::Free) {
                if (instruction.task != none && moves(program.tasks[instruction.task].kind)
                    && replay.recorded(instruction.task))
                    freed = std::max(freed, timeline.end[instruction.task]);
            } else if (instruction.kind == InstructionKind::Compute || instruction.kind == InstructionKind::Update) {
                const TaskId t = instruction.task;
                // A block that began before the buffer was freed did not wait for it.
                if (freed != notRun && replay.recorded(t) && replay.lag[t] > 0 && freed <= timeline.start[t])
                    waits[t] = std::clamp<Nanoseconds>(freed - (timeline.start[t] - replay.lag[t]), 0, replay.lag[t]);
                freed = notRun;
            }
        }
    }
    return waits;
}

namespace {

using Span = std::pair<Nanoseconds, Nanoseconds>;

/// The union as disjoint spans in order.
std::vector<Span> united(std::vector<Span> spans)
{
    std::sort(spans.begin(), spans.end());
    std::vector<Span> result;
    for (const Span& span : spans) {
        if (!result.empty() && span.first <= result.back().second)
            result.back().second = std::max(result.back().second, span.second);
        else
            result.push_back(span);
    }
    return result;
}

Nanoseconds lengthOfAll(const std::vector<Span>& spans)
{
    Nanoseconds total = 0;
    for (const Span& span : spans)
        total += span.second - span.first;
    return total;
}

Nanoseconds common(const std::vector<Span>& a, const std::vector<Span>& b)
{
    Nanoseconds total = 0;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        total += std::max<Nanoseconds>(0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
        a[i].second < b[j].second ? ++i : ++j;
    }
    return total;
}

/// The last dependency that delayed a block's start.
BlockDifference::Why reasonFor(const Program& program, const Replay& replay, const std::vector<Nanoseconds>& memory,
                               TaskId t)
{
    const Timeline& timeline = replay.measured();
    if (replay.lag[t] > 0 && memory[t] * 2 >= replay.lag[t] && memory[t] > 0)
        return BlockDifference::Why::MemoryWait;
    const TaskId device = program.afterOnDevice[t], data = program.afterData[t];
    const Nanoseconds deviceFree = device == none ? 0 : timeline.end[device],
                      dataThere = data == none ? 0 : timeline.end[data];
    // The longest delay after its device was free.
    if (replay.lag[t] > std::max<Nanoseconds>(0, dataThere - deviceFree))
        return BlockDifference::Why::HostGap;
    if (dataThere <= deviceFree)
        return BlockDifference::Why::DeviceBusy;
    if (!moves(program.tasks[data].kind))
        return BlockDifference::Why::LateData;
    const TaskId producer = program.afterData[data];
    const Nanoseconds made = producer == none ? 0 : timeline.end[producer];
    return made > deviceFree && made - deviceFree > dataThere - std::max(made, deviceFree)
               ? BlockDifference::Why::LateData
               : BlockDifference::Why::Transfer;
}

} // namespace

namespace {

/// Calls visit(device, task) for what the devices compute and update, in their order.
template<typename Visit>
void eachOnDevice(const Program& program, Visit visit)
{
    for (std::size_t d = 0; d < program.devices.size(); ++d)
        for (const Instruction& instruction : program.devices[d].instructions)
            if (instruction.kind == InstructionKind::Compute || instruction.kind == InstructionKind::Update)
                visit(d, instruction.task);
}

/// Per task whether the block before it on its device has no record.
std::vector<bool> followMissing(const Program& program, const Replay& replay)
{
    std::vector<bool> follows(program.tasks.size(), false);
    std::size_t device = program.devices.size();
    bool missing = false;
    eachOnDevice(program, [&](std::size_t d, TaskId task) {
        missing = missing && d == device;
        device = d;
        follows[task] = missing;
        missing = !replay.recorded(task);
    });
    return follows;
}

/// Per device whether its last block has no record.
std::vector<bool> endsWithMissing(const Program& program, const Replay& replay)
{
    std::vector<bool> ends(program.devices.size(), false);
    eachOnDevice(program, [&](std::size_t d, TaskId task) { ends[d] = !replay.recorded(task); });
    return ends;
}

/// When the last of the sums of gradients that the task waits for could have begun; nothing when it waits for another
/// task longer.
std::optional<Nanoseconds> lastInputIsSum(const Program& program, const Replay& replay, TaskId task)
{
    TaskId last = none;
    const auto see = [&](TaskId input) {
        if (input != none && (last == none || replay.measured().end[input] >= replay.measured().end[last]))
            last = input;
    };
    see(program.afterData[task]);
    for (const Program::ExtraDependency& extra : replay.extras(task))
        see(extra.after);
    see(program.afterOnDevice[task]);
    if (last == none || !isReduction(program.tasks[last].kind) || !usesLink(program.tasks[last]))
        return std::nullopt;
    return replay.measured().start[last] - std::max<Nanoseconds>(0, replay.lag[last]);
}

/// Backwards from the gap's end: memory, host, pin, transfer, late data.
void split(const Program& program, const Replay& replay, Nanoseconds memory, IdleGap& gap)
{
    const TaskId t = gap.before;
    const Timeline& timeline = replay.measured();
    Nanoseconds left = gap.end - gap.start;
    const auto take = [&](Nanoseconds part) {
        part = std::clamp<Nanoseconds>(part, 0, left);
        left -= part;
        return part;
    };
    gap.memoryWait = take(memory);
    gap.hostGap = take(replay.lag[t] - memory);
    gap.pinned = take(replay.pinWait(t));
    const TaskId data = program.afterData[t];
    if (const std::optional<Nanoseconds> sum = lastInputIsSum(program, replay, t))
        gap.transfer = take(gap.start + left - *sum);
    else if (data != none && moves(program.tasks[data].kind)) {
        const TaskId producer = program.afterData[data];
        gap.transfer = take(timeline.end[data] - (producer == none ? timeline.start[data] : timeline.end[producer]));
    }
    gap.lateData = left;
}

} // namespace

std::vector<IdleGap> idleGaps(const Program& program, const Replay& replay, const std::vector<Nanoseconds>& memory)
{
    const Timeline& timeline = replay.measured();
    Nanoseconds first = notRun, last = 0;
    std::vector<std::vector<TaskId>> blocks(program.devices.size());
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        first = first == notRun ? timeline.start[t] : std::min(first, timeline.start[t]);
        last = std::max(last, timeline.end[t]);
        if (!usesLink(program.tasks[t]) && replay.recorded(t))
            blocks[program.tasks[t].device].push_back(t);
    }
    const std::vector<bool> unclear = followMissing(program, replay);
    const std::vector<bool> lacksEnd = endsWithMissing(program, replay);
    std::vector<IdleGap> gaps;
    for (std::size_t d = 0; d < blocks.size(); ++d) {
        std::sort(blocks[d].begin(), blocks[d].end(), [&](TaskId a, TaskId b) {
            return std::pair(timeline.start[a], a) < std::pair(timeline.start[b], b);
        });
        Nanoseconds free = first;
        for (const TaskId t : blocks[d]) {
            if (timeline.start[t] > free) {
                IdleGap gap;
                gap.device = static_cast<int>(d);
                gap.before = t;
                gap.start = free;
                gap.end = timeline.start[t];
                if (unclear[t])
                    gap.notRecorded = gap.end - gap.start;
                else if (t == blocks[d].front())
                    gap.warmUp = gap.end - gap.start;
                else
                    split(program, replay, memory[t], gap);
                gaps.push_back(gap);
            }
            free = std::max(free, timeline.end[t]);
        }
        if (last > free) {
            IdleGap tail;
            tail.device = static_cast<int>(d);
            tail.start = free;
            tail.end = last;
            (lacksEnd[d] ? tail.notRecorded : tail.coolDown) = last - free;
            gaps.push_back(tail);
        }
    }
    return gaps;
}

IdleGap idleBetween(const std::vector<IdleGap>& gaps, Nanoseconds from, Nanoseconds to)
{
    // The parts of a gap follow one another in this order.
    constexpr Nanoseconds IdleGap::*parts[] = {&IdleGap::warmUp,   &IdleGap::lateData,   &IdleGap::transfer,
                                               &IdleGap::pinned,   &IdleGap::hostGap,    &IdleGap::memoryWait,
                                               &IdleGap::coolDown, &IdleGap::notRecorded};
    IdleGap sum;
    sum.start = from;
    sum.end = to;
    for (auto lane = gaps.begin(); lane != gaps.end();) {
        const auto end = std::partition_point(
            lane, gaps.end(), [device = lane->device](const IdleGap& each) { return each.device == device; });
        for (auto gap = std::partition_point(lane, end, [from](const IdleGap& each) { return each.end <= from; });
             gap != end && gap->start < to; ++gap) {
            Nanoseconds at = gap->start;
            for (const auto part : parts) {
                const Nanoseconds next = at + (*gap).*part;
                sum.*part += std::max<Nanoseconds>(0, std::min(next, to) - std::max(at, from));
                at = next;
            }
        }
        lane = end;
    }
    return sum;
}

std::vector<DeviceExplanation> idleTimes(const Program& program, const Replay& replay, const std::vector<IdleGap>& gaps)
{
    const Timeline& timeline = replay.measured();
    std::vector<DeviceExplanation> devices(program.devices.size());
    std::vector<std::vector<Span>> computing(program.devices.size()), transferring(program.devices.size());
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        const Span span(timeline.start[t], timeline.end[t]);
        if (usesLink(task)) {
            transferring[task.device].push_back(span);
            if (task.joinsTwoDevices())
                transferring[task.otherDevice()].push_back(span);
        } else if (replay.recorded(t)) {
            computing[task.device].push_back(span);
        }
    }
    for (std::size_t d = 0; d < devices.size(); ++d) {
        DeviceExplanation& device = devices[d];
        const std::vector<Span> busy = united(computing[d]), moving = united(transferring[d]);
        device.computing = lengthOfAll(busy);
        device.transferring = lengthOfAll(moving);
        device.overlapped = common(busy, moving);
    }
    for (const IdleGap& gap : gaps) {
        DeviceExplanation& device = devices[gap.device];
        device.warmUp += gap.warmUp;
        device.memoryWait += gap.memoryWait;
        device.hostGap += gap.hostGap;
        device.transfer += gap.transfer;
        device.lateData += gap.lateData;
        device.coolDown += gap.coolDown;
        device.pinned += gap.pinned;
        device.notRecorded += gap.notRecorded;
    }
    return devices;
}

std::vector<BlockDifference> blockDifferences(const Program& program, const Timeline& predicted, const Replay& replay,
                                              const std::vector<Nanoseconds>& memory)
{
    const Timeline& timeline = replay.measured();
    Nanoseconds predictedOrigin = notRun, measuredOrigin = notRun;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (replay.recorded(t) && predicted.start[t] != notRun) {
            predictedOrigin =
                predictedOrigin == notRun ? predicted.start[t] : std::min(predictedOrigin, predicted.start[t]);
            measuredOrigin = measuredOrigin == notRun ? timeline.start[t] : std::min(measuredOrigin, timeline.start[t]);
        }
    std::vector<BlockDifference> differences;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        if (program.tasks[t].kind != TaskKind::Compute || !replay.recorded(t) || predicted.start[t] == notRun)
            continue;
        BlockDifference difference;
        difference.task = t;
        difference.start = (timeline.start[t] - measuredOrigin) - (predicted.start[t] - predictedOrigin);
        difference.duration = (timeline.end[t] - timeline.start[t]) - (predicted.end[t] - predicted.start[t]);
        if (difference.start > 0)
            difference.why = reasonFor(program, replay, memory, t);
        differences.push_back(difference);
    }
    return differences;
}

} // namespace pipewright
