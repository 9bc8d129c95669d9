// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/cudalink.h"

#include "core/base/diagnostic.h"
#include "executor/cuda/cudaclock.h"
#include "executor/runtime/pollingpause.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace pipewright {

namespace {

constexpr auto shortestPause = std::chrono::microseconds(20);
constexpr Bytes gpuSlotAlignment = 256;

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

} // namespace

void CudaGpu::check(int code, const char* what) const
{
    if (code != 0)
        throw Error("GPU " + std::to_string(index), std::string("cannot ") + what + ": " + table->lastError());
}

CudaStream::CudaStream(const CudaGpu& gpu) : m_gpu(gpu)
{
    gpu.check(gpu.table->createStream(gpu.index, gpu.slice, &m_handle), "create a stream");
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
    m_gpu.check(m_gpu.table->streamWaits(m_handle, awaited.handle()), "wait for an event");
    return !m_interrupted.load(std::memory_order_acquire);
}

/// Polls instead of waiting in the driver, which could not be interrupted.
bool CudaStream::synchronize()
{
    for (PollingPause pause(shortestPause); !m_interrupted.load(std::memory_order_acquire); pause.sleep())
        if (done())
            return true;
    return false;
}

void CudaStream::finish()
{
    for (PollingPause pause(shortestPause); !done();)
        pause.sleep();
}

bool CudaStream::done() const
{
    std::int32_t done = 0;
    m_gpu.check(m_gpu.table->streamDone(m_handle, &done), "run what was issued");
    return done != 0;
}

bool CudaStream::spend(Nanoseconds time)
{
    m_gpu.check(m_gpu.table->spin(m_gpu.index, m_handle, time), "spend time");
    return true;
}

void CudaStream::interrupt()
{
    m_interrupted.store(true, std::memory_order_release);
    m_signal->raise();
}

CudaEvent::CudaEvent(const CudaGpu& gpu, const CudaStream& waiter) : m_gpu(gpu), m_waiter(waiter.signal())
{
    gpu.check(gpu.table->createEvent(gpu.index, &m_own), "create an event");
}

CudaEvent::~CudaEvent()
{
    m_gpu.table->destroyEvent(m_own);
}

bool CudaEvent::complete() const
{
    if (!posted())
        return false;
    std::int32_t done = 0;
    m_gpu.check(m_gpu.table->eventDone(m_happens, &done), "ask for an event");
    return done != 0;
}

void CudaEvent::post(void* stream)
{
    m_gpu.check(m_gpu.table->recordEvent(m_own, stream), "record an event");
    postWith(m_own);
}

void CudaEvent::postWith(void* event)
{
    const SharedStreamSignal waiter = m_waiter; // once posted, this event may be destroyed by another thread
    m_happens = event;
    m_posted.store(true, std::memory_order_release);
    waiter->raise();
}

LinkMemory CudaLink::memoryFor(const LinkOptions& options)
{
    return {options.storedSends * options.stride(gpuSlotAlignment),
            static_cast<Bytes>(sizeof(std::int64_t) * options.postings)};
}

CudaLink::CudaLink(const CudaGpu& from, const CudaGpu& to, const LinkOptions& options,
                   std::unique_ptr<Allocation> storage, std::unique_ptr<Allocation> stamps)
    : m_from(from), m_to(to), m_events(options.postings), m_options(options), m_storage(std::move(storage)),
      m_stamps(std::move(stamps))
{
    from.check(from.table->createStream(from.index, from.slice, &m_stream), "create a stream");
    // Streams share the GPU's few hardware connections to its host, so a link uses one stream. One that may be slowed
    // has two, so that the next transfer begins while the last is still delayed by the emulation.
    m_arrival = m_stream;
    if (options.mayBeSlowed)
        to.check(to.table->createStream(to.index, to.slice, &m_arrival), "create a stream");
    for (Events& events : m_events) {
        for (void** event : {&events.senderReady, &events.started, &events.over})
            from.check(from.table->createEvent(from.index, event), "create an event");
        to.check(to.table->createEvent(to.index, &events.receiverReady), "create an event");
    }
    m_sends.reserve(options.postings);
    m_receives.reserve(options.postings);
    m_copies.reserve(options.postings);
    m_freeSlots.reserve(static_cast<std::size_t>(options.storedSends));
    CudaLink::reset();
}

CudaLink::~CudaLink()
{
    for (const Events& events : m_events)
        for (void* event : {events.senderReady, events.receiverReady, events.started, events.over})
            m_from.table->destroyEvent(event);
    m_from.table->destroyStream(m_stream);
    if (m_arrival != m_stream)
        m_to.table->destroyStream(m_arrival);
}

std::byte* CudaLink::slot(int index) const
{
    return m_storage->region().data + index * m_options.stride(gpuSlotAlignment);
}

