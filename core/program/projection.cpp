// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/projection.h"

#include "core/base/prefetch.h"
#include "core/program/overlaps.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

bool isPersistent(BufferKind kind)
{
    return kind == BufferKind::Parameters || kind == BufferKind::Gradients || kind == BufferKind::OptimizerState;
}

/// What the walk needs of a buffer, close together.
struct BufferUse {
    TaskId local = none;    ///< the last task that computes with it, or defines it; none: never freed
    TaskId transfer = none; ///< the last one that sends it; none: never sent
    Bytes bytes = 0;
};

class Projector {
public:
    Projector(Program& program, int devices, int outstandingSends)
        : m_program(program), m_uses(program.buffers.size()), m_outstanding(static_cast<std::size_t>(outstandingSends)),
          m_partner(overlapPartners(program))
    {
        program.devices.assign(static_cast<std::size_t>(devices), {});
        for (Program::Device& device : program.devices)
            m_lanes.push_back({device.instructions, device.liveBytes});
        gatherUses();
        for (std::size_t d = 0; d < program.devices.size(); ++d) {
            m_lanes[d].instructions.reserve(m_lanes[d].expected);
            m_lanes[d].liveBytes.reserve(m_lanes[d].expected);
            m_lanes[d].live = m_lanes[d].peak = program.devices[d].persistentBytes;
        }
    }

    void run()
    {
        bool afterLoop = false;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            if (!afterLoop && !m_program.versioned()
                && (task.kind == TaskKind::Reduce || task.kind == TaskKind::Update)) {
                afterLoop = true;
                drainChannels();
            }
            switch (task.kind) {
            case TaskKind::Compute: compute(t, task); break;
            case TaskKind::Transfer: transfer(t, task); break;
            case TaskKind::Reduce: reduce(t, task); break;
            case TaskKind::Update: update(t, task); break;
            }
        }
        if (m_program.versioned())
            drainChannels();
        for (std::size_t d = 0; d < m_program.devices.size(); ++d) {
            m_program.devices[d].peakBytes = m_lanes[d].peak;
            m_program.devices[d].peakActivations =
                static_cast<double>(m_lanes[d].mostChunks) / (m_program.chunks * m_program.sequencePieces);
        }
    }

