// SPDX-License-Identifier: GPL-3.0-or-later
// The streams and events of pretended GPUs: a stream is a thread with a queue.
#pragma once

#include "executor/cuda/table.h"
#include "executor/runtime/clock.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pretended {

using Work = std::function<void()>;
inline constexpr int gpus = 2, multiprocessors = 16;
inline std::atomic<int> visibleGpus{gpus}; ///< as many as there are said to be
inline thread_local int firstVisible = 0;  ///< which of the machine's the thread's first one is

inline thread_local std::string lastError = "no error";
inline int fault(std::string text)
{
    lastError = std::move(text);
    return 1;
}

class Stream {
public:
    explicit Stream(std::int32_t device) : device(device), m_thread([this] { run(); }) {}
    ~Stream()
    {
        {
            const std::lock_guard lock(m_mutex);
            m_quit = true;
        }
        m_changed.notify_all();
        m_thread.join();
    }
    void push(Work work)
    {
        if (capturing) {
            captured.push_back(std::move(work));
            return;
        }
        {
            const std::lock_guard lock(m_mutex);
            m_queue.push_back(std::move(work));
        }
        m_changed.notify_all();
    }
    bool done()
    {
        const std::lock_guard lock(m_mutex);
        return m_queue.empty() && !m_busy;
    }

    const std::int32_t device;
    bool capturing = false; ///< of the issuing thread
    std::vector<Work> captured;

private:
    void run()
    {
        for (std::unique_lock lock(m_mutex);;) {
            m_changed.wait(lock, [this] { return m_quit || !m_queue.empty(); });
            if (m_queue.empty())
                return;
            const Work work = std::move(m_queue.front());
            m_queue.pop_front();
            m_busy = true;
            lock.unlock();
            work();
            lock.lock();
            m_busy = false;
        }
    }
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<Work> m_queue;
    bool m_busy = false, m_quit = false;
    std::thread m_thread;
};

/// A wait is for the recording that was the last one when it was issued. Kept alive by whoever is still to use it.
struct Event {
    std::mutex mutex;
    std::condition_variable happened;
    std::uint64_t recorded = 0, done = 0;
    std::int64_t time = 0;
    std::int32_t device = 0;
};
using SharedEvent = std::shared_ptr<Event>;

inline Stream& stream(void* handle)
{
    return *static_cast<Stream*>(handle);
}
inline SharedEvent& event(void* handle)
{
    return *static_cast<SharedEvent*>(handle);
}

/// What "CUPTI" has seen.
struct Recording {
    std::mutex mutex;
    bool running = false;
    std::vector<PipewrightGpuActivity> activities;
};
inline Recording& recording()
{
    static Recording only;
    return only;
}
inline thread_local std::int64_t currentBlock = -1;
inline std::atomic<int> graphLaunches{0}, copies{0};

inline void pushKernel(Stream& on, const char* name, Work work)
{
    on.push([work = std::move(work), name, block = currentBlock, device = on.device] {
        const std::int64_t start = pipewright::steadyNow();
        work();
        const std::lock_guard lock(recording().mutex);
        if (recording().running)
            recording().activities.push_back(
                {start, pipewright::steadyNow(), block, -1, 0, 0, PIPEWRIGHT_GPU_KERNEL, device, 1, 0, -1, -1, name});
    });
}

inline std::size_t n(std::int64_t count)
{
    return static_cast<std::size_t>(count);
}

} // namespace pretended
