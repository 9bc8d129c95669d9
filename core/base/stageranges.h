// SPDX-License-Identifier: GPL-3.0-or-later
// How a person names stages: "0-2,5".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright {

/// Both ends included.
using StageRanges = std::vector<std::pair<int, int>>;

/// Nothing for a text that is no list of stages.
std::optional<StageRanges> parseStageRanges(std::string_view text);

/// One entry per stage: is it named? Throws Error at `where` for a stage that does not exist.
std::vector<bool> stagesIn(const StageRanges& ranges, int stages, const std::string& where);

/// "0-2, 5" of the stages that are true; empty for none.
std::string textOf(const std::vector<bool>& ofStage);

} // namespace pipewright
