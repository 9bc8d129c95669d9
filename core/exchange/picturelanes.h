// SPDX-License-Identifier: GPL-3.0-or-later
// The lanes of a timeline picture: idle time, blocks with texture and label, and outlines of a prediction. Labels are
// decided per lane and operation, not per block, so that equal blocks say the same; a block too narrow for its lane's
// label has none. O(shapes).
#pragma once

#include "core/exchange/picturescene.h"
#include "core/exchange/svgwriter.h"

namespace pipewright {

void drawLanes(const PictureScene& scene, SvgWriter& svg, const PictureBand& band, const PictureView& view);
/// Draws the texture of an operation's blocks.
void drawTexture(const PictureScene& scene, SvgWriter& svg, const Rectangle& area, Op op);
void drawIdle(const PictureScene& scene, SvgWriter& svg, const Rectangle& area);

} // namespace pipewright
