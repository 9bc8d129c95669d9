// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/projection.h"

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
          m_mostChunks(static_cast<std::size_t>(devices), 0), m_channels(static_cast<std::size_t>(devices))
    {
        program.devices.assign(static_cast<std::size_t>(devices), {});
        std::vector<std::size_t> expected(static_cast<std::size_t>(devices), 0);
        for (const Buffer& buffer : program.buffers) {
            ++expected[static_cast<std::size_t>(buffer.device)];
            if (isPersistent(buffer.kind))
                m_program.devices[static_cast<std::size_t>(buffer.device)].persistentBytes += buffer.bytes;
        }
        for (std::size_t d = 0; d < program.devices.size(); ++d) {
            program.devices[d].instructions.reserve(expected[d] * 2);
            program.devices[d].liveBytes.reserve(expected[d] * 2);
            m_live[d] = program.devices[d].peakBytes = program.devices[d].persistentBytes;
        }
        sortFrees();
    }

    void run()
    {
        bool afterLoop = false;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            if (!afterLoop && (task.kind == TaskKind::Reduce || task.kind == TaskKind::Update)) {
                afterLoop = true;
                drainChannels();
            }
            switch (task.kind) {
            case TaskKind::Compute: compute(t, task); break;
            case TaskKind::Transfer: transfer(t, task); break;
            case TaskKind::Reduce: reduce(t, task); break;
            case TaskKind::Update: add(task.device, {InstructionKind::Update, t, none}); break;
            }
        }
        for (std::size_t d = 0; d < m_program.devices.size(); ++d)
            m_program.devices[d].peakActivations = static_cast<double>(m_mostChunks[d]) / m_program.chunks;
    }

private:
    /// Sends of one directed pair whose buffers are still to be freed, oldest first.
    struct Channel {
        std::int32_t destination;
        std::vector<TaskId> open;
        std::size_t first = 0;
    };

    /// Buckets the buffers by the task after which they go: a local use, or a transfer.
    void sortFrees()
    {
        const std::size_t count = m_program.buffers.size();
        std::vector<TaskId> freedBy(count);
        m_freeBegin.assign(m_program.tasks.size() + 1, 0);
        for (std::size_t b = 0; b < count; ++b) {
            const BufferKind kind = m_program.buffers[b].kind;
            const TaskId sent = m_uses.transfer[b], used = m_uses.local[b];
            freedBy[b] = isPersistent(kind) || kind == BufferKind::Workspace ? none : sent != none && sent > used ? sent : used;
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

    /// Appends an instruction that defines `kept` bytes and needs `workspace` more while it runs.
    void add(int device, const Instruction& instruction, Bytes kept = 0, Bytes workspace = 0)
    {
        Program::Device& lane = m_program.devices[static_cast<std::size_t>(device)];
        Bytes& live = m_live[static_cast<std::size_t>(device)];
        live += kept;
        lane.instructions.push_back(instruction);
        lane.liveBytes.push_back(live + workspace);
        lane.peakBytes = std::max(lane.peakBytes, live + workspace);
    }

    void free(BufferId b, TaskId pendingSend)
    {
        const Buffer& buffer = m_program.buffers[b];
        add(buffer.device, {InstructionKind::Free, pendingSend, b}, -buffer.bytes);
    }

    void compute(TaskId t, const Task& task)
    {
        Bytes workspace = 0, kept = 0;
        for (const BufferId b : m_program.writes(t)) {
            const Buffer& buffer = m_program.buffers[b];
            (buffer.kind == BufferKind::Workspace ? workspace : kept) += buffer.bytes;
        }
        add(task.device, {InstructionKind::Compute, t, none}, kept, workspace);
        countActivation(task);
        freeAfter(t);
    }

    void countActivation(const Task& task)
    {
        int& live = m_liveChunks[static_cast<std::size_t>(task.device)];
        if (task.op == Op::F)
            m_mostChunks[static_cast<std::size_t>(task.device)] = std::max(m_mostChunks[static_cast<std::size_t>(task.device)], ++live);
        else if (task.op == Op::B || task.op == Op::W)
            --live;
    }

    void freeAfter(TaskId t)
    {
        for (const BufferId b : freedAfter(t))
            free(b, m_uses.transfer[b]);
    }

    void transfer(TaskId t, const Task& task)
    {
        Channel& channel = channelTo(task.device, task.peer);
        while (channel.open.size() - channel.first >= m_outstanding)
            close(channel.open[channel.first++]);
        channel.open.push_back(t);
        Bytes bytes = 0;
        for (const BufferId b : m_program.writes(t))
            bytes += m_program.buffers[b].bytes;
        add(task.device, {InstructionKind::Send, t, none});
        add(task.peer, {InstructionKind::Receive, t, none}, bytes);
    }

    /// Frees what was waiting for this send. A buffer sent elsewhere later is freed there; here the device
    /// only makes sure that this send is over.
    void close(TaskId t)
    {
        for (const BufferId b : m_program.reads(t))
            if (m_uses.transfer[b] != t)
                add(m_program.tasks[t].device, {InstructionKind::Free, t, none});
        freeAfter(t);
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
        add(task.device, {InstructionKind::Reduce, t, none}, inbox(task.device));
        if (task.peer != task.device)
            add(task.peer, {InstructionKind::Reduce, t, none}, inbox(task.peer));
        freeAfter(t);
    }

    Program& m_program;
    LastUses m_uses;
    std::size_t m_outstanding;
    std::vector<Bytes> m_live;
    std::vector<int> m_liveChunks, m_mostChunks;
    std::vector<std::vector<Channel>> m_channels; ///< per source; few destinations each
    std::vector<std::uint32_t> m_freeBegin;       ///< per task, into m_freed
    std::vector<BufferId> m_freed;
};

} // namespace

void projectOntoDevices(Program& program, int devices, int outstandingSends)
{
    Projector(program, devices, outstandingSends).run();
}

} // namespace pipewright
