// SPDX-License-Identifier: GPL-3.0-or-later
// The largest stable learning rate with stale weights: one weight, loss w^2 / 2, momentum SGD, gradients with staleness
// s, with or without prediction by s updates. The sequence of weights is a linear recurrence. It converges to 0 if all
// roots of its polynomial are inside the unit circle, which the Schur-Cohn recursion decides exactly. Prediction widens
// the stable range with strong momentum and narrows it with weak momentum.
#pragma once

namespace pipewright {

/// Whether w shrinks to 0 at this learning rate. `steps`: by how many updates the weights of a gradient are predicted.
bool isStable(double learningRate, double momentum, int staleness, int steps);

/// The learning rate up to which it does, to 1e-9 relative. Momentum in [0, 1), staleness and steps from 0 on.
double largestStableRate(double momentum, int staleness, int steps);

} // namespace pipewright
