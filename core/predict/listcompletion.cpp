// SPDX-License-Identifier: GPL-3.0-or-later
// List scheduling: simulates all devices in time. A device that would be idle takes the unplaced block that can start
// first; among equals a forward (up to the depth that the placed blocks show, at least 1F1B's), then a backward, then
// a weight gradient, which comes first once as many are left over as the placed blocks show. The idea of filling idle
// time with weight gradients is that of zero-bubble pipelining, arXiv 2401.10241. O(blocks x devices).
#include "core/predict/listcompletion.h"

#include "core/schedule/blockinputs.h"
#include "core/schedule/ordergraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace pipewright {

namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

/// The number that orders the microbatches of one operation and stage: backwards of a sequence's pieces run in
/// descending order.
int numberOf(const Schedule& schedule, const Block& block)
{
    const int pieces = schedule.sequencePieces, piece = block.microbatch % pieces;
    return makesActivation(block.op) ? block.microbatch : block.microbatch - piece + (pieces - 1 - piece);
}

/// Unplaced blocks of one operation, stage and replica, by number.
struct Queue {
    std::vector<Block> blocks;
    std::size_t next = 0;
    bool empty() const { return next == blocks.size(); }
    const Block& front() const { return blocks[next]; }
};
using QueueKey = std::tuple<Op, int, int>; // operation, stage, replica

QueueKey keyOf(const Block& block)
{
    return {block.op, block.stage, block.replica};
}

std::map<QueueKey, Queue> queuesOf(const Schedule& schedule)
{
    std::map<QueueKey, Queue> queues;
    for (const Block& block : unplacedBlocks(schedule))
        if (!isRecompute(block.op)) // comes with its backward
            queues[keyOf(block)].blocks.push_back(block);
    for (auto& [key, queue] : queues)
        std::sort(queue.blocks.begin(), queue.blocks.end(),
                  [&](const Block& a, const Block& b) { return numberOf(schedule, a) < numberOf(schedule, b); });
    return queues;
}

/// The schedule with every missing block directly before the next placed block of its operation and stage, if the
/// placed ones are in the order of their numbers. A block without a next one stays missing.
Schedule withGapsFilled(const Schedule& schedule)
{
    std::map<QueueKey, Queue> queues = queuesOf(schedule);
    Schedule filled = schedule;
    for (std::size_t d = 0; d < schedule.order.size(); ++d) {
        std::map<QueueKey, int> last;
        std::set<QueueKey> mixed;
        for (const Block& block : schedule.order[d]) {
            const auto [entry, first] = last.try_emplace(keyOf(block), -1);
            const int number = numberOf(schedule, block);
            if (number < entry->second)
                mixed.insert(keyOf(block));
            entry->second = number;
        }
        std::vector<Block>& lane = filled.order[d];
        lane.clear();
        for (const Block& block : schedule.order[d]) {
            if (const auto queue = queues.find(keyOf(block)); queue != queues.end() && !mixed.contains(keyOf(block)))
                while (!queue->second.empty() && numberOf(schedule, queue->second.front()) < numberOf(schedule, block))
                    lane.push_back(queue->second.blocks[queue->second.next++]);
            lane.push_back(block);
        }
    }
    dropBrokenOverlaps(filled);
    return filled;
}

/// Places the missing half of stage 0 next to its placed half when they must be joined.
Schedule withFirstStageJoined(Schedule schedule)
{
    if (schedule.firstStageMaySplit)
        return schedule;
    std::vector<std::uint8_t> placed(static_cast<std::size_t>(schedule.microbatches), 0);
    const auto half = [](const Block& b) { return b.stage != 0 ? 0 : b.op == Op::I ? 1 : b.op == Op::W ? 2 : 0; };
    for (const auto& lane : schedule.order)
        for (const Block& block : lane)
            placed[block.microbatch] |= static_cast<std::uint8_t>(half(block));
    for (auto& lane : schedule.order) {
        std::vector<Block> joined;
        joined.reserve(lane.size());
        for (const Block& block : lane) {
            const bool alone = half(block) != 0 && placed[block.microbatch] != 3;
            if (alone && block.op == Op::W)
                joined.push_back({Op::I, 0, block.microbatch, block.replica});
            joined.push_back(block);
            if (alone && block.op == Op::I)
                joined.push_back({Op::W, 0, block.microbatch, block.replica});
        }
        lane = std::move(joined);
    }
    return schedule;
}

