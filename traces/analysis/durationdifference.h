// SPDX-License-Identifier: GPL-3.0-or-later
// The difference that a comparison shows: a block's duration, measured minus predicted, as a share of the predicted.
// The errors of Comparison, which programs read, are of the prediction and shares of the measured.
#pragma once

#include "traces/analysis/comparison.h"

namespace pipewright {

double beyondPrediction(const Comparison::BlockError& block, const Timeline& predicted);
/// Of the blocks that were measured; 0 where there are none.
double medianBeyond(const Comparison& comparison, const Timeline& predicted);

} // namespace pipewright
