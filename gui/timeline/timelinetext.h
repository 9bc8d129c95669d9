// SPDX-License-Identifier: GPL-3.0-or-later
// What the timeline says about devices and blocks, in words and numbers with units: lane headers,
// tooltips, the line for a status bar, and accessible names.
#pragma once

#include "gui/document/document.h"
#include "gui/timeline/timelinepainter.h"

namespace pipewright {

/// One per device of the schedule. `prediction` may be null: then without memory. With a recording, memory is of the
/// side that is asked for. `pending` stands for the members' memory while the prediction has it not.
std::vector<LaneHeader> laneHeaders(const Design& design, const Prediction* prediction,
                                    const Comparison* recording = nullptr, Side side = Side::Predicted,
                                    const QString& pending = QStringLiteral("…"));

/// "stages 0, 7" and the layers they hold, in full.
QString laneDescription(const Design& design, int device);

/// "F0.3, forward of microbatch 3, stage 0 on GPU 0, 4.2 ms to 5 ms".
/// With a `measured` block the times are said to be of that side.
QString blockName(const Design& design, const LaneBlock& block, int device, const LaneBlock* measured = nullptr,
                  Side side = Side::Predicted);

/// "gradients of stage 3 of replicas 0 and 1 are summed, GPU 3 and GPU 7, predicted 4.2 ms to 5 ms".
QString gradientSumText(const Design& design, const Program& program, const LaneSum& sum, Side side);

struct BlockFacts {
    LaneBlock predicted;
    int device = -1;
    std::optional<Nanoseconds> slack;
    const LaneBlock* measured = nullptr; ///< null: there is no recording of it
    Side side = Side::Predicted;
};
/// Rich text for a tooltip: start, duration and its source, measurement, slack, bytes.
QString blockToolTip(const Design& design, const BlockFacts& facts);

} // namespace pipewright
