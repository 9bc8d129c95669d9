// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/projection.h"

#include "core/program/overlaps.h"

#include <algorithm>

namespace pipewright {

namespace {

bool isPersistent(BufferKind kind)
{
    return kind == BufferKind::Parameters || kind == BufferKind::Gradients || kind == BufferKind::OptimizerState;
}

/// The last compute-like task and the last transfer that use each buffer.
struct LastUses {
    std::vector<TaskId> local;    ///< Compute or Reduce; the defining task when nothing reads it
    std::vector<TaskId> transfer; ///< none: never sent

    explicit LastUses(const Program& program) : local(program.buffers.size(), none), transfer(program.buffers.size(), none)
    {
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const bool sends = program.tasks[t].kind == TaskKind::Transfer;
            for (const BufferId b : program.reads(t))
                (sends ? transfer : local)[b] = t;
            for (const BufferId b : program.writes(t))
                local[b] = t;
        }
    }
};

class Projector {
public:
    Projector(Program& program, int devices, int outstandingSends)
        : m_program(program), m_uses(program), m_outstanding(static_cast<std::size_t>(outstandingSends)),
          m_live(static_cast<std::size_t>(devices), 0), m_liveChunks(static_cast<std::size_t>(devices), 0),
          m_mostChunks(static_cast<std::size_t>(devices), 0), m_channels(static_cast<std::size_t>(devices)),
          m_partner(overlapPartners(program))
    {
        program.devices.assign(static_cast<std::size_t>(devices), {});
        std::vector<std::size_t> instructions = tasksPerDevice();
        m_bytes.reserve(program.buffers.size());
        for (const Buffer& buffer : program.buffers) {
            m_bytes.push_back(buffer.bytes);
            instructions[static_cast<std::size_t>(buffer.device)] += !isPersistent(buffer.kind) && buffer.kind != BufferKind::Workspace;
            if (isPersistent(buffer.kind))
                m_program.devices[static_cast<std::size_t>(buffer.device)].persistentBytes += buffer.bytes;
        }
        for (std::size_t d = 0; d < program.devices.size(); ++d) {
            program.devices[d].instructions.reserve(instructions[d]);
            program.devices[d].liveBytes.reserve(instructions[d]);
            m_live[d] = program.devices[d].peakBytes = program.devices[d].persistentBytes;
        }
        sortFrees();
    }

