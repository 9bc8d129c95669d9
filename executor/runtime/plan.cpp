// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the tasks makes the transfers and links. One pass over each device's instructions resolves buffers,
// arrivals and where sums are posted. O(tasks + instructions), plus for each reduction a walk back to its stage's last
// block.
#include "executor/runtime/plan.h"

#include "core/base/diagnostic.h"
#include "core/program/overlaps.h"
#include "core/program/replicasums.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace pipewright {

namespace {

class Planner {
public:
    Planner(const Program& program, std::span<const Region> regions, StageWork& work)
        : m_program(program), m_regions(regions), m_work(work), m_transferOfTask(program.tasks.size(), -1),
          m_arrivalOfBuffer(program.buffers.size(), -1), m_sumOfTask(program.tasks.size(), -1),
          m_partner(overlapPartners(program))
    {
        const BufferKind summed =
            program.sharesGradientsOfReplicas() ? BufferKind::WholeGradients : BufferKind::Gradients;
        for (BufferId b = 0; b < program.buffers.size(); ++b)
            if (program.buffers.kind(b) == summed)
                m_gradients.try_emplace({program.buffers[b].stage, program.buffers[b].replica}, b);
    }

    Plan run(std::vector<std::vector<BufferLife>> lifetimes)
    {
        addTransfers();
        for (const auto& dependency : m_program.extraDependencies) {
            if (dependency.after == none) {
                Nanoseconds& pin = m_pins[dependency.task];
                pin = std::max(pin, dependency.earliestStart);
            } else if (m_program.tasks[dependency.task].kind == TaskKind::Transfer && !m_program.blocks()
                       && m_program.tasks[dependency.after].kind != TaskKind::Transfer) {
                m_plan.transfers[m_transferOfTask[dependency.task]].behindBlocks = true;
            }
        }
        for (std::size_t d = 0; d < m_program.devices.size(); ++d)
            m_plan.devices.push_back(planDevice(static_cast<int>(d), std::move(lifetimes[d])));
        return std::move(m_plan);
    }

    std::vector<PlannedLink> links()
    {
        addTransfers();
        return std::move(m_plan.links);
    }

private:
    void addTransfers()
    {
        for (TaskId task = 0; task < m_program.tasks.size(); ++task) {
            if (m_program.tasks[task].kind == TaskKind::Transfer)
                addTransferTask(task);
            else if (isHostCopy(m_program.tasks[task].kind))
                addHostCopy(task);
            else if (isReduction(m_program.tasks[task].kind))
                addReduction(task);
        }
    }

    BufferView view(BufferId buffer) const { return {buffer, m_program.buffers[buffer], m_regions[buffer]}; }

    static Region partOf(const Region& region, const ReplicaShare& bytes)
    {
        return {region.data != nullptr ? region.data + bytes.begin : nullptr, bytes.count()};
    }

    std::vector<Region> regionsOf(std::span<const BufferId> buffers) const
    {
        std::vector<Region> regions;
        for (const BufferId buffer : buffers)
            regions.push_back(m_regions[buffer]);
        return regions;
    }

    int linkBetween(int from, int to)
    {
        const auto [found, isNew] = m_linkOfPair.emplace(std::pair(from, to), static_cast<int>(m_plan.links.size()));
        if (isNew)
            m_plan.links.push_back({from, to, 0, 0});
        return found->second;
    }

    int addTransfer(TaskId task, int from, int to, std::vector<Region> source, std::vector<Region> destination)
    {
        const int link = linkBetween(from, to);
        PlannedLink& planned = m_plan.links[link];
        ++planned.postings;
        const Bytes bytes = std::accumulate(source.begin(), source.end(), Bytes{0},
                                            [](Bytes sum, const Region& region) { return sum + region.bytes; });
        planned.largest = std::max(planned.largest, bytes);
        m_plan.transfers.push_back({task, from, to, link, std::move(source), std::move(destination), false});
        return static_cast<int>(m_plan.transfers.size()) - 1;
    }

