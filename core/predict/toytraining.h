// SPDX-License-Identifier: GPL-3.0-or-later
// A toy training run of a schedule's weight versions: each stage is one number, each microbatch is one number, and the
// tasks of a Program run in its global order (a logical clock). It shows the effect of a weight policy on the weights
// exactly; the executors run the same Program on real models.
#pragma once

#include "core/program/program.h"

namespace pipewright {

struct ToyOptimizer {
    double learningRate = 0.125;
    double momentum = 0.5, dampening = 0;   ///< SGD: v = momentum v + (1 - dampening) g
    double beta1 = 0.9, beta2 = 0.999;      ///< Adam, AdamW
    double smoothing = 0.99;                ///< RMSProp, of the squared gradient
    double epsilon = 1e-8, weightDecay = 0; ///< the decay (AdamW) is no part of a prediction
};

struct ToyModel {
    enum class Kind {
        Chain,     ///< y = w_{n-1} ... w_0 x, loss (y - target)^2 / 2
        Quadratic, ///< every stage separately: loss w^2 / 2
        Slope,     ///< every stage separately: constant gradient 1
    };
    Kind kind = Kind::Chain;
    std::vector<double> inputs{1}; ///< Chain: of microbatch 0, 1, …, repeated cyclically
    double target = 1;
    double start = 0.5; ///< of every weight
};

template<typename Real>
struct ToyRun {
    std::vector<std::vector<Real>> weights; ///< per stage: version 0, 1, …
    std::vector<Real> losses;               ///< per microbatch, as its forward saw it; Quadratic: summed over stages
};

/// A Program without U blocks is updated once, at its end. An update takes the mean of its gradients.
/// Instantiated for float and double.
template<typename Real>
ToyRun<Real> trainToy(const Program& program, Optimizer rule, const ToyOptimizer& optimizer, const ToyModel& model);

extern template ToyRun<float> trainToy(const Program&, Optimizer, const ToyOptimizer&, const ToyModel&);
extern template ToyRun<double> trainToy(const Program&, Optimizer, const ToyOptimizer&, const ToyModel&);

} // namespace pipewright
