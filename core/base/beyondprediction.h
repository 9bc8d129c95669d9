// SPDX-License-Identifier: GPL-3.0-or-later
// The one way in which a measurement is set against its prediction for people: measured less predicted, as a share of
// the predicted; positive where it took or held more than predicted.
#pragma once

namespace pipewright {

/// 0 where nothing was predicted.
double beyondPrediction(double measured, double predicted);

} // namespace pipewright