    void addTransferTask(TaskId id)
    {
        const Task& task = m_program.tasks[id];
        std::vector<Region> from = regionsOf(m_program.reads(id)), to = regionsOf(m_program.writes(id));
        for (std::size_t i = 0; i < to.size(); ++i)
            if (const Buffer& there = m_program.buffers[m_program.writes(id)[i]];
                there.kind == BufferKind::Gradients || there.kind == BufferKind::KeptGradients) {
                const ReplicaShare updated = updatingGradients(m_program, from[i].bytes, there.replica);
                from[i] = partOf(from[i], updated);
                if (there.kind == BufferKind::Gradients)
                    to[i] = partOf(to[i], updated);
            }
        const bool isShare = m_program.bringsParameters(task);
        if (isShare)
            to.front() = partOf(to.front(), gatheredPart(m_program, task.stage,
                                                         m_program.buffers[m_program.reads(id).front()].replica));
        const int transfer = addTransfer(id, task.device, task.destination(), std::move(from), std::move(to));
        m_plan.transfers.back().meets = isShare;
        m_transferOfTask[id] = transfer;
        for (const BufferId buffer : m_program.writes(id))
            if (isShare)
                m_arrivalsOfShares.emplace(buffer, transfer);
            else
                m_arrivalOfBuffer[buffer] = transfer;
    }

    /// A copy between a device and its host memory, which needs no link.
    void addHostCopy(TaskId id)
    {
        const Task& task = m_program.tasks[id];
        m_transferOfTask[id] = static_cast<int>(m_plan.transfers.size());
        m_plan.transfers.push_back(
            {id, task.device, task.device, -1, regionsOf(m_program.reads(id)), regionsOf(m_program.writes(id)), false});
        if (task.kind == TaskKind::Reload)
            for (const BufferId buffer : m_program.writes(id))
                m_arrivalOfBuffer[buffer] = m_transferOfTask[id];
    }

    BufferView gradientsOf(TaskId id, int stage, int replica) const
    {
        if (const auto found = m_gradients.find({stage, replica}); found != m_gradients.end()) {
            BufferView gradients = view(found->second);
            gradients.region = m_work.sharedPart(m_program.tasks[id], gradients);
            return gradients;
        }
        throw Error(m_program.label(id),
                    "has no gradient of stage " + std::to_string(stage) + " in replica " + std::to_string(replica)
                        + " to reduce",
                    "compile the schedule again");
    }

    Region inboxOn(TaskId id, int device) const
    {
        for (const BufferId buffer : m_program.writes(id)) {
            if (m_program.buffers[buffer].kind == BufferKind::ReduceInbox && m_program.buffers[buffer].device == device)
                return m_regions[buffer];
        }
        throw Error(m_program.label(id), "has no inbox on device " + std::to_string(device),
                    "compile the schedule again");
    }

    /// For an optimizer state sharded over replicas: the regions that the root and the other device send. Each sends
    /// the part of the gradients that its receiver keeps.
    std::pair<Region, Region> sentApart(TaskId id) const
    {
        const Task& task = m_program.tasks[id];
        const ReplicaPair pair = pairOf(m_program, task);
        const BufferView root = gradientsOf(id, task.stage, pair.root), other = gradientsOf(id, task.stage, pair.other);
        const Bytes whole = root.description.bytes;
        return {partOf(root.region, summedGradients(m_program, whole, pair, pair.other)),
                partOf(other.region, summedGradients(m_program, whole, pair, pair.root))};
    }

    void addReduction(TaskId id)
    {
        const Task& task = m_program.tasks[id];
        // A reduction over two stages stays within its replica.
        BufferView root = gradientsOf(id, task.stage, rootReplica(m_program, task));
        BufferView other = gradientsOf(id, task.otherStage(), task.replica);
        const bool scatters = m_program.sharesOptimizer() && task.kind == TaskKind::ReplicaSum;
        if (scatters) { // each side keeps one part and receives the other's values of it
            const ReplicaPair pair = pairOf(m_program, task);
            const Bytes whole = root.description.bytes;
            root.region = partOf(root.region, summedGradients(m_program, whole, pair, pair.root));
            other.region = partOf(other.region, summedGradients(m_program, whole, pair, pair.other));
        }
        m_plan.reductions.emplace(id, std::pair(root, other));
        if (!task.joinsTwoDevices())
            return;
        const int there = task.otherDevice();
        const Region rootInbox = inboxOn(id, task.device);
        const Region otherInbox = inboxOn(id, there);
        // The inbox has the size of the shared parameter; exactly that much is sent.
        Region fromRoot{root.region.data, std::min(root.region.bytes, otherInbox.bytes)};
        Region fromOther{other.region.data, std::min(other.region.bytes, rootInbox.bytes)};
        if (scatters)
            std::tie(fromRoot, fromOther) = sentApart(id);
        m_transferOfTask[id] = addTransfer(id, task.device, there, {fromRoot}, {otherInbox});
        addTransfer(id, there, task.device, {fromOther}, {rootInbox});
        if (scatters)
            return; // the two sides get different parts: no PairSum
        const std::pair devices = std::minmax(task.device, there);
        const auto [found, isNew] = m_pairOfDevices.emplace(devices, m_plan.sumPairs.size());
        if (isNew)
            m_plan.sumPairs.push_back({devices.first, devices.second, 0});
        m_sumOfTask[id] = static_cast<int>(m_plan.sums.size());
        m_plan.sums.push_back({id, found->second, m_plan.sumPairs[found->second].sums++, m_transferOfTask[id]});
    }

