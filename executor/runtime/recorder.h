// SPDX-License-Identifier: GPL-3.0-or-later
// Carries records from the device threads to the trace. Each device writes into preallocated rings of its own; one
// thread drains the rings into the sink during the run. A device never waits for the trace: when a ring is full the
// record is dropped and counted.
#pragma once

#include "traces/store/tracewriter.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace pipewright {

/// One writer, one reader, a fixed number of places.
template<typename Record>
class RecordRing {
public:
    explicit RecordRing(std::size_t capacity) : m_records(capacity) {}

    bool push(const Record& record)
    {
        const std::size_t head = m_head.load(std::memory_order_relaxed);
        if (head - m_tail.load(std::memory_order_acquire) == m_records.size())
            return false;
        m_records[head % m_records.size()] = record;
        m_head.store(head + 1, std::memory_order_release);
        return true;
    }

    std::size_t capacity() const { return m_records.size(); }
    /// Places left at this moment.
    std::size_t room() const
    {
        return m_records.size() - (m_head.load(std::memory_order_acquire) - m_tail.load(std::memory_order_acquire));
    }

    /// Appends all records to `to`.
    void drain(std::vector<Record>& to)
    {
        const std::size_t head = m_head.load(std::memory_order_acquire);
        std::size_t tail = m_tail.load(std::memory_order_relaxed);
        for (; tail != head; ++tail)
            to.push_back(m_records[tail % m_records.size()]);
        m_tail.store(tail, std::memory_order_release);
    }

private:
    std::vector<Record> m_records;
    alignas(64) std::atomic<std::size_t> m_head{0};
    alignas(64) std::atomic<std::size_t> m_tail{0};
};

class Recorder {
public:
    /// `capacity` records per device and kind can wait to be written.
    Recorder(RecordSink& sink, int devices, std::size_t capacity);
    ~Recorder(); ///< as finish(), errors ignored

    /// From the thread of `device` only; never blocks, never allocates.
    void record(int device, const TaskRecord& record);
    void record(int device, const MemoryRecord& record);
    /// After a step, when no device runs.
    void record(const StepRecord& record);
    void record(std::vector<GpuRecord> records);

    /// Between steps: waits until every ring has room for `records` more of each kind, or is empty.
    void makeRoom(std::size_t records);

    /// Between steps: waits until the sink has everything that was recorded before.
    void flush();

    /// Writes what is left and ends the writing thread. Throws Error when the sink failed: everything
    /// after the failure then counts as dropped.
    void finish();
    std::int64_t dropped() const { return m_dropped.load(std::memory_order_relaxed); }

private:
    struct Rings {
        explicit Rings(std::size_t capacity) : tasks(capacity), memory(capacity) {}
        RecordRing<TaskRecord> tasks;
        RecordRing<MemoryRecord> memory;
    };

    void write();
    void handOn(const std::vector<StepRecord>& steps, const std::vector<GpuRecord>& gpu, bool last);
    bool hasRoom(std::size_t records) const;
    void stop();

    RecordSink& m_sink;
    std::vector<std::unique_ptr<Rings>> m_rings;
    std::atomic<std::int64_t> m_dropped{0};
    std::vector<TaskRecord> m_tasks;    ///< the writing thread's
    std::vector<MemoryRecord> m_memory; ///< the writing thread's
    std::exception_ptr m_failure;       ///< the writing thread's until it ended
    bool m_committed = false;           ///< the writing thread's: it has committed, and now uses the sink alone

    std::mutex m_mutex;
    std::condition_variable m_wake, m_drained;
    std::vector<StepRecord> m_steps;            ///< guarded by m_mutex
    std::vector<GpuRecord> m_gpu;               ///< guarded by m_mutex
    bool m_urgent = false;                      ///< guarded by m_mutex; a thread waits for room
    bool m_stop = false;                        ///< guarded by m_mutex
    std::uint64_t m_flushes = 0, m_flushed = 0; ///< guarded by m_mutex; requested, and done
    std::thread m_thread;
};

} // namespace pipewright
