// SPDX-License-Identifier: GPL-3.0-or-later
// Answers about one block of a prediction: what its device waited for before it, what it frees, whom it
// feeds. Everything is read off the Program's dependencies and the Timeline; nothing is estimated.
// O(tasks) to find the block, then O(its neighbours).
#pragma once

#include "core/predict/predict.h"
#include "core/program/design.h"

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
    Nanoseconds idleBefore = 0;          ///< of its device, since the block before it (or the beginning)
    std::optional<Block> waitsFor;       ///< the block whose result came last, when that is why it starts then
    Bytes freed = 0;                     ///< bytes released on the device right after it
    std::vector<Feed> feeds;
    QString why;                         ///< one sentence, or two
};

/// Nothing when the block is not in the prediction.
std::optional<BlockAnswers> explain(const Design& design, const Prediction& prediction, const Block& block);

} // namespace pipewright
