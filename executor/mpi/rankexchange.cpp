// SPDX-License-Identifier: GPL-3.0-or-later
// Data that members of a group send each other within a block, over separate links beside those of the Program's
// transfers. A send is a rendezvous: a late member keeps the others waiting, as in every collective.
#include "executor/mpi/remotelink.h"
#include "executor/runtime/collectives.h"

#include <array>
#include <deque>
#include <map>
#include <utility>

namespace pipewright {

namespace {

constexpr int channelOfExchanges = 1; // 0: the links of the Program's transfers

class RankExchange final : public Exchange {
public:
    RankExchange(RankHub& hub, std::span<const int> others) : m_self(hub.self())
    {
        for (const int other : others)
            for (const auto& [from, to] : {std::pair(hub.self(), other), std::pair(other, hub.self())})
                m_links[{from, to}] = createRemoteLink(hub, from, to, {}, nullptr, channelOfExchanges);
    }

    void send(Stream& stream, std::span<const float> data, int to) override
    {
        const Region region{reinterpret_cast<std::byte*>(const_cast<float*>(data.data())), // a send only reads it
                            static_cast<Bytes>(data.size_bytes())};
        post(stream, {m_self, to}, region);
    }
    void receive(Stream& stream, std::span<float> data, int from) override
    {
        post(stream, {from, m_self},
             {reinterpret_cast<std::byte*>(data.data()), static_cast<Bytes>(data.size_bytes())});
    }
    void beginGroup() override { m_begun = m_posted.size(); }
    /// Waits until everything was sent and received, or the stream was interrupted.
    void endGroup() override
    {
        for (std::size_t i = m_begun; i < m_posted.size(); ++i)
            if (!m_posted[i].stream->wait(*m_posted[i].done))
                return;
    }
    void endStep() override
    {
        for (const auto& [pair, link] : m_links)
            link->reset();
        m_posted.clear();
        m_numbers.clear();
    }

private:
    using Pair = std::pair<int, int>; ///< from, to
    struct Posted {
        std::array<Region, 1> regions;
        Stream* stream;
        std::unique_ptr<Event> done;
    };

    void post(Stream& stream, Pair pair, Region region)
    {
        Posted& posted = m_posted.emplace_back(
            Posted{{region}, &stream, std::make_unique<HostEvent>(static_cast<HostStream&>(stream))});
        const Posting posting{m_numbers[pair]++, posted.regions, posted.done.get()};
        if (pair.first == m_self)
            m_links.at(pair)->send(stream, posting);
        else
            m_links.at(pair)->receive(stream, posting);
    }

    int m_self = 0;
    std::map<Pair, TaskId> m_numbers; ///< of postings of this step, in place of task ids
    std::deque<Posted> m_posted;      ///< until the step ends
    std::size_t m_begun = 0;
    std::map<Pair, std::unique_ptr<Link>> m_links; ///< declared last: links end before their postings
};

} // namespace

std::unique_ptr<Exchange> RankHub::createExchange(std::span<const int> others)
{
    return std::make_unique<RankExchange>(*this, others);
}

} // namespace pipewright
