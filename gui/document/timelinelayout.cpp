// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/timelinelayout.h"

#include "core/program/overlaps.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace pipewright {
namespace {

// For each stage of each replica, how many stages of the same device come before it.
class Chunks {
public:
    Chunks(const std::vector<int>& deviceOfStage, const std::vector<std::vector<int>>& replicaPlacements, int devices)
        : m_stages(deviceOfStage.size())
    {
        std::vector<int> seen(std::max(devices, 0), 0);
        const auto add = [&](const std::vector<int>& placement) {
            for (const int device : placement) {
                const bool known = device >= 0 && device < devices;
                const int chunk = known ? seen[device]++ : 0;
                m_chunk.push_back(static_cast<std::uint8_t>(std::min(255, chunk)));
            }
        };
        add(deviceOfStage);
        for (const std::vector<int>& placement : replicaPlacements)
            add(placement);
    }

    std::uint8_t of(int stage, int replica) const
    {
        const std::size_t at = m_stages * replica + stage;
        return stage >= 0 && replica >= 0 && at < m_chunk.size() ? m_chunk[at] : 0;
    }

private:
    std::size_t m_stages;
    std::vector<std::uint8_t> m_chunk;
};

} // namespace

std::size_t Lane::firstEndingAfter(double time) const
{
    const auto it = std::partition_point(m_blocks.begin(), m_blocks.end(), [time](const LaneBlock& block) {
        return static_cast<double>(block.end) <= time;
    });
    return it - m_blocks.begin();
}

std::size_t Lane::firstStartingFrom(double time, std::size_t from) const
{
    // Galloping: the answer is usually near, and a paint asks this once per pixel.
    std::size_t step = 1, low = from, high = from;
    while (high < m_blocks.size() && static_cast<double>(m_blocks[high].start) < time) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    high = std::min(high, m_blocks.size());
    const auto it = std::partition_point(
        m_blocks.begin() + static_cast<std::ptrdiff_t>(low), m_blocks.begin() + static_cast<std::ptrdiff_t>(high),
        [time](const LaneBlock& block) { return static_cast<double>(block.start) < time; });
    return it - m_blocks.begin();
}

std::optional<std::size_t> Lane::at(double time) const
{
    const std::size_t index = firstEndingAfter(time);
    if (index < m_blocks.size() && static_cast<double>(m_blocks[index].start) <= time)
        return index;
    return std::nullopt;
}

std::array<double, opCount> Lane::timePerOpUntil(double time, std::size_t from) const
{
    // Blocks do not overlap, so the one under way at `time` is the last that starts before it.
    std::size_t index = firstStartingFrom(time, from);
    if (index > 0 && static_cast<double>(m_blocks[index - 1].end) > time)
        --index;
    std::array<double, opCount> result{};
    for (std::size_t op = 0; op < result.size(); ++op)
        result[op] = static_cast<double>(m_sums[index][op]);
    if (index < m_blocks.size()) {
        const LaneBlock& block = m_blocks[index];
        result[indexOf(block.block.op)] += std::max(0.0, time - static_cast<double>(block.start));
    }
    return result;
}

void Lane::finish()
{
    const auto earlier = [](const LaneBlock& a, const LaneBlock& b) {
        return a.start != b.start ? a.start < b.start : a.end < b.end;
    };
    if (!std::is_sorted(m_blocks.begin(), m_blocks.end(), earlier)) // predictions are
        std::stable_sort(m_blocks.begin(), m_blocks.end(), earlier);
    m_isByTask = std::is_sorted(m_blocks.begin(), m_blocks.end(),
                                [](const LaneBlock& a, const LaneBlock& b) { return a.task < b.task; });
    m_sums.assign(m_blocks.size() + 1, {});
    sum(0);
}

void Lane::sum(std::size_t from)
{
    for (std::size_t i = from; i < m_blocks.size(); ++i) {
        m_sums[i + 1] = m_sums[i];
        m_sums[i + 1][indexOf(m_blocks[i].block.op)] += m_blocks[i].end - m_blocks[i].start;
        m_chunks = std::max(m_chunks, m_blocks[i].chunk + 1);
    }
}

