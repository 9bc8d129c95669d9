// SPDX-License-Identifier: GPL-3.0-or-later
// Two lists under one mutex, matched by position; the copy itself is outside of it. O(1) per transfer beside the copy.
#include "executor/host/hostlink.h"

#include "executor/runtime/bus.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace pipewright {

namespace {

Bytes total(std::span<const Region> regions)
{
    return std::accumulate(regions.begin(), regions.end(), Bytes{0},
                           [](Bytes sum, const Region& region) { return sum + region.bytes; });
}

bool sameSizes(std::span<const Region> a, std::span<const Region> b)
{
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const Region& x, const Region& y) {
               return x.bytes == y.bytes;
           });
}

void copyBytes(std::byte* to, const std::byte* from, Bytes bytes)
{
    if (bytes > 0)
        std::memcpy(to, from, bytes);
}

void copyRegions(std::span<const Region> to, std::span<const Region> from)
{
    for (std::size_t i = 0; i < to.size(); ++i)
        copyBytes(to[i].data, from[i].data, to[i].bytes);
}

void store(std::byte* slot, std::span<const Region> from)
{
    for (const Region& region : from) {
        copyBytes(slot, region.data, region.bytes);
        slot += region.bytes;
    }
}

void load(std::span<const Region> to, const std::byte* slot)
{
    for (const Region& region : to) {
        copyBytes(region.data, slot, region.bytes);
        slot += region.bytes;
    }
}

void set(Event* event, Nanoseconds readyAt = 0)
{
    static_cast<HostEvent*>(event)->set(readyAt);
}

Nanoseconds readyTime(Nanoseconds start, Nanoseconds atLeast)
{
    return atLeast > 0 ? start + atLeast : 0;
}

/// When the copy begins: now, or when the bus has finished earlier transfers.
Nanoseconds beginOf(const Posting& posting)
{
    return posting.bus != nullptr ? posting.bus->take(posting.held) : steadyNow();
}

/// Releases the sender: at once, unless the transfer blocks it too.
void releaseSender(const Posting& sent, Nanoseconds start)
{
    set(sent.done, sent.blocks ? readyTime(start, sent.atLeast) : 0);
}

} // namespace

HostLink::HostLink(const LinkOptions& options, std::unique_ptr<Allocation> storage)
    : m_options(options), m_storage(std::move(storage))
{
    m_sends.reserve(options.postings);
    m_receives.reserve(options.postings);
    m_freeSlots.reserve(options.storedSends);
    reset();
}

void HostLink::reset()
{
    const std::lock_guard lock(m_mutex);
    m_sends.clear();
    m_receives.clear();
    m_freeSlots.resize(m_options.storedSends);
    std::iota(m_freeSlots.begin(), m_freeSlots.end(), 0);
    m_matched = 0;
    m_mismatch = false;
}

/// Whether transfer `index`, posted on both sides, may be copied. Transfers match in order, so all earlier ones have
/// matched.
bool HostLink::match(std::size_t index)
{
    if (m_mismatch)
        return false;
    const Posting& sent = m_sends[index].posting;
    const Posting& received = m_receives[index];
    if (sent.task != received.task || !sameSizes(sent.regions, received.regions)) {
        m_mismatch = true;
        return false;
    }
    m_matched = index + 1;
    return true;
}

Copied HostLink::send(Stream&, const Posting& posting)
{
    std::unique_lock lock(m_mutex);
    const std::size_t index = m_sends.size();
    m_sends.push_back({.posting = posting});
    if (index < m_receives.size()) {
        if (!match(index))
            return {};
        const Posting to = m_receives[index];
        lock.unlock();
        const Nanoseconds start = beginOf(posting);
        copyRegions(to.regions, posting.regions);
        const Nanoseconds end = std::max(steadyNow(), start + posting.atLeast);
        set(to.done, readyTime(start, posting.atLeast));
        releaseSender(posting, start);
        return {posting.task, start, end};
    }
    if (m_freeSlots.empty() || total(posting.regions) > m_options.slotBytes)
        return {};

    const int slot = m_freeSlots.back();
    m_freeSlots.pop_back();
    m_sends[index].slot = slot;
    lock.unlock();
    const Nanoseconds start = beginOf(posting);
    store(slotData(slot), posting.regions);
    lock.lock();
    m_sends[index].stored = true;
    m_sends[index].begun = start;
    if (index >= m_receives.size()) {
        lock.unlock();
        set(posting.done);
        return {};
    }
    // The receive was posted meanwhile, before the slot was filled: so this call must deliver.
    if (!match(index)) {
        lock.unlock();
        set(posting.done);
        return {};
    }
    const Posting to = m_receives[index];
    m_freeSlots.push_back(slot);
    lock.unlock();
    copyRegions(to.regions, posting.regions);
    const Nanoseconds end = std::max(steadyNow(), start + posting.atLeast);
    set(to.done, readyTime(start, posting.atLeast));
    set(posting.done);
    return {posting.task, start, end};
}

Copied HostLink::receive(Stream&, const Posting& posting)
{
    std::unique_lock lock(m_mutex);
    const std::size_t index = m_receives.size();
    m_receives.push_back(posting);
    if (index >= m_sends.size())
        return {};
    const Sent from = m_sends[index];
    if (from.slot >= 0 && !from.stored)
        return {};
    if (!match(index))
        return {};
    lock.unlock();
    // An emulated link is busy from the moment the data left the sender.
    const Nanoseconds start = from.stored && posting.atLeast > 0 ? from.begun : beginOf(posting);
    if (from.slot >= 0) {
        load(posting.regions, slotData(from.slot));
        lock.lock();
        m_freeSlots.push_back(from.slot);
        lock.unlock();
    } else {
        copyRegions(posting.regions, from.posting.regions);
        releaseSender(from.posting, start);
    }
    const Nanoseconds end = std::max(steadyNow(), start + posting.atLeast);
    set(posting.done, readyTime(start, posting.atLeast));
    return {posting.task, start, end};
}

Link::Heads HostLink::heads() const
{
    const std::lock_guard lock(m_mutex);
    Heads heads;
    if (m_matched < m_sends.size())
        heads.send = m_sends[m_matched].posting.task;
    if (m_matched < m_receives.size())
        heads.receive = m_receives[m_matched].task;
    heads.mismatch = m_mismatch;
    return heads;
}

} // namespace pipewright
