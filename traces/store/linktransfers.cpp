// SPDX-License-Identifier: GPL-3.0-or-later
// Groups communications into series and matches the i-th of each; the usual time of a size is the median over links.
// O(n log n).
#include "traces/store/linktransfers.h"

#include "core/base/formattedtext.h"
#include "core/base/median.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace pipewright {

namespace {

using Series = std::vector<NcclKernel>;

class Pairing {
public:
    LinkTransfers run(std::vector<NcclKernel> communications)
    {
        std::stable_sort(communications.begin(), communications.end(),
                         [](const NcclKernel& a, const NcclKernel& b) { return a.start < b.start; });
        std::map<std::pair<int, int>, Series> sent, received; // by source and target
        std::map<std::pair<std::string, std::string>, std::map<int, Series>>
            collectives; // by kind and group, then rank
        for (NcclKernel& c : communications) {
            if (c.collective != "send" && c.collective != "recv") {
                const std::pair key(c.collective, c.group);
                collectives[key][c.rank].push_back(std::move(c));
            } else if (c.peer >= 0 && c.peer != c.rank) {
                const bool sends = c.collective == "send";
                const std::pair pair = sends ? std::pair(c.rank, c.peer) : std::pair(c.peer, c.rank);
                (sends ? sent : received)[pair].push_back(std::move(c));
            }
        }
        for (const auto& [pair, sends] : sent)
            if (const auto receives = received.find(pair); receives != received.end()) {
                const std::uint32_t link =
                    add({pair.first, pair.second,
                         fmt::format("the link from rank {} to rank {}", pair.first, pair.second), "send"});
                take(link, {&sends, &receives->second}, true);
            }
        for (const auto& [key, ofRank] : collectives) {
            if (ofRank.size() < 2)
                continue;
            std::vector<const Series*> series;
            std::vector<int> ranks;
            for (const auto& [rank, of] : ofRank) {
                ranks.push_back(rank);
                series.push_back(&of);
            }
            constexpr std::size_t named = 8;
            const std::string over = ranks.size() <= named ? fmt::format("ranks {}", joined(ranks, ", "))
                                                           : fmt::format("{} ranks ({})", ranks.size(), key.second);
            take(add({-1, -1, fmt::format("{} over {}", key.first, over),
                      fmt::format("{} of {}", key.first, ranks.size())}),
                 series, false);
        }
        findUsual();
        std::stable_sort(m_result.transfers.begin(), m_result.transfers.end(),
                         [](const LinkTransfer& a, const LinkTransfer& b) { return a.ready < b.ready; });
        return std::move(m_result);
    }

private:
    std::uint32_t add(LinkTransfers::Link link)
    {
        m_result.links.push_back(std::move(link));
        return static_cast<std::uint32_t>(m_result.links.size() - 1);
    }

    /// Matches the i-th of every series.
    void take(std::uint32_t link, const std::vector<const Series*>& series, bool toLast)
    {
        const std::size_t count = series[0]->size();
        if (std::any_of(series.begin(), series.end(), [&](const Series* s) { return s->size() != count; }))
            return;
        for (std::size_t i = 0; i < count; ++i) {
            const NcclKernel* last = &(*series[0])[i];
            Nanoseconds first = last->start, end = last->end;
            for (const Series* of : series) {
                const NcclKernel& c = (*of)[i];
                first = std::min(first, c.start);
                end = std::max(end, c.end);
                if (c.start > last->start)
                    last = &c;
            }
            const NcclKernel& at = toLast ? (*series.back())[i] : *last;
            // Clocks that differ a little can put an end before a start.
            m_result.transfers.push_back(
                {link, at.rank, at.device, last->start, std::max(last->start, end), last->start - first, 0, at.bytes});
        }
    }

    /// Median over the links of each link's median, robust against one slow link and single delays.
    void findUsual()
    {
        using Like = std::pair<std::string, Bytes>;
        std::map<Like, std::map<std::uint32_t, std::vector<Nanoseconds>>> times;
        for (const LinkTransfer& t : m_result.transfers)
            times[{m_result.links[t.link].kind, t.bytes}][t.link].push_back(t.time());
        std::map<Like, Nanoseconds> usual;
        for (auto& [like, ofLink] : times) {
            std::vector<Nanoseconds> medians;
            for (auto& [link, values] : ofLink)
                medians.push_back(medianOf(std::move(values)));
            usual[like] = medianOf(std::move(medians));
        }
        for (LinkTransfer& t : m_result.transfers)
            t.usual = usual[{m_result.links[t.link].kind, t.bytes}];
    }

    /// The lower one of two.
    LinkTransfers m_result;
};

} // namespace

LinkTransfers pairTransfers(std::vector<NcclKernel> communications)
{
    return Pairing().run(std::move(communications));
}

} // namespace pipewright
