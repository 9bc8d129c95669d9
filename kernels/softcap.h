// SPDX-License-Identifier: GPL-3.0-or-later
// Logits that cannot grow beyond a cap (Gemma 2): cap · tanh(logit / cap).
#pragma once

#include <span>

namespace pipewright::kernels {

/// In place.
struct SoftCap {
    float cap;
    std::span<float> values;
};

/// grad *= the slope, 1 - (capped / cap)².
struct SoftCapGrad {
    float cap;
    std::span<const float> capped;
    std::span<float> grad;
};

} // namespace pipewright::kernels