TimelineLayout::TimelineLayout(const Program& program, const Timeline& timeline, int devices)
    : m_lanes(std::max(devices, 0))
{
    const Chunks chunks(program.deviceOfStage, program.replicaPlacements, devices);
    const std::size_t tasks = std::min({program.tasks.size(), timeline.start.size(), timeline.end.size()});
    for (std::size_t i = 0; i < tasks; ++i) {
        const Task& task = program.tasks[i];
        if (isReduction(task.kind))
            addGradientSum(task, {timeline.start[i], timeline.end[i], static_cast<TaskId>(i)});
        if (task.kind != TaskKind::Compute && !isUpdate(task.kind))
            continue;
        // An update that takes no time is bookkeeping and is not shown.
        if (isUpdate(task.kind) && timeline.end[i] == timeline.start[i])
            continue;
        if (timeline.start[i] == notRun || task.device < 0 || task.device >= devices)
            continue;
        LaneBlock block{timeline.start[i], timeline.end[i], static_cast<TaskId>(i), task.block(), 0};
        if (isUpdate(task.kind))
            block.block.op = Op::U;
        block.chunk = chunks.of(task.stage, task.replica);
        m_lanes[task.device].m_blocks.push_back(block);
    }
    // The two of an overlapped pair share their slot side by side, as the papers draw them.
    for (Lane& lane : m_lanes) {
        std::stable_sort(lane.m_blocks.begin(), lane.m_blocks.end(),
                         [](const LaneBlock& a, const LaneBlock& b) { return a.start < b.start; });
        for (std::size_t i = 0; i + 1 < lane.m_blocks.size(); ++i) {
            LaneBlock &first = lane.m_blocks[i], &second = lane.m_blocks[i + 1];
            if (first.task == none || overlapsWith(program, first.task) != second.task || second.start >= first.end)
                continue;
            first.pair = LaneBlock::Pair::First;
            second.pair = LaneBlock::Pair::Second;
            first.end = second.start = first.start + (second.end - first.start) / 2;
        }
    }
    finish();
}

void TimelineLayout::addGradientSum(const Task& task, const LaneSum& sum)
{
    if (sum.start == notRun || sum.end <= sum.start)
        return;
    for (const std::int32_t device : {task.device, task.otherDevice()})
        if (static_cast<std::size_t>(device) < m_lanes.size() && (device == task.device || task.joinsTwoDevices()))
            m_lanes[static_cast<std::size_t>(device)].m_gradientSums.push_back(sum);
}

TimelineLayout TimelineLayout::fromOrder(const Design& design)
{
    TimelineLayout layout;
    const Schedule& schedule = design.schedule;
    layout.m_lanes.resize(schedule.order.size());
    const Chunks chunks(schedule.deviceOfStage, schedule.replicaPlacements, schedule.devices());
    for (std::size_t device = 0; device < schedule.order.size(); ++device) {
        Nanoseconds time = 0;
        for (const Block& block : schedule.order[device]) {
            const bool known = block.stage >= 0 && block.stage < std::ssize(design.costs.stages);
            const Nanoseconds duration = known ? design.costs.duration(block.op, block.stage) : 1'000'000;
            LaneBlock laneBlock{time, time + duration, none, block, 0};
            laneBlock.chunk = chunks.of(block.stage, block.replica);
            layout.m_lanes[device].m_blocks.push_back(laneBlock);
            time += duration;
        }
    }
    layout.finish();
    return layout;
}

void TimelineLayout::markRecomputed(const Design& design)
{
    const Schedule& schedule = design.schedule;
    const auto isInside = [](Recompute recompute) { return recompute.insideBackward(); };
    if (std::none_of(schedule.recompute.begin(), schedule.recompute.end(), isInside))
        return;
    for (Lane& lane : m_lanes)
        for (LaneBlock& block : lane.m_blocks) {
            const int stage = block.block.stage;
            if (stage < 0 || stage >= std::ssize(design.costs.stages) || !makesInputGrad(block.block.op)
                || !isInside(schedule.recomputeOf(stage)))
                continue;
            const StageCosts& costs = design.costs.stages[static_cast<std::size_t>(stage)];
            const auto whole = static_cast<double>(block.block.op == Op::B ? costs.backward : costs.inputGrad);
            block.recomputes = static_cast<std::uint8_t>(
                std::lround(255 * std::clamp(static_cast<double>(costs.recompute) / std::max(1.0, whole), 0.0, 1.0)));
        }
}

void TimelineLayout::finish()
{
    m_blocks = 0;
    m_firstOfLane.clear();
    for (Lane& lane : m_lanes) {
        lane.finish();
        std::stable_sort(lane.m_gradientSums.begin(), lane.m_gradientSums.end(),
                         [](const LaneSum& a, const LaneSum& b) { return a.start < b.start; });
        for (const LaneSum& sum : lane.m_gradientSums)
            m_makespan = std::max(m_makespan, sum.end);
        m_firstOfLane.push_back(static_cast<std::uint32_t>(m_blocks));
        m_blocks += lane.m_blocks.size();
    }
    m_table.assign(std::bit_ceil(std::max<std::size_t>(16, 2 * m_blocks)), 0);
    const std::size_t mask = m_table.size() - 1;
    std::uint32_t number = 0;
    for (const Lane& lane : m_lanes)
        for (const LaneBlock& block : lane.m_blocks) {
            std::size_t slot = Hash()(block.block) & mask;
            while (m_table[slot] != 0)
                slot = (slot + 1) & mask;
            m_table[slot] = ++number;
            m_makespan = std::max(m_makespan, block.end);
        }
}

