// SPDX-License-Identifier: GPL-3.0-or-later
// Liveness in two passes over the global task sequence. The first finds the last use of every buffer, on its own
// device and by a transfer. The second projects: it appends each task to the instruction list of its device (a
// transfer as a send and a receive), frees the buffers whose last use it is, and adds up live bytes and their peak
// (devicepeaks.h). A sent buffer is freed when its send is over; a channel has a limited number of outstanding sends.
// O(tasks + operands), and O(f log f) where f buffers are freed together. Source: JaxPP, arXiv 2412.14374.
#include "core/program/liveness.h"

#include "core/base/parallelfor.h"
#include "core/program/instructionlist.h"
#include "core/program/lastuses.h"
#include "core/program/overlaps.h"
#include "core/program/replicasums.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace pipewright {

namespace {

/// Writes the instruction lists of some consecutive devices. They follow from the tasks of these devices alone, so
/// projectors of different devices may run in parallel.
class Projector {
public:
    /// `partner`: see overlapPartners().
    Projector(const Program& program, const std::vector<TaskId>& partner, int firstDevice, int endDevice,
              int outstandingSends, Lists lists)
        : m_program(program), m_partner(partner), m_firstDevice(firstDevice),
          m_devices(static_cast<std::uint32_t>(endDevice - firstDevice)),
          m_outstanding(static_cast<std::size_t>(outstandingSends)), m_recomputes(!program.recompute.empty()),
          m_lanes(m_devices), m_uses(program, partner)
    {
        for (Lane& lane : m_lanes)
            lane.isWritten = lists == Lists::Written;
    }

    // Everything is inlined except rare cases, which would only add compile time.
    [[gnu::flatten]] void run()
    {
        m_uses.gather([this](std::int32_t device) { return laneOf(device); });
        for (Lane& lane : m_lanes) {
            lane.instructions.reserve(lane.isWritten ? lane.expected : 0);
            lane.liveBytes.reserve(lane.isWritten ? lane.expected : 0);
            lane.begin();
        }
        const TaskId end = endOfBlocks(m_program);
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            Lane* const here = laneOf(task.device);
            switch (task.kind) {
            case TaskKind::Compute:
                if (here != nullptr)
                    compute(*here, t, task);
                break;
            case TaskKind::Transfer: transfer(here, laneOf(task.destination()), t, task); break;
            case TaskKind::Reduce:
            case TaskKind::ReplicaSum:
                if (t >= end)
                    endLoop();
                reduce(t, task);
                break;
            case TaskKind::Update:
            case TaskKind::CopyWeightsIn:
            case TaskKind::CopyWeightsOut:
                if (t >= end)
                    endLoop();
                if (here != nullptr && task.kind == TaskKind::Update) {
                    closeOldest(*here, here->openOffloads, 1);
                    closeSumsOf(*here, task.stage);
                }
                if (here != nullptr)
                    update(*here, t);
                break;
            case TaskKind::Collective: collective(t, task); break;
            case TaskKind::Offload:
                if (here != nullptr)
                    offload(*here, t);
                break;
            case TaskKind::Reload:
                if (here != nullptr)
                    reload(*here, t);
                break;
            case TaskKind::Gather:
                if (here != nullptr)
                    gather(*here, t);
                break;
            case TaskKind::ReduceGradients:
                if (here != nullptr) {
                    add(*here, InstructionKind::ReduceGradients, t, none);
                    if (!m_program.reads(t).empty())
                        here->openSums.push_back(t);
                }
                break;
            }
        }
        if (m_program.versioned())
            drainChannels();
        if (m_program.sharesGradientsOfReplicas())
            freeKeptGradients();
    }

    /// Moves the finished lists into the devices from `first` on.
    void finish(Program::Device* first)
    {
        const int unit = m_program.chunks() * m_program.sequencePieces;
        for (std::size_t i = 0; i < m_lanes.size(); ++i) {
            Program::Device& device = first[i];
            device.instructions = std::move(m_lanes[i].instructions);
            device.liveBytes = std::move(m_lanes[i].liveBytes);
            device.persistentBytes = m_lanes[i].persistent;
            device.peakBytes = m_lanes[i].peak;
            device.hostPeakBytes = m_lanes[i].hostPeak;
            device.peakActivations = static_cast<double>(m_lanes[i].mostChunks) / unit;
        }
    }

private:
    using Lane = InstructionList;

