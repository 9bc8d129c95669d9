// SPDX-License-Identifier: GPL-3.0-or-later
// What a drop would do, as a value: from blocks and a place under the cursor to an edit of the Document, its
// predicted result and one explanation for the label at the cursor. The same plan is shown during the drag and
// committed on release, so what was shown is what happens. DropPlanner makes plans; here are their parts.
#pragma once

#include "gui/document/document.h"
#include "gui/document/timelinelayout.h"

#include <QString>

#include <memory>
#include <optional>

namespace pipewright {

struct DropTarget {
    int device = -1;               ///< the lane under the cursor; -1: none
    double time = 0;               ///< under the cursor
    double snapTime = 0;           ///< how far from the cursor a legal gap may be to attract the block; 0: no snapping
    std::optional<Block> exchange; ///< change places with this block instead of going between two
    bool ripple = false;           ///< take the rest of the microbatch along
    bool operator==(const DropTarget&) const = default;
};

struct DropPlan {
    enum class Kind { Nothing, Reorder, Ripple, MoveStage, Place, MoveTransfer };
    Kind kind = Kind::Nothing;
    Block block; ///< the one that is held; others may move with it
    int device = -1;
    int index = -1; ///< Reorder, Place: in the device's present order, before which block; MoveTransfer: to which place
    int from = -1;  ///< MoveTransfer: the place that it has in the device's list of communication
    int places = 0; ///< Ripple: how many the block passes, negative to earlier
    std::vector<std::uint32_t>
        positions; ///< Reorder: the order that it gives, by present positions; Ripple: of the block alone
    QString text;  ///< Reorder: name of the undo step
    /// The edit; while `live` or `pending` only its diagnostics, since a design of many blocks takes long to copy.
    Document::Edit edit;
    std::shared_ptr<const Prediction> prediction; ///< of the edited design; null when illegal or unchanged
    std::shared_ptr<const TimelineLayout> layout; ///< of the prediction, unless it is live
    bool live = false;      ///< the prediction is an OrderPreview's: tasks are numbered as in the present Program …
    TaskId changedFrom = 0; ///< … and have their present times below this number
    bool pending = false;   ///< legality and prediction are being worked out
    bool legal = false;
    bool changes = false;
    /// Where a single block may stand among its neighbours: from the end of one block to the start of another.
    std::optional<std::pair<Nanoseconds, Nanoseconds>> room;
    QString title;  ///< "I0.3 before F0.7", "moves stage 2 (24 blocks) to GPU 1", or what is wrong
    QString detail; ///< "step −2.1 %, peak +1.2 GiB", or what would help

    bool isSamePlace(const DropPlan& other) const;
};

/// Where in `device`'s order a block dropped at `time` goes: before the first block whose middle is later.
int insertionIndex(const Design& design, const TimelineLayout& layout, int device, double time);
/// Middle of the gap before `index`: what the cursor's distance to a gap is measured by.
double timeOfGap(const Design& design, const TimelineLayout& layout, int device, int index);
/// Where a block stands in the order; as find(), quick when `layout` shows it.
Position placeOf(const Schedule& schedule, const TimelineLayout& layout, const Block& block);
/// The device that holds a block's stage, from where its siblings stand or else from the placement; -1 if unknown.
int deviceOfBlock(const Schedule& schedule, const TimelineLayout& layout, const Block& block);

/// 0, 1, 2, …
std::vector<std::uint32_t> presentPositions(std::size_t size);
/// The order in which each of `moved` (ascending) has passed so many of the others, later or (negative) earlier.
std::vector<std::uint32_t> shiftedPositions(std::size_t size, const std::vector<std::uint32_t>& moved, int places);
/// "I0.3 before F0.7"
QString nameOfPlace(const Design& design, int device, int index, const Block& block);

/// Predicts plan.edit and says what it changes, or why it is illegal. Touches nothing else: for any thread.
void finishExactly(const Design& design, const Prediction* present, DropPlan& plan);

/// "step −2.1 %, peak +1.2 GiB on GPU 0": a predicted result against the present one, differences signed.
QString describeChange(const Design& design, const Prediction& before, const Prediction& after);
/// A diagnostic list as text for people: the first error's fault, and its hint in `hint` when given.
QString explain(const Diagnostics& diagnostics, QString* hint = nullptr);

} // namespace pipewright
