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
    gpu.check(gpu.table->createEvent(gpu.index, &m_ready), "create an event");
    for (std::size_t way = 0; way < m_streams.size(); ++way) {
        gpu.check(gpu.table->createStream(gpu.index, gpu.slice, &m_streams[way]), "create a stream");
        gpu.check(gpu.table->allocate(gpu.index, sizeof(std::int64_t), &m_stamps[way]), "allocate memory");
    }
}

CudaHostStore::~CudaHostStore()
{
    m_gpu.table->destroyEvent(m_ready);
    for (void* event : m_starts)
        m_gpu.table->destroyEvent(event);
    for (std::size_t way = 0; way < m_streams.size(); ++way) {
        m_gpu.table->destroyStream(m_streams[way]);
        m_gpu.table->release(m_gpu.index, m_stamps[way]);
    }
    m_gpu.table->releaseHost(m_region.data);
}

void* CudaHostStore::nextStart()
{
    if (m_used == m_starts.size())
        m_gpu.check(m_gpu.table->createEvent(m_gpu.index, &m_starts.emplace_back()), "create an event");
    return m_starts[m_used++];
}

void CudaHostStore::copy(Direction direction, Stream& stream, const Copy& what)
{
    const bool out = direction == Direction::Out;
    void* const on = m_streams[out ? 0 : 1];
    void* const stamp = m_stamps[out ? 0 : 1];
    void* const started = what.timed ? nextStart() : nullptr;
    const PipewrightCudaTable& table = *m_gpu.table;
    m_gpu.check(table.recordEvent(m_ready, static_cast<CudaStream&>(stream).handle()), "record an event");
    m_gpu.check(table.streamWaits(on, m_ready), "wait for an event");
    if (started)
        m_gpu.check(table.recordEvent(started, on), "record an event");
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
    if (started)
        m_pending.push_back({what.task, &cudaEvent(what.done), started});
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