    /// nullptr for a device of another projector.
    Lane* laneOf(std::int32_t device)
    {
        const auto i = static_cast<std::uint32_t>(device - m_firstDevice); // those before the first wrap: large numbers
        return i < m_devices ? &m_lanes[i] : nullptr;
    }

    Bytes bytesOnDevice(BufferId b) const
    {
        const BufferKind kind = m_program.buffers.kind(b); // the persistent ones are there from the start
        return (m_uses.anyOffload() && isInHostMemory(kind)) || isPersistent(kind) ? 0 : m_program.buffers.bytes(b);
    }

    /// The other block of a task's overlapped pair; none when it has no pair.
    TaskId partner(TaskId t) const { return m_partner.empty() ? none : m_partner[t]; }

    /// Without weight versions all sends are completed before gradients are reduced and stages updated.
    void endLoop()
    {
        if (!m_program.versioned() && !std::exchange(m_afterLoop, true))
            drainChannels();
    }

    /// Waits for every send of a buffer except the last one: the others are on other channels and may end later.
    /// Earlier sends on those channels are closed as well.
    [[gnu::noinline]] void closeOtherSends(Lane& source, BufferId b)
    {
        if (!m_uses.isSentTwice(b))
            return;
        for (std::size_t c = 0; c < source.channels.size(); ++c) {
            std::size_t until = 0;
            for (std::size_t i = source.channels[c].first; i < source.channels[c].open.size(); ++i) {
                const auto reads = m_program.reads(source.channels[c].open[i]);
                if (m_uses[b].transfer != source.channels[c].open[i]
                    && std::find(reads.begin(), reads.end(), b) != reads.end())
                    until = i + 1;
            }
            while (source.channels[c].first < until)
                close(source, source.channels[c].open[source.channels[c].first++]);
        }
    }

    /// The same for all operands of task t that are freed after task `end`.
    void closeOtherSendsOf(Lane& source, TaskId t, TaskId end)
    {
        if (!m_uses.anySentTwice())
            return;
        for (std::size_t i = m_program.operandBegin[t]; i < m_program.operandBegin[t + 1]; ++i) {
            const BufferId b = m_program.operands[i];
            if (m_uses[b].local == end)
                closeOtherSends(source, b);
        }
    }

    /// Collects the operands of task t to be freed after task `end`: last used there, and not sent later.
    void gatherFreed(TaskId t, TaskId end)
    {
        const BufferId* const last = m_program.operands.data() + m_program.operandBegin[t + 1];
        for (const BufferId* b = m_program.operands.data() + m_program.operandBegin[t]; b != last; ++b) {
            const LastUse& use = m_uses[*b];
            if (use.local == end && (use.transfer == none || use.transfer < end))
                m_freed.push_back(*b);
        }
    }

    [[gnu::noinline]] void sortFreed()
    {
        std::sort(m_freed.begin(), m_freed.end());
        m_freed.erase(std::unique(m_freed.begin(), m_freed.end()), m_freed.end());
    }

    /// Frees the collected buffers, each once and in ascending order.
    template<typename Free>
    void takeFreed(Free free)
    {
        if (m_freed.size() > 1)
            sortFreed();
        for (const BufferId b : m_freed)
            free(b);
        m_freed.clear();
    }

    [[gnu::always_inline]] static inline void add(Lane& lane, InstructionKind kind, TaskId task, BufferId buffer,
                                                  Bytes kept = 0, Bytes workspace = 0)
    {
        lane.add(kind, task, buffer, kept, workspace);
    }

    /// A sent buffer is freed when its last transfer has ended.
    void freeTaken(Lane& here)
    {
        takeFreed([&](BufferId b) {
            add(here, InstructionKind::Free, m_uses[b].transfer, b, -bytesOnDevice(b));
            if (m_uses.anyOffload() && isInHostMemory(m_program.buffers.kind(b)))
                here.moveOnHost(-m_program.buffers.bytes(b));
        });
    }

    void compute(Lane& here, TaskId t, const Task& task)
    {
        closeOldest(here, here.openOffloads, 1);
        closeOldest(here, here.openSums, 1);
        Bytes workspace = 0, kept = 0;
        for (const BufferId b : m_program.writes(t))
            (m_uses[b].local == none ? workspace : kept) += bytesOnDevice(b);
        if (m_program.shardedStates)
            closeSendsBefore(here, std::exchange(here.lastBlock, t));
        add(here, InstructionKind::Compute, t, none, kept, workspace);
        if (!m_program.hasMembers() || m_program.partOfTask[t] == 0)
            countActivation(here, task);
        const TaskId other = partner(t);
        if (other != none && other > t)
            return;
        if (other != none)
            closeOtherSendsOf(here, other, t);
        closeOtherSendsOf(here, t, t);
        if (other != none)
            gatherFreed(other, t);
        gatherFreed(t, t);
        freeTaken(here);
    }

