// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/offload.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

namespace pipewright {

OffloadChoice parseOffload(std::string_view text, const std::string& where)
{
    if (text == "none")
        return {};
    if (text == "auto")
        return {OffloadChoice::Kind::Auto};
    if (const std::optional<StageRanges> stages = parseStageRanges(text))
        return {OffloadChoice::Kind::Stages, *stages};
    throw Error(where, fmt::format("\"{}\" does not say which stages offload", text),
                "use none, auto, or stages such as 0-2,5");
}

} // namespace pipewright
