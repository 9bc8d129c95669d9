// SPDX-License-Identifier: GPL-3.0-or-later
// A Program run one task after the other, in its global order, on the calling thread: the reference with which threads
// must agree bit by bit. Every buffer lives from the task that defines it to its last use.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/runtime/arena.h"
#include "executor/runtime/stagework.h"

#include <cstring>
#include <memory>
#include <vector>

namespace pipewright {

class LogicalClock {
public:
    /// Keeps references to both. Throws Error for a program with reductions (replicas, shared parameters).
    LogicalClock(const Program& program, StageWork& work);

    double runStep(int step); ///< the step's loss

private:
    Region allocate(BufferId buffer);
    void release(TaskId task);

    const Program& m_program;
    StageWork& m_work;
    std::vector<std::unique_ptr<float[]>> m_memory; ///< per buffer
    std::vector<Region> m_regions;
    std::vector<std::vector<BufferId>> m_lastUsed; ///< per task
};

inline LogicalClock::LogicalClock(const Program& program, StageWork& work)
    : m_program(program), m_work(work), m_memory(program.buffers.size()), m_regions(program.buffers.size()),
      m_lastUsed(program.tasks.size())
{
    std::vector<TaskId> last(program.buffers.size(), none);
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        if (isReduction(program.tasks[t].kind))
            throw Error(program.label(t), "the logical clock runs no reductions",
                        "use a schedule without replicas and shared parameters");
        for (const BufferId buffer : program.reads(t))
            last[buffer] = t;
        for (const BufferId buffer : program.writes(t))
            last[buffer] = t;
    }
    for (BufferId buffer = 0; buffer < program.buffers.size(); ++buffer) {
        m_regions[buffer].bytes = program.buffers[buffer].bytes;
        if (isPersistent(program.buffers[buffer].kind))
            allocate(buffer);
        else if (last[buffer] != none)
            m_lastUsed[last[buffer]].push_back(buffer);
    }
    work.prepare(program, m_regions);
}

inline Region LogicalClock::allocate(BufferId buffer)
{
    const auto bytes = static_cast<std::size_t>(m_program.buffers[buffer].bytes);
    m_memory[buffer] = std::make_unique_for_overwrite<float[]>(bytes / sizeof(float) + 1);
    m_regions[buffer].data = reinterpret_cast<std::byte*>(m_memory[buffer].get());
    return m_regions[buffer];
}

inline void LogicalClock::release(TaskId task)
{
    for (const BufferId buffer : m_lastUsed[task]) {
        m_memory[buffer].reset();
        m_regions[buffer].data = nullptr;
    }
}

inline double LogicalClock::runStep(int step)
{
    m_work.beginStep(step);
    std::vector<BufferView> reads, writes;
    for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
        reads.clear();
        writes.clear();
        for (const BufferId buffer : m_program.reads(t))
            reads.push_back({buffer, m_program.buffers[buffer], m_regions[buffer]});
        for (const BufferId buffer : m_program.writes(t))
            writes.push_back({buffer, m_program.buffers[buffer], allocate(buffer)});
        const TaskContext context{t, &m_program.tasks[t], step, reads, writes, nullptr, nullptr};
        switch (m_program.tasks[t].kind) {
        case TaskKind::Compute: m_work.compute(context); break;
        case TaskKind::Update:
        case TaskKind::CopyWeightsIn:
        case TaskKind::CopyWeightsOut: m_work.update(context); break;
        case TaskKind::Transfer:
            for (std::size_t i = 0; i < reads.size(); ++i)
                std::memcpy(writes[i].region.data, reads[i].region.data,
                            static_cast<std::size_t>(reads[i].region.bytes));
            break;
        case TaskKind::Collective:
        case TaskKind::Offload:
        case TaskKind::Reload:
        case TaskKind::Gather:
        case TaskKind::ReduceGradients:
        case TaskKind::Reduce:
        case TaskKind::ReplicaSum: break; // refused at the start
        }
        release(t);
    }
    return m_work.endStep(step);
}

} // namespace pipewright
