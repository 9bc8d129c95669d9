// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/host/hoststore.h"

#include "executor/host/hoststream.h"
#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace pipewright {

namespace {

constexpr std::size_t storeAlignment = 64;

} // namespace

HostCopies::HostCopies(Bytes bytes)
    : m_region{static_cast<std::byte*>(std::aligned_alloc(
                   storeAlignment, (static_cast<std::size_t>(bytes) / storeAlignment + 1) * storeAlignment)),
               bytes}
{
    if (m_region.data == nullptr)
        throw std::bad_alloc();
    try {
        for (Lane& lane : m_lanes)
            lane.thread = std::thread([this, &lane] { run(lane); });
    } catch (...) {
        {
            const std::lock_guard lock(m_mutex);
            m_quit = true;
        }
        m_changed.notify_all();
        if (m_lanes[0].thread.joinable())
            m_lanes[0].thread.join();
        std::free(m_region.data);
        throw;
    }
}

HostCopies::~HostCopies()
{
    {
        const std::lock_guard lock(m_mutex);
        m_quit = true;
    }
    m_changed.notify_all();
    for (Lane& lane : m_lanes)
        lane.thread.join();
    std::free(m_region.data);
}

/// The stream is the calling thread, so the source is already complete.
void HostCopies::copy(Direction direction, Stream&, const Copy& what)
{
    {
        const std::lock_guard lock(m_mutex);
        m_lanes[direction == Direction::Out ? 0 : 1].waiting.push_back(what);
    }
    m_changed.notify_all();
}

void HostCopies::finished(std::vector<Copied>& copies)
{
    const std::lock_guard lock(m_mutex);
    copies.insert(copies.end(), m_finished.begin(), m_finished.end());
    m_finished.clear();
}

void HostCopies::run(Lane& lane)
{
    Nanoseconds freeFrom = 0; // an emulated link is busy until then
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_changed.wait(lock, [&] { return m_quit || !lane.waiting.empty(); });
        if (m_quit)
            return;
        const Copy what = lane.waiting.front();
        lane.waiting.pop_front();
        lock.unlock();
        const Nanoseconds start = std::max(steadyNow(), freeFrom);
        for (std::size_t i = 0; i < what.from.size(); ++i)
            if (what.from[i].bytes > 0)
                std::memcpy(what.to[i].data, what.from[i].data, what.from[i].bytes);
        const Nanoseconds end = std::max(steadyNow(), start + what.atLeast);
        freeFrom = what.atLeast > 0 ? end : 0;
        lock.lock();
        m_finished.push_back({what.task, start, end});
        static_cast<HostEvent*>(what.done)->set(what.atLeast > 0 ? end : 0);
    }
}

} // namespace pipewright
