// SPDX-License-Identifier: GPL-3.0-or-later
// The receiver asks for its n-th transfer; the sender matches requests with its own sends by position, compares task
// and sizes, and answers with the data or with the mismatch. O(1) messages per transfer.
#include "executor/mpi/remotelink.h"

#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

namespace pipewright {

std::int64_t shapeOf(std::span<const Region> regions)
{
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const Region& region : regions)
        hash = (hash ^ static_cast<std::uint64_t>(region.bytes)) * 0x100000001b3u;
    return static_cast<std::int64_t>(hash);
}

namespace {

constexpr Bytes sentSlotAlignment = 64;

Nanoseconds readyTime(Nanoseconds start, Nanoseconds atLeast)
{
    return atLeast > 0 ? start + atLeast : 0;
}

HostEvent& hostEvent(Event* event)
{
    return static_cast<HostEvent&>(*event);
}

class SendingEnd final : public Link, private LinkEnd {
public:
    SendingEnd(RankHub& hub, std::uint32_t number, int to, const LinkOptions& options,
               std::unique_ptr<Allocation> storage)
        : m_hub(hub), m_number(number), m_to(to), m_options(options), m_store(std::make_shared<Store>())
    {
        m_store->end = this;
        m_store->slots = std::move(storage);
        fillSlots();
        m_hub.setLink(number, this);
    }
    ~SendingEnd() override
    {
        m_hub.setLink(m_number, nullptr);
        const std::lock_guard lock(m_store->mutex);
        m_store->end = nullptr;
    }

    Copied send(Stream&, const Posting& posting) override
    {
        const std::lock_guard lock(m_mutex);
        Sent sent{posting, -1};
        const std::vector<Region> regions(posting.regions.begin(), posting.regions.end());
        if (totalBytes(regions) <= m_options.slotBytes && !m_freeSlots.empty()) {
            sent.slot = m_freeSlots.back();
            m_freeSlots.pop_back();
            std::byte* to = slot(sent.slot);
            for (const Region& region : regions) {
                if (region.bytes > 0)
                    std::memcpy(to, region.data, static_cast<std::size_t>(region.bytes));
                to += region.bytes;
            }
            hostEvent(posting.done).set();
        }
        m_sends.push_back(sent);
        matchLocked();
        return {};
    }
    Copied receive(Stream&, const Posting&) override { return {}; } // done by the other process
    Heads heads() const override
    {
        const std::lock_guard lock(m_mutex);
        return {m_matched < m_sends.size() ? m_sends[m_matched].posting.task : none,
                m_matched < m_asked.size() ? m_asked[m_matched].task : none, m_mismatch};
    }
    void reset() override
    {
        const std::lock_guard lock(m_mutex);
        m_sends.clear();
        m_asked.clear();
        m_matched = 0;
        m_mismatch = false;
        fillSlots();
    }

private:
    struct Sent {
        Posting posting;
        int slot = -1; ///< where it is stored; -1: in the sender's buffers
    };
    /// Messages in flight hold it as well: when a run is aborted, links end before the hub has sent everything.
    struct Store {
        std::mutex mutex; ///< guards `end`
        SendingEnd* end = nullptr;
        std::unique_ptr<Allocation> slots;
    };

    std::vector<Region> place(const Message&) override { return {}; }
    void received(const Message& message) override
    {
        const std::lock_guard lock(m_mutex);
        m_asked.push_back(message);
        matchLocked();
    }

    void matchLocked()
    {
        while (!m_mismatch && m_matched < m_sends.size() && m_matched < m_asked.size()) {
            const Sent& sent = m_sends[m_matched];
            const Message& asked = m_asked[m_matched];
            Message answer{.kind = RankHub::LinkData,
                           .link = m_number,
                           .sequence = static_cast<std::uint32_t>(m_matched),
                           .task = sent.posting.task,
                           .time = steadyNow() + m_hub.clockOffset(m_hub.self())};
            if (sent.posting.task != asked.task || shapeOf(sent.posting.regions) != asked.a) {
                m_mismatch = true;
                answer.kind = RankHub::LinkMismatch;
                m_hub.send(m_to, answer);
                return;
            }
            ++m_matched;
            std::vector<Region> from(sent.posting.regions.begin(), sent.posting.regions.end());
            if (sent.slot >= 0) {
                from = {{slot(sent.slot), totalBytes(from)}};
                m_leaving[static_cast<std::size_t>(sent.slot)] = true;
            }
            m_hub.send(m_to, answer, std::move(from), [store = m_store, sent, start = steadyNow()] {
                const std::lock_guard lock(store->mutex);
                if (store->end)
                    store->end->left(sent, start);
            });
        }
    }

    /// On the hub's thread: the data has been sent.
    void left(const Sent& sent, Nanoseconds start)
    {
        if (sent.slot < 0) {
            hostEvent(sent.posting.done).set(sent.posting.blocks ? readyTime(start, sent.posting.atLeast) : 0);
            return;
        }
        const std::lock_guard lock(m_mutex);
        m_leaving[static_cast<std::size_t>(sent.slot)] = false;
        m_freeSlots.push_back(sent.slot);
    }

