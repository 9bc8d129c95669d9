// SPDX-License-Identifier: GPL-3.0-or-later
// Explains one block of a prediction: what delayed its start, what it frees, and its transfers. All of it follows from
// the Program's dependencies and the Timeline. Chains are found in a measured Timeline as well. O(tasks) to find the
// block, then O(its neighbours).
#pragma once

#include "core/design/design.h"
#include "core/predict/predict.h"

#include <QString>

#include <optional>
#include <vector>

namespace pipewright {

/// The task of a block; none when the prediction does not contain it (unplaced).
TaskId taskOf(const Program& program, const Block& block);

struct Feed { ///< a transfer that the block's result starts
    TaskId transfer = none;
    int device = -1;
    Bytes bytes = 0;
};

struct BlockAnswers {
    TaskId task = none;
    Nanoseconds start = 0, duration = 0;
    Nanoseconds idleBefore = 0;     ///< of its device, since the end of the block before it (or the start of the step)
    std::optional<Block> waitsFor;  ///< the block whose result determines its start; nullopt: no such block
    Bytes freed = 0;                ///< bytes released on the device right after it
    Bytes kept = 0;                 ///< bytes that it saves for the backwards to come …
    std::optional<Block> keptUntil; ///< … the last of which is this one; nullopt: it saves none
    std::vector<Feed> feeds;
    QString why; ///< one sentence, or two
};

/// One step back along the critical path to a block's start.
struct WaitLink {
    Block block;
    int device = -1;
    bool byOrder = false;     ///< previous on the same device; otherwise a data dependency
    Nanoseconds transfer = 0; ///< transfer time of its result
    bool operator==(const WaitLink&) const = default;
};
/// The chain of blocks that `block` waited for, at most `links` long. It ends at a block that waited for no other block
/// (start of the step, a pin). `timeline` must have a time for every task.
std::vector<WaitLink> waitingChain(const Program& program, const Timeline& timeline, const Block& block, int links = 4);
/// Describes that chain after its first block, and its transfer time; begins with a space. `named`: the first block is
/// called by its name instead of "That one", for use where other words come in between.
QString chainBehind(const Design& design, const Program& program, const Timeline& timeline, const Block& block,
                    bool named = false);
/// The block that ends last on any device.
std::optional<Block> lastBlock(const Program& program, const Timeline& timeline);

/// Nothing when the block is not in the prediction.
std::optional<BlockAnswers> explainBlock(const Design& design, const Prediction& prediction, const Block& block);

} // namespace pipewright
