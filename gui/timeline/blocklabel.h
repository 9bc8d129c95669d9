// SPDX-License-Identifier: GPL-3.0-or-later
// How the blocks of a lane are labelled: one form for a lane at a zoom level, by the mean width of its blocks, and less
// only where a block is too short for it.
#pragma once

#include "gui/document/timelinelayout.h"

namespace pipewright {

enum class BlockLabel {
    None,
    Letter,              ///< "F"
    Name,                ///< "F3.0" on one line: where a lane is too low for two
    LetterAndNumber,     ///< "F" over the microbatch
    LetterStageAndNumber ///< "F4", with the stage, over the microbatch: on devices that hold several stages
};

class LaneLabels {
public:
    /// `height`: of the lane's blocks, in pixels.
    LaneLabels(const Lane& lane, double nsPerPixel, double height);
    /// Depends on a block's duration and not on its rounded pixels, so that blocks of equal duration are labelled
    /// alike.
    BlockLabel of(const LaneBlock& block) const;

private:
    double widthOf(BlockLabel form) const;

    double m_nsPerPixel;
    double m_number; ///< pixels of the widest microbatch below its letter
    BlockLabel m_form = BlockLabel::None;
};

} // namespace pipewright