/// The number of forwards in flight of 1F1B on a device (with several chunks: of Megatron's interleaving).
int usualDepth(const Schedule& schedule, int device)
{
    int first = schedule.stages();
    for (int replica = 0; replica < schedule.replicas(); ++replica)
        for (int s = schedule.stages() - 1; s >= 0; --s)
            if (schedule.placement(replica)[s] == device)
                first = std::min(first, s);
    const int devices = schedule.devices(), behind = std::max(0, devices - 1 - first % devices),
              chunks = schedule.chunks();
    const int single = chunks == 1 ? behind + 1 : 2 * behind + (chunks - 1) * devices + 1;
    return std::max(1, single * schedule.sequencePieces);
}

class ListCompletion {
public:
    ListCompletion(const Design& design, const Schedule& schedule)
        : m_design(design), m_schedule(schedule), m_depth(depthShown(design.schedule)), m_queues(queuesOf(schedule)),
          m_devices(schedule.order.size()), m_end(std::size_t{passCount} * static_cast<std::size_t>(schedule.stages())
                                                      * static_cast<std::size_t>(schedule.microbatches),
                                                  never),
          m_exists(m_end.size(), 0)
    {
        for (const auto& lane : schedule.order)
            for (const Block& block : lane)
                m_exists[cell(block)] = 1;
        for (auto& [key, queue] : m_queues) {
            for (const Block& block : queue.blocks)
                m_exists[cell(block)] = 1;
            m_devices[schedule.deviceOf(queue.front())].queues.push_back(&queue);
        }
        for (std::size_t d = 0; d < m_devices.size(); ++d)
            m_devices[d].owedShown = mostOwed(d);
        for (const Overlap& pair : schedule.overlaps)
            m_firstOfPair.insert(pair.first);
    }

    /// False when it cannot go on: the placed blocks wait for each other.
    bool run()
    {
        std::int64_t left = m_schedule.blocks();
        for (const auto& [key, queue] : m_queues)
            left += static_cast<std::int64_t>(queue.blocks.size());
        while (left > 0) {
            const Choice* best = nullptr;
            for (Device& device : m_devices) {
                if (device.changed)
                    choose(device);
                const Choice& choice = device.choice;
                if (choice.start != never
                    && (best == nullptr
                        || std::tie(choice.beyondDepth, choice.start) < std::tie(best->beyondDepth, best->start)))
                    best = &choice;
            }
            if (best == nullptr)
                return false;
            left -= take(static_cast<std::size_t>(best->device));
        }
        return true;
    }

    std::vector<std::vector<Block>> order() const
    {
        std::vector<std::vector<Block>> lanes;
        for (const Device& device : m_devices)
            lanes.push_back(device.done);
        return lanes;
    }

    /// The first placed block that could not run.
    Block stuckAt() const
    {
        for (std::size_t d = 0; d < m_devices.size(); ++d)
            if (m_devices[d].nextPlaced < m_schedule.order[d].size())
                return m_schedule.order[d][m_devices[d].nextPlaced];
        return {};
    }

private:
    struct Choice {
        bool beyondDepth = false; ///< only when nothing else can be done anywhere
        Nanoseconds start = never;
        int device = -1;
        Queue* queue = nullptr; ///< null: the next placed block
    };
    struct Device {
        std::vector<Block> done;
        std::size_t nextPlaced = 0;
        std::vector<Queue*> queues;
        Nanoseconds free = 0;
        int live = 0, owed = 0, owedShown = -1; ///< forwards and input gradients whose other half is to come
        bool changed = true;
        Choice choice;
    };

    std::size_t cell(const Block& b) const
    {
        return (indexOf(b.op) * static_cast<std::size_t>(m_schedule.stages()) + static_cast<std::size_t>(b.stage))
                   * static_cast<std::size_t>(m_schedule.microbatches)
               + static_cast<std::size_t>(b.microbatch);
    }

    /// The most weight gradients that the placed blocks of a device leave for later; -1: it shows none.
    int mostOwed(std::size_t device) const
    {
        int owed = 0, most = 0;
        bool any = false;
        for (const Block& block : m_design.schedule.order[device]) {
            owed += weightGradsOwed(block.op);
            most = std::max(most, owed);
            any = any || block.op == Op::W;
        }
        return any ? most : -1;
    }

