// SPDX-License-Identifier: GPL-3.0-or-later
// Times of GPU events on the host's clock. Between steps an event of each GPU is compared with the host's clock; from
// then on only differences between events of that GPU are used, so an error of the comparison shifts a GPU's whole step
// but does not change durations.
#pragma once

#include "executor/cuda/cudalink.h"

namespace pipewright {

/// The clock of one GPU. One thread compares it between steps, all threads read it during steps.
class CudaClock {
public:
    explicit CudaClock(const CudaGpu& gpu);
    ~CudaClock();
    CudaClock(const CudaClock&) = delete;
    CudaClock& operator=(const CudaClock&) = delete;

    /// Call while the GPU is idle: waits for an event on a stream of its own.
    void compare();
    /// Of an event that happened after the last compare(), in steadyNow()'s time.
    Nanoseconds timeOf(void* event) const;

private:
    CudaGpu m_gpu;
    CudaStream m_stream;
    void *m_base = nullptr, *m_other = nullptr;
    Nanoseconds m_time = 0;
};

class CudaStopwatch final : public Stopwatch {
public:
    CudaStopwatch(const CudaStream& stream, const CudaClock& clock, std::size_t places);
    ~CudaStopwatch() override;
    CudaStopwatch(const CudaStopwatch&) = delete;
    CudaStopwatch& operator=(const CudaStopwatch&) = delete;

    void mark(std::size_t place) override;
    bool passed(std::size_t place) const override;
    Nanoseconds at(std::size_t place) const override { return m_clock.timeOf(m_events.at(place)); }

private:
    const CudaStream& m_stream;
    const CudaClock& m_clock;
    std::vector<void*> m_events;
};

/// Tells profilers where blocks begin and end, and captures blocks as graphs: in their second step, since the first may
/// still load kernels. Collectives of a group are captured with the NCCL calls that the GPU's owner thread makes for
/// them, and the owner launches their graphs, as it makes such calls.
class CudaBlockMarks final : public BlockMarks {
public:
    /// The table of graphs grows as tasks come, in the first step.
    explicit CudaBlockMarks(CudaStream& stream) : m_stream(stream) {}
    ~CudaBlockMarks() override;
    CudaBlockMarks(const CudaBlockMarks&) = delete;
    CudaBlockMarks& operator=(const CudaBlockMarks&) = delete;

    void begin(TaskId task, const char* label) override;
    void end(const InTurn* turn) override;
    bool replay(TaskId task, const InTurn* turn) override;

private:
    struct Graph {
        int seen = 0;
        void* graph = nullptr;
    };
    void launch(void* graph, const InTurn* turn);

    CudaStream& m_stream;        ///< has the block that was begun
    std::vector<Graph> m_graphs; ///< per task
    TaskId m_captured = none;    ///< the task that is being captured
};

} // namespace pipewright
