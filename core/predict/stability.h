// SPDX-License-Identifier: GPL-3.0-or-later
// How large a learning rate old weights bear: one weight, loss w^2 / 2, momentum SGD, gradients taken s updates
// late, with or without prediction by s updates. The sequence of weights is a linear recurrence, and it dies out
// while all roots of its polynomial lie inside the unit circle, which Schur's and Cohn's recursion decides
// exactly. Prediction widens the range with strong momentum and narrows it without.
#pragma once

namespace pipewright {

/// Whether w shrinks to 0 at this learning rate. `steps` is how far the weights of a gradient are predicted.
bool isStable(double learningRate, double momentum, int staleness, int steps);

/// The learning rate up to which it does, to 1e-9 relative. Momentum in [0, 1), staleness and steps from 0 on.
double largestStableRate(double momentum, int staleness, int steps);

} // namespace pipewright
