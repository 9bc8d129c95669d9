// SPDX-License-Identifier: GPL-3.0-or-later
// A page to share: one HTML file in which whoever has a browser pans and zooms through a step, clicks a block and reads
// what it waits for, sees each device's memory and idle time, and compares the run with the prediction. The file needs
// nothing else, and loads nothing.
#pragma once

#include "core/base/pieces.h"
#include "core/predict/predict.h"

namespace pipewright {

/// `measured`: a step of the same Program, or null. `curve`: gives memory curves where the prediction has none; null:
/// it has them. Throws Error for more than 100,000 tasks. O(tasks + memory samples).
void sharedPage(const Design& design, const Prediction& prediction, const Timeline* measured, const CurveOf& curve,
                const Pieces& to);

} // namespace pipewright
