// SPDX-License-Identifier: GPL-3.0-or-later
// A block, the unit of a schedule: one operation of one stage on one microbatch. The letters are PyTorch's:
// F forward, B full backward, I input-gradient half, W weight-gradient half, R recompute, U update. (Zero-bubble papers
// write B for our I; importers translate, nothing else does.)
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipewright {

enum class Op : std::uint8_t { F, B, I, W, R, U };
inline constexpr int opCount = 6;
inline constexpr std::array<Op, opCount> allOps = [] {
    std::array<Op, opCount> ops{};
    for (int op = 0; op < opCount; ++op)
        ops[static_cast<std::size_t>(op)] = static_cast<Op>(op);
    return ops;
}();

// The properties of operations are defined here by switches without a default, so a new operation does not compile
// before every property is defined for it. Where a switch is not possible, a static_assert checks the count.

constexpr char letter(Op op) ///< '\0' for a number that is no operation
{
    switch (op) {
    case Op::F: return 'F';
    case Op::B: return 'B';
    case Op::I: return 'I';
    case Op::W: return 'W';
    case Op::U: return 'U';
    case Op::R: return 'R';
    }
    return '\0';
}
static_assert(letter(static_cast<Op>(opCount - 1)) != '\0' && letter(static_cast<Op>(opCount)) == '\0',
              "opCount is the number of operations");

std::string_view describe(Op op); ///< "forward", "full backward", "input gradient", …

/// The place of an operation in a table of opCount.
constexpr std::size_t indexOf(Op op)
{
    return static_cast<std::size_t>(op);
}

/// Is it work on a microbatch that a schedule orders, at most once per stage?
constexpr bool isPass(Op op)
{
    switch (op) {
    case Op::F:
    case Op::B:
    case Op::I:
    case Op::W:
    case Op::R: return true;
    case Op::U: return false;
    }
    return false;
}

/// Does it make the gradient of its stage's input, which the stage before needs?
constexpr bool makesInputGrad(Op op)
{
    switch (op) {
    case Op::B:
    case Op::I: return true;
    case Op::F:
    case Op::W:
    case Op::U:
    case Op::R: return false;
    }
    return false;
}

/// Does it make the gradient of its stage's weights? It is then the last pass of its microbatch there.
constexpr bool makesWeightGrad(Op op)
{
    switch (op) {
    case Op::B:
    case Op::W: return true;
    case Op::F:
    case Op::I:
    case Op::U:
    case Op::R: return false;
    }
    return false;
}

/// Does it read its stage's weights? The weight gradient needs what was kept, not the weights.
constexpr bool usesWeights(Op op)
{
    switch (op) {
    case Op::F:
    case Op::B:
    case Op::I:
    case Op::R: return true;
    case Op::W:
    case Op::U: return false;
    }
    return false;
}

/// A backward or a part of one.
constexpr bool isBackward(Op op)
{
    return makesInputGrad(op) || makesWeightGrad(op);
}

/// The order of a microbatch's passes on a stage. R and U have the rank of the backward next to them.
constexpr int passRank(Op op)
{
    switch (op) {
    case Op::F: return 0;
    case Op::B:
    case Op::I:
    case Op::U:
    case Op::R: return 1;
    case Op::W: return 2;
    }
    return 1;
}
inline constexpr int passRanks = 3;

/// Passes are the first operations, so that a table of passes has passCount rows and is indexed by indexOf().
inline constexpr int passCount = 5;
static_assert(
    [] {
        for (int op = 0; op < opCount; ++op)
            if (isPass(static_cast<Op>(op)) != (op < passCount))
                return false;
        return true;
    }(),
    "a new pass stands among the passes of Op, and passCount counts it");

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
