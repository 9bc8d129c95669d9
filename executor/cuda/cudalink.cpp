// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/cudalink.h"

#include "core/base/diagnostic.h"
#include "executor/clock.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace pipewright {

namespace {

constexpr auto pollInterval = std::chrono::microseconds(20);

Bytes total(std::span<const Region> regions)
{
    return std::accumulate(regions.begin(), regions.end(), Bytes{0},
                           [](Bytes sum, const Region& region) { return sum + region.bytes; });
}

bool sameSizes(std::span<const Region> a, std::span<const Region> b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Region& x, const Region& y) { return x.bytes == y.bytes; });
}

CudaEvent& cudaEvent(Event* event)
{
    return static_cast<CudaEvent&>(*event);
}

} // namespace

void CudaGpu::check(int code, const char* what) const
{
    if (code != 0)
        throw Error("GPU " + std::to_string(index), std::string("cannot ") + what + ": " + table->lastError());
}

CudaStream::CudaStream(const CudaGpu& gpu) : m_gpu(gpu)
{
    gpu.check(gpu.table->createStream(gpu.index, &m_handle), "create a stream");
}

CudaStream::~CudaStream()
{
    m_gpu.table->destroyStream(m_handle);
}

bool CudaStream::wait(Event& event)
{
    auto& awaited = static_cast<CudaEvent&>(event);
    while (!awaited.posted()) {
        const std::uint32_t seen = m_signal->seen();
        if (awaited.posted())
            break;
        if (m_interrupted.load(std::memory_order_acquire))
            return false;
        m_signal->sleep(seen);
    }
    for (Nanoseconds left = awaited.readyAt() - steadyNow(); left > 0; left = awaited.readyAt() - steadyNow()) {
        if (m_interrupted.load(std::memory_order_acquire))
            return false;
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<Nanoseconds>(left, 5'000'000)));
    }
    m_gpu.check(m_gpu.table->streamWaits(m_handle, awaited.handle()), "wait for an event");
    return !m_interrupted.load(std::memory_order_acquire);
}

/// Asks again and again instead of waiting in the driver, where nothing could interrupt it.
bool CudaStream::synchronize()
{
    for (;;) {
        if (m_interrupted.load(std::memory_order_acquire))
            return false;
        std::int32_t done = 0;
        m_gpu.check(m_gpu.table->streamDone(m_handle, &done), "run what was issued");
        if (done)
            return true;
        std::this_thread::sleep_for(pollInterval);
    }
}

void CudaStream::interrupt()
{
    m_interrupted.store(true, std::memory_order_release);
    m_signal->raise();
}

CudaEvent::CudaEvent(const CudaGpu& gpu, const CudaStream& waiter) : m_gpu(gpu), m_waiter(waiter.signal())
{
    gpu.check(gpu.table->createEvent(gpu.index, &m_handle), "create an event");
}

CudaEvent::~CudaEvent()
{
    m_gpu.table->destroyEvent(m_handle);
}

bool CudaEvent::complete() const
{
    if (!posted() || steadyNow() < m_readyAt)
        return false;
    std::int32_t done = 0;
    m_gpu.check(m_gpu.table->eventDone(m_handle, &done), "ask for an event");
    return done != 0;
}

void CudaEvent::post(void* stream, Nanoseconds readyAt)
{
    const SharedStreamSignal waiter = m_waiter; // once it is posted, this event may be gone
    m_gpu.check(m_gpu.table->recordEvent(m_handle, stream), "record an event");
    m_readyAt = readyAt;
    m_posted.store(true, std::memory_order_release);
    waiter->raise();
}

CudaLink::CudaLink(const CudaGpu& from, const CudaGpu& to, const LinkOptions& options)
    : m_from(from), m_to(to), m_options(options), m_stride((options.slotBytes + 255) / 256 * 256)
{
    from.check(from.table->createStream(from.index, &m_stream), "create a stream");
    to.check(to.table->createStream(to.index, &m_arrival), "create a stream");
    if (options.storedSends > 0)
        from.check(from.table->allocate(from.index, m_stride * options.storedSends, &m_storage),
                   "allocate room for stored sends");
    for (std::size_t i = 0; i < 3 * options.postings; ++i) {
        const CudaGpu& gpu = i % 3 == 1 ? to : from;
        from.check(gpu.table->createEvent(gpu.index, &m_events.emplace_back()), "create an event");
    }
    m_sends.reserve(options.postings);
    m_receives.reserve(options.postings);
    m_copies.reserve(options.postings);
    m_freeSlots.reserve(static_cast<std::size_t>(options.storedSends));
    reset();
}

CudaLink::~CudaLink()
{
    for (void* event : m_events)
        m_from.table->destroyEvent(event);
    if (m_storage)
        m_from.table->release(m_from.index, m_storage);
    m_from.table->destroyStream(m_stream);
    m_to.table->destroyStream(m_arrival);
}

