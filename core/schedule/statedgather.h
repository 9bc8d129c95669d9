// SPDX-License-Identifier: GPL-3.0-or-later
// What a person says of single gathers of parameters (ZeRO 3, zero.h), in place of the rule of program/gatherplan.h. A
// gather is named in PyTorch's words by its stage and the first block that reads what is gathered: "2UNSHARD@F0". Names
// stay valid when blocks move; what is said has no effect while it cannot be (program/gatherplan.h).
#pragma once

#include "core/schedule/schedule.h"

#include <optional>
#include <string>
#include <string_view>

namespace pipewright {

/// "2UNSHARD@F0" for F2.0.
std::string gatherName(const Block& reader);

/// The inverse; nothing when the text is not exactly that. The replica is that of the microbatch.
std::optional<Block> parseGather(std::string_view text, const PipelineShape& shape);

/// What is said of the gather that this block is the first to read; null when nothing is. Full backwards and their
/// halves of the input's gradient have one name.
const StatedGather* statedGather(const Schedule& schedule, const Block& reader);

/// Says it, in place of what was said; freeGather() takes it back and is false when nothing was.
void stateGather(Schedule& schedule, const StatedGather& gather);
bool freeGather(Schedule& schedule, const Block& reader);

} // namespace pipewright
