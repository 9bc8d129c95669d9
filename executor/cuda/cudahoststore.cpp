// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/cudahoststore.h"

#include "executor/cuda/cudaclock.h"

#include <algorithm>

namespace pipewright {

CudaHostStore::CudaHostStore(const CudaGpu& gpu, Bytes bytes) : m_gpu(gpu)
{
    void* data = nullptr;
    gpu.check(gpu.table->allocateHost(bytes, &data), "have host memory for what is offloaded");
    m_region = {static_cast<std::byte*>(data), bytes};
    for (std::size_t way = 0; way < m_streams.size(); ++way) {
        gpu.check(gpu.table->createStream(gpu.index, gpu.slice, &m_streams[way]), "create a stream");
        gpu.check(gpu.table->allocate(gpu.index, sizeof(std::int64_t), &m_stamps[way]), "allocate memory");
    }
}

CudaHostStore::~CudaHostStore()
{
    for (const Events& events : m_events)
        for (void* event : {events.ready, events.started})
            m_gpu.table->destroyEvent(event);
    for (std::size_t way = 0; way < m_streams.size(); ++way) {
        m_gpu.table->destroyStream(m_streams[way]);
        m_gpu.table->release(m_gpu.index, m_stamps[way]);
    }
    m_gpu.table->releaseHost(m_region.data);
}

const CudaHostStore::Events& CudaHostStore::nextEvents()
{
    if (m_used == m_events.size()) {
        Events& events = m_events.emplace_back();
        for (void** event : {&events.ready, &events.started})
            m_gpu.check(m_gpu.table->createEvent(m_gpu.index, event), "create an event");
    }
    return m_events[m_used++];
}

void CudaHostStore::copy(Direction direction, Stream& stream, const Copy& what)
{
    const bool out = direction == Direction::Out;
    void* const on = m_streams[out ? 0 : 1];
    void* const stamp = m_stamps[out ? 0 : 1];
    const Events& events = nextEvents();
    const PipewrightCudaTable& table = *m_gpu.table;
    m_gpu.check(table.recordEvent(events.ready, static_cast<CudaStream&>(stream).handle()), "record an event");
    m_gpu.check(table.streamWaits(on, events.ready), "wait for an event");
    m_gpu.check(table.recordEvent(events.started, on), "record an event");
    if (what.atLeast > 0)
        m_gpu.check(table.stamp(m_gpu.index, on, stamp), "stamp a time");
    for (std::size_t i = 0; i < what.from.size(); ++i)
        if (what.from[i].bytes > 0)
            m_gpu.check(table.copy(what.to[i].data, out ? -1 : m_gpu.index, what.from[i].data, out ? m_gpu.index : -1,
                                   what.from[i].bytes, on),
                        "copy");
    if (what.atLeast > 0)
        m_gpu.check(table.spinFrom(m_gpu.index, on, stamp, what.atLeast), "emulate a slower link");
    cudaEvent(what.done).post(on);
    m_pending.push_back({what.task, &cudaEvent(what.done), events.started});
}

/// Times are those of the GPU's own events.
void CudaHostStore::finished(std::vector<Copied>& copies)
{
    std::erase_if(m_pending, [&](const Pending& pending) {
        if (!pending.done->complete())
            return false;
        const Nanoseconds start = m_gpu.clock->timeOf(pending.started);
        copies.push_back({pending.task, start, std::max(start, m_gpu.clock->timeOf(pending.done->handle()))});
        return true;
    });
    if (m_pending.empty())
        m_used = 0;
}

} // namespace pipewright