private:
    /// Sends of one directed pair whose buffers are still to be freed, oldest first.
    struct Channel {
        std::int32_t destination;
        std::vector<TaskId> open;
        std::size_t first = 0;
    };
    struct Lane {
        std::vector<Instruction>& instructions;
        std::vector<Bytes>& liveBytes;
        std::vector<Channel> channels{}; ///< from here; few destinations each
        std::size_t expected = 0;        ///< instructions
        Bytes live = 0, peak = 0;
        int liveChunks = 0, mostChunks = 0;
        TaskId lastBlock = 0;
    };

    Lane& lane(std::int32_t device) { return m_lanes[static_cast<std::size_t>(device)]; }

    /// One pass over the tasks and one over the buffers: last uses, sizes, and how long the lists will be.
    void gatherUses()
    {
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            ++lane(task.device).expected;
            if (task.peer >= 0 && task.peer != task.device)
                ++lane(task.peer).expected;
            if (task.kind == TaskKind::Transfer)
                for (const BufferId b : m_program.reads(t))
                    noteSend(b, t);
            else
                for (const BufferId b : m_program.reads(t))
                    m_uses[b].local = t;
            for (const BufferId b : m_program.writes(t))
                m_uses[b].local = t;
        }
        for (std::size_t b = 0; b < m_uses.size(); ++b) {
            const Buffer& buffer = m_program.buffers[b];
            BufferUse& use = m_uses[b];
            use.bytes = buffer.bytes;
            // The workspace of a pair's first block is still in use when the second is issued.
            if (isPersistent(buffer.kind)) {
                m_program.devices[static_cast<std::size_t>(buffer.device)].persistentBytes += buffer.bytes;
                use.local = use.transfer = none;
            } else if (buffer.kind == BufferKind::Workspace && endOfPair(use.local) == use.local) {
                use.local = none;
            } else {
                ++lane(buffer.device).expected;
            }
        }
    }

    void noteSend(BufferId b, TaskId t)
    {
        if (m_uses[b].transfer != none) {
            m_sentTwice.resize(m_uses.size());
            m_sentTwice[b] = true;
        }
        m_uses[b].transfer = t;
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
            if (m_uses[b].local != none && endOfPair(m_uses[b].local) == end)
                closeOtherSends(source, b);
        }
    }

    /// The task with which a task ends: what an overlapped pair uses goes when both are done.
    TaskId endOfPair(TaskId t) const
    {
        return t == none || m_partner.empty() || m_partner[t] == none ? t : std::max(t, m_partner[t]);
    }

    /// Notes which operands of task t go after task `end`: used for the last time there, and not sent later.
    void gatherFreed(TaskId t, TaskId end)
    {
        const BufferId* const last = m_program.operands.data() + m_program.operandBegin[t + 1];
        for (const BufferId* b = m_program.operands.data() + m_program.operandBegin[t]; b != last; ++b) {
            const BufferUse& use = m_uses[*b];
            if (use.local != none && endOfPair(use.local) == end && (use.transfer == none || use.transfer < end))
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
    static void add(Lane& lane, InstructionKind kind, TaskId task, BufferId buffer, Bytes kept = 0, Bytes workspace = 0)
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

    void compute(TaskId t, const Task& task)
    {
        Bytes workspace = 0, kept = 0;
        for (const BufferId b : m_program.writes(t)) {
            const BufferUse& use = m_uses[b];
            (use.local == none ? workspace : kept) += use.bytes;
        }
        Lane& here = lane(task.device);
        if (m_program.shardedStates)
            closeSendsBefore(here, std::exchange(here.lastBlock, t));
        add(here, InstructionKind::Compute, t, none, kept, workspace);
        countActivation(here, task);
        const TaskId end = endOfPair(t);
        if (end != t)
            return;
        const bool paired = !m_partner.empty() && m_partner[t] != none;
        if (paired)
            closeOtherSendsOf(here, m_partner[t], end);
        closeOtherSendsOf(here, t, end);
        if (paired)
            gatherFreed(m_partner[t], end);
        gatherFreed(t, end);
        takeFreed([&](BufferId b) { add(here, InstructionKind::Free, m_uses[b].transfer, b, -m_uses[b].bytes); });
    }

    /// May set weights aside, and use up some.
    void update(TaskId t, const Task& task)
    {
        Bytes kept = 0;
        for (const BufferId b : m_program.writes(t))
            kept += m_uses[b].bytes;
        Lane& here = lane(task.device);
        add(here, InstructionKind::Update, t, none, kept);
        closeOtherSendsOf(here, t, t);
        gatherFreed(t, t);
        takeFreed([&](BufferId b) { add(here, InstructionKind::Free, m_uses[b].transfer, b, -m_uses[b].bytes); });
    }

    static void countActivation(Lane& lane, const Task& task)
    {
        if (task.op == Op::F)
            lane.mostChunks = std::max(lane.mostChunks, ++lane.liveChunks);
        else if (task.op == Op::B || task.op == Op::W)
            --lane.liveChunks;
    }

    void transfer(TaskId t, const Task& task)
    {
        Lane& source = lane(task.device);
        Channel& channel = channelTo(source, task.peer);
        while (channel.open.size() - channel.first >= m_outstanding)
            close(source, channel.open[channel.first++]);
        channel.open.push_back(t);
        Bytes bytes = 0;
        for (const BufferId b : m_program.writes(t))
            bytes += m_uses[b].bytes;
        add(source, InstructionKind::Send, t, none);
        add(lane(task.peer), InstructionKind::Receive, t, none, bytes);
    }

    /// Frees what was waiting for this send. A buffer sent elsewhere later is freed there; here the device
    /// only makes sure that this send is over.
    void close(Lane& source, TaskId t)
    {
        if (!m_sentTwice.empty())
            for (const BufferId b : m_program.reads(t))
                if (m_uses[b].transfer == t && (m_uses[b].local == none || endOfPair(m_uses[b].local) < t))
                    closeOtherSends(source, b);
        for (const BufferId b : m_program.reads(t)) {
            const BufferUse& use = m_uses[b];
            if (use.transfer != t)
                add(source, InstructionKind::Free, t, none);
            else if (use.local == none || endOfPair(use.local) < t)
                m_freed.push_back(b);
        }
        takeFreed([&](BufferId b) { add(source, InstructionKind::Free, t, b, -m_uses[b].bytes); });
    }

    /// Where states hop from block to block, what a block handed on has the next block's time to leave in: kept any
    /// longer, as many copies would gather on a device as it has others to send to.
    void closeSendsBefore(Lane& source, TaskId block)
    {
        for (std::size_t c = 0; c < source.channels.size(); ++c)
            for (std::size_t& first = source.channels[c].first; first < source.channels[c].open.size() && source.channels[c].open[first] < block;)
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
        const auto inbox = [&](int device) {
            Bytes bytes = 0;
            for (const BufferId b : m_program.writes(t))
                bytes += m_program.buffers[b].device == device ? m_program.buffers[b].bytes : 0;
            return bytes;
        };
        add(lane(task.device), InstructionKind::Reduce, t, none, inbox(task.device));
        if (task.peer != task.device)
            add(lane(task.peer), InstructionKind::Reduce, t, none, inbox(task.peer));
        gatherFreed(t, t);
        takeFreed([&](BufferId b) {
            add(lane(m_program.buffers[b].device), InstructionKind::Free, none, b, -m_uses[b].bytes);
        });
    }

    Program& m_program;
    std::vector<BufferUse> m_uses; ///< per buffer
    std::size_t m_outstanding;
    std::vector<Lane> m_lanes;
    std::vector<TaskId> m_partner; ///< see overlapPartners()
    std::vector<BufferId> m_freed; ///< by the present instruction
    std::vector<bool> m_sentTwice; ///< per buffer: to several devices; empty when none is
};

} // namespace

void projectOntoDevices(Program& program, int devices, int outstandingSends)
{
    Projector(program, devices, outstandingSends).run();
}

} // namespace pipewright
