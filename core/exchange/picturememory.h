// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of every device under its lanes, on one scale for all: the shown side filled, a prediction over which a
// measurement is laid as a dashed line, the device's limit, and an axis of bytes. Curves are reduced to two points per
// pixel. O(samples).
#pragma once

#include "core/exchange/picturescene.h"
#include "core/exchange/svgwriter.h"

namespace pipewright {

void drawMemory(const PictureScene& scene, SvgWriter& svg, const PictureBand& band, const PictureView& view);

} // namespace pipewright
