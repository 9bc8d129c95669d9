// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/recompute.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipewright {

RecomputeChoice parseRecompute(std::string_view text, const std::string& where)
{
    for (const Recompute kind : {Recompute::None, Recompute::Selective, Recompute::Full})
        if (text == nameOf(kind))
            return {kind, {}};
    if (const std::optional<StageRanges> stages = parseStageRanges(text))
        return {Recompute::Full, *stages};
    throw Error(where, fmt::format("\"{}\" is no way to recompute", text),
                "use none, selective, full, or stages such as 0-2,5");
}

std::vector<Recompute> ofStages(const RecomputeChoice& choice, int stages, const std::string& where)
{
    if (choice.kind == Recompute::None || stages < 1)
        return {};
    std::vector<Recompute> ofStage(stages, choice.stages.empty() ? choice.kind : Recompute::None);
    const std::vector<bool> named = stagesIn(choice.stages, stages, where);
    for (std::size_t s = 0; s < named.size(); ++s)
        if (named[s])
            ofStage[s] = choice.kind;
    return ofStage;
}

std::string textOf(const std::vector<Recompute>& ofStage)
{
    std::vector<std::string> parts;
    for (const Recompute kind : {Recompute::Selective, Recompute::Full}) {
        std::vector<std::size_t> stages;
        for (std::size_t s = 0; s < ofStage.size(); ++s)
            if (ofStage[s] == kind)
                stages.push_back(s);
        if (stages.size() == ofStage.size() && !stages.empty())
            return std::string(nameOf(kind));
        if (!stages.empty())
            parts.push_back(
                fmt::format("stage{} {} {}", stages.size() > 1 ? "s" : "", joined(stages, ", "), nameOf(kind)));
    }
    return joined(parts, ", ");
}

} // namespace pipewright
