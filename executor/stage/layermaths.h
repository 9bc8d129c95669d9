// SPDX-License-Identifier: GPL-3.0-or-later
// The mathematics of one layer, from its graph (core/model/modelgraph.h): the calls of kernels of each pass, resolved
// once. It owns no memory.
//
// I also accumulates the gradients of the norms, because they need tensors that are kept only until I; W accumulates
// the gradients of everything that belongs to a matrix, its bias included. Both add, with +=.
#pragma once

#include "executor/stage/steps.h"

#include <vector>

namespace pipewright {

class LayerPlan;

/// What of a run the mathematics of a layer depends on.
struct LayerSettings {
    float lossScale = 1;    ///< of a token's loss in the loss of a step
    double balanceOver = 1; ///< the load-balancing term is a mean over so many layers and microbatches
};

class LayerMaths {
public:
    /// Throws Error for an operation without mathematics.
    LayerMaths(const LayerPlan& plan, const LayerSettings& settings);

    void forward(const StepContext& pass) const { run(m_steps.forward, pass); }
    void recomputeCores(const StepContext& pass) const { run(m_steps.cores, pass); }
    void inputGrad(const StepContext& pass) const { run(m_steps.inputGrad, pass); }
    void weightGrad(const StepContext& pass) const { run(m_steps.weightGrad, pass); }

private:
    static void run(const std::vector<Step>& steps, const StepContext& pass)
    {
        for (const Step& step : steps)
            step(pass);
    }

    LayerSteps m_steps;
};

} // namespace pipewright