    DevicePlan planDevice(int device, std::vector<BufferLife> lifetimes)
    {
        DevicePlan plan;
        plan.lifetimes = std::move(lifetimes);
        m_isAwaited.assign(m_plan.transfers.size(), false);
        const auto& instructions = m_program.devices[device].instructions;
        std::uint32_t nextLifetime = 0;
        std::size_t live = 0;
        std::vector<std::pair<std::size_t, std::uint32_t>> posts; // instruction, sum
        for (std::uint32_t i = 0; i < instructions.size(); ++i) {
            const Instruction& instruction = instructions[i];
            PlannedInstruction planned;
            planned.kind = instruction.kind;
            planned.task = instruction.task;
            planned.acquired.begin = nextLifetime;
            std::size_t transient = 0;
            for (; nextLifetime < plan.lifetimes.size() && plan.lifetimes[nextLifetime].begin == i; ++nextLifetime)
                transient += plan.lifetimes[nextLifetime].transient();
            planned.acquired.end = nextLifetime;
            live += planned.acquired.end - planned.acquired.begin;
            plan.mostLive = std::max(plan.mostLive, live);
            live -= transient;

            switch (instruction.kind) {
            case InstructionKind::Free:
                if (instruction.task != none)
                    planned.send = m_transferOfTask[instruction.task];
                if (instruction.buffer != none) {
                    planned.freed = instruction.buffer;
                    --live;
                    addArrivals(plan, planned, {&instruction.buffer, 1});
                }
                break;
            case InstructionKind::Send: planned.send = m_transferOfTask[instruction.task]; break;
            case InstructionKind::Receive: planned.receive = m_transferOfTask[instruction.task]; break;
            case InstructionKind::Reduce:
                planReduce(planned, device);
                addViews(plan, planned, device);
                addArrivals(plan, planned, m_program.reads(instruction.task));
                if (planned.sum >= 0)
                    placePost(plan, planned, device, posts);
                break;
            case InstructionKind::Collective: break;
            case InstructionKind::Gather:
            case InstructionKind::ReduceGradients:
                throw Error(m_program.label(instruction.task), "needs copies of the pipeline, which are only counted",
                            "make the design without degrees of parallelism to run it");
            case InstructionKind::Offload: planned.send = m_transferOfTask[instruction.task]; break;
            case InstructionKind::Reload: planned.receive = m_transferOfTask[instruction.task]; break;
            case InstructionKind::Compute:
            case InstructionKind::Update:
                addViews(plan, planned, device);
                planPair(planned);
                addArrivals(plan, planned, m_program.reads(instruction.task));
                if (planned.pair == PlannedInstruction::Pair::First)
                    addArrivals(plan, planned, m_program.reads(m_partner[instruction.task]));
                if (const auto pin = m_pins.find(instruction.task); pin != m_pins.end())
                    planned.earliestStart = pin->second;
                break;
            }
            plan.instructions.push_back(planned);
        }
        std::stable_sort(posts.begin(), posts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [instruction, sum] : posts) {
            PlannedInstruction::Range& range = plan.instructions[instruction].posts;
            if (range.begin == range.end)
                range.begin = static_cast<std::uint32_t>(plan.posts.size());
            plan.posts.push_back(sum);
            range.end = static_cast<std::uint32_t>(plan.posts.size());
        }
        return plan;
    }

