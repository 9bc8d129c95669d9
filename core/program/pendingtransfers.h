// SPDX-License-Identifier: GPL-3.0-or-later
// Transfers that are decided and wait for the next later start time: one per producer and destination, with all values
// for that destination. They are issued in the order of their first consumers (JaxPP's rule). Fields are written in
// place, since this runs once per value, and reading a just-built struct in other widths than it was written in stalls
// the processor.
#pragma once

#include "core/design/dataflow.h"
#include "core/program/program.h"
#include "core/schedule/ordergraph.h"

#include <algorithm>
#include <vector>

namespace pipewright {

/// A value where one device can read it: the buffer, and the task after which it is there (none when the
/// device's own order already says so).
struct Arrival {
    BufferId buffer = none;
    TaskId task = none;
};

/// The key under which a value sent off the chain is known on a device: `kind` and `number` say what it is.
inline std::uint64_t skipKey(OrderGraph::SkipInput::Kind kind, std::uint32_t number, std::int32_t microbatch,
                             std::int32_t device, bool gradient)
{
    return (std::uint64_t{gradient} << 63) | (static_cast<std::uint64_t>(kind) << 60) | (std::uint64_t{number} << 32)
           | (static_cast<std::uint64_t>(microbatch) << 13) | static_cast<std::uint64_t>(device);
}

/// The key of a skip connection's value, or of a value handled like one. All connections from one stage carry the same
/// value.
inline std::uint64_t skipKey(const Dataflow& dataflow, const OrderGraph::SkipInput& input, int microbatch, int device,
                             bool gradient)
{
    const bool ofStage = input.kind == OrderGraph::SkipInput::Kind::Skip && !gradient;
    const auto number = ofStage ? static_cast<std::uint32_t>(dataflow.skips[input.index].fromStage) : input.index;
    return skipKey(input.kind, number, microbatch, device, gradient);
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
        std::uint32_t lastValue = none;     ///< none: there is one only
        Nanoseconds due = 0;                ///< not before, unless the consumer is next
        bool heldBack = false;              ///< other blocks may come between its producer and it
        Value first{};
    };

    /// Notes a value for a consumer on another device. All values of a producer must be added consecutively. A skip
    /// value is sent only once to a device, even with several consumers there.
    void add(TaskId producer, std::int32_t destination, std::uint32_t consumer, Nanoseconds due, BufferId source,
             Arrival* chain, std::uint64_t skipKey = 0)
    {
        m_firstConsumer = std::min(m_firstConsumer, consumer);
        if (!m_transfers.empty() && m_transfers.back().producer == producer
            && join(producer, destination, consumer, source, chain, skipKey))
            return;
        Transfer& transfer = m_transfers.emplace_back();
        transfer.producer = producer;
        transfer.destination = destination;
        transfer.firstConsumer = consumer;
        transfer.due = due;
        transfer.first.source = source;
        transfer.first.chain = chain;
        transfer.first.skipKey = skipKey;
    }

    /// Marks the transfer added last.
    void holdBack() { m_transfers.back().heldBack = true; }

    /// Rank of the first block that needs any of them; none when nothing waits.
    std::uint32_t firstConsumer() const { return m_firstConsumer; }

    /// Emits the transfers that are due, in issue order, and removes them.
    template<typename Emit>
    void take(Nanoseconds until, Emit emit)
    {
        // Sorted by keys, since a transfer is large to move and compare. Producers are numbered in the order of
        // deciding.
        m_order.clear();
        for (std::uint32_t t = 0; t < m_transfers.size(); ++t)
            m_order.push_back({(std::uint64_t{m_transfers[t].firstConsumer} << 32) | m_transfers[t].producer,
                               m_transfers[t].destination, t});
        std::sort(m_order.begin(), m_order.end(), [](const Leaving& a, const Leaving& b) {
            return a.key != b.key ? a.key < b.key : a.destination < b.destination;
        });
        m_kept.clear();
        m_firstConsumer = none;
        for (const Leaving& leaving : m_order)
            if (const Transfer& transfer = m_transfers[leaving.transfer]; transfer.due <= until) {
                emit(transfer);
            } else {
                m_firstConsumer = std::min(m_firstConsumer, transfer.firstConsumer);
                m_kept.push_back(transfer);
            }
        m_transfers.swap(m_kept);
        if (m_transfers.empty())
            m_values.clear();
    }

    /// Calls see(value) for each value of a transfer that is being taken.
    template<typename See>
    void eachValue(const Transfer& transfer, See see) const
    {
        see(transfer.first);
        for (std::uint32_t v = transfer.first.next; v != none; v = m_values[v].next)
            see(m_values[v]);
    }

private:
    /// Adds the value to its producer's transfer to that device; false when there is none yet.
    bool join(TaskId producer, std::int32_t destination, std::uint32_t consumer, BufferId source, Arrival* chain,
              std::uint64_t skipKey)
    {
        for (std::size_t t = m_transfers.size(); t-- > 0 && m_transfers[t].producer == producer;) {
            Transfer& transfer = m_transfers[t];
            if (transfer.destination != destination)
                continue;
            transfer.firstConsumer = std::min(transfer.firstConsumer, consumer);
            if (chain == nullptr && holdsSkip(transfer, skipKey))
                return true;
            const auto index = static_cast<std::uint32_t>(m_values.size());
            m_values.push_back({source, none, chain, skipKey});
            (transfer.lastValue == none ? transfer.first : m_values[transfer.lastValue]).next = index;
            transfer.lastValue = index;
            return true;
        }
        return false;
    }

    bool holdsSkip(const Transfer& transfer, std::uint64_t skipKey) const
    {
        bool found = false;
        eachValue(transfer,
                  [&](const Value& value) { found = found || (value.chain == nullptr && value.skipKey == skipKey); });
        return found;
    }

    struct Leaving {
        std::uint64_t key; ///< first consumer, then producer
        std::int32_t destination;
        std::uint32_t transfer;
    };
    std::vector<Transfer> m_transfers;
    std::vector<Transfer> m_kept; ///< while some are taken
    std::vector<Leaving> m_order; ///< likewise
    std::vector<Value> m_values;  ///< behind the first of their transfer
    std::uint32_t m_firstConsumer = none;
};

} // namespace pipewright