    /// The time at which a block's inputs have arrived; `never` while one has not run.
    Nanoseconds readyAt(const Block& block) const
    {
        Nanoseconds ready = 0;
        const int here = m_schedule.deviceOf(block);
        const auto wait = [&](Op op, int stage, int microbatch) {
            const Block input = m_schedule.block(op, stage, microbatch);
            const Nanoseconds end = m_end[cell(input)];
            const int from = m_schedule.deviceOf(input);
            const Nanoseconds way =
                from == here || end == never
                    ? 0
                    : m_design.costs.linkBetween(from, here).transferTime(m_design.costs.stages[stage].output);
            ready = end == never || ready == never ? never : std::max(ready, end + way);
        };
        const auto exists = [&](Op op, int stage, int microbatch) {
            return m_exists[cell(m_schedule.block(op, stage, microbatch))] != 0;
        };
        forEachInput(m_schedule, m_design.dataflow.skips, block, exists, wait);
        return ready;
    }

    void choose(Device& device)
    {
        const auto index = static_cast<std::size_t>(&device - m_devices.data());
        device.changed = false;
        device.choice = {false, never, static_cast<int>(index), nullptr};
        const std::vector<Block>& placed = m_schedule.order[index];
        if (device.nextPlaced < placed.size()) {
            Nanoseconds ready = readyAt(placed[device.nextPlaced]);
            if (m_firstOfPair.contains(placed[device.nextPlaced])) {
                const Nanoseconds second = readyAt(placed[device.nextPlaced + 1]);
                ready = ready == never || second == never ? never : std::max(ready, second);
            }
            if (ready != never)
                device.choice.start = std::max(device.free, ready);
            if (device.choice.start == device.free)
                return; // placed blocks stay together where nothing keeps them apart
        }
        auto bestRank = std::tuple(device.choice.start, 9, 0, 0);
        for (Queue* queue : device.queues) {
            if (queue->empty())
                continue;
            const Block& block = queue->front();
            if (block.op == Op::W && block.stage == 0 && !m_schedule.firstStageMaySplit)
                continue; // comes with its I
            const Nanoseconds ready = readyAt(block);
            if (ready == never)
                continue;
            const Nanoseconds start = std::max(device.free, ready);
            const bool deep = makesActivation(block.op) && device.live >= m_depth[index];
            const int owedAtMost = device.owedShown >= 0 ? device.owedShown : static_cast<int>(index);
            const int kind = block.op == Op::W ? (device.owed > owedAtMost ? 0 : 3) : makesActivation(block.op) ? 1 : 2;
            if (deep) {
                // Kept as a fallback for when no other block can run on any device.
                if (device.choice.start == never && device.choice.queue == nullptr)
                    device.choice = {true, start, static_cast<int>(index), queue};
                continue;
            }
            // Several chunks: a run of as many microbatches as there are devices, then the next chunk.
            const int run = block.microbatch / std::max(1, m_schedule.devices());
            const int chunk = makesActivation(block.op) ? block.stage : -block.stage;
            const auto rank = std::tuple(start, kind, run, chunk);
            if (rank < bestRank || device.choice.beyondDepth) {
                bestRank = rank;
                device.choice = {false, start, static_cast<int>(index), queue};
            }
        }
    }

    /// Runs the device's choice; returns the number of blocks.
    int take(std::size_t index)
    {
        Device& device = m_devices[index];
        const Choice choice = device.choice;
        std::vector<Block> unit;
        if (choice.queue != nullptr) {
            unit.push_back(choice.queue->blocks[choice.queue->next++]);
            // The first stage's halves follow each other.
            const Block& block = unit.front();
            if (block.op == Op::I && block.stage == 0 && !m_schedule.firstStageMaySplit) {
                Queue& halves = m_queues.at({Op::W, 0, block.replica});
                std::iter_swap(std::find(halves.blocks.begin() + static_cast<std::ptrdiff_t>(halves.next),
                                         halves.blocks.end(), Block{Op::W, 0, block.microbatch, block.replica}),
                               halves.blocks.begin() + static_cast<std::ptrdiff_t>(halves.next));
                unit.push_back(halves.blocks[halves.next++]);
            }
        } else {
            const std::vector<Block>& placed = m_schedule.order[index];
            unit.push_back(placed[device.nextPlaced++]);
            const bool pair = m_firstOfPair.contains(unit.front());
            const auto joined = [&](const Block& next) {
                const Block& last = unit.back();
                return last.op == Op::I && last.stage == 0 && !m_schedule.firstStageMaySplit
                       && next == Block{Op::W, 0, last.microbatch, last.replica};
            };
            if (device.nextPlaced < placed.size() && (pair || joined(placed[device.nextPlaced])))
                unit.push_back(placed[device.nextPlaced++]);
            if (pair && device.nextPlaced < placed.size() && joined(placed[device.nextPlaced]))
                unit.push_back(placed[device.nextPlaced++]);
        }
        // An unplaced recompute goes directly before its backward, or before the backward's pair.
        const std::size_t counted = unit.size();
        for (std::size_t i = 0; i < unit.size(); ++i)
            if (const Block again{Op::R, unit[i].stage, unit[i].microbatch, unit[i].replica};
                makesInputGrad(unit[i].op) && m_schedule.recomputeOf(again.stage).byBlock()
                && m_exists[cell(again)] == 0) {
                m_exists[cell(again)] = 1;
                unit.insert(unit.begin(), again);
                ++i; // the backward has moved on by one
            }
        Nanoseconds time = choice.start;
        for (const Block& block : unit) {
            time += m_design.costs.hostGap(block.op, m_schedule.deviceOf(block))
                    + m_design.costs.duration(block.op, block.stage, block.microbatch);
            m_end[cell(block)] = time;
            device.done.push_back(block);
            device.live += int{makesActivation(block.op)} - int{makesInputGrad(block.op)};
            device.owed += weightGradsOwed(block.op);
            noteConsumers(block);
        }
        device.free = time;
        device.changed = true;
        return static_cast<int>(counted);
    }

