// SPDX-License-Identifier: GPL-3.0-or-later
// Transfers that are decided and wait for the next later start time: one per producer and destination, with
// all values of the one for the other. They leave in the order of their first consumers (JaxPP's rule).
// Fields are written where they stay, since this is passed once per value and reading a just-built struct in
// other pieces than it was written in stalls the processor.
#pragma once

#include "core/program/program.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace pipewright {

/// A value where one device can read it: the buffer, and the task after which it is there (none when the
/// device's own order already says so).
struct Arrival {
    BufferId buffer = none;
    TaskId task = none;
};

/// The number under which a value sent off the chain is known on a device: `number` says what it is.
inline std::uint64_t skipKey(std::uint32_t number, std::int32_t microbatch, std::int32_t device, bool gradient)
{
    return (std::uint64_t{gradient} << 63) | (std::uint64_t{number} << 32)
           | (static_cast<std::uint64_t>(microbatch) << 13) | static_cast<std::uint64_t>(device);
}

class PendingTransfers {
public:
    struct Value {
        BufferId source = none;
        std::uint32_t next = none; ///< of the same transfer
        Arrival* chain = nullptr;  ///< where the arrival is noted: there …
        std::uint64_t skipKey = 0; ///< … or, without a place, under this key
    };
    struct Transfer {
        TaskId producer = none;
        std::int32_t destination = 0;
        std::uint32_t firstConsumer = none; ///< rank in the global order
        std::uint32_t firstValue = none, lastValue = none;
        Nanoseconds due = 0; ///< blocking transfers: not before, unless the consumer is next
    };

    /// Notes a value for a consumer on another device. All values of a producer come one after the other;
    /// the same skip value for a second consumer there is not sent twice.
    void add(TaskId producer, std::int32_t destination, std::uint32_t consumer, Nanoseconds due, BufferId source,
             Arrival* chain, std::uint64_t skipKey = 0)
    {
        m_firstConsumer = std::min(m_firstConsumer, consumer);
        Transfer& transfer = transferTo(producer, destination, due);
        transfer.firstConsumer = std::min(transfer.firstConsumer, consumer);
        if (chain == nullptr && holdsSkip(transfer, skipKey))
            return;
        const auto index = static_cast<std::uint32_t>(m_values.size());
        Value& value = m_values.emplace_back();
        value.source = source;
        value.chain = chain;
        value.skipKey = skipKey;
        (transfer.firstValue == none ? transfer.firstValue : m_values[transfer.lastValue].next) = index;
        transfer.lastValue = index;
    }

    /// Rank of the first block that needs any of them; none when nothing waits.
    std::uint32_t firstConsumer() const { return m_firstConsumer; }

    /// Hands over those that are due, in the order in which they leave, and forgets them.
    template<typename Emit>
    void take(Nanoseconds until, Emit emit)
    {
        // Not stable_sort, which would allocate each time; producers are numbered in the order of deciding.
        std::sort(m_transfers.begin(), m_transfers.end(), [](const Transfer& a, const Transfer& b) {
            return std::tie(a.firstConsumer, a.producer, a.destination) < std::tie(b.firstConsumer, b.producer, b.destination);
        });
        std::size_t kept = 0;
        m_firstConsumer = none;
        for (const Transfer& transfer : m_transfers)
            if (transfer.due <= until) {
                emit(transfer);
            } else {
                m_firstConsumer = std::min(m_firstConsumer, transfer.firstConsumer);
                m_transfers[kept++] = transfer;
            }
        m_transfers.resize(kept);
        if (kept == 0)
            m_values.clear();
    }

    /// Calls see(value) for each value of a transfer that is being taken.
    template<typename See>
    void eachValue(const Transfer& transfer, See see) const
    {
        for (std::uint32_t v = transfer.firstValue; v != none; v = m_values[v].next)
            see(m_values[v]);
    }

private:
    Transfer& transferTo(TaskId producer, std::int32_t destination, Nanoseconds due)
    {
        for (std::size_t t = m_transfers.size(); t-- > 0 && m_transfers[t].producer == producer;)
            if (m_transfers[t].destination == destination)
                return m_transfers[t];
        Transfer& transfer = m_transfers.emplace_back();
        transfer.producer = producer;
        transfer.destination = destination;
        transfer.due = due;
        return transfer;
    }

    bool holdsSkip(const Transfer& transfer, std::uint64_t skipKey) const
    {
        bool found = false;
        eachValue(transfer,
                  [&](const Value& value) { found = found || (value.chain == nullptr && value.skipKey == skipKey); });
        return found;
    }

    std::vector<Transfer> m_transfers;
    std::vector<Value> m_values;
    std::uint32_t m_firstConsumer = none;
};

} // namespace pipewright
