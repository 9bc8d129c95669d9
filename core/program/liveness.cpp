// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/liveness.h"

#include "core/base/parallelfor.h"
#include "core/base/prefetch.h"
#include "core/program/overlaps.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace pipewright {

namespace {

bool isPersistent(BufferKind kind)
{
    return kind == BufferKind::Parameters || kind == BufferKind::Gradients || kind == BufferKind::OptimizerState;
}

/// What the walk needs of a buffer, close together.
struct BufferUse {
    TaskId local = none;    ///< with which the last use on its device ends, or its definition; none: never freed
    TaskId transfer = none; ///< the last one that sends it; none: never sent
    Bytes bytes = 0;
};

/// Writes the lists of some consecutive devices. What a device does follows from its own tasks alone, so several
/// projectors of different devices may work at the same time.
class Projector {
public:
    /// `partner`: see overlapPartners().
    Projector(const Program& program, const std::vector<TaskId>& partner, int firstDevice, int endDevice,
              int outstandingSends)
        : m_program(program), m_partner(partner), m_firstDevice(firstDevice),
          m_devices(static_cast<std::uint32_t>(endDevice - firstDevice)),
          m_outstanding(static_cast<std::size_t>(outstandingSends)), m_lanes(m_devices)
    {
    }

    [[gnu::flatten]] void run()
    {
        gatherUses();
        for (Lane& lane : m_lanes) {
            lane.instructions.reserve(lane.expected);
            lane.liveBytes.reserve(lane.expected);
            lane.live = lane.peak = lane.persistent;
        }
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            Lane* const here = laneOf(task.device);
            switch (task.kind) {
            case TaskKind::Compute:
                if (here != nullptr)
                    compute(*here, t, task);
                break;
            case TaskKind::Transfer: transfer(here, laneOf(task.peer), t, task); break;
            case TaskKind::Reduce:
            case TaskKind::ReplicaSum:
                endLoop();
                reduce(t, task);
                break;
            case TaskKind::Update:
            case TaskKind::PutInPlace:
            case TaskKind::SetOut:
                endLoop();
                if (here != nullptr)
                    update(*here, t);
                break;
            }
        }
        if (m_program.versioned())
            drainChannels();
    }

    /// Moves the lists to where they belong.
    void finish(std::vector<Program::Device>& devices)
    {
        for (std::size_t i = 0; i < m_lanes.size(); ++i) {
            Program::Device& device = devices[static_cast<std::size_t>(m_firstDevice) + i];
            device.instructions = std::move(m_lanes[i].instructions);
            device.liveBytes = std::move(m_lanes[i].liveBytes);
            device.persistentBytes = m_lanes[i].persistent;
            device.peakBytes = m_lanes[i].peak;
            device.peakActivations =
                static_cast<double>(m_lanes[i].mostChunks) / (m_program.chunks * m_program.sequencePieces);
        }
    }

private:
    /// Sends of one directed pair whose buffers are still to be freed, oldest first.
    struct Channel {
        std::int32_t destination;
        std::vector<TaskId> open;
        std::size_t first = 0;

        void push(TaskId t)
        {
            constexpr std::size_t mostClosed = 64; // kept in front before they are forgotten
            if (first == mostClosed) {
                open.erase(open.begin(), open.begin() + mostClosed);
                first = 0;
            }
            open.push_back(t);
        }
    };
    struct alignas(128) Lane { // found by a shift
        std::vector<Instruction> instructions;
        std::vector<Bytes> liveBytes;
        std::vector<Channel> channels; ///< from here; few destinations each
        std::size_t expected = 0;      ///< instructions
        Bytes persistent = 0, live = 0, peak = 0;
        int liveChunks = 0, mostChunks = 0;
        TaskId lastBlock = 0;
    };

    /// nullptr: another projector's.
    Lane* laneOf(std::int32_t device)
    {
        const auto i = static_cast<std::uint32_t>(device - m_firstDevice); // those before the first wrap round
        return i < m_devices ? &m_lanes[i] : nullptr;
    }

    /// One pass over the tasks and one over the buffers: last uses, sizes, and how long the lists will be. Only of
    /// what concerns these devices.
    void gatherUses()
    {
        m_uses.resize(m_program.buffers.size());
        const BufferId* const operands = m_program.operands.data();
        const auto count = static_cast<TaskId>(m_program.tasks.size());
        for (TaskId t = 0; t < count; ++t) {
            const Task& task = m_program.tasks[t];
            Lane* const here = laneOf(task.device);
            Lane* const there = task.peer != task.device ? laneOf(task.peer) : nullptr;
            if (here == nullptr && there == nullptr)
                continue;
            if (here != nullptr)
                ++here->expected;
            if (there != nullptr)
                ++there->expected;
            const BufferId *operand = operands + m_program.operandBegin[t],
                           *const split = operands + m_program.operandSplit[t],
                           *const end = operands + m_program.operandBegin[t + 1];
            if (task.kind == TaskKind::Transfer) {
                for (; here != nullptr && operand != split; ++operand)
                    noteSend(*operand, t);
                operand = there != nullptr ? split : end;
            }
            for (; operand != end; ++operand)
                m_uses[*operand].local = t;
        }
        for (std::size_t b = 0; b < m_uses.size(); ++b)
            if (Lane* const lane = laneOf(m_program.buffers[b].device))
                noteBuffer(*lane, m_program.buffers[b], m_uses[b]);
    }

