// SPDX-License-Identifier: GPL-3.0-or-later
// A design with another model, or another property of it: formula costs are made anew, others are scaled by the work.
#include "core/base/diagnostic.h"
#include "core/design/formularefresh.h"
#include "core/design/groupstages.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/design/stageplans.h"
#include "core/model/transformer.h"

#include <cmath>

namespace pipewright {

Design withOwnHead(const Design& base)
{
    Design design = base;
    if (!design.workload || !design.workload->shape.tiedHead)
        return design;
    ModelShape shape = design.workload->shape;
    shape.tiedHead = false;
    const StateBytesPerParameter state = design.workload->state;
    design.workload = makeWorkload(shape, design.workload->optimizer, design.workload->source);
    design.workload->state = state;
    design.plans = carriedPlans(base, design);
    design.dataflow.shared.clear();
    if (!design.layersPerStage.empty())
        applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), design.costs);
    return design;
}

namespace {

/// The times of updates, by the bytes that they touch.
void scaleUpdates(const Costs& before, Costs& costs)
{
    const auto touched = [](const StageCosts& stage) {
        return static_cast<double>(2 * (stage.parameters + stage.optimizerState) + stage.gradients);
    };
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
        StageCosts& stage = costs.stages[s];
        if (stage.update == 0 || touched(before.stages[s]) <= 0)
            continue;
        stage.update = std::llround(static_cast<double>(stage.update) * touched(stage) / touched(before.stages[s]));
        stage.origin[indexOf(Op::U)] = CostOrigin::Estimated;
    }
}

} // namespace

namespace {

/// `design` has another workload than `base`: a formula's costs are made anew, of others the bytes and the updates.
Design withCostsOfWorkload(const Design& base, Design design)
{
    if (isFormula(base)) {
        refreshFormulaCosts(base, design);
        return design;
    }
    design.plans = carriedPlans(base, design);
    applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), design.costs);
    scaleUpdates(base.costs, design.costs);
    return design;
}

} // namespace

Design withOptimizer(const Design& base, Optimizer optimizer)
{
    if (!base.workload || base.workload->optimizer == optimizer)
        return base;
    Design design = base;
    const StateBytesPerParameter state = base.workload->state;
    design.workload = makeWorkload(base.workload->shape, optimizer, base.workload->source);
    design.workload->state.parameter = state.parameter;
    design.workload->state.gradient = state.gradient;
    if (base.layersPerStage.empty())
        return design;
    return withCostsOfWorkload(base, std::move(design));
}

Design withParallelism(const Design& base, const Parallelism& parallel)
{
    if (!isFormula(base) || base.layersPerStage.empty())
        throw Error("model.parallel", "given or measured times hold for the devices that they are of",
                    "make a design whose times a formula gives: from a model on a cluster");
    Design design = base;
    ModelShape shape = base.workload->shape;
    shape.parallel = parallel;
    const StateBytesPerParameter state = base.workload->state;
    design.workload = makeWorkload(shape, base.workload->optimizer, base.workload->source);
    design.workload->state = state;
    refreshFormulaCosts(base, design);
    return design;
}

Design withPrecision(const Design& base, const Precision& precision)
{
    if (!base.workload)
        return withModel(base, {}); // refuses
    ModelShape shape = base.workload->shape;
    shape.setPrecision(precision);
    return shape == base.workload->shape ? base : withModel(base, shape);
}

Design withFramework(const Design& base, const FrameworkMemory& framework)
{
    if (!base.workload || base.layersPerStage.empty())
        throw Error("model.framework", "the design has costs but no model, of which a framework could keep more",
                    "make the design from a model");
    if (framework != FrameworkMemory{} && hasGroups(base))
        throw Error("model.framework", "what frameworks keep besides is not known of a cluster's own groups of devices",
                    "use none, or degrees of parallelism on a cluster of single devices");
    const Workload& before = *base.workload;
    Design design = base;
    ModelShape shape = before.shape;
    shape.framework = framework;
    design.workload = makeWorkload(shape, before.optimizer, before.source);
    if (before.state != stateBytes(before.shape.dataType, before.optimizer, before.shape.framework))
        design.workload->state = before.state;
    return withCostsOfWorkload(base, std::move(design));
}

namespace {

/// The work of a stage's layers in one pass.
double workOfStage(const Design& design, std::size_t stage, double (Layer::*work)() const)
{
    std::size_t first = 0;
    for (std::size_t s = 0; s < stage; ++s)
        first += design.layersPerStage[s];
    double sum = 0;
    for (int layer = 0; layer < design.layersPerStage[stage]; ++layer)
        sum += (design.workload->layers[first + layer].*work)();
    return sum;
}

} // namespace

Design withModel(const Design& base, const ModelShape& shape)
{
    if (!base.workload || base.layersPerStage.empty())
        throw Error("model", "the design has costs but no model", "make the design from a model");
    if (shape.products != base.workload->shape.products && !isFormula(base))
        throw Error("model.products",
                    "the times are given or measured, and no formula says what other products make of them",
                    "measure a run with such products, or take a formula's times");
    if (shape.dataType != base.workload->shape.dataType && base.costs.sourceOrigin() == CostOrigin::Measured)
        throw Error("model.data_type",
                    "the times were measured with numbers of one type, and no formula says what another makes of them",
                    "measure a run in that type, or take a formula's times");
    if (const std::optional<Design> plain = withoutInsideRecompute(base))
        return withRecompute(withModel(*plain, shape), base.schedule.recompute);
    Design design = base;
    design.workload = makeWorkload(shape, base.workload->optimizer, base.workload->source);
    if (design.workload->layers.size() != base.workload->layers.size())
        design.layersPerStage = evenPartition(*design.workload, base.schedule.stages());
    if (isFormula(base)) {
        refreshFormulaCosts(base, design);
        return design;
    }
    design.plans = carriedPlans(base, design);
    applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), design.costs);
    for (std::size_t s = 0; s < design.costs.stages.size(); ++s) {
        StageCosts& stage = design.costs.stages[s];
        const auto scaled = [&](Nanoseconds& time, double (Layer::*work)() const) {
            if (const double before = workOfStage(base, s, work); before > 0)
                time = std::llround(static_cast<double>(time) * workOfStage(design, s, work) / before);
        };
        scaled(stage.forward, &Layer::forwardWork);
        scaled(stage.inputGrad, &Layer::inputGradWork);
        scaled(stage.weightGrad, &Layer::weightGradWork);
        scaled(stage.backward, &Layer::backwardWork);
        scaled(stage.recompute, &Layer::forwardWork);
        stage.fitParts();
        for (const Op op : allOps)
            if (isPass(op))
                stage.origin[indexOf(op)] = CostOrigin::Estimated;
    }
    scaleUpdates(base.costs, design.costs);
    return design;
}

} // namespace pipewright
