// SPDX-License-Identifier: GPL-3.0-or-later
// A map from kinds of pairs to their shortest order, filled on demand. The effort of one search shrinks with the number
// of kinds that can occur, so that all together stay bounded.
#include "core/program/pairtimes.h"

#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace pipewright {

namespace {

/// Kinds of pairs are no more than a stage's blocks, and no more than its microbatches' scales can be combined.
std::size_t effortOf(const Costs& costs)
{
    constexpr std::size_t effortOfAll = std::size_t{1} << 27;
    std::set<double> scales;
    for (const MicrobatchScale& scale : costs.microbatches)
        scales.insert(scale.time);
    const std::size_t combined =
        std::max<std::size_t>(1, std::min(costs.microbatches.size(), scales.size() * scales.size()));
    return std::min(usualEffort, effortOfAll / (std::max<std::size_t>(1, costs.stages.size()) * combined));
}

} // namespace

PairTimes::PairTimes(const Costs& costs)
    : m_costs(costs), m_hasParts(costs.hasParts()), m_effort(m_hasParts ? effortOf(costs) : 0)
{
}

bool PairTimes::isComputed(const Block& first, const Block& second) const
{
    return m_hasParts
           && !(m_costs.parts(first.op, first.stage).empty() && m_costs.parts(second.op, second.stage).empty());
}

Nanoseconds PairTimes::assumed(Nanoseconds first, Nanoseconds second) const
{
    return std::llround(static_cast<double>(first + second) * m_costs.overlapFactor);
}

std::vector<BlockPart> PairTimes::partsOf(const Block& block, Nanoseconds time) const
{
    std::vector<BlockPart> parts = m_costs.stages[block.stage].partsOrWhole(block.op);
    fitParts(parts, time);
    return parts;
}

const ShortestParts& PairTimes::shortest(const Block& first, const Block& second)
{
    const Nanoseconds one = timeOf(first), other = timeOf(second);
    const auto [known, isNew] = m_shortest.try_emplace({first.op, first.stage, one, second.op, second.stage, other});
    if (isNew)
        known->second = shortestOrder(partsOf(first, one), partsOf(second, other), m_effort);
    return known->second;
}

PairTimes::Plan PairTimes::plan(const Block& first, const Block& second, const PartSequence* stated)
{
    Plan plan;
    if (!isComputed(first, second)) {
        plan.length = plan.shortest = plan.least = assumed(timeOf(first), timeOf(second));
        return plan;
    }
    const ShortestParts& known = shortest(first, second);
    plan.parts = {partsOf(first, timeOf(first)), partsOf(second, timeOf(second))};
    plan.order = stated != nullptr ? *stated : known.order;
    plan.length = stated != nullptr ? lengthOf(plan.parts[0], plan.parts[1], *stated) : known.length;
    plan.shortest = known.length;
    plan.least = known.least;
    return plan;
}

Nanoseconds PairTimes::length(const Block& first, const Block& second, const PartSequence* stated)
{
    if (!isComputed(first, second))
        return assumed(timeOf(first), timeOf(second));
    return stated == nullptr ? shortest(first, second).length
                             : lengthOf(partsOf(first, timeOf(first)), partsOf(second, timeOf(second)), *stated);
}

namespace {

const PartSequence* statedIn(const Program& program, const Program::Overlap& pair)
{
    return pair.order == none ? nullptr : &program.partOrders[pair.order];
}

} // namespace

PairTimes::Plan PairTimes::plan(const Program& program, const Program::Overlap& pair)
{
    return plan(program.tasks[pair.first].block(), program.tasks[pair.second].block(), statedIn(program, pair));
}

Nanoseconds PairTimes::length(const Program& program, const Program::Overlap& pair)
{
    return length(program.tasks[pair.first].block(), program.tasks[pair.second].block(), statedIn(program, pair));
}

Nanoseconds PairTimes::length(const Program& program, const Program::Overlap& pair, Nanoseconds first,
                              Nanoseconds second)
{
    const Block one = program.tasks[pair.first].block(), other = program.tasks[pair.second].block();
    if (!isComputed(one, other))
        return assumed(first, second);
    const PartSequence* stated = statedIn(program, pair);
    return lengthOf(partsOf(one, first), partsOf(other, second), stated ? *stated : shortest(one, other).order);
}

