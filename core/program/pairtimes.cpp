// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/pairtimes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

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

const PairTimes::Plan& PairTimes::shortest(const Block& first, const Block& second)
{
    const Nanoseconds one = timeOf(first), other = timeOf(second);
    const auto [known, isNew] = m_shortest.try_emplace({first.op, first.stage, one, second.op, second.stage, other});
    Plan& plan = known->second;
    if (!isNew)
        return plan;
    plan.parts = {partsOf(first, one), partsOf(second, other)};
    ShortestParts found = shortestOrder(plan.parts[0], plan.parts[1]);
    plan.order = std::move(found.order);
    plan.length = plan.shortest = found.length;
    plan.least = found.least;
    return plan;
}

PairTimes::Plan PairTimes::plan(const Block& first, const Block& second, const PartSequence* stated)
{
    if (!isComputed(first, second)) {
        Plan plan;
        plan.length = plan.shortest = plan.least = assumed(timeOf(first), timeOf(second));
        return plan;
    }
    Plan plan = shortest(first, second);
    if (stated != nullptr) {
        plan.order = *stated;
        plan.length = lengthOf(plan.parts[0], plan.parts[1], *stated);
    }
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
            const std::string where = fmt::format("costs.stages, stage {}, parts of {}", s, timeKey(op));
            const Nanoseconds time = costs.stages[s].*timeField(op), sum = sumOf(parts);
            if (!parts.empty() && !isPass(op))
                fault(where, "only passes have parts", "leave them out");
            else if (parts.size() > static_cast<std::size_t>(maxParts))
                fault(where, fmt::format("{} parts", parts.size()), fmt::format("at most {}", maxParts));
            else if (std::any_of(parts.begin(), parts.end(), [](const BlockPart& part) { return part.time < 0; }))
                fault(where, "a negative time", "times are 0 or more");
            else if (!parts.empty() && sum != time)
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
        const PartSequence* order = statedPartOrder(schedule, pair);
        const PairTimes::Plan plan = times.plan(pair.first, pair.second, order);
        ++(!plan.isComputed() ? assumed : order != nullptr ? stated : shortest);
        if (plan.isComputed() && order == nullptr && plan.length > 0)
            beyond = std::max(beyond, static_cast<double>(plan.length - plan.least) / static_cast<double>(plan.length));
    }
    std::vector<std::string> texts;
    if (shortest > 0)
        texts.push_back(fmt::format("{} computed from their parts in the shortest order{}", shortest,
                                    beyond > 0 ? fmt::format(" found (at most {:.1f} % above it)", 100 * beyond) : ""));
    if (stated > 0)
        texts.push_back(fmt::format("{} computed from their parts in the order that the design states", stated));
    if (assumed > 0)
        texts.push_back(fmt::format("{} assumed: {:g} times the sum of the two blocks", assumed, costs.overlapFactor));
    return fmt::format("{}", fmt::join(texts, "; "));
}

} // namespace pipewright
