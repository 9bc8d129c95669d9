// SPDX-License-Identifier: GPL-3.0-or-later
// One ring per device and kind, with one writer and one reader, so that neither locks; the reader passes records to the
// sink in batches. Step and GPU records, which come between steps, go through lists with a mutex. O(1) per record for a
// device.
#include "executor/runtime/recorder.h"

#include <algorithm>
#include <iterator>

namespace pipewright {

namespace {

constexpr auto drainInterval = std::chrono::milliseconds(20);

} // namespace

Recorder::Recorder(RecordSink& sink, int devices, std::size_t capacity) : m_sink(sink)
{
    for (int i = 0; i < devices; ++i)
        m_rings.push_back(std::make_unique<Rings>(std::max<std::size_t>(capacity, 1)));
    m_tasks.reserve(capacity);
    m_memory.reserve(capacity);
    m_thread = std::thread([this] { write(); });
}

Recorder::~Recorder()
{
    stop();
}

void Recorder::record(int device, const TaskRecord& record)
{
    if (!m_rings[device]->tasks.push(record))
        m_dropped.fetch_add(1, std::memory_order_relaxed);
}

void Recorder::record(int device, const MemoryRecord& record)
{
    if (!m_rings[device]->memory.push(record))
        m_dropped.fetch_add(1, std::memory_order_relaxed);
}

void Recorder::record(const StepRecord& record)
{
    {
        const std::lock_guard lock(m_mutex);
        m_steps.push_back(record);
    }
    m_wake.notify_one();
}

void Recorder::record(std::vector<GpuRecord> records)
{
    const std::lock_guard lock(m_mutex);
    m_gpu.insert(m_gpu.end(), std::make_move_iterator(records.begin()), std::make_move_iterator(records.end()));
}

void Recorder::makeRoom(std::size_t records)
{
    std::unique_lock lock(m_mutex);
    while (!hasRoom(records)) {
        m_urgent = true;
        m_wake.notify_one();
        m_drained.wait(lock);
    }
}

bool Recorder::hasRoom(std::size_t records) const
{
    return std::all_of(m_rings.begin(), m_rings.end(), [records](const auto& rings) {
        return rings->tasks.room() >= std::min(records, rings->tasks.capacity())
               && rings->memory.room() >= std::min(records, rings->memory.capacity());
    });
}

void Recorder::finish()
{
    stop();
    if (m_failure)
        std::rethrow_exception(m_failure);
}

void Recorder::stop()
{
    if (!m_thread.joinable())
        return;
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
    }
    m_wake.notify_one();
    m_thread.join();
}

void Recorder::flush()
{
    std::unique_lock lock(m_mutex);
    const std::uint64_t asked = ++m_flushes;
    m_urgent = true;
    m_wake.notify_one();
    m_drained.wait(lock, [&] { return m_flushed >= asked; });
}

void Recorder::write()
{
    for (bool last = false; !last;) {
        std::vector<StepRecord> steps;
        std::vector<GpuRecord> gpu;
        std::uint64_t flushes = 0;
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait_for(lock, drainInterval, [this] { return m_stop || m_urgent || !m_steps.empty(); });
            last = m_stop;
            m_urgent = false;
            flushes = m_flushes;
            // Taken before the rings are drained, so that a step's task records are written before its step record.
            steps.swap(m_steps);
            gpu.swap(m_gpu);
        }
        m_tasks.clear();
        m_memory.clear();
        for (const auto& rings : m_rings) {
            rings->tasks.drain(m_tasks);
            rings->memory.drain(m_memory);
        }
        {
            const std::lock_guard lock(m_mutex); // so that makeRoom() cannot miss the notification
        }
        m_drained.notify_all();
        handOn(steps, gpu, last);
        {
            const std::lock_guard lock(m_mutex);
            m_flushed = flushes;
        }
        m_drained.notify_all();
    }
}

void Recorder::handOn(const std::vector<StepRecord>& steps, const std::vector<GpuRecord>& gpu, bool last)
{
    const auto count = static_cast<std::int64_t>(m_tasks.size() + m_memory.size() + steps.size() + gpu.size());
    if (m_failure) {
        m_dropped.fetch_add(count, std::memory_order_relaxed);
        return;
    }
    try {
        // The last call goes to the sink even without records of this process: the sink may hold records of others.
        if (count == 0 && !(last && m_committed)) {
            if (m_committed)
                m_sink.check();
            return;
        }
        if (!m_tasks.empty())
            m_sink.append(m_tasks);
        if (!m_memory.empty())
            m_sink.append(m_memory);
        if (!gpu.empty())
            m_sink.append(gpu);
        for (const StepRecord& step : steps)
            m_sink.append(step);
        m_sink.commit();
        m_committed = true;
    } catch (...) {
        m_failure = std::current_exception();
        m_dropped.fetch_add(count, std::memory_order_relaxed);
    }
}

} // namespace pipewright
