// SPDX-License-Identifier: GPL-3.0-or-later
// A timeline as an SVG picture: lanes, the memory of every device under the same time axis, and the numbers below.
// Blocks narrower than a pixel are merged into runs of the dominant colour, so the picture's size is bounded by its
// pixels, not its blocks. O(blocks log blocks).
#pragma once

#include "core/predict/predict.h"

#include <string>

namespace pipewright {

struct PictureOptions {
    bool dark = false;
    int width = 1400;                   ///< pixels, at least 480
    std::string title;                  ///< the design's name when empty
    const Timeline* measured = nullptr; ///< drawn filled, with the prediction as dashed outlines
    std::string measuredSource;         ///< "run 7", for the footer
    double spread = 0.05;               ///< measured blocks slower by more than this share get a red underline
    bool memory = true;                 ///< memory curves, where the design knows any bytes
};

/// Up to 128 devices are drawn, and a line says how many more there are. `measured`, when given, must be of the same
/// Program. Throws Error when it is not, or when the width is below 480 or above 20000.
std::string timelineSvg(const Design& design, const Prediction& prediction, const PictureOptions& options = {});

} // namespace pipewright
