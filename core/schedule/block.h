// SPDX-License-Identifier: GPL-3.0-or-later
// The unit people drag: one operation of one stage on one microbatch. The letters are PyTorch's:
// F forward, B full backward, I input-gradient half, W weight-gradient half, U update, R recompute.
// (Zero-bubble papers write B for our I; importers translate, nothing else does.)
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipewright {

enum class Op : std::uint8_t { F, B, I, W, U, R };
inline constexpr int opCount = 6;

char letter(Op op);
std::string_view describe(Op op); ///< "forward", "full backward", "input gradient", …

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