    /// A device's values are complete after the last block of their stage, so the sum is posted there and may overlap
    /// with blocks of other stages; if an earlier reduction changes the values later, it is posted at the Reduce
    /// itself.
    void placePost(const DevicePlan& plan, PlannedInstruction& planned, int device,
                   std::vector<std::pair<std::size_t, std::uint32_t>>& posts) const
    {
        const auto& [root, other] = m_plan.reductions.at(planned.task);
        const BufferView& own = m_program.tasks[planned.task].device == device ? root : other;
        const auto touches = [&](const PlannedInstruction& before) {
            if (before.task == none)
                return false;
            const Task& task = m_program.tasks[before.task];
            return (before.kind == InstructionKind::Compute || before.kind == InstructionKind::Update)
                   && task.stage == own.description.stage && task.replica == own.description.replica;
        };
        const auto changes = [&](const PlannedInstruction& before) {
            if (before.kind != InstructionKind::Reduce)
                return false;
            const auto& [first, second] = m_plan.reductions.at(before.task);
            return first.id == own.id || second.id == own.id;
        };
        planned.postsSum = true;
        for (std::size_t i = plan.instructions.size(); i-- > 0;) {
            if (changes(plan.instructions[i]))
                return;
            if (touches(plan.instructions[i])) {
                planned.postsSum = false;
                posts.emplace_back(i, static_cast<std::uint32_t>(planned.sum));
                return;
            }
        }
    }

    void planReduce(PlannedInstruction& planned, int device)
    {
        const int fromRoot = m_transferOfTask[planned.task];
        if (fromRoot < 0)
            return;
        planned.sum = m_sumOfTask[planned.task];
        const bool isRoot = m_program.tasks[planned.task].device == device;
        planned.send = isRoot ? fromRoot : fromRoot + 1;
        planned.receive = isRoot ? fromRoot + 1 : fromRoot;
    }

    void planPair(PlannedInstruction& planned) const
    {
        if (!m_partner.empty() && m_partner[planned.task] != none)
            planned.pair = planned.task < m_partner[planned.task] ? PlannedInstruction::Pair::First
                                                                  : PlannedInstruction::Pair::Second;
    }

    void addViews(DevicePlan& plan, PlannedInstruction& planned, int device)
    {
        const auto add = [&](std::span<const BufferId> buffers) {
            PlannedInstruction::Range range;
            range.begin = static_cast<std::uint32_t>(plan.views.size());
            for (const BufferId buffer : buffers) {
                if (m_program.buffers[buffer].device == device)
                    plan.views.push_back(view(buffer));
            }
            range.end = static_cast<std::uint32_t>(plan.views.size());
            return range;
        };
        planned.reads = add(m_program.reads(planned.task));
        planned.writes = add(m_program.writes(planned.task));
    }

    void addArrivals(DevicePlan& plan, PlannedInstruction& planned, std::span<const BufferId> buffers)
    {
        if (planned.arrivals.begin == planned.arrivals.end) // else arrivals of a pair's second block are appended
            planned.arrivals.begin = static_cast<std::uint32_t>(plan.arrivals.size());
        const auto add = [&](int transfer) {
            if (transfer < 0 || m_isAwaited[static_cast<std::size_t>(transfer)])
                return;
            m_isAwaited[static_cast<std::size_t>(transfer)] = true;
            plan.arrivals.push_back(static_cast<std::uint32_t>(transfer));
        };
        for (const BufferId buffer : buffers) {
            add(m_arrivalOfBuffer[buffer]);
            for (auto [share, end] = m_arrivalsOfShares.equal_range(buffer); share != end; ++share)
                add(share->second);
        }
        planned.arrivals.end = static_cast<std::uint32_t>(plan.arrivals.size());
    }

    const Program& m_program;
    std::span<const Region> m_regions;
    StageWork& m_work;
    std::vector<int> m_transferOfTask;
    std::vector<int> m_arrivalOfBuffer;
    std::multimap<BufferId, int> m_arrivalsOfShares; ///< of gathered parameters
    std::vector<bool> m_isAwaited; ///< per transfer: by an earlier instruction of the device, whose stream keeps order
    std::vector<int> m_sumOfTask;
    std::vector<TaskId> m_partner;                       ///< see overlapPartners()
    std::map<std::pair<int, int>, BufferId> m_gradients; ///< which reductions add up, by stage and replica
    std::map<std::pair<int, int>, int> m_linkOfPair;
    std::map<std::pair<int, int>, std::size_t> m_pairOfDevices;
    std::map<TaskId, Nanoseconds> m_pins;
    Plan m_plan;
};

} // namespace

Plan planRun(const Program& program, std::span<const Region> regions, std::vector<std::vector<BufferLife>> lifetimes,
             StageWork& work)
{
    return Planner(program, regions, work).run(std::move(lifetimes));
}

std::vector<PlannedLink> planLinks(const Program& program, StageWork& work)
{
    std::vector<Region> sizes;
    sizes.reserve(program.buffers.size());
    for (const Buffer& buffer : program.buffers)
        sizes.push_back({nullptr, buffer.bytes});
    return Planner(program, sizes, work).links();
}

} // namespace pipewright