    void noteConsumers(const Block& block)
    {
        const std::vector<int>& placement = m_schedule.placement(block.replica);
        const auto note = [&](int stage) {
            if (stage >= 0 && stage < m_schedule.stages())
                m_devices[placement[stage]].changed = true;
        };
        note(block.stage - 1);
        note(block.stage + 1);
        for (const SkipConnection& skip : m_design.dataflow.skips) {
            if (skip.fromStage == block.stage)
                note(skip.toStage);
            if (skip.toStage == block.stage)
                note(skip.fromStage);
        }
    }

    const Design& m_design;
    const Schedule& m_schedule; ///< its order is what counts as placed
    std::vector<int> m_depth;
    std::map<QueueKey, Queue> m_queues;
    std::vector<Device> m_devices;
    std::set<Block> m_firstOfPair;
    std::vector<Nanoseconds> m_end;     ///< per operation, stage and microbatch
    std::vector<std::uint8_t> m_exists; ///< in the completed schedule
};

bool canRun(const Schedule& schedule, std::span<const SkipConnection> skips, Diagnostics* why = nullptr)
{
    Diagnostics diagnostics;
    const OrderGraph graph(schedule, skips, true, diagnostics);
    if (!hasErrors(diagnostics))
        diagnostics = runOrder(graph).stuck;
    if (why != nullptr)
        *why = diagnostics;
    return !hasErrors(diagnostics);
}

} // namespace

std::vector<int> depthShown(const Schedule& schedule)
{
    std::vector<int> depths;
    for (int device = 0; device < schedule.devices(); ++device) {
        int live = 0, most = 0;
        bool backward = false;
        for (const Block& block : schedule.order[device]) {
            live += int{makesActivation(block.op)} - int{makesInputGrad(block.op)};
            most = std::max(most, live);
            backward = backward || makesInputGrad(block.op);
        }
        depths.push_back(backward && most > 0 ? most : std::max(most, usualDepth(schedule, device)));
    }
    return depths;
}

EditResult completeByList(const Design& design)
{
    Diagnostics wrong;
    if (!canRun(design.schedule, design.dataflow.skips, &wrong))
        return {design.schedule, wrong};
    const Schedule joined = withFirstStageJoined(design.schedule);
    const Schedule filled = withFirstStageJoined(withGapsFilled(joined));
    Block stuckAt;
    for (const Schedule* placed : {&filled, &joined}) {
        if (!canRun(*placed, design.dataflow.skips))
            continue;
        ListCompletion completion(design, *placed);
        if (!completion.run()) {
            stuckAt = completion.stuckAt();
            continue;
        }
        Schedule complete = design.schedule;
        complete.family = "custom";
        complete.order = completion.order();
        dropBrokenOverlaps(complete);
        if (const Diagnostics faults = validate(complete, design.dataflow.skips); !hasErrors(faults))
            return {std::move(complete), {}};
    }
    return {
        design.schedule,
        {{Severity::Error, toString(stuckAt), "the placed blocks wait for each other through blocks that are missing",
          fmt::format("move {} to a later place, or return it to the tray", toString(stuckAt))}}};
}

} // namespace pipewright
