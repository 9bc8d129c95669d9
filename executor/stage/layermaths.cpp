// SPDX-License-Identifier: GPL-3.0-or-later
// F in the order of the plan, I in the reverse order, W in any.
#include "executor/stage/layermaths.h"

#include "core/base/diagnostic.h"
#include "executor/stage/layerplan.h"
#include "executor/stage/stepwriter.h"

namespace pipewright {

namespace {

const OperationSteps& stepsOf(const LayerPlan& plan, int tensor)
{
    const std::string_view operation = plan.operation(tensor);
    if (const OperationSteps* const steps = findSteps(operation))
        return *steps;
    throw Error(plan.node(tensor).name, "stages have no mathematics of " + std::string(operation),
                "run a model without it");
}

} // namespace

LayerMaths::LayerMaths(const LayerPlan& plan, const LayerSettings& settings)
{
    for (const int tensor : plan.order())
        stepsOf(plan, tensor);
    StepWriter writer(plan, settings, m_steps);
    const auto keepStream = [&](int tensor) { // what arrives at a head is kept where it arrives
        const auto kept = plan.kept(tensor);
        if (!kept || !plan.isOnStream(tensor) || plan.isHead())
            return;
        writer.forward([to = *kept](const StepContext& pass) {
            pass.on().copy(std::span<const float>(pass.stream), pass.memory.floats(to));
        });
    };
    if (!plan.isEmbedding())
        keepStream(0);
    for (const int tensor : plan.order()) {
        if (const auto forward = stepsOf(plan, tensor).forward)
            forward(writer, tensor);
        keepStream(tensor);
    }
    for (auto tensor = plan.order().rbegin(); tensor != plan.order().rend(); ++tensor) {
        writer.completeGradient(*tensor);
        if (const auto inputGrad = stepsOf(plan, *tensor).inputGrad)
            inputGrad(writer, *tensor);
    }
    if (!plan.isEmbedding())
        writer.completeGradient(0);
    for (const int tensor : plan.order())
        if (const auto weightGrad = stepsOf(plan, tensor).weightGrad)
            weightGrad(writer, tensor);
}

} // namespace pipewright