Diagnostics checkParts(const Schedule& schedule, const Costs& costs)
{
    Diagnostics wrong;
    const auto fault = [&wrong](std::string where, std::string what, std::string hint) {
        wrong.push_back({Severity::Error, std::move(where), std::move(what), std::move(hint)});
    };
    for (std::size_t s = 0; s < costs.stages.size(); ++s)
        for (const Op op : allOps) {
            const std::vector<BlockPart>& parts = costs.stages[s].parts[indexOf(op)];
            if (parts.empty())
                continue;
            const std::string where = fmt::format("costs.stages, stage {}, parts of {}", s, timeKey(op));
            const Nanoseconds time = costs.stages[s].*timeField(op), sum = sumOf(parts);
            if (!isPass(op))
                fault(where, "only passes have parts", "leave them out");
            else if (parts.size() > static_cast<std::size_t>(maxParts))
                fault(where, fmt::format("{} parts", parts.size()), fmt::format("at most {}", maxParts));
            else if (std::any_of(parts.begin(), parts.end(), [](const BlockPart& part) { return part.time < 0; }))
                fault(where, "a negative time", "times are 0 or more");
            else if (sum != time)
                fault(where,
                      fmt::format("they take {} one behind the other, and the block takes {}", exactDuration(sum),
                                  exactDuration(time)),
                      "state times whose sum is the block's, or leave the parts out");
        }
    if (!wrong.empty())
        return wrong;
    const auto countOf = [&costs](const Block& block) {
        const bool known = block.stage >= 0 && static_cast<std::size_t>(block.stage) < costs.stages.size();
        return known ? std::max<std::size_t>(1, costs.parts(block.op, block.stage).size()) : 0;
    };
    for (const PartOrder& order : schedule.partOrders) {
        const auto& [first, second] = order.pair;
        const std::string where = fmt::format("schedule.part_orders, {}&{}", toString(first), toString(second));
        const auto ofSecond = static_cast<std::size_t>(std::count(order.sequence.begin(), order.sequence.end(), true));
        if (!std::binary_search(schedule.overlaps.begin(), schedule.overlaps.end(), order.pair))
            fault(where, "these two blocks are no overlapped pair", "join them in \"order\", or remove this entry");
        else if (order.sequence.size() - ofSecond != countOf(first) || ofSecond != countOf(second))
            fault(where,
                  fmt::format("the order has {} and {} parts, and the blocks have {} and {}",
                              order.sequence.size() - ofSecond, ofSecond, countOf(first), countOf(second)),
                  "order the parts that the costs list, or remove this entry: the shortest order is then taken");
    }
    return wrong;
}

std::string pairLengthsText(const Schedule& schedule, const Costs& costs)
{
    PairTimes times(costs);
    std::size_t shortest = 0, stated = 0, assumed = 0;
    double beyond = 0; // of orders that are not proven to be the shortest
    for (const Overlap& pair : schedule.overlaps) {
        const bool isStated = statedPartOrder(schedule, pair) != nullptr;
        const bool isComputed = times.isComputed(pair.first, pair.second);
        ++(!isComputed ? assumed : isStated ? stated : shortest);
        if (!isComputed || isStated)
            continue;
        if (const ShortestParts& found = times.shortest(pair.first, pair.second); found.length > 0)
            beyond =
                std::max(beyond, static_cast<double>(found.length - found.least) / static_cast<double>(found.length));
    }
    std::vector<std::string> texts;
    if (shortest > 0)
        texts.push_back(fmt::format("{} computed from their parts in the shortest order{}", shortest,
                                    beyond > 0 ? fmt::format(" found (at most {:.1f} % above it)", 100 * beyond) : ""));
    if (stated > 0)
        texts.push_back(fmt::format("{} computed from their parts in the order that the design states", stated));
    if (assumed > 0)
        texts.push_back(fmt::format("{} assumed: {:g} times the sum of the two blocks", assumed, costs.overlapFactor));
    return joined(texts, "; ");
}

} // namespace pipewright
