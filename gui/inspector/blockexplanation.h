// SPDX-License-Identifier: GPL-3.0-or-later
// Answers about one block of a prediction: what its device waited for before it, what it frees, whom it
// feeds. Everything is read off the Program's dependencies and the Timeline; nothing is estimated.
// O(tasks) to find the block, then O(its neighbours).
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
    Nanoseconds idleBefore = 0;    ///< of its device, since the block before it (or the beginning)
    std::optional<Block> waitsFor; ///< the block whose result came last, when that is why it starts then
    Bytes freed = 0;               ///< bytes released on the device right after it
    std::vector<Feed> feeds;
    QString why; ///< one sentence, or two
};

/// One step back along what made a block start when it did.
struct WaitLink {
    Block block;
    int device = -1;
    bool byOrder = false;     ///< it stood before on the same device; otherwise its result was awaited
    Nanoseconds transfer = 0; ///< time its result was on the way
    bool operator==(const WaitLink&) const = default;
};
/// From the block that `block` waited for, back to what that one waited for, at most `links` of them; ends
/// where a block starts for no such reason (the beginning of the step, a pin).
std::vector<WaitLink> waitingChain(const Prediction& prediction, const Block& block, int links = 4);
/// The block that ends last on any device.
std::optional<Block> lastBlock(const Prediction& prediction);

/// Nothing when the block is not in the prediction.
std::optional<BlockAnswers> explain(const Design& design, const Prediction& prediction, const Block& block);

} // namespace pipewright
