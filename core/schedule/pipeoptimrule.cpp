// SPDX-License-Identifier: GPL-3.0-or-later
// PipeOptim (Guan et al., arXiv 2312.00839): a forward predicts the weights of its own update. O(1).
#include "core/schedule/weightrules.h"

#include <algorithm>

namespace pipewright {

namespace {

class PipeOptim final : public VersionRule {
public:
    explicit PipeOptim(PredictionSteps steps) : m_steps(steps) {}
    WeightAnswer forward(const WeightQuestion& block) const override
    {
        const int lag = block.stages - block.stage - 1;
        const int steps = m_steps == PredictionSteps::Paper  ? lag
                          : m_steps == PredictionSteps::Code ? lag + 1
                                                             : block.batch - block.latest;
        return {block.latest, std::max(0, steps)};
    }
    WeightAnswer backward(const WeightQuestion& block) const override { return {block.latest}; }

private:
    PredictionSteps m_steps;
};

} // namespace

std::unique_ptr<const VersionRule> pipeOptimRule(PredictionSteps steps)
{
    return std::make_unique<PipeOptim>(steps);
}

} // namespace pipewright