    /// An update may copy the old weights (a WeightVersion), and may be the last use of a received copy.
    [[gnu::noinline]] void update(Lane& here, TaskId t)
    {
        Bytes kept = 0;
        for (const BufferId b : m_program.writes(t))
            kept += bytesOnDevice(b);
        add(here, InstructionKind::Update, t, none, kept);
        closeOtherSendsOf(here, t, t);
        gatherFreed(t, t);
        freeTaken(here);
    }

    /// Whether a stage has its activations from this block on: where it recomputes all of them, F keeps none.
    bool beginsActivation(const Task& task) const
    {
        const Recompute recompute = m_recomputes ? m_program.recomputeOf(task.stage) : Recompute::None;
        if (!recompute.readsInput())
            return task.op == Op::F;
        return recompute.byBlock() ? task.op == Op::R : makesInputGrad(task.op);
    }

    void countActivation(Lane& lane, const Task& task) const
    {
        if (beginsActivation(task))
            lane.keepChunk();
        if (makesWeightGrad(task.op))
            lane.releaseChunk();
    }

    [[gnu::noinline]] void collective(TaskId t, const Task& task)
    {
        for (std::int32_t member = task.firstMember(); member <= task.lastMember(); ++member)
            if (Lane* const lane = laneOf(member))
                add(*lane, InstructionKind::Collective, t, none);
    }

    [[gnu::noinline]] void offload(Lane& here, TaskId t)
    {
        add(here, InstructionKind::Offload, t, none);
        here.openOffloads.push_back(t);
        for (const BufferId b : m_program.writes(t))
            here.moveOnHost(m_program.buffers.bytes(b));
    }

    [[gnu::noinline]] void reload(Lane& here, TaskId t)
    {
        closeOldest(here, here.openOffloads, 1);
        if (!here.openOffloads.empty() && here.openOffloads.back() == m_program.afterData[t])
            closeOldest(here, here.openOffloads, 0);
        Bytes kept = 0;
        for (const BufferId b : m_program.writes(t))
            kept += bytesOnDevice(b);
        add(here, InstructionKind::Reload, t, none, kept);
    }

    [[gnu::noinline]] void gather(Lane& here, TaskId t)
    {
        Bytes kept = 0;
        for (const BufferId b : m_program.writes(t))
            kept += m_program.buffers.bytes(b);
        add(here, InstructionKind::Gather, t, none, kept);
    }

    /// Waits for the oldest offloads, or sums over copies, and frees what they read until `left` are open.
    /// OffloadTasks::begin() and CopyCollectives::begin() make the next block wait for the same tasks.
    void closeOldest(Lane& here, std::vector<TaskId>& open, std::size_t left)
    {
        while (open.size() > left) {
            close(here, open.front());
            open.erase(open.begin());
        }
    }

    /// Before its update, which waits for them.
    [[gnu::noinline]] void closeSumsOf(Lane& here, int stage)
    {
        for (const TaskId sum : here.openSums)
            if (m_program.tasks[sum].stage == stage)
                close(here, sum);
        std::erase_if(here.openSums, [&](TaskId sum) { return m_program.tasks[sum].stage == stage; });
    }

    /// At the end of the step.
    [[gnu::noinline]] void freeKeptGradients()
    {
        for (BufferId b = 0; b < m_program.buffers.size(); ++b)
            if (m_program.buffers.kind(b) == BufferKind::KeptGradients)
                if (Lane* const lane = laneOf(m_program.buffers[b].device))
                    add(*lane, InstructionKind::Free, none, b, -m_program.buffers.bytes(b));
    }

    void transfer(Lane* source, Lane* destination, TaskId t, const Task& task)
    {
        m_afterLoop = false; // the members' sends for a sum must be waited for as well
        if (source != nullptr) {
            Channel& channel = source->channelTo(task.destination());
            while (channel.open.size() - channel.first >= m_outstanding)
                close(*source, channel.open[channel.first++]);
            channel.push(t);
            add(*source, InstructionKind::Send, t, none);
        }
        if (destination != nullptr) {
            Bytes bytes = 0;
            for (const BufferId b : m_program.writes(t))
                bytes += isThereBeforeTransfers(m_program.buffers.kind(b)) ? 0 : bytesOnDevice(b);
            add(*destination, InstructionKind::Receive, t, none, bytes);
        }
    }

