// SPDX-License-Identifier: GPL-3.0-or-later
// Reads ranges of GPipe by name. For 1F1B it goes through each rank's outermost operators in order of time, cuts them
// at transfers and at changes between forward and backward, and numbers forwards and backwards within their step, since
// each kind runs in order.
#include "traces/import/stockschedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

namespace pipewright {

namespace {

constexpr std::string_view autograd = "autograd::engine::evaluate_function";

/// "Forward 3" as an action of the rank's stage.
std::optional<PytorchAction> gpipeAction(std::string_view name, int rank)
{
    PytorchAction action;
    action.stage = rank;
    for (const auto& [prefix, type] : {std::pair{std::string_view("Forward "), PytorchAction::Type::F},
                                       std::pair{std::string_view("Backward "), PytorchAction::Type::B}}) {
        if (!name.starts_with(prefix))
            continue;
        const char* const end = name.data() + name.size();
        const auto [at, error] = std::from_chars(name.data() + prefix.size(), end, action.microbatch);
        if (error == std::errc{} && at == end && action.microbatch >= 0) {
            action.type = type;
            return action;
        }
    }
    return std::nullopt;
}

/// A rank's outermost operators of every lane, in order.
struct Operators {
    std::vector<const Activity*> outermost;
    std::map<std::uint32_t, std::vector<Nanoseconds>> leads; ///< by lane: where arrows to autograd operators begin
    std::int64_t sends = 0, receives = 0;
};

PipelineRange rangeOf(const Activity& a, const PytorchAction& action)
{
    PipelineRange range;
    range.start = a.start;
    range.end = a.end;
    range.lane = a.lane;
    range.name = a.name;
    range.actions = {action};
    return range;
}

class StockReader {
public:
    StockReader(TraceData& data, const ProfilerSteps& steps) : m_data(data), m_steps(steps) {}

    StockBlocks run()
    {
        if (!mayHaveBlocks())
            return {};
        collect();
        readGpipe();
        if (!m_blocks.ranges.empty()) {
            checkGpipe();
            return std::move(m_blocks);
        }
        const bool passes = std::any_of(m_ranks.begin(), m_ranks.end(),
                                        [](const auto& rank) { return rank.second.sends + rank.second.receives > 0; });
        if (!passes)
            return {};
        for (const auto& [rank, operators] : m_ranks)
            if (m_blocks.refusal.empty())
                m_blocks.refusal = readRank(rank, operators);
        if (!m_blocks.refusal.empty())
            m_blocks.ranges.clear();
        return std::move(m_blocks);
    }

private:
    bool isAutograd(const Activity& a) const { return m_data.strings.text(a.name).starts_with(autograd); }

    /// Most traces have neither name, so their operators need no sorting.
    bool mayHaveBlocks() const
    {
        for (std::size_t i = 0; i < m_data.strings.size(); ++i) {
            const std::string& name = m_data.strings.text(static_cast<std::uint32_t>(i));
            if (isPointToPoint(name) || gpipeAction(name, 0))
                return true;
        }
        return false;
    }

    void collect()
    {
        std::vector<const Activity*> operators;
        for (const Activity& a : m_data.activities)
            if (a.kind() == ActivityKind::Operator)
                operators.push_back(&a);
        std::sort(operators.begin(), operators.end(), [](const Activity* a, const Activity* b) {
            return std::tuple(a->lane, a->start, b->end) < std::tuple(b->lane, b->start, a->end);
        });
        std::uint32_t lane = 0;
        Nanoseconds until = 0;
        std::set<std::uint32_t> backwardLanes;
        for (const Activity* a : operators) {
            Operators& rank = m_ranks[m_data.lanes[a->lane].rank];
            const std::string& name = m_data.strings.text(a->name);
            rank.sends += name == "c10d::send";
            rank.receives += name.starts_with("c10d::recv");
            if (a->lane == lane && !rank.outermost.empty() && a->start < until)
                continue;
            lane = a->lane;
            until = a->end;
            rank.outermost.push_back(a);
            if (name.starts_with(autograd))
                backwardLanes.insert(a->lane);
        }
        for (auto& [number, rank] : m_ranks)
            std::stable_sort(rank.outermost.begin(), rank.outermost.end(),
                             [](const Activity* a, const Activity* b) { return a->start < b->start; });
        for (const TraceFlow& flow : m_data.flows)
            if (backwardLanes.contains(flow.toLane) && flow.to >= flow.from)
                m_ranks[m_data.lanes[flow.fromLane].rank].leads[flow.fromLane].push_back(flow.from);
        for (auto& [number, rank] : m_ranks)
            for (auto& [from, times] : rank.leads)
                std::sort(times.begin(), times.end());
    }

    void readGpipe()
    {
        for (const Activity& a : m_data.activities) {
            if (a.kind() != ActivityKind::Range && a.kind() != ActivityKind::Operator)
                continue;
            const int rank = m_data.lanes[a.lane].rank;
            const auto action = gpipeAction(m_data.strings.text(a.name), rank);
            if (!action)
                continue;
            PipelineRange range = rangeOf(a, *action);
            // The range also contains the receive before the block and the send after it.
            for (auto at = firstFrom(m_ranks[rank], a.start); at != m_ranks[rank].outermost.end(); ++at) {
                if ((*at)->start >= a.end)
                    break;
                if ((*at)->lane != a.lane)
                    continue;
                const std::string& name = m_data.strings.text((*at)->name);
                range.receives = range.receives || name.starts_with("c10d::recv");
                if (name == "c10d::send" && !range.sent)
                    range.end = *(range.sent = (*at)->start);
            }
            m_blocks.ranges.push_back(std::move(range));
        }
    }

