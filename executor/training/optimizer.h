// SPDX-License-Identifier: GPL-3.0-or-later
// The update of one stage: the kernels' optimizers over the flat parameters, with weight decay on matrices
// only. Element by element, hence independent of how the model is cut into stages.
#pragma once

#include "executor/training/parameterlayout.h"
#include "kernels/optimizers.h"

#include <span>
#include <vector>

namespace pipewright {

struct OptimizerSettings {
    Optimizer kind = Optimizer::AdamW;
    kernels::AdamWSettings adamW{.weightDecay = 0.01f};
    kernels::SgdSettings sgd{};
};

class StageOptimizer {
public:
    StageOptimizer(const ParameterLayout& layout, const OptimizerSettings& settings);

    /// Floats of state. AdamW: all first moments, then all second moments. SGD: the momentum. Starts as zeros.
    std::size_t stateElements() const;

    /// Update number `step`, counted from 1. Gradients are read only; clearing them is the caller's.
    void update(int step, std::span<float> parameters, std::span<const float> gradients, std::span<float> state) const;

private:
    struct Range { ///< neighbouring parameters that are treated alike
        std::size_t offset = 0, count = 0;
        bool decays = false;
    };

    OptimizerSettings m_settings;
    std::size_t m_count;
    std::vector<Range> m_ranges;
};

} // namespace pipewright
