// SPDX-License-Identifier: GPL-3.0-or-later
// Reads, checks and re-derives stated plans stage by stage; a plan that is asked for without instructions comes from
// the synthesis of core/sharding. The cost is the synthesis's.
#include "core/design/stageplans.h"

#include "core/base/diagnostic.h"
#include "core/design/groupcosts.h"
#include "core/design/stagecosts.h"
#include "core/sharding/sharedstage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

namespace {

int firstLayer(const std::vector<int>& layersPerStage, std::size_t stage)
{
    return std::accumulate(layersPerStage.begin(), layersPerStage.begin() + static_cast<std::ptrdiff_t>(stage), 0);
}

/// Whether a plan of the stage in one design fits it in the other.
bool sameStage(const Design& a, const Design& b, std::size_t stage)
{
    if (stage >= a.layersPerStage.size() || stage >= b.layersPerStage.size())
        return false;
    const DeviceSpec* there = groupOfStage(a, static_cast<int>(stage));
    const DeviceSpec* here = groupOfStage(b, static_cast<int>(stage));
    return there && here && *there->group == *here->group && a.workload && b.workload
           && a.workload->shape == b.workload->shape && a.workload->state == b.workload->state
           && a.layersPerStage[stage] == b.layersPerStage[stage]
           && firstLayer(a.layersPerStage, stage) == firstLayer(b.layersPerStage, stage);
}

[[noreturn]] void noGroup(const std::string& what)
{
    throw Error("sharding", what,
                "a plan says how a group of devices shares a stage: use a cluster with groups, such as host-mixed");
}

/// The formula costs of a stage of a group with its plan.
StageCosts formulaOf(const Design& design, std::size_t stage, sharding::SharedStages& known)
{
    Costs whole;
    applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), whole);
    StageCosts costs = whole.stages[stage];
    const DeviceSpec& group = *groupOfStage(design, static_cast<int>(stage));
    applyGroupCosts(known.plan(*design.workload, firstLayer(design.layersPerStage, stage), design.layersPerStage[stage],
                               group, planOfStage(design, static_cast<int>(stage))),
                    group, costs);
    if (const Recompute again = design.schedule.recomputeOf(static_cast<int>(stage)); again != Recompute::None)
        recomputeInGroup(again, recomputedShares(*design.workload, design.layersPerStage, again)[stage], costs);
    return costs;
}

/// `known` with its times scaled by the ratio of the formula's times after and before.
StageCosts inProportion(const StageCosts& known, const StageCosts& before, const StageCosts& after)
{
    StageCosts stage = after;
    stage.origin = known.origin;
    stage.spread = known.spread;
    for (const Op op : allOps) {
        const auto field = timeField(op);
        stage.*field = known.*field;
        if (const Nanoseconds was = before.*field; was > 0 && was != after.*field) {
            stage.*field = std::llround(static_cast<double>(known.*field) * static_cast<double>(after.*field)
                                        / static_cast<double>(was));
            stage.origin[indexOf(op)] = CostOrigin::Estimated;
        }
    }
    return stage;
}

/// Sets the plans and the stage costs that follow from them.
Design withPlans(const Design& base, std::vector<sharding::StatedPlan> plans)
{
    Design design = base;
    design.plans = std::move(plans);
    sharding::SharedStages known;
    const bool formula = base.costs.isFormula() && !base.costs.source.ends_with("times given");
    for (std::size_t s = 0; s < design.plans.size(); ++s)
        if (!(design.plans[s] == planOfStage(base, static_cast<int>(s)))) {
            const StageCosts after = formulaOf(design, s, known);
            design.costs.stages[s] =
                formula ? after : inProportion(base.costs.stages[s], formulaOf(base, s, known), after);
        }
    if (std::all_of(design.plans.begin(), design.plans.end(),
                    [](const auto& plan) { return plan == sharding::StatedPlan{}; }))
        design.plans.clear();
    return design;
}

std::vector<sharding::StatedPlan> plansOf(const Design& design)
{
    std::vector<sharding::StatedPlan> plans = design.plans;
    plans.resize(design.schedule.stages());
    return plans;
}

void checkStage(const Design& design, int stage)
{
    if (!design.workload || std::ssize(design.layersPerStage) != design.schedule.stages())
        noGroup("the design has no model whose layers could be shared out");
    if (stage < 0 || stage >= design.schedule.stages())
        throw Error("--stage", fmt::format("there is no stage {}", stage),
                    fmt::format("stages are numbered 0 to {}", design.schedule.stages() - 1));
    if (!groupOfStage(design, stage))
        noGroup(fmt::format("stage {} is held by a single device", stage));
}

} // namespace

sharding::StatedPlan planOfStage(const Design& design, int stage)
{
    return stage < std::ssize(design.plans) ? design.plans[stage] : sharding::StatedPlan{};
}

const DeviceSpec* groupOfStage(const Design& design, int stage)
{
    if (stage < 0 || stage >= design.schedule.stages())
        return nullptr;
    const int device = design.schedule.deviceOfStage[stage];
    if (device < 0 || device >= static_cast<int>(design.cluster.devices.size()))
        return nullptr;
    const DeviceSpec& spec = design.cluster.devices[device];
    return spec.group ? &spec : nullptr;
}

std::vector<sharding::StatedPlan> carriedPlans(const Design& base, const Design& design)
{
    const std::size_t stages = design.schedule.stages();
    std::vector<sharding::StatedPlan> plans;
    for (std::size_t s = 0; !base.plans.empty() && design.workload && s < stages; ++s) {
        sharding::StatedPlan& plan = plans.emplace_back();
        if (!groupOfStage(design, static_cast<int>(s)))
            continue;
        if (sameStage(base, design, s))
            plan = planOfStage(base, static_cast<int>(s));
        else
            plan.strategy = base.plans[std::min(s * base.plans.size() / stages, base.plans.size() - 1)].strategy;
    }
    if (std::all_of(plans.begin(), plans.end(), [](const auto& plan) { return plan == sharding::StatedPlan{}; }))
        plans.clear();
    return plans;
}

Design withPlan(const Design& base, int stage, sharding::StatedPlan plan)
{
    checkStage(base, stage);
    sharding::checkPlan(plan, *base.workload, firstLayer(base.layersPerStage, stage), base.layersPerStage[stage],
                        *groupOfStage(base, stage)->group);
    std::vector<sharding::StatedPlan> plans = plansOf(base);
    plans[stage] = std::move(plan);
    return withPlans(base, std::move(plans));
}

Design withStrategy(const Design& base, sharding::Strategy strategy, std::optional<int> stage,
                    const std::vector<double>& ratios, std::stop_token stop)
{
    std::vector<sharding::StatedPlan> plans = plansOf(base);
    sharding::SharedStages known;
    bool any = false;
    for (int s = stage.value_or(0); s < (stage ? *stage + 1 : base.schedule.stages()); ++s) {
        if (!stage && !groupOfStage(base, s))
            continue;
        checkStage(base, s);
        const sharding::SharedStage& shared =
            known.plan(*base.workload, firstLayer(base.layersPerStage, s), base.layersPerStage[s],
                       *groupOfStage(base, s), {strategy, ratios, {}}, stop);
        plans[s] = sharding::statedPlan(shared.plan, shared.graph, strategy);
        any = true;
    }
    if (!any)
        noGroup("no stage is held by a group of devices");
    return withPlans(base, std::move(plans));
}

} // namespace pipewright