    void noteSend(BufferId b, TaskId t)
    {
        if (m_uses[b].transfer != none) {
            m_sentTwice.resize(m_uses.size());
            m_sentTwice[b] = true;
        }
        m_uses[b].transfer = t;
    }

    /// What an overlapped pair uses goes when both are done, the workspace of its first block too.
    void noteBuffer(Lane& lane, const Buffer& buffer, BufferUse& use) const
    {
        use.bytes = buffer.bytes;
        const TaskId other = use.local == none ? none : partner(use.local);
        const bool endsLater = other != none && other > use.local;
        if (endsLater)
            use.local = other;
        if (isPersistent(buffer.kind)) {
            lane.persistent += buffer.bytes;
            use.local = use.transfer = none;
        } else if (buffer.kind == BufferKind::Workspace && !endsLater) {
            use.local = none;
        } else {
            ++lane.expected;
        }
    }

    /// The other block of a task's overlapped pair; none when it has no pair.
    TaskId partner(TaskId t) const { return m_partner.empty() ? none : m_partner[t]; }

    /// Without versions of weights every send is over before gradients are reduced and stages updated.
    void endLoop()
    {
        if (!m_program.versioned() && !std::exchange(m_afterLoop, true))
            drainChannels();
    }

    /// Makes sure that every send of a buffer but its last is over, which that one's end does not say: they are on
    /// other channels. Whatever was sent there before is closed with them.
    void closeOtherSends(Lane& source, BufferId b)
    {
        if (m_sentTwice.empty() || !m_sentTwice[b])
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

    /// The same for what goes after task t, before any of it is noted.
    void closeOtherSendsOf(Lane& source, TaskId t, TaskId end)
    {
        if (m_sentTwice.empty())
            return;
        for (std::size_t i = m_program.operandBegin[t]; i < m_program.operandBegin[t + 1]; ++i) {
            const BufferId b = m_program.operands[i];
            if (m_uses[b].local == end)
                closeOtherSends(source, b);
        }
    }

    /// Notes which operands of task t go after task `end`: used for the last time there, and not sent later.
    void gatherFreed(TaskId t, TaskId end)
    {
        const BufferId* const last = m_program.operands.data() + m_program.operandBegin[t + 1];
        for (const BufferId* b = m_program.operands.data() + m_program.operandBegin[t]; b != last; ++b) {
            const BufferUse& use = m_uses[*b];
            if (use.local == end && (use.transfer == none || use.transfer < end))
                m_freed.push_back(*b);
        }
    }

    /// The buffers that were noted, each once and in order, and none after that.
    template<typename Free>
    void takeFreed(Free free)
    {
        if (m_freed.size() > 1) {
            std::sort(m_freed.begin(), m_freed.end());
            m_freed.erase(std::unique(m_freed.begin(), m_freed.end()), m_freed.end());
        }
        for (const BufferId b : m_freed)
            free(b);
        m_freed.clear();
    }

    /// Appends an instruction that defines `kept` bytes and needs `workspace` more while it runs. The fields
    /// are written where they stay: copying a just-built Instruction reads it in other pieces than it was
    /// written in, which the processor's store buffer cannot forward; that took half of the whole walk.
    [[gnu::always_inline]] static inline void add(Lane& lane, InstructionKind kind, TaskId task, BufferId buffer,
                                                  Bytes kept = 0, Bytes workspace = 0)
    {
        lane.live += kept;
        Instruction& instruction = lane.instructions.emplace_back();
        instruction.kind = kind;
        instruction.task = task;
        instruction.buffer = buffer;
        const Bytes running = lane.live + workspace;
        lane.liveBytes.push_back(running);
        prefetchForWriting(&instruction + 16);
        prefetchForWriting(&lane.liveBytes.back() + 16);
        lane.peak = std::max(lane.peak, running);
    }

    /// A buffer that was sent is freed when its last transfer is over.
    void freeTaken(Lane& here)
    {
        takeFreed([&](BufferId b) { add(here, InstructionKind::Free, m_uses[b].transfer, b, -m_uses[b].bytes); });
    }

    void compute(Lane& here, TaskId t, const Task& task)
    {
        Bytes workspace = 0, kept = 0;
        for (const BufferId b : m_program.writes(t)) {
            const BufferUse& use = m_uses[b];
            (use.local == none ? workspace : kept) += use.bytes;
        }
        if (m_program.shardedStates)
            closeSendsBefore(here, std::exchange(here.lastBlock, t));
        add(here, InstructionKind::Compute, t, none, kept, workspace);
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

    /// May set weights aside, and use up some.
    void update(Lane& here, TaskId t)
    {
        Bytes kept = 0;
        for (const BufferId b : m_program.writes(t))
            kept += m_uses[b].bytes;
        add(here, InstructionKind::Update, t, none, kept);
        closeOtherSendsOf(here, t, t);
        gatherFreed(t, t);
        freeTaken(here);
    }

    static void countActivation(Lane& lane, const Task& task)
    {
        switch (task.op) {
        case Op::F: lane.mostChunks = std::max(lane.mostChunks, ++lane.liveChunks); break;
        case Op::B:
        case Op::W: --lane.liveChunks; break;
        case Op::I:
        case Op::U:
        case Op::R: break;
        }
    }

    void transfer(Lane* source, Lane* destination, TaskId t, const Task& task)
    {
        if (source != nullptr) {
            Channel& channel = channelTo(*source, task.peer);
            while (channel.open.size() - channel.first >= m_outstanding)
                close(*source, channel.open[channel.first++]);
            channel.push(t);
            add(*source, InstructionKind::Send, t, none);
        }
        if (destination != nullptr) {
            Bytes bytes = 0;
            for (const BufferId b : m_program.writes(t))
                bytes += m_uses[b].bytes;
            add(*destination, InstructionKind::Receive, t, none, bytes);
        }
    }

    /// Frees what was waiting for this send. A buffer sent elsewhere later is freed there; here the device
    /// only makes sure that this send is over.
    void close(Lane& source, TaskId t)
    {
        if (!m_sentTwice.empty())
            for (const BufferId b : m_program.reads(t))
                if (m_uses[b].transfer == t && (m_uses[b].local == none || m_uses[b].local < t))
                    closeOtherSends(source, b);
        for (const BufferId b : m_program.reads(t)) {
            const BufferUse& use = m_uses[b];
            if (use.transfer != t)
                add(source, InstructionKind::Free, t, none);
            else if (use.local == none || use.local < t)
                m_freed.push_back(b);
        }
        takeFreed([&](BufferId b) { add(source, InstructionKind::Free, t, b, -m_uses[b].bytes); });
    }

    /// Where states hop from block to block, what a block handed on has the next block's time to leave in: kept any
    /// longer, as many copies would gather on a device as it has others to send to.
    void closeSendsBefore(Lane& source, TaskId block)
    {
        for (std::size_t c = 0; c < source.channels.size(); ++c)
            for (std::size_t& first = source.channels[c].first;
                 first < source.channels[c].open.size() && source.channels[c].open[first] < block;)
                close(source, source.channels[c].open[first++]);
    }

    static Channel& channelTo(Lane& source, int destination)
    {
        for (Channel& channel : source.channels)
            if (channel.destination == destination)
                return channel;
        return source.channels.emplace_back(Channel{destination, {}, 0});
    }

    void drainChannels()
    {
        for (Lane& source : m_lanes)
            for (Channel& channel : source.channels)
                while (channel.first < channel.open.size())
                    close(source, channel.open[channel.first++]);
    }

    void reduce(TaskId t, const Task& task)
    {
        const auto issue = [&](int device) {
            Lane* const lane = laneOf(device);
            if (lane == nullptr)
                return;
            Bytes inbox = 0;
            for (const BufferId b : m_program.writes(t))
                inbox += m_program.buffers[b].device == device ? m_program.buffers[b].bytes : 0;
            add(*lane, InstructionKind::Reduce, t, none, inbox);
        };
        issue(task.device);
        if (task.peer != task.device)
            issue(task.peer);
        gatherFreed(t, t);
        takeFreed([&](BufferId b) {
            if (Lane* const lane = laneOf(m_program.buffers[b].device))
                add(*lane, InstructionKind::Free, none, b, -m_uses[b].bytes);
        });
    }

    const Program& m_program;
    const std::vector<TaskId>& m_partner;
    std::int32_t m_firstDevice;
    std::uint32_t m_devices;
    std::size_t m_outstanding;
    std::vector<Lane> m_lanes; ///< from the first device on
    bool m_afterLoop = false;
    std::vector<BufferUse> m_uses; ///< per buffer; known for those of these devices
    std::vector<bool> m_sentTwice; ///< per buffer: to several devices; empty when none is
    std::vector<BufferId> m_freed; ///< by the present instruction
};

} // namespace

int projectionThreads(const Program& program)
{
    constexpr std::size_t worthAThread = std::size_t{1} << 16; // tasks: starting one takes as long as some thousand
    constexpr std::size_t most = 4;                            // each walks over all tasks
    if (program.tasks.size() < 2 * worthAThread)
        return 1;
    return static_cast<int>(std::min(
        {most, program.tasks.size() / worthAThread, std::size_t{std::max(1u, std::thread::hardware_concurrency())}}));
}

void projectOntoDevices(Program& program, int devices, int outstandingSends, int threads)
{
    program.devices.assign(static_cast<std::size_t>(devices), {});
    const std::vector<TaskId> partner = overlapPartners(program);
    const int parts = std::clamp(threads, 1, devices);
    std::vector<Projector> projectors;
    for (int i = 0; i < parts; ++i)
        projectors.emplace_back(program, partner, devices * i / parts, devices * (i + 1) / parts, outstandingSends);
    parallelFor(projectors.size(), [&](std::size_t i) { projectors[i].run(); });
    for (Projector& projector : projectors)
        projector.finish(program.devices);
}

} // namespace pipewright