    /// Waits for a send and frees the buffers whose last send it is. A buffer that is sent again later is freed then.
    void close(Lane& source, TaskId t)
    {
        if (m_uses.anySentTwice())
            for (const BufferId b : m_program.reads(t))
                if (m_uses[b].transfer == t && (m_uses[b].local == none || m_uses[b].local < t))
                    closeOtherSends(source, b);
        for (const BufferId b : m_program.reads(t)) {
            const LastUse& use = m_uses[b];
            if (use.transfer != t)
                add(source, InstructionKind::Free, t, none);
            else if (use.local == none || use.local < t)
                m_freed.push_back(b);
        }
        takeFreed([&](BufferId b) { add(source, InstructionKind::Free, t, b, -bytesOnDevice(b)); });
    }

    /// With sharded states, weights that a block passes on are sent during the next block. Waiting any longer would
    /// let as many copies pile up on a device as it has channels.
    [[gnu::noinline]] void closeSendsBefore(Lane& source, TaskId block)
    {
        for (std::size_t c = 0; c < source.channels.size(); ++c)
            for (std::size_t& first = source.channels[c].first;
                 first < source.channels[c].open.size() && source.channels[c].open[first] < block;)
                close(source, source.channels[c].open[first++]);
    }

    [[gnu::noinline]] void drainChannels()
    {
        for (Lane& source : m_lanes)
            for (Channel& channel : source.channels)
                while (channel.first < channel.open.size())
                    close(source, channel.open[channel.first++]);
    }

    [[gnu::noinline]] void reduce(TaskId t, const Task& task)
    {
        const auto issue = [&](int device) {
            Lane* const lane = laneOf(device);
            if (lane == nullptr)
                return;
            Bytes inbox = 0;
            for (const BufferId b : m_program.writes(t))
                inbox += m_program.buffers[b].device == device ? bytesOnDevice(b) : 0;
            add(*lane, InstructionKind::Reduce, t, none, inbox);
        };
        issue(task.device);
        if (task.joinsTwoDevices())
            issue(task.otherDevice());
        gatherFreed(t, t);
        takeFreed([&](BufferId b) {
            if (Lane* const lane = laneOf(m_program.buffers[b].device))
                add(*lane, InstructionKind::Free, none, b, -bytesOnDevice(b));
        });
    }

    const Program& m_program;
    const std::vector<TaskId>& m_partner;
    std::int32_t m_firstDevice;
    std::uint32_t m_devices;
    std::size_t m_outstanding;
    bool m_recomputes;
    std::vector<Lane> m_lanes; ///< per device, from m_firstDevice on
    bool m_afterLoop = false;
    LastUses m_uses;               ///< of these devices' buffers
    std::vector<BufferId> m_freed; ///< to be freed after the present instruction
};

} // namespace

int projectionThreads(const Program& program)
{
    constexpr std::size_t worthAThread = std::size_t{1}
                                         << 16; // tasks; starting a thread costs as much as some thousand tasks
    constexpr std::size_t most = 4;             // each thread reads all tasks
    if (program.tasks.size() < 2 * worthAThread)
        return 1;
    return static_cast<int>(std::min(
        {most, program.tasks.size() / worthAThread, std::size_t{std::max(1u, std::thread::hardware_concurrency())}}));
}

void projectOntoDevices(Program& program, int devices, int outstandingSends, int threads, Lists lists)
{
    program.devices.assign(static_cast<std::size_t>(devices), {});
    const std::vector<TaskId> partner = overlapPartners(program);
    const int parts = std::clamp(threads, 1, devices);
    std::vector<Projector> projectors;
    for (int i = 0; i < parts; ++i)
        projectors.emplace_back(program, partner, devices * i / parts, devices * (i + 1) / parts, outstandingSends,
                                lists);
    parallelFor(projectors.size(), [&](std::size_t i) { projectors[i].run(); });
    for (int i = 0; i < parts; ++i)
        projectors[static_cast<std::size_t>(i)].finish(program.devices.data() + devices * i / parts);
}

std::vector<Program::Device> withLists(const Program& program, int first, int end, int outstandingSends)
{
    const std::vector<TaskId> partner = overlapPartners(program);
    Projector projector(program, partner, first, end, outstandingSends, Lists::Written);
    projector.run();
    std::vector<Program::Device> devices(static_cast<std::size_t>(end - first));
    projector.finish(devices.data());
    return devices;
}

} // namespace pipewright
