// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/zero.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"

#include <fmt/format.h>

namespace pipewright {

ReshardChoice parseReshard(std::string_view text, const std::string& where)
{
    if (text == "always" || text == "never")
        return {text == "always", {}};
    if (const std::optional<StageRanges> stages = parseStageRanges(text))
        return {false, *stages};
    throw Error(where, fmt::format("\"{}\" says of no stage when its gathered parameters are freed", text),
                "write always, never, or stages: 0-2,5");
}

Reshard reshardOf(const ReshardChoice& choice, int stages, const std::string& where)
{
    Reshard reshard{choice.every, {}};
    const std::vector<bool> named = stagesIn(choice.stages, stages, where);
    for (std::size_t s = 0; s < named.size(); ++s)
        if (named[s])
            reshard.stages.push_back(static_cast<int>(s));
    return reshard;
}

Zero::Reduce parseReduce(std::string_view text, const std::string& where)
{
    for (const Zero::Reduce reduce : {Zero::Reduce::Last, Zero::Reduce::Each})
        if (text == nameOf(reduce))
            return reduce;
    throw Error(where, fmt::format("\"{}\" is no time to sum gradients", text), "write last or each");
}

std::string textOf(const Zero& zero)
{
    std::string text = fmt::format("ZeRO {} over {}", zero.level, nameOf(zero.over));
    if (zero.sharesParameters() && zero.reshard.any())
        text += zero.reshard.every ? ", parameters freed after each visit"
                                   : fmt::format(", parameters of stages {} freed after each visit",
                                                 joined(zero.reshard.stages, ", "));
    if (zero.sharesParameters())
        text += fmt::format(", {} stage{} ahead", zero.prefetch, zero.prefetch == 1 ? "" : "s");
    if (zero.sharesGradients() && zero.reduce == Zero::Reduce::Each)
        text += ", gradients summed after each microbatch";
    return text;
}

} // namespace pipewright