    /// Checks that all stages but the first receive for their forwards.
    void checkGpipe()
    {
        for (const PipelineRange& range : m_blocks.ranges) {
            const int rank = m_data.lanes[range.lane].rank;
            const bool says = m_ranks[rank].sends + m_ranks[rank].receives > 0;
            if (says && range.actions.front().type == PytorchAction::Type::F && range.receives != (rank > 0))
                m_blocks.refusal =
                    fmt::format("rank {} {} in {}: this is no pipeline of one stage per rank", rank,
                                rank > 0 ? "receives nothing" : "receives", m_data.strings.text(range.name));
        }
        if (!m_blocks.refusal.empty())
            m_blocks.ranges.clear();
    }

    static std::vector<const Activity*>::const_iterator firstFrom(const Operators& rank, Nanoseconds time)
    {
        return std::lower_bound(rank.outermost.begin(), rank.outermost.end(), time,
                                [](const Activity* a, Nanoseconds start) { return a->start < start; });
    }

    /// Returns why the rank's blocks cannot be recognised; empty when they can.
    std::string readRank(int rank, const Operators& operators)
    {
        const std::string name = "rank " + std::to_string(rank);
        const auto steps = m_steps.find(rank);
        if (steps == m_steps.end())
            return name + " has no ranges ProfilerStep#N: call the profiler's step() after every step";
        std::optional<std::int64_t> count;
        for (const auto& [number, step] : steps->second) {
            const std::vector<PipelineRange> found = blocksOf(operators, step.first, step.second);
            std::int64_t forwards = 0, backwards = 0;
            for (PipelineRange range : found) {
                PytorchAction& action = range.actions.front();
                action.stage = rank;
                action.microbatch = static_cast<int>(action.type == PytorchAction::Type::F ? forwards++ : backwards++);
                range.name = m_data.strings.id("PP:" + toString(action));
                m_blocks.ranges.push_back(std::move(range));
            }
            if (forwards == 0)
                return name
                       + " has no forwards that autograd's arrows lead back to: record every rank with "
                         "ProfilerActivity.CPU";
            if (forwards != backwards || forwards != count.value_or(forwards))
                return fmt::format("{} has {} forwards and {} backwards in step {}", name, forwards, backwards, number);
            count = forwards;
        }
        // Middle stages receive twice per microbatch, the first and the last once.
        const std::int64_t passes = static_cast<std::int64_t>(steps->second.size()) * count.value_or(0);
        const bool end = rank == 0 || rank + 1 == m_data.ranks;
        const std::int64_t received = receivesIn(operators, steps->second);
        if (received != (end ? 1 : 2) * passes)
            return fmt::format("{} receives {} times for {} microbatches: this is no pipeline of one stage per rank",
                               name, received, passes);
        return {};
    }

    std::int64_t receivesIn(const Operators& operators,
                            const std::map<int, std::pair<Nanoseconds, Nanoseconds>>& steps) const
    {
        return std::count_if(operators.outermost.begin(), operators.outermost.end(), [&](const Activity* a) {
            return m_data.strings.text(a->name).starts_with("c10d::recv")
                   && std::any_of(steps.begin(), steps.end(), [a](const auto& step) {
                          return a->start >= step.second.first && a->start < step.second.second;
                      });
        });
    }

    bool leadsToAutograd(const Operators& operators, const Activity& a) const
    {
        const auto lane = operators.leads.find(a.lane);
        if (lane == operators.leads.end())
            return false;
        const auto first = std::lower_bound(lane->second.begin(), lane->second.end(), a.start);
        return first != lane->second.end() && *first <= a.end;
    }

    /// Forwards and backwards between two times, without stage and microbatch.
    std::vector<PipelineRange> blocksOf(const Operators& operators, Nanoseconds from, Nanoseconds to) const
    {
        std::vector<PipelineRange> blocks;
        PipelineRange open;
        bool any = false, linked = false;
        const Activity* received = nullptr; // since the last block
        const auto close = [&] {
            // Operators without a backward are not a forward, but for example the optimizer or the scaling of
            // gradients.
            if (any && (linked || open.actions.front().isBackward())) {
                blocks.push_back(open);
                received = nullptr;
            }
            any = linked = false;
        };
        for (auto at = firstFrom(operators, from); at != operators.outermost.end() && (*at)->start < to; ++at) {
            const Activity& a = **at;
            const std::string& name = m_data.strings.text(a.name);
            if (isPointToPoint(name)) {
                close();
                if (name != "c10d::send")
                    received = &a;
                else if (!blocks.empty() && !blocks.back().sent)
                    blocks.back().sent = a.start;
                continue;
            }
            const bool backward = isAutograd(a);
            if (isNoWork(name)) {
                if (!linked && any && !open.actions.front().isBackward())
                    any = false; // a collective between steps, not inside a forward
                continue;
            }
            if (any && backward != open.actions.front().isBackward())
                close();
            if (!any) {
                PytorchAction action;
                action.type = backward ? PytorchAction::Type::B : PytorchAction::Type::F;
                open = rangeOf(a, action);
                open.receives = received != nullptr;
                if (received) // includes the wait, as named ranges do
                    open.start = std::min(received->end, a.start);
                any = true;
            }
            open.end = std::max(open.end, a.end);
            linked = linked || (!backward && leadsToAutograd(operators, a));
        }
        close();
        return blocks;
    }

    TraceData& m_data;
    const ProfilerSteps& m_steps;
    std::map<int, Operators> m_ranks;
    StockBlocks m_blocks;
};

} // namespace

StockBlocks stockBlocks(TraceData& data, const ProfilerSteps& steps)
{
    return StockReader(data, steps).run();
}

} // namespace pipewright
