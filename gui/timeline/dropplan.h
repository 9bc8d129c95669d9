// SPDX-License-Identifier: GPL-3.0-or-later
// What a drop would do, as a value: an edit of the Document, its predicted result, and an explanation for the label at
// the cursor. The plan that is shown during the drag is the one that is committed on release, so the result is the one
// that was shown. DropPlanner makes plans; this file has their data types and helper functions.
#pragma once

#include "core/schedule/edits.h"
#include "gui/document/document.h"
#include "gui/document/timelinelayout.h"

#include <QString>

#include <cstdint>
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
    enum class State : std::uint8_t {
        Refused,     ///< nothing can be dropped; also what a plan begins with
        Unchanged,   ///< legal, and everything stays as it is
        Pending,     ///< legality and prediction are being worked out; it may be dropped
        Approximate, ///< legal; the prediction is an OrderPreview's: tasks are numbered as in the present Program
        Exact,       ///< legal; the edit and its prediction are those of the drop
    };
    State state = State::Refused;
    std::optional<EditRequest> request; ///< what a drop would do; none where nothing can be dropped
    Block block;                        ///< the one that is held; others may move with it
    int device = -1;
    int index = -1; ///< block: index in the device's present order to insert before; transfer: its new place
    /// The request applied; while Pending or Approximate only its diagnostics, since a large design takes long to edit.
    Document::Edit edit;
    std::shared_ptr<const Prediction> prediction; ///< of the edited design, while Approximate or Exact
    std::shared_ptr<const TimelineLayout> layout; ///< of an exact prediction
    TaskId changedFrom = 0;                       ///< Approximate: tasks below this number have their present times
    /// Where a single block may stand among its neighbours: from the end of one block to the start of another.
    std::optional<std::pair<Nanoseconds, Nanoseconds>> room;
    QString title;  ///< "I0.3 before F0.7", "moves stage 2 (24 blocks) to GPU 1", or what is wrong
    QString detail; ///< "step −2.1 %, peak +1.2 GiB", or what would help

    bool isLegal() const { return state != State::Refused; }
    bool isSamePlace(const DropPlan& other) const;
    template<typename Kind>
    bool is() const
    {
        return request && std::holds_alternative<Kind>(*request);
    }
};

/// Where in `device`'s order a block dropped at `time` goes: before the first block whose middle is later.
int insertionIndex(const Design& design, const TimelineLayout& layout, int device, double time);
/// The same index, or the nearest beside a joined I and W of the first stage, where no other block may stand between.
int outsideJoinedPair(const Design& design, const TimelineLayout& layout, const Block& held, int device, int index,
                      double time);
/// Middle of the gap before `index`: what the cursor's distance to a gap is measured by.
double timeOfGap(const Design& design, const TimelineLayout& layout, int device, int index);
/// The position of a block in the order; as find(), but fast when `layout` shows the block.
Position placeOf(const Schedule& schedule, const TimelineLayout& layout, const Block& block);
/// The device that holds a block's stage, from where its siblings stand or else from the placement; -1 if unknown.
int deviceOfBlock(const Schedule& schedule, const TimelineLayout& layout, const Block& block);

/// "I0.3 before F0.7"
QString nameOfPlace(const Design& design, int device, int index, const Block& block);

/// Predicts plan.edit and says what it changes, or why it is illegal. Touches nothing else: for any thread.
void finishExactly(const Design& design, const Prediction* present, MemberPredictor& members,
                   MemberPredictor::Patience patience, DropPlan& plan);

/// "step −2.1 %, peak +1.2 GiB on GPU 0": signed differences of a predicted result to the present one. The step time of
/// the groups' members is used when both predictions have it. `design` may be either design; both have the same
/// devices.
QString describeChange(const Design& design, const Prediction& before, const Prediction& after);
/// A diagnostic list as text for people: the fault of the first error; its hint goes to `hint` when that is given.
QString explain(const Diagnostics& diagnostics, QString* hint = nullptr);

} // namespace pipewright