    /// Frees all slots but those that the hub still reads: the receiver may have the data before the hub reports it as
    /// sent. left() frees these later.
    void fillSlots()
    {
        m_leaving.resize(static_cast<std::size_t>(m_options.storedSends));
        m_freeSlots.clear();
        for (int slot = 0; slot < m_options.storedSends; ++slot)
            if (!m_leaving[static_cast<std::size_t>(slot)])
                m_freeSlots.push_back(slot);
    }
    /// Null where no transfer has any bytes.
    std::byte* slot(int index)
    {
        return m_store->slots ? m_store->slots->region().data + index * m_options.stride(sentSlotAlignment) : nullptr;
    }

    RankHub& m_hub;
    const std::uint32_t m_number;
    const int m_to;
    const LinkOptions m_options;
    const std::shared_ptr<Store> m_store;
    mutable std::mutex m_mutex; ///< guards what follows
    std::vector<Sent> m_sends;
    std::vector<Message> m_asked;
    std::vector<int> m_freeSlots;
    std::vector<bool> m_leaving; ///< by slot: handed to the hub and not yet sent
    std::size_t m_matched = 0;
    bool m_mismatch = false;
};

class ReceivingEnd final : public Link, private LinkEnd {
public:
    ReceivingEnd(RankHub& hub, std::uint32_t number, int from) : m_hub(hub), m_number(number), m_from(from)
    {
        m_hub.setLink(number, this);
    }
    ~ReceivingEnd() override { m_hub.setLink(m_number, nullptr); }

    Copied send(Stream&, const Posting&) override { return {}; } // done by the other process
    Copied receive(Stream&, const Posting& posting) override
    {
        std::uint32_t sequence = 0;
        {
            const std::lock_guard lock(m_mutex);
            sequence = static_cast<std::uint32_t>(m_receives.size());
            m_receives.push_back(posting);
        }
        m_hub.send(m_from, {.kind = RankHub::LinkReady,
                            .link = m_number,
                            .sequence = sequence,
                            .task = posting.task,
                            .a = shapeOf(posting.regions)});
        return {};
    }
    Heads heads() const override
    {
        const std::lock_guard lock(m_mutex);
        return {m_mismatch ? m_sentInstead : none, m_arrived < m_receives.size() ? m_receives[m_arrived].task : none,
                m_mismatch};
    }
    void finished(std::vector<Copied>& to) override
    {
        const std::lock_guard lock(m_mutex);
        to.insert(to.end(), m_finished.begin(), m_finished.end());
        m_finished.clear();
    }
    void reset() override
    {
        const std::lock_guard lock(m_mutex);
        m_receives.clear();
        m_finished.clear();
        m_arrived = 0;
        m_mismatch = false;
    }

private:
    std::vector<Region> place(const Message& message) override
    {
        const std::lock_guard lock(m_mutex);
        if (message.sequence >= m_receives.size())
            return {};
        const auto regions = m_receives[message.sequence].regions;
        return {regions.begin(), regions.end()};
    }
    void received(const Message& message) override
    {
        Posting posting;
        Nanoseconds start = 0;
        {
            const std::lock_guard lock(m_mutex);
            if (message.kind == RankHub::LinkMismatch) {
                m_mismatch = true;
                m_sentInstead = message.task;
                return;
            }
            if (message.sequence >= m_receives.size())
                return;
            posting = m_receives[message.sequence];
            m_arrived = message.sequence + 1;
            // The sender's start on the common clock, but never later than the arrival.
            start = std::min(steadyNow(), message.time - m_hub.clockOffset(m_hub.self()));
            m_finished.push_back({posting.task, start, std::max(steadyNow(), start + posting.atLeast)});
        }
        hostEvent(posting.done).set(readyTime(start, posting.atLeast));
    }

    RankHub& m_hub;
    const std::uint32_t m_number;
    const int m_from;
    mutable std::mutex m_mutex; ///< guards what follows
    std::vector<Posting> m_receives;
    std::vector<Copied> m_finished;
    std::size_t m_arrived = 0;
    bool m_mismatch = false;
    TaskId m_sentInstead = none;
};

} // namespace

Bytes remoteLinkStorage(const LinkOptions& options)
{
    return options.storedSends * options.stride(sentSlotAlignment);
}

std::unique_ptr<Link> createRemoteLink(RankHub& hub, int from, int to, const LinkOptions& options,
                                       std::unique_ptr<Allocation> storage, int channel)
{
    const auto number = static_cast<std::uint32_t>((channel * hub.count() + from) * hub.count() + to);
    if (from == hub.self())
        return std::make_unique<SendingEnd>(hub, number, to, options, std::move(storage));
    return std::make_unique<ReceivingEnd>(hub, number, from);
}

} // namespace pipewright
