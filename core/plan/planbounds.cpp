// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/planbounds.h"

#include "core/design/stagecosts.h"
#include "core/model/transformer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

namespace pipewright {

Workload workloadOf(const PlanRequest& request, const PlanSetting& setting)
{
    ModelShape shape = request.shape;
    shape.parallel = setting.parallel();
    shape.microbatchSize = setting.microbatchSize;
    shape.sequencePieces = 1;
    return makeWorkload(shape, Optimizer::AdamW, request.source);
}

std::shared_ptr<const Cluster> clusterOf(const PlanRequest& request, const PlanSetting& setting)
{
    return request.cluster(setting.pipeline, setting.parallel().devicesPerStage());
}

namespace {

constexpr int usualChunks = 4; // more stages per device gain little, and send more

/// The costs of the model cut into so many stages, dealt out in turn.
Costs costsOf(const PlanSetting& setting, int stages, const Workload& workload, const Cluster& cluster,
              Dataflow& dataflow)
{
    std::vector<int> deviceOfStage(static_cast<std::size_t>(stages));
    for (int s = 0; s < stages; ++s)
        deviceOfStage[static_cast<std::size_t>(s)] = s % setting.pipeline;
    const std::vector<Recompute> recompute(setting.recompute == Recompute::None ? 0 : deviceOfStage.size(),
                                           setting.recompute);
    return formulaCosts(workload, evenPartition(workload, stages), cluster, deviceOfStage, &dataflow, nullptr,
                        {recompute, setting.zero});
}

Nanoseconds workOf(const StageCosts& stage)
{
    return stage.forward + std::min(stage.backward, stage.inputGrad + stage.weightGrad);
}

/// Whether its devices run two copies of the pipeline, one each way.
bool runsBothWays(const Family& family)
{
    static const std::map<std::string_view, bool> known = [] {
        std::map<std::string_view, bool> both;
        for (const Family& each : families()) {
            FamilyParameters parameters;
            parameters.devices = 4;
            parameters.microbatches = 8;
            try {
                both[each.name] = makeSchedule(each.name, parameters).replicas() > 1;
            } catch (const Error&) {
                both[each.name] = true; // not known: the weaker bound
            }
        }
        return both;
    }();
    return known.at(family.name);
}

} // namespace

PlanBounds boundsOf(const PlanRequest& request, const PlanSetting& setting)
{
    return boundsOf(request, setting, workloadOf(request, setting), *clusterOf(request, setting));
}

PlanBounds boundsOf(const PlanRequest& request, const PlanSetting& setting, const Workload& workload,
                    const Cluster& cluster)
{
    Dataflow dataflow;
    const Costs costs = costsOf(setting, setting.pipeline, workload, cluster, dataflow);
    PlanBounds bounds;
    Nanoseconds work = 0;
    Bytes held = 0;
    for (const StageCosts& stage : costs.stages) {
        work += workOf(stage);
        held += stage.parameters + stage.gradients + stage.optimizerState + stage.savedUntilInputGrad
                + stage.savedUntilWeightGrad;
    }
    // A shared parameter may lie on one device; with its gradient and state it takes a few times its own bytes.
    constexpr Bytes timesOwn = 12;
    for (const SharedParameter& shared : dataflow.shared)
        held -= timesOwn * shared.bytes;
    // Other cuts round every stage's times anew.
    const Nanoseconds rounding = 4 * static_cast<Nanoseconds>(workload.layers.size());
    bounds.step = std::max<Nanoseconds>(0, work - rounding) * setting.microbatches / setting.pipeline;
    const int chunks = std::max(1, static_cast<int>(workload.layers.size()) / setting.pipeline);
    bounds.likely = bounds.step + work * (setting.pipeline - 1) / setting.pipeline / std::min(chunks, usualChunks);
    bounds.peak = std::max<Bytes>(0, held / setting.pipeline);
    for (const DeviceSpec& device : cluster.devices)
        if (device.memory > 0)
            bounds.limit = bounds.limit == 0 ? device.memory : std::min(bounds.limit, device.memory);
    if (request.memoryLimit)
        bounds.limit = *request.memoryLimit;
    return bounds;
}

Nanoseconds stepBoundOf(const PlanSetting& setting, const PlanBounds& bounds, const PlanOrder& order,
                        const Workload& workload, const Cluster& cluster)
{
    if (order.family->cutsSequences) // pieces attend to what is before them alone, at best to half of all pairs
        return bounds.step / 2;
    const int stages = setting.pipeline * order.chunks;
    if (setting.pipeline == 1 || stages > static_cast<int>(workload.layers.size()))
        return bounds.step;
    Dataflow dataflow;
    const Costs costs = costsOf(setting, stages, workload, cluster, dataflow);
    // Of p devices one holds none of the first p - 1 stages; where copies run both ways, none of the first p/2 - 1 of
    // either.
    const int before = runsBothWays(*order.family) ? std::max(0, setting.pipeline / 2 - 1) : setting.pipeline - 1;
    Nanoseconds way = 0, least = std::numeric_limits<Nanoseconds>::max();
    for (int s = 0; s < stages; ++s) {
        const StageCosts& stage = costs.stages[static_cast<std::size_t>(s)];
        least = std::min(least, workOf(stage));
        if (s < before)
            way += stage.forward + std::min(stage.backward, stage.inputGrad);
    }
    return std::max(bounds.step, way + order.chunks * least * setting.microbatches);
}

} // namespace pipewright
