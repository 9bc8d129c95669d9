// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/costorigins.h"

#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace pipewright {

namespace {

std::string listText(const std::vector<std::string>& words)
{
    if (words.size() < 2)
        return words.empty() ? "" : words.front();
    return fmt::format("{} and {}", joined(std::span(words).first(words.size() - 1), ", "), words.back());
}

/// "stages 0-2, 5"
std::string stagesText(const std::vector<int>& stages)
{
    std::vector<std::string> ranges;
    for (std::size_t i = 0; i < stages.size();) {
        std::size_t last = i;
        while (last + 1 < stages.size() && stages[last + 1] == stages[last] + 1)
            ++last;
        ranges.push_back(last == i ? std::to_string(stages[i]) : fmt::format("{}-{}", stages[i], stages[last]));
        i = last + 1;
    }
    return fmt::format("{} {}", stages.size() == 1 ? "stage" : "stages", listText(ranges));
}

/// Groups the operations with the same origin on the same stages: origin and stages -> operations.
using Groups = std::map<std::pair<CostOrigin, std::vector<int>>, std::vector<std::string>>;

Groups groupsOf(const Design& design, const std::vector<Op>& ops)
{
    Groups groups;
    for (const Op op : ops) {
        std::map<CostOrigin, std::vector<int>> stages;
        for (int stage = 0; stage < static_cast<int>(design.costs.stages.size()); ++stage)
            stages[design.costs.originOf(op, stage)].push_back(stage);
        for (const auto& [origin, of] : stages)
            groups[{origin, of}].push_back(std::string(1, letter(op)));
    }
    return groups;
}

/// Links between neighbouring stages whose cost is an estimate; empty when there is none.
std::string estimatedLinks(const Design& design)
{
    std::set<std::pair<int, int>> pairs;
    for (int replica = 0; replica < design.schedule.replicas(); ++replica) {
        const std::vector<int>& placement = design.schedule.placement(replica);
        for (std::size_t s = 1; s < placement.size(); ++s)
            for (const auto& pair :
                 {std::pair{placement[s - 1], placement[s]}, std::pair{placement[s], placement[s - 1]}})
                if (pair.first != pair.second
                    && design.costs.linkBetween(pair.first, pair.second).origin == CostOrigin::Estimated)
                    pairs.insert(pair);
    }
    std::vector<std::string> names;
    for (const auto& [from, to] : pairs)
        names.push_back(fmt::format("{} -> {}", from, to));
    return names.empty() ? "" : fmt::format("{} {}", names.size() == 1 ? "link" : "links", listText(names));
}

/// The host's gaps of one origin: "the host's gaps before F and B"; empty when there are none.
std::string gapsFrom(const Design& design, CostOrigin origin, const std::vector<Op>& ops)
{
    // Host gaps never come from a formula.
    const CostOrigin source = design.costs.isFormula() ? CostOrigin::Given : design.costs.sourceOrigin();
    std::vector<std::string> letters;
    for (const Op op : ops)
        if (std::any_of(design.costs.hostGaps.begin(), design.costs.hostGaps.end(), [&](const HostGaps& gaps) {
                const CostOrigin own = gaps.origin[indexOf(op)];
                return gaps.before[indexOf(op)] != 0 && (own == CostOrigin::AsSource ? source : own) == origin;
            }))
            letters.emplace_back(1, letter(op));
    return letters.empty() ? "" : "the host's gaps before " + listText(letters);
}

bool isAll(const Design& design, const std::vector<int>& stages)
{
    return stages.size() == design.costs.stages.size();
}

} // namespace

std::string originsText(const Design& design, const std::vector<Op>& ops)
{
    std::vector<std::string> parts;
    // From the best known to the least: measured, stated, by formula, estimated.
    for (const CostOrigin origin :
         {CostOrigin::Measured, CostOrigin::Given, CostOrigin::Formula, CostOrigin::Estimated}) {
        for (const auto& [key, letters] : groupsOf(design, ops))
            if (key.first == origin)
                parts.push_back(fmt::format("{} {}{}", listText(letters),
                                            origin == CostOrigin::Formula ? "by formula" : nameOf(origin),
                                            isAll(design, key.second) ? "" : " on " + stagesText(key.second)));
        if (const std::string gaps = gapsFrom(design, origin, ops); !gaps.empty())
            parts.push_back(fmt::format("{} {}", gaps, nameOf(origin)));
    }
    if (const std::string links = estimatedLinks(design); !links.empty())
        parts.push_back(links + " estimated");
    return joined(parts, ", ");
}

std::string hostGapsText(const Design& design)
{
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max(), most = 0;
    for (int device = 0; device < design.schedule.devices(); ++device)
        for (const Block& block : design.schedule.order[device]) {
            const Nanoseconds gap = design.costs.hostGap(block.op, device);
            least = std::min(least, gap);
            most = std::max(most, gap);
        }
    if (most == 0)
        return {};
    return least == most ? formatDuration(most) + " before a block"
                         : fmt::format("{} to {} before a block", formatDuration(least), formatDuration(most));
}

std::string estimatesText(const Design& design)
{
    std::vector<std::string> parts;
    for (const auto& [key, letters] : groupsOf(design, {Op::F, Op::B, Op::I, Op::W}))
        if (key.first == CostOrigin::Estimated)
            parts.push_back(listText(letters) + (isAll(design, key.second) ? "" : " of " + stagesText(key.second)));
    for (const std::string& what :
         {estimatedLinks(design), gapsFrom(design, CostOrigin::Estimated, {Op::F, Op::B, Op::I, Op::W})})
        if (!what.empty())
            parts.push_back(what);
    return joined(parts, ", ");
}

} // namespace pipewright