std::byte* CudaLink::slot(int index) const
{
    return static_cast<std::byte*>(m_storage) + index * m_stride;
}

Copied CudaLink::send(Stream& stream, const Posting& posting)
{
    const std::lock_guard lock(m_mutex);
    const std::size_t index = m_sends.size();
    if (3 * index >= m_events.size())
        throw Error("link", "more sends than were announced");
    Side& side = m_sends.emplace_back(Side{posting, m_events[3 * index], -1});
    auto& sender = static_cast<CudaStream&>(stream);
    m_from.check(m_from.table->recordEvent(side.ready, sender.handle()), "record an event");
    if (index >= m_receives.size() && !m_freeSlots.empty() && total(posting.regions) <= m_options.slotBytes) {
        side.slot = m_freeSlots.back();
        m_freeSlots.pop_back();
        m_from.check(m_from.table->streamWaits(m_stream, side.ready), "wait for an event");
        std::byte* to = slot(side.slot);
        for (const Region& region : posting.regions) {
            m_from.check(m_from.table->copy(to, m_from.index, region.data, m_from.index, region.bytes, m_stream),
                         "copy");
            to += region.bytes;
        }
        cudaEvent(posting.done).post(m_stream, 0);
    }
    issueLocked();
    return {};
}

Copied CudaLink::receive(Stream& stream, const Posting& posting)
{
    const std::lock_guard lock(m_mutex);
    const std::size_t index = m_receives.size();
    if (3 * index >= m_events.size())
        throw Error("link", "more receives than were announced");
    Side& side = m_receives.emplace_back(Side{posting, m_events[3 * index + 1], -1});
    m_to.check(m_to.table->recordEvent(side.ready, static_cast<CudaStream&>(stream).handle()), "record an event");
    issueLocked();
    return {};
}

void CudaLink::issueLocked()
{
    while (!m_mismatch && m_matched < m_sends.size() && m_matched < m_receives.size()) {
        void* over = m_events[3 * m_matched + 2];
        const Side &from = m_sends[m_matched], &to = m_receives[m_matched];
        if (from.posting.task != to.posting.task || !sameSizes(from.posting.regions, to.posting.regions)) {
            m_mismatch = true;
            return;
        }
        ++m_matched;
        for (void* ready : {from.ready, to.ready})
            m_from.check(m_from.table->streamWaits(m_stream, ready), "wait for an event");
        const std::byte* stored = from.slot >= 0 ? slot(from.slot) : nullptr;
        for (std::size_t i = 0; i < to.posting.regions.size(); ++i) {
            const Region& region = to.posting.regions[i];
            const std::byte* source = stored ? stored : from.posting.regions[i].data;
            if (region.bytes > 0)
                m_from.check(m_from.table->copy(region.data, m_to.index, source, m_from.index, region.bytes, m_stream),
                             "copy");
            if (stored)
                stored += region.bytes;
        }
        const Nanoseconds now = steadyNow(), later = to.posting.atLeast > 0 ? now + to.posting.atLeast : 0;
        if (from.slot >= 0)
            m_freeSlots.push_back(from.slot); // the stream keeps the order: a later store comes after this copy
        else
            cudaEvent(from.posting.done).post(m_stream, from.posting.blocks ? later : 0);
        m_from.check(m_from.table->recordEvent(over, m_stream), "record an event");
        m_to.check(m_to.table->streamWaits(m_arrival, over), "wait for an event");
        cudaEvent(to.posting.done).post(m_arrival, later);
        m_copies.push_back({to.posting.task, &cudaEvent(to.posting.done), now, to.posting.atLeast});
    }
}

Link::Heads CudaLink::heads() const
{
    const std::lock_guard lock(m_mutex);
    return {m_matched < m_sends.size() ? m_sends[m_matched].posting.task : none,
            m_matched < m_receives.size() ? m_receives[m_matched].posting.task : none, m_mismatch};
}

/// With the times of the host: when it was issued, and when it was seen to be over. A recorder on the GPU knows better.
void CudaLink::finished(std::vector<Copied>& to)
{
    const std::lock_guard lock(m_mutex);
    const Nanoseconds now = steadyNow();
    for (const Copy& copy : m_copies)
        to.push_back({copy.task, copy.issued, std::max(now, copy.issued + copy.atLeast)});
    m_copies.clear();
}

void CudaLink::reset()
{
    const std::lock_guard lock(m_mutex);
    m_sends.clear();
    m_receives.clear();
    m_copies.clear();
    m_freeSlots.resize(static_cast<std::size_t>(m_options.storedSends));
    std::iota(m_freeSlots.begin(), m_freeSlots.end(), 0);
    m_matched = 0;
    m_mismatch = false;
}

} // namespace pipewright
