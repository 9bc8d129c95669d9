// SPDX-License-Identifier: GPL-3.0-or-later
// A measurement against its prediction, the same in all texts: measured minus predicted, as a share of the predicted;
// positive where the measured time or memory is higher.
#pragma once

namespace pipewright {

/// 0 where nothing was predicted.
double beyondPrediction(double measured, double predicted);

} // namespace pipewright
