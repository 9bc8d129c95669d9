// SPDX-License-Identifier: GPL-3.0-or-later
// Schur-Cohn test of the characteristic polynomial, and bisection over the learning rate. O(s^2) per test for a
// gradient delay of s updates.
#include "core/predict/stability.h"

#include <cmath>
#include <vector>

namespace pipewright {

namespace {

/// Are all roots of c[0] z^n + c[1] z^(n-1) + … + c[n] inside the unit circle?
bool rootsInside(std::vector<double> c)
{
    while (c.size() > 1) {
        const std::size_t n = c.size() - 1;
        if (std::abs(c[n]) >= std::abs(c[0]))
            return false;
        std::vector<double> reduced(n);
        const double ratio = c[n] / c[0];
        for (std::size_t i = 0; i < n; ++i)
            reduced[i] = c[i] - ratio * c[n - i];
        c = std::move(reduced);
    }
    return true;
}

} // namespace

bool isStable(double learningRate, double momentum, int staleness, int steps)
{
    // w[t+1] = w[t] + u (w[t] - w[t-1]) - lr ((1 + p) w[t-s] - p w[t-s-1]): the velocity that the prediction from
    // version t-s follows is what led there from version t-s-1.
    std::vector<double> c(static_cast<std::size_t>(staleness) + 3, 0.0);
    c[0] = 1;
    c[1] = -(1 + momentum);
    c[2] += momentum;
    c[c.size() - 2] += learningRate * (1 + steps);
    c[c.size() - 1] -= learningRate * steps;
    return rootsInside(std::move(c));
}

double largestStableRate(double momentum, int staleness, int steps)
{
    double stable = 1e-9, unstable = 2 * (1 + momentum) + 1;
    while (unstable - stable > 1e-10 * unstable) {
        const double middle = (stable + unstable) / 2;
        (isStable(middle, momentum, staleness, steps) ? stable : unstable) = middle;
    }
    return stable;
}

} // namespace pipewright
