// SPDX-License-Identifier: GPL-3.0-or-later
// A block, the unit of a schedule: one operation of one stage on one microbatch.
#pragma once

#include "core/schedule/operations.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipewright {

struct Block {
    Op op = Op::F;
    std::int32_t stage = 0;
    std::int32_t microbatch = 0;
    std::int32_t replica = 0; ///< copy of the model (data parallel, bidirectional pipelines)

    auto operator<=>(const Block&) const = default;
};

/// "<op><stage>.<microbatch>", for example "F0.3"; a replica other than 0 is appended as "/1".
std::string toString(const Block& block);

/// The inverse of toString; nothing when the text is not exactly a block.
std::optional<Block> parseBlock(std::string_view text);

} // namespace pipewright
