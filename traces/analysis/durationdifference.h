// SPDX-License-Identifier: GPL-3.0-or-later
// The difference that a comparison shows to users: a block's measured minus predicted duration, as a share of the
// predicted one. The errors in Comparison, for programs, are those of the prediction, as shares of the measured value.
#pragma once

#include "traces/analysis/comparison.h"

namespace pipewright {

double beyondPrediction(const Comparison::BlockError& block, const Timeline& predicted);
/// The median over the measured blocks; 0 if there are none.
double medianBeyond(const Comparison& comparison, const Timeline& predicted);

} // namespace pipewright
