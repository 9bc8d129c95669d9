// SPDX-License-Identifier: GPL-3.0-or-later
// What a drop would do, decided without touching anything: from a block and a place under the cursor to
// an edit of the Document, its predicted result and one explanation for the label at the cursor. The same
// plan is shown during the drag and committed on release, so what was shown is what happens.
#pragma once

#include "gui/document.h"
#include "gui/timeline/timelinelayout.h"

#include <QString>

#include <memory>
#include <optional>

namespace pipewright {

struct DropTarget {
    int device = -1;    ///< the lane under the cursor; -1: none
    double time = 0;    ///< under the cursor
    double snapTime = 0; ///< how far from the cursor a legal gap may be to attract the block; 0: no snapping
    bool operator==(const DropTarget&) const = default;
};

struct DropPlan {
    enum class Kind { Nothing, Reorder, MoveStage, Place };
    Kind kind = Kind::Nothing;
    Block block;
    int device = -1;
    int index = -1;             ///< Reorder, Place: in the device's present order
    Document::Edit edit;
    std::shared_ptr<const Prediction> prediction; ///< of the edited design; null when illegal or unchanged
    bool legal = false;
    bool changes = false;
    QString title;              ///< "I0.3 before F0.7", "moves stage 2 (24 blocks) to GPU 1", or what is wrong
    QString detail;             ///< "step −2.1 %, peak +1.2 GiB", or what would help
};

/// Where in `device`'s order a block dropped at `time` goes: before the first block whose middle is later.
int insertionIndex(const Document& document, const TimelineLayout& layout, int device, double time);
/// The device that holds a block's stage, from where its siblings stand or else from the placement; -1 if unknown.
int deviceOfBlock(const Schedule& schedule, const Block& block);

/// `previous` may hand in the last plan; when it targets the same place, it is returned as it is.
DropPlan planDrop(const Document& document, const TimelineLayout& layout, const Block& block, const DropTarget& target,
                  const DropPlan* previous = nullptr);

/// "step −2.1 %, peak +1.2 GiB on GPU 0": a predicted result against the present one, differences signed.
QString describeChange(const Design& design, const Prediction& before, const Prediction& after);
/// A diagnostic list as text for people: the first error's fault, and its hint in `hint` when given.
QString explain(const Diagnostics& diagnostics, QString* hint = nullptr);

} // namespace pipewright
