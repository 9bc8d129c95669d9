// SPDX-License-Identifier: GPL-3.0-or-later
// Compares the GPU's clock with the host's: an event lies between two readings of the host's clock, and the narrowest
// of five tries counts, so the error is at most half its width (Cristian, Distributed Computing 3, 1989). O(1) per
// step.
#include "executor/cuda/cudaclock.h"

#include "executor/runtime/steadyclock.h"

#include <cmath>
#include <limits>
#include <thread>
#include <utility>

namespace pipewright {

CudaClock::CudaClock(const CudaGpu& gpu) : m_gpu(gpu), m_stream(gpu)
{
    for (void** event : {&m_base, &m_other})
        gpu.check(gpu.table->createEvent(gpu.index, event), "create an event");
    compare();
}

CudaClock::~CudaClock()
{
    for (void* event : {m_base, m_other})
        m_gpu.table->destroyEvent(event);
}

/// The GPU's moment lies between two looks at the host's clock: the closest of a few tries counts.
void CudaClock::compare()
{
    Nanoseconds closest = std::numeric_limits<Nanoseconds>::max();
    void* tried = m_other;
    for (int i = 0; i < 5; ++i) {
        const Nanoseconds before = steadyNow();
        m_gpu.check(m_gpu.table->recordEvent(tried, m_stream.handle()), "record an event");
        for (std::int32_t done = 0; !done;) {
            m_gpu.check(m_gpu.table->eventDone(tried, &done), "ask for an event");
            if (!done)
                std::this_thread::yield();
        }
        const Nanoseconds width = steadyNow() - before;
        if (width >= closest)
            continue;
        closest = width;
        m_time = before + width / 2;
        std::swap(m_base, tried);
    }
    m_other = tried;
}

Nanoseconds CudaClock::timeOf(void* event) const
{
    float milliseconds = 0;
    m_gpu.check(m_gpu.table->elapsed(m_base, event, &milliseconds), "read the time of an event");
    return m_time + static_cast<Nanoseconds>(std::llround(double(milliseconds) * 1e6));
}

CudaStopwatch::CudaStopwatch(const CudaStream& stream, const CudaClock& clock, std::size_t places)
    : m_stream(stream), m_clock(clock), m_events(places)
{
    const CudaGpu& gpu = stream.gpu();
    for (void*& event : m_events)
        gpu.check(gpu.table->createEvent(gpu.index, &event), "create an event");
}

CudaStopwatch::~CudaStopwatch()
{
    for (void* event : m_events)
        m_stream.gpu().table->destroyEvent(event);
}

void CudaStopwatch::mark(std::size_t place)
{
    const CudaGpu& gpu = m_stream.gpu();
    gpu.check(gpu.table->recordEvent(m_events.at(place), m_stream.handle()), "record an event");
}

bool CudaStopwatch::passed(std::size_t place) const
{
    std::int32_t done = 0;
    m_stream.gpu().check(m_stream.gpu().table->eventDone(m_events.at(place), &done), "run what was issued");
    return done != 0;
}

CudaBlockMarks::~CudaBlockMarks()
{
    for (const Graph& each : m_graphs)
        if (each.graph)
            m_stream.gpu().table->destroyGraph(each.graph);
}

void CudaBlockMarks::begin(TaskId task, const char* label)
{
    m_stream.setBlock({task, label});
    m_stream.gpu().check(m_stream.gpu().table->beginBlock(label, task), "name a block");
}

void CudaBlockMarks::end(const InTurn* turn)
{
    const CudaGpu& gpu = m_stream.gpu();
    if (m_captured != none) {
        Graph& captured = m_graphs[m_captured];
        m_captured = none;
        gpu.check(gpu.table->endCapture(m_stream.handle(), &captured.graph), "capture a block");
        launch(captured.graph, turn);
    }
    m_stream.setBlock({});
    gpu.check(gpu.table->endBlock(), "name a block");
}

void CudaBlockMarks::launch(void* graph, const InTurn* turn)
{
    const CudaGpu& gpu = m_stream.gpu();
    const auto give = [&] {
        gpu.check(gpu.table->launchGraph(gpu.index, graph, m_stream.handle()), "launch a captured block");
    };
    if (!turn)
        return give();
    (*turn)([&] { // runs on another thread, which must label the block too
        const CudaBlockLabel label(gpu, m_stream.block());
        give();
    });
}

bool CudaBlockMarks::replay(TaskId task, const InTurn* turn)
{
    const CudaGpu& gpu = m_stream.gpu();
    if (m_graphs.size() <= task)
        m_graphs.resize(task + 1);
    Graph& each = m_graphs[task];
    if (each.graph) {
        launch(each.graph, turn);
        return true;
    }
    if (++each.seen == 2) {
        gpu.check(gpu.table->beginCapture(m_stream.handle()), "capture a block");
        m_captured = task;
    }
    return false;
}

} // namespace pipewright
