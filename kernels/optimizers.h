// SPDX-License-Identifier: GPL-3.0-or-later
// One optimizer step over a flat range of parameters. Element by element, so the result does not depend
// on how parameters are cut into ranges.
#pragma once

#include <span>

namespace pipewright::kernels {

struct SgdSettings {
    float learningRate = 0.01f;
    float momentum = 0.9f;
    float weightDecay = 0; ///< decoupled: parameters shrink by learningRate · weightDecay
};

/// momentum = settings.momentum · momentum + gradient; parameter = (1 - learningRate · weightDecay) ·
/// parameter - learningRate · momentum.
struct SgdMomentumStep {
    SgdSettings settings;
    std::span<float> parameters;
    std::span<const float> gradients;
    std::span<float> momentum;
};

struct AdamWSettings {
    float learningRate = 1e-3f;
    float beta1 = 0.9f;
    float beta2 = 0.95f;
    float epsilon = 1e-8f;
    float weightDecay = 0;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2). `step` counts
/// from 1; it decides the bias corrections.
struct AdamWStep {
    AdamWSettings settings;
    int step;
    std::span<float> parameters;
    std::span<const float> gradients;
    std::span<float> firstMoment, secondMoment;
};

struct RmsPropSettings {
    float learningRate = 1e-3f;
    float smoothing = 0.99f; ///< of the running mean of the squared gradient
    float epsilon = 1e-8f;
};

/// squares = smoothing · squares + (1 - smoothing) · gradient²; parameter -= learningRate · gradient /
/// (sqrt(squares) + epsilon). `last` keeps the gradient, for PredictRmsProp.
struct RmsPropStep {
    RmsPropSettings settings;
    std::span<float> parameters;
    std::span<const float> gradients;
    std::span<float> squares, last;
};

// The parameters after further steps in the direction of the last one (arXiv 2312.00839), without weight decay.
// `distance` is the learning rate times the number of steps. `predicted` may be `parameters`.

/// predicted = parameter - distance · momentum.
struct PredictMomentum {
    float distance;
    std::span<const float> parameters, momentum;
    std::span<float> predicted;
};
/// predicted = parameter - distance · last / (sqrt(squares) + epsilon).
struct PredictRmsProp {
    float distance, epsilon;
    std::span<const float> parameters, squares, last;
    std::span<float> predicted;
};
/// The same for Adam, with the bias corrections of `step`, which counts from 1.
struct PredictAdam {
    AdamWSettings settings;
    int step;
    float distance;
    std::span<const float> parameters, firstMoment, secondMoment;
    std::span<float> predicted;
};

} // namespace pipewright::kernels
