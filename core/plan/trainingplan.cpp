// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/trainingplan.h"

#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/plan/planbounds.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"

#include <algorithm>

namespace pipewright {

Design designOf(const PlanRequest& request, const PlanSetting& setting, const Family& family, int chunks)
{
    NewDesign choice;
    choice.workload = workloadOf(request, setting);
    choice.cluster = *clusterOf(request, setting);
    choice.family = family.name;
    choice.devices = setting.pipeline;
    choice.microbatches = setting.microbatches;
    choice.zero = setting.zero;
    if (family.chunksSelectable)
        choice.chunks = chunks;
    Design design = designFromModel(choice);
    if (setting.recompute != Recompute::None)
        design = withRecompute(
            design, std::vector<Recompute>(static_cast<std::size_t>(design.schedule.stages()), setting.recompute));
    return design;
}

TrainingPlan trainingPlanOf(const PlanRequest& request, const PlanSetting& setting, const Family& family, int chunks,
                            std::optional<StepShares>& first)
{
    TrainingPlan plan;
    plan.setting = setting;
    plan.family = &family;
    plan.design = designOf(request, setting, family, chunks);
    plan.chunks = plan.design.schedule.chunks();
    const Prediction prediction = predict(plan.design);
    plan.step = prediction.metrics.makespan;
    for (const DeviceMemory& device : memoryBreakdown(plan.design, prediction).devices)
        if (device.peak > plan.peak) {
            plan.peak = device.peak;
            plan.memory = device;
        }
    if (request.noise)
        plan.noisy = spreadOfStep(prediction.program, plan.design.costs, *request.noise);
    plan.tokensPerSecondPerDevice = tokensPerSecond(plan.design, plan.step) / request.devices;
    plan.mfu = modelFlopsUtilization(plan.design, plan.step);
    const StepShares shares = sharesOf(plan.design, prediction);
    plan.why = whyText(shares, first ? &*first : nullptr);
    if (!first)
        first = shares;
    return plan;
}

void findAlike(std::vector<TrainingPlan>& plans)
{
    const auto isAlike = [](Nanoseconds a, Nanoseconds b) {
        return static_cast<double>(std::max(a, b) - std::min(a, b))
               <= planTolerance * static_cast<double>(std::min(a, b));
    };
    for (std::size_t i = 0; i < plans.size(); ++i)
        for (std::size_t j = 0; j < plans.size(); ++j)
            if (i != j && isAlike(plans[i].step, plans[j].step))
                plans[i].alike.push_back(j);
}

} // namespace pipewright
