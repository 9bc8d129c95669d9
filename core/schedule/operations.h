// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of blocks, and what all other files ask of them: one row per operation. The rows are a switch without
// a default, so a new operation does not compile before it has one, and what follows from a row is derived below. The
// letters are PyTorch's: F forward, B full backward, I input-gradient half, W weight-gradient half, R recompute,
// U update. (Zero-bubble papers write B for our I; importers translate, nothing else does.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pipewright {

enum class Op : std::uint8_t { F, B, I, W, R, U };
inline constexpr int opCount = 6;

/// The place of an operation in a table of opCount.
constexpr std::size_t indexOf(Op op)
{
    return static_cast<std::size_t>(op);
}

struct OpTraits {
    enum : unsigned {
        Pass = 1,       ///< work on a microbatch that a schedule orders, at most once per stage
        Weights = 2,    ///< reads its stage's weights; the weight gradient needs what was kept, not the weights
        Activation = 4, ///< makes the stage's output, which the stage behind needs; what it keeps is live from then on
        Again = 8,      ///< makes again what the forward did not keep, where the stage recomputes
        InputGrad = 16, ///< makes the gradient of its stage's input, which the stage before needs
        WeightGrad = 32 ///< makes that of its stage's weights: the last pass of its microbatch there
    };
    char letter = '\0';
    std::string_view name{};      ///< in messages
    std::string_view timeKey{};   ///< of its time in files
    std::optional<Op> waitsFor{}; ///< the pass of its stage and microbatch whose result it reads
    unsigned is = 0;
};

constexpr OpTraits rowOf(Op op)
{
    using T = OpTraits;
    switch (op) {
    case Op::F: return {'F', "forward", "forward", {}, T::Pass | T::Weights | T::Activation};
    case Op::B: return {'B', "full backward", "backward", Op::F, T::Pass | T::Weights | T::InputGrad | T::WeightGrad};
    case Op::I: return {'I', "input gradient", "input_grad", Op::F, T::Pass | T::Weights | T::InputGrad};
    case Op::W: return {'W', "weight gradient", "weight_grad", Op::I, T::Pass | T::WeightGrad};
    case Op::R: return {'R', "recompute", "recompute", Op::F, T::Pass | T::Weights | T::Again};
    case Op::U: return {'U', "update", "update", {}, 0};
    }
    return {}; // a number that is no operation
}
static_assert(rowOf(static_cast<Op>(opCount - 1)).letter != '\0' && rowOf(static_cast<Op>(opCount)).letter == '\0',
              "opCount is the number of operations");

inline constexpr std::array<Op, opCount> allOps = [] {
    std::array<Op, opCount> ops{};
    for (std::size_t op = 0; op < ops.size(); ++op)
        ops[op] = static_cast<Op>(op);
    return ops;
}();
inline constexpr std::array<OpTraits, opCount> opTraits = [] {
    std::array<OpTraits, opCount> rows;
    for (const Op op : allOps)
        rows[indexOf(op)] = rowOf(op);
    return rows;
}();
constexpr const OpTraits& traitsOf(Op op)
{
    return opTraits[indexOf(op)];
}

constexpr char letter(Op op) ///< '\0' for a number that is no operation
{
    return indexOf(op) < opTraits.size() ? traitsOf(op).letter : '\0';
}
constexpr std::string_view describe(Op op) ///< "forward", "full backward", "input gradient", …
{
    return indexOf(op) < opTraits.size() ? traitsOf(op).name : std::string_view();
}
constexpr std::string_view timeKey(Op op)
{
    return traitsOf(op).timeKey;
}
constexpr std::optional<Op> waitsFor(Op op)
{
    return traitsOf(op).waitsFor;
}
constexpr bool isPass(Op op)
{
    return (traitsOf(op).is & OpTraits::Pass) != 0;
}
constexpr bool usesWeights(Op op)
{
    return (traitsOf(op).is & OpTraits::Weights) != 0;
}
constexpr bool makesActivation(Op op)
{
    return (traitsOf(op).is & OpTraits::Activation) != 0;
}
constexpr bool isRecompute(Op op)
{
    return (traitsOf(op).is & OpTraits::Again) != 0;
}
constexpr bool makesInputGrad(Op op)
{
    return (traitsOf(op).is & OpTraits::InputGrad) != 0;
}
constexpr bool makesWeightGrad(Op op)
{
    return (traitsOf(op).is & OpTraits::WeightGrad) != 0;
}

/// Runs the forward's mathematics, for the first time or again.
constexpr bool runsForward(Op op)
{
    return makesActivation(op) || isRecompute(op);
}
/// A backward or a part of one.
constexpr bool isBackward(Op op)
{
    return makesInputGrad(op) || makesWeightGrad(op);
}
constexpr bool isFullBackward(Op op)
{
    return makesInputGrad(op) && makesWeightGrad(op);
}
constexpr bool isHalfBackward(Op op)
{
    return makesInputGrad(op) != makesWeightGrad(op);
}

/// A full backward's halves, in their order.
inline constexpr std::array halvesOfBackward{Op::I, Op::W};

/// By how many it changes the activations that its stage keeps.
constexpr int activationsKept(Op op)
{
    return int{makesActivation(op)} - int{makesWeightGrad(op)};
}
/// By how many it changes the weight gradients that are left for later.
constexpr int weightGradsOwed(Op op)
{
    return int{makesInputGrad(op)} - int{makesWeightGrad(op)};
}
/// Its value goes to the stage so far behind its own, and it waits for that of the stage so far before: 1 for
/// activations, -1 for gradients; 0: the value stays on its stage.
constexpr int stageStep(Op op)
{
    return int{makesActivation(op)} - int{makesInputGrad(op)};
}
/// The name of its value when it is sent: a full backward and its input half make the same gradient.
constexpr Op sentAs(Op op)
{
    return makesInputGrad(op) ? Op::I : op;
}

/// The order of a microbatch's passes on a stage. R and U have the rank of the backward next to them.
constexpr int passRank(Op op)
{
    return makesActivation(op) ? 0 : weightGradsOwed(op) < 0 ? 2 : 1;
}
inline constexpr int passRanks = 3;

/// Passes are the first operations, so that a table of passes has passCount rows and is indexed by indexOf().
inline constexpr int passCount = [] {
    int passes = 0;
    for (const Op op : allOps)
        passes += int{isPass(op)};
    return passes;
}();
static_assert(
    [] {
        for (const Op op : allOps)
            if (isPass(op) != (indexOf(op) < passCount))
                return false;
        return true;
    }(),
    "a new pass stands among the passes of Op");

/// Whether a stage's backward is one block (B) or two (I then W). Placed blocks keep their form; this is the style of
/// missing blocks.
enum class BackwardStyle { Full, Split };

/// Has every microbatch this pass on a stage with backwards of this style? In the order of allOps each waits for those
/// before it, but a recompute stands between the forward and the backward.
constexpr bool isNeeded(Op op, BackwardStyle style, bool recomputes = false)
{
    return isRecompute(op)  ? recomputes
           : isBackward(op) ? isHalfBackward(op) == (style == BackwardStyle::Split)
                            : isPass(op);
}

} // namespace pipewright