Copied CudaLink::send(Stream& stream, const Posting& posting)
{
    const std::lock_guard lock(m_mutex);
    const std::size_t index = m_sends.size();
    if (index >= m_events.size())
        throw Error("link", "more sends than were announced");
    Side& side = m_sends.emplace_back(Side{posting, -1});
    const Events& events = m_events[index];
    m_from.check(m_from.table->recordEvent(events.senderReady, static_cast<CudaStream&>(stream).handle()),
                 "record an event");
    if (index >= m_receives.size() && !m_freeSlots.empty() && total(posting.regions) <= m_options.slotBytes) {
        side.slot = m_freeSlots.back();
        m_freeSlots.pop_back();
        m_from.check(m_from.table->streamWaits(m_stream, events.senderReady), "wait for an event");
        std::byte* to = slot(side.slot);
        for (const Region& region : posting.regions) {
            if (region.bytes > 0)
                m_from.check(m_from.table->copy(to, m_from.index, region.data, m_from.index, region.bytes, m_stream),
                             "copy");
            to += region.bytes;
        }
        cudaEvent(posting.done).post(m_stream);
    }
    issueLocked();
    return {};
}

Copied CudaLink::receive(Stream& stream, const Posting& posting)
{
    const std::lock_guard lock(m_mutex);
    const std::size_t index = m_receives.size();
    if (index >= m_events.size())
        throw Error("link", "more receives than were announced");
    m_receives.emplace_back(Side{posting, -1});
    m_to.check(m_to.table->recordEvent(m_events[index].receiverReady, static_cast<CudaStream&>(stream).handle()),
               "record an event");
    issueLocked();
    return {};
}

void CudaLink::issueLocked()
{
    while (!m_mismatch && m_matched < m_sends.size() && m_matched < m_receives.size()) {
        const Side &from = m_sends[m_matched], &to = m_receives[m_matched];
        if (from.posting.task != to.posting.task || !sameSizes(from.posting.regions, to.posting.regions)) {
            m_mismatch = true;
            return;
        }
        move(m_matched++);
    }
}

void CudaLink::move(std::size_t index)
{
    const Side &from = m_sends[index], &to = m_receives[index];
    const Events& events = m_events[index];
    CudaEvent &sent = cudaEvent(from.posting.done), &arrived = cudaEvent(to.posting.done);
    m_from.check(m_from.table->streamWaits(m_stream, events.receiverReady), "wait for an event");
    begin(index);
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
    if (from.slot >= 0)
        m_freeSlots.push_back(from.slot); // the stream keeps the order: a later store comes after this copy
    m_from.check(m_from.table->recordEvent(events.over, m_stream), "record an event");
    const bool slowed = to.posting.atLeast > 0;
    if (slowed) {
        void* stamp = m_stamps->region().data + index * sizeof(std::int64_t);
        m_to.check(m_to.table->streamWaits(m_arrival, events.started), "wait for an event");
        m_to.check(m_to.table->stamp(m_to.index, m_arrival, stamp), "stamp a time");
        m_to.check(m_to.table->streamWaits(m_arrival, events.over), "wait for an event");
        m_to.check(m_to.table->spinFrom(m_to.index, m_arrival, stamp, to.posting.atLeast), "emulate a slower link");
        arrived.post(m_arrival);
    } else {
        arrived.postWith(events.over);
    }
    if (from.slot < 0)
        sent.postWith(slowed && from.posting.blocks ? arrived.handle() : events.over);
    noteCopy(index, slowed ? m_to : m_from);
}

/// On the link's stream: waits for the sender's data and marks the start of the transfer.
void CudaLink::begin(std::size_t index)
{
    const Posting& to = m_receives[index].posting;
    m_from.check(m_from.table->streamWaits(m_stream, m_events[index].senderReady), "wait for an event");
    if (to.timed || to.atLeast > 0)
        m_from.check(m_from.table->recordEvent(m_events[index].started, m_stream), "record an event");
}

void CudaLink::depart(std::size_t index)
{
    cudaEvent(m_sends[index].posting.done).post(m_stream);
}

void CudaLink::arrive(std::size_t index)
{
    cudaEvent(m_receives[index].posting.done).post(m_arrival);
}

void CudaLink::noteCopy(std::size_t index, const CudaGpu& arrivedOn)
{
    const Posting& to = m_receives[index].posting;
    if (to.timed)
        m_copies.push_back({to.task, &cudaEvent(to.done), arrivedOn.clock, m_events[index].started});
}

Link::Heads CudaLink::heads() const
{
    const std::lock_guard lock(m_mutex);
    return {m_matched < m_sends.size() ? m_sends[m_matched].posting.task : none,
            m_matched < m_receives.size() ? m_receives[m_matched].posting.task : none, m_mismatch};
}

/// Reports copies from when both sides were ready until the bytes had arrived, by the GPUs' own events.
void CudaLink::finished(std::vector<Copied>& to)
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_copies, [&](const Copy& copy) {
        if (!copy.arrived->complete())
            return false;
        // The clocks of two GPUs are compared through the host's: they may differ by more than a short copy takes.
        const Nanoseconds start = m_from.clock->timeOf(copy.started);
        to.push_back({copy.task, start, std::max(start, copy.clock->timeOf(copy.arrived->handle()))});
        return true;
    });
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
