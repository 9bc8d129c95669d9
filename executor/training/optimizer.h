// SPDX-License-Identifier: GPL-3.0-or-later
// The update of one stage: the kernels' optimizers over the flat parameters, with weight decay on matrices
// only. Element by element, hence independent of how the model is cut into stages.
#pragma once

#include "core/base/optimizer.h"
#include "executor/stage/parameterlayout.h"
#include "kernels/operations.h"

#include <span>
#include <vector>

namespace pipewright {

struct OptimizerSettings {
    Optimizer kind = Optimizer::AdamW; ///< Adam is AdamW without decay
    kernels::AdamWSettings adamW{.weightDecay = 0.01f};
    kernels::SgdSettings sgd{};
    float rmsSmoothing = 0.99f; ///< RMSProp: smoothing of the squared gradient; its rate and epsilon are those of adamW
};

class StageOptimizer {
public:
    struct Range { ///< neighbouring parameters that are treated alike
        std::size_t offset = 0, count = 0;
        bool decays = false;
        bool isCorrection = false; ///< of the experts' choice: moved by `correctionRate`, whatever the optimizer
        float correctionRate = 0;
    };

    StageOptimizer(const ParameterLayout& layout, const OptimizerSettings& settings);
    /// For parameters in another layout; `ranges` cover [0, count) in order.
    StageOptimizer(std::size_t count, std::vector<Range> ranges, const OptimizerSettings& settings);

    /// The optimizer of `count` of the parameters, from `begin` on, which have a state of their own.
    StageOptimizer part(std::size_t begin, std::size_t count) const;

    /// Floats of state. AdamW, Adam: all first moments, then all second moments. SGD: the momentum. RMSProp: the mean
    /// squares, then the last gradient. Starts as zeros.
    std::size_t stateElements() const;

    /// Update number `step`, counted from 1. Gradients are read only; clearing them is the caller's.
    void update(const kernels::Operations& operations, int step, std::span<float> parameters,
                std::span<const float> gradients, std::span<float> state) const;

    /// Where `steps` more updates in the direction of the last one would lead, without weight decay. `updates`: the
    /// number of updates so far; before the first one there is no direction, and the weights stay (arXiv 2312.00839).
    /// Predicts the parameters from `first` on, as many as `predicted` has.
    void predict(const kernels::Operations& operations, int updates, int steps, std::span<const float> parameters,
                 std::span<const float> state, std::span<float> predicted, std::size_t first = 0) const;
    /// The same, rounded to bf16, for a device that computes with bf16.
    void predict(const kernels::Operations& operations, int updates, int steps, std::span<const float> parameters,
                 std::span<const float> state, std::span<std::uint16_t> predicted) const;

private:
    struct From {
        std::span<const float> parameters, state;
    };
    void predictInto(const kernels::Operations& operations, int updates, int steps, std::size_t first, const From& from,
                     std::span<float> predicted, kernels::StoredOperands stored) const;

    OptimizerSettings m_settings;
    std::size_t m_count;
    std::vector<Range> m_ranges;
};

} // namespace pipewright