    void run()
    {
        bool afterLoop = false;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            if (!afterLoop && !m_program.versioned() && (task.kind == TaskKind::Reduce || task.kind == TaskKind::Update)) {
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
        for (std::size_t d = 0; d < m_program.devices.size(); ++d)
            m_program.devices[d].peakActivations =
                static_cast<double>(m_mostChunks[d]) / (m_program.chunks * m_program.sequencePieces);
    }

private:
    /// Sends of one directed pair whose buffers are still to be freed, oldest first.
    struct Channel {
        std::int32_t destination;
        std::vector<TaskId> open;
        std::size_t first = 0;
    };

    /// Instructions other than Free, which come on top: one per buffer.
    std::vector<std::size_t> tasksPerDevice() const
    {
        std::vector<std::size_t> count(m_program.devices.size(), 0);
        for (const Task& task : m_program.tasks) {
            ++count[static_cast<std::size_t>(task.device)];
            if (task.peer >= 0 && task.peer != task.device)
                ++count[static_cast<std::size_t>(task.peer)];
        }
        return count;
    }

    /// The task with which a task ends: what an overlapped pair uses goes when both are done.
    TaskId endOfPair(TaskId t) const
    {
        return t == none || m_partner.empty() || m_partner[t] == none ? t : std::max(t, m_partner[t]);
    }

    /// Buckets the buffers by the task after which they go: a local use, or a transfer.
    void sortFrees()
    {
        const std::size_t count = m_program.buffers.size();
        std::vector<TaskId> freedBy(count);
        m_freeBegin.assign(m_program.tasks.size() + 1, 0);
        for (std::size_t b = 0; b < count; ++b) {
            const BufferKind kind = m_program.buffers[b].kind;
            const TaskId sent = m_uses.transfer[b], used = endOfPair(m_uses.local[b]);
            // The workspace of a pair's first block is still in use when the second is issued.
            const bool transient = kind == BufferKind::Workspace && used == m_uses.local[b];
            freedBy[b] = isPersistent(kind) || transient ? none : sent != none && sent > used ? sent : used;
            if (freedBy[b] != none)
                ++m_freeBegin[freedBy[b] + 1];
        }
        for (std::size_t t = 1; t < m_freeBegin.size(); ++t)
            m_freeBegin[t] += m_freeBegin[t - 1];
        m_freed.resize(m_freeBegin.back());
        std::vector<std::uint32_t> position(m_freeBegin.begin(), m_freeBegin.end() - 1);
        for (std::size_t b = 0; b < count; ++b)
            if (freedBy[b] != none)
                m_freed[position[freedBy[b]]++] = static_cast<BufferId>(b);
    }

    std::span<const BufferId> freedAfter(TaskId t) const
    {
        return {m_freed.data() + m_freeBegin[t], m_freed.data() + m_freeBegin[t + 1]};
    }

    /// Appends an instruction that defines `kept` bytes and needs `workspace` more while it runs. The fields
    /// are written where they stay: copying a just-built Instruction reads it in other pieces than it was
    /// written in, which the processor's store buffer cannot forward; that took half of the whole walk.
    void add(int device, InstructionKind kind, TaskId task, BufferId buffer, Bytes kept = 0, Bytes workspace = 0)
    {
        Program::Device& lane = m_program.devices[static_cast<std::size_t>(device)];
        Bytes& live = m_live[static_cast<std::size_t>(device)];
        live += kept;
        Instruction& instruction = lane.instructions.emplace_back();
        instruction.kind = kind;
        instruction.task = task;
        instruction.buffer = buffer;
        lane.liveBytes.push_back(live + workspace);
        lane.peakBytes = std::max(lane.peakBytes, live + workspace);
    }

    void free(int device, BufferId b, TaskId pendingSend)
    {
        add(device, InstructionKind::Free, pendingSend, b, -m_bytes[b]);
    }

    void compute(TaskId t, const Task& task)
    {
        Bytes workspace = 0, kept = 0;
        for (const BufferId b : m_program.writes(t)) {
            const Buffer& buffer = m_program.buffers[b];
            (buffer.kind == BufferKind::Workspace && endOfPair(t) == t ? workspace : kept) += buffer.bytes;
        }
        add(task.device, InstructionKind::Compute, t, none, kept, workspace);
        countActivation(task);
        freeAfter(task.device, t);
    }

    /// May set weights aside, and use up some.
    void update(TaskId t, const Task& task)
    {
        Bytes kept = 0;
        for (const BufferId b : m_program.writes(t))
            kept += m_bytes[b];
        add(task.device, InstructionKind::Update, t, none, kept);
        freeAfter(task.device, t);
    }

    void countActivation(const Task& task)
    {
        int& live = m_liveChunks[static_cast<std::size_t>(task.device)];
        if (task.op == Op::F)
            m_mostChunks[static_cast<std::size_t>(task.device)] = std::max(m_mostChunks[static_cast<std::size_t>(task.device)], ++live);
        else if (task.op == Op::B || task.op == Op::W)
            --live;
    }

    void freeAfter(int device, TaskId t)
    {
        for (const BufferId b : freedAfter(t))
            free(device, b, m_uses.transfer[b]);
    }

    void transfer(TaskId t, const Task& task)
    {
        Channel& channel = channelTo(task.device, task.peer);
        while (channel.open.size() - channel.first >= m_outstanding)
            close(channel.open[channel.first++]);
        channel.open.push_back(t);
        Bytes bytes = 0;
        for (const BufferId b : m_program.writes(t))
            bytes += m_bytes[b];
        add(task.device, InstructionKind::Send, t, none);
        add(task.peer, InstructionKind::Receive, t, none, bytes);
    }

    /// Frees what was waiting for this send. A buffer sent elsewhere later is freed there; here the device
    /// only makes sure that this send is over.
    void close(TaskId t)
    {
        for (const BufferId b : m_program.reads(t))
            if (m_uses.transfer[b] != t)
                add(m_program.tasks[t].device, InstructionKind::Free, t, none);
        freeAfter(m_program.tasks[t].device, t);
    }

    Channel& channelTo(int source, int destination)
    {
        std::vector<Channel>& channels = m_channels[static_cast<std::size_t>(source)];
        for (Channel& channel : channels)
            if (channel.destination == destination)
                return channel;
        return channels.emplace_back(Channel{destination, {}, 0});
    }

    void drainChannels()
    {
        for (auto& channels : m_channels)
            for (Channel& channel : channels)
                while (channel.first < channel.open.size())
                    close(channel.open[channel.first++]);
    }

    void reduce(TaskId t, const Task& task)
    {
        const auto inbox = [&](int device) {
            Bytes bytes = 0;
            for (const BufferId b : m_program.writes(t))
                bytes += m_program.buffers[b].device == device ? m_program.buffers[b].bytes : 0;
            return bytes;
        };
        add(task.device, InstructionKind::Reduce, t, none, inbox(task.device));
        if (task.peer != task.device)
            add(task.peer, InstructionKind::Reduce, t, none, inbox(task.peer));
        for (const BufferId b : freedAfter(t))
            free(m_program.buffers[b].device, b, none);
    }

    Program& m_program;
    LastUses m_uses;
    std::vector<Bytes> m_bytes; ///< per buffer: what the walk needs of it, close together
    std::size_t m_outstanding;
    std::vector<Bytes> m_live;
    std::vector<int> m_liveChunks, m_mostChunks;
    std::vector<std::vector<Channel>> m_channels; ///< per source; few destinations each
    std::vector<TaskId> m_partner;                ///< see overlapPartners()
    std::vector<std::uint32_t> m_freeBegin;       ///< per task, into m_freed
    std::vector<BufferId> m_freed;
};

} // namespace

void projectOntoDevices(Program& program, int devices, int outstandingSends)
{
    Projector(program, devices, outstandingSends).run();
}

} // namespace pipewright