std::optional<TimelineLayout::Place> TimelineLayout::find(const Block& block) const
{
    if (m_table.empty())
        return std::nullopt;
    const std::size_t mask = m_table.size() - 1;
    for (std::size_t slot = Hash()(block) & mask; m_table[slot] != 0; slot = (slot + 1) & mask) {
        const std::uint32_t number = m_table[slot] - 1;
        const auto lane = static_cast<std::size_t>(std::upper_bound(m_firstOfLane.begin(), m_firstOfLane.end(), number)
                                                   - m_firstOfLane.begin())
                          - 1;
        std::size_t index = number - m_firstOfLane[lane];
        if (static_cast<int>(lane) == m_reordered)
            index = m_now[index];
        if (m_lanes[lane].m_blocks[index].block == block)
            return Place{static_cast<int>(lane), index};
    }
    return std::nullopt;
}

bool TimelineLayout::retime(const TimelineLayout& base, const Prediction& prediction, int device,
                            std::span<const std::uint32_t> positions, TaskId changed)
{
    if (device >= std::ssize(m_lanes) || base.m_lanes[device].m_blocks.size() < positions.size())
        return false;
    const Nanoseconds* start = prediction.timeline.start.data();
    const Nanoseconds* end = prediction.timeline.end.data();
    // Restores the lane that an earlier call reordered.
    if (m_reordered >= 0 && m_reordered != device)
        m_lanes[m_reordered] = base.m_lanes[m_reordered];
    Lane& lane = m_lanes[device];
    lane = base.m_lanes[device];
    m_reordered = device;
    m_now.resize(lane.m_blocks.size());
    std::size_t firstMoved = positions.size();
    for (std::size_t i = 0; i < m_now.size(); ++i) {
        const std::size_t from = i < positions.size() ? positions[i] : i;
        if (from != i)
            firstMoved = std::min(firstMoved, i);
        lane.m_blocks[i] = base.m_lanes[device].m_blocks[from];
        m_now[from] = static_cast<std::uint32_t>(i);
    }
    // Also resets the tasks that the last call changed.
    const TaskId first = std::min(changed, m_changed);
    m_changed = changed;
    m_makespan = 0;
    for (std::size_t i = 0; i < lane.m_blocks.size(); ++i) {
        LaneBlock& block = lane.m_blocks[i];
        LaneBlock* const next = i + 1 < lane.m_blocks.size() ? &lane.m_blocks[i + 1] : nullptr;
        block.start = start[block.task];
        block.end = end[block.task];
        if (block.pair == LaneBlock::Pair::First && next && next->pair == LaneBlock::Pair::Second
            && overlapsWith(prediction.program, block.task) == next->task) {
            block.end = next->start = block.start + (block.end - block.start) / 2;
            next->end = end[next->task];
            ++i;
        } else if (block.pair != LaneBlock::Pair::None) {
            block.pair = LaneBlock::Pair::None; // no longer a pair
            firstMoved = std::min(firstMoved, i);
        }
    }
    for (Lane& each : m_lanes) {
        for (LaneSum& sum : each.m_gradientSums) {
            sum.start = start[sum.task];
            sum.end = end[sum.task];
            m_makespan = std::max(m_makespan, sum.end);
        }
        std::vector<LaneBlock>& blocks = each.m_blocks;
        if (!blocks.empty() && &each == &lane)
            m_makespan = std::max(m_makespan, blocks.back().end);
        if (&each == &lane)
            continue;
        const auto from = each.m_isByTask ? std::partition_point(blocks.begin(), blocks.end(),
                                                                 [first](const LaneBlock& b) { return b.task < first; })
                                          : blocks.begin();
        for (auto block = from; block != blocks.end(); ++block) {
            // Half a slot stays half a slot: the two of a pair begin and end together.
            const Nanoseconds length = block->end - block->start;
            const Nanoseconds begin =
                block->pair == LaneBlock::Pair::Second ? end[block->task] - length : start[block->task];
            if (begin == block->start)
                continue; // most of a lane may stand where it did
            block->start = begin;
            block->end = begin + length;
        }
        if (!blocks.empty())
            m_makespan = std::max(m_makespan, blocks.back().end);
    }
    lane.sum(firstMoved);
    return true;
}

const LaneBlock* TimelineLayout::blockOf(const Block& block) const
{
    const std::optional<Place> place = find(block);
    return place ? &m_lanes[place->device].m_blocks[place->index] : nullptr;
}

std::size_t TimelineLayout::Hash::operator()(const Block& block) const
{
    // Fibonacci mixing; neighbouring stages and microbatches must not collide in the low bits.
    std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(block.microbatch));
    key = key * 0x9e3779b97f4a7c15ull + static_cast<std::uint32_t>(block.stage);
    key = key * 0x9e3779b97f4a7c15ull + static_cast<std::uint32_t>(block.replica) * 8u
          + static_cast<std::uint32_t>(block.op);
    key = key * 0x9e3779b97f4a7c15ull;
    return static_cast<std::size_t>(key ^ (key >> 32));
}

} // namespace pipewright
