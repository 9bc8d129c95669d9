// SPDX-License-Identifier: GPL-3.0-or-later
// A measurement against its prediction, the same in all texts: measured minus predicted, as a share of the predicted;
// positive where it took or held more than predicted.
#pragma once

namespace pipewright {

/// 0 where nothing was predicted.
double beyondPrediction(double measured, double predicted);

} // namespace pipewright
