// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/planbounds.h"

#include "core/design/stagecosts.h"
#include "core/model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace pipewright {

Workload workloadOf(const PlanRequest& request, const PlanSetting& setting, int pieces, std::optional<int> layers)
{
    ModelShape shape = request.shape;
    shape.parallel = setting.parallel();
    if (setting.expert > 1) { // no device has more of the tokens than all of them
        shape.parallel.nodeDispatch = request.shape.parallel.nodeDispatch;
        shape.parallel.expertSpread = std::min<double>(request.shape.parallel.expertSpread, setting.expert);
    }
    shape.microbatchSize = setting.microbatchSize;
    shape.sequencePieces = pieces;
    shape.layers = layers.value_or(shape.layers);
    return makeWorkload(shape, Optimizer::AdamW, request.source);
}

std::shared_ptr<const Cluster> clusterOf(const PlanRequest& request, const PlanSetting& setting)
{
    return request.cluster(setting.pipeline, setting.parallel().devicesPerStage());
}

Bytes memoryLimitOf(const PlanRequest& request, const Cluster& cluster)
{
    if (request.memoryLimit)
        return *request.memoryLimit;
    Bytes least = 0;
    for (const DeviceSpec& device : cluster.devices)
        if (device.memory > 0)
            least = least == 0 ? device.memory : std::min(least, device.memory);
    return least;
}

std::string whyNotShared(const FlatOrder& order, const PlanSetting& setting)
{
    return order.replicas() > 1 && setting.zero.sharesGradients()
               ? fmt::format("level {}, and its copies are drawn and counted, too", setting.zero.level)
               : std::string();
}

PlanBounds boundsOf(const PlanSetting& setting, const LayerCosts& costs, std::size_t recompute, std::size_t zero)
{
    return {costs.work(recompute) * setting.microbatches / setting.pipeline,
            (costs.states(zero) + costs.keptByForward(recompute)) / setting.pipeline};
}

PlanBounds quickBoundsOf(const FlatOrder& order, const KindCosts& kinds, std::span<const int> layersPerStage,
                         const PlanSetting& setting, const LayerCosts& costs, std::size_t zero)
{
    struct Device {
        Nanoseconds begin = std::numeric_limits<Nanoseconds>::max(), work = 0;
        Bytes states = 0, kept = std::numeric_limits<Bytes>::max();
    };
    std::vector<Device> devices(static_cast<std::size_t>(order.devices));
    const std::int64_t microbatches = std::int64_t{setting.microbatches} * order.pieces / order.replicas();
    const bool sharesTwice = order.replicas() > 1 && setting.zero.level > 0;
    for (int replica = 0; replica < order.replicas(); ++replica) {
        Nanoseconds begin = 0;
        for (int stage = 0, layer = 0; stage < order.stages; ++stage) {
            const auto s = static_cast<std::size_t>(stage);
            Device& device =
                devices[static_cast<std::size_t>(order.deviceOfStage[static_cast<std::size_t>(replica)][s])];
            const auto timeOf = [&](Op op) { return kinds.time[order.kindOf(op, stage, replica)]; };
            begin += kinds.delay[order.kindOf(Op::F, stage, replica)];
            device.begin = std::min(device.begin, begin);
            begin += timeOf(Op::F);
            device.work += microbatches * (timeOf(Op::F) + std::min(timeOf(Op::B), timeOf(Op::I) + timeOf(Op::W)));
            device.kept = std::min(device.kept, kinds.kept[order.kindOf(Op::F, stage, replica)]);
            const LayerCosts::LayerRun run{layer, layer += layersPerStage[s]};
            const LayerCosts::Held held = costs.held({&run, 1}, zero);
            device.states += sharesTwice ? held.states - held.optimizer : held.states;
        }
    }
    PlanBounds bounds;
    for (std::size_t d = 0; d < devices.size(); ++d) {
        if (order.pairs.empty()) // what overlaps takes less than its sum
            bounds.step = std::max(bounds.step, devices[d].begin + devices[d].work);
        bounds.peak = std::max(bounds.peak, devices[d].states + order.mostLive[d] * devices[d].kept);
    }
    return bounds;
}

PlanBounds boundsOf(const FlatOrder& order, const FlatRun& run, std::span<const int> layersPerStage,
                    const PlanSetting& setting, const LayerCosts& costs, std::size_t zero)
{
    const Zero& shared = setting.zero;
    const int replicas = order.replicas();
    // Copies that are drawn share out the optimizer among themselves, too.
    const int alsoOver = replicas > 1 && shared.level > 0 ? replicas : 1;
    const bool isGathered = shared.sharesParameters(),
               isSummedEach = shared.sharesGradients() && shared.reduce == Zero::Reduce::Each;
    std::vector<LayerCosts::LayerRun> layers;
    for (int first = 0; const int count : layersPerStage) {
        layers.emplace_back(first, first + count);
        first += count;
    }
    struct Device {
        LayerCosts::Held held;
        Bytes leastWhole = std::numeric_limits<Bytes>::max();
        Nanoseconds collectives = 0, sums = 0; ///< all that a device does of them, one after the other
        Nanoseconds last = 0;                  ///< when the last one so far ends
        Nanoseconds updated = 0;
    };
    std::vector<Device> devices(static_cast<std::size_t>(order.devices));
    const Nanoseconds before = replicas == 1 && isGathered ? costs.exchanges(layers.front(), zero).gather : 0;
    for (std::size_t d = 0; d < devices.size(); ++d)
        devices[d].updated = run.lastEnd[d] + before;
    // Sums in the order in which their gradients are there; stages of one device end in any order.
    std::vector<int> byGradient(layers.size());
    std::iota(byGradient.begin(), byGradient.end(), 0);
    std::sort(byGradient.begin(), byGradient.end(), [&](int a, int b) {
        return run.lastGradient[static_cast<std::size_t>(a)] < run.lastGradient[static_cast<std::size_t>(b)];
    });
    std::vector<Nanoseconds> summed(layers.size(), 0);
    const std::int64_t microbatches = std::int64_t{setting.microbatches} * order.pieces;
    for (const int s : byGradient) {
        const auto stage = static_cast<std::size_t>(s);
        Device& device = devices[static_cast<std::size_t>(order.deviceOfStage.front()[stage])];
        if (replicas > 1)
            break; // their update's time includes these
        const LayerCosts::Exchanges exchanges = costs.exchanges(layers[stage], zero);
        const std::int64_t gathers = !isGathered ? 0 : shared.reshard.every ? order.gathers[stage] : 1;
        device.sums += (isSummedEach ? microbatches : 1) * exchanges.reduce;
        device.collectives += gathers * exchanges.gather;
        device.last = std::max(device.last, run.lastGradient[stage] + before) + exchanges.reduce;
        summed[stage] = device.last;
    }
    PlanBounds bounds;
    for (std::size_t stage = 0; stage < layers.size(); ++stage)
        for (const std::vector<int>& placement : order.deviceOfStage) {
            Device& device = devices[static_cast<std::size_t>(placement[stage])];
            const LayerCosts::Held held = costs.held({&layers[stage], 1}, zero);
            device.held.states += held.states - held.optimizer + held.optimizer / alsoOver;
            device.held.gathered += held.gathered;
            device.held.whole += held.whole;
            device.leastWhole = std::min(device.leastWhole, held.whole);
            device.updated = std::max(device.updated, summed[stage]) + held.update / alsoOver;
            if (replicas == 1 && !isGathered && shared.level > 0) {
                device.last = std::max(device.last, device.updated) + costs.exchanges(layers[stage], zero).gather;
                device.collectives += costs.exchanges(layers[stage], zero).gather;
            }
        }
    for (std::size_t d = 0; d < devices.size(); ++d) {
        const Device& device = devices[d];
        bounds.step = std::max({bounds.step, device.updated, device.last, device.collectives + device.sums,
                                run.firstGradient[d] + before + device.sums});
        const Bytes gathered = isGathered && !shared.reshard.every ? device.held.gathered : 0;
        Bytes summing = 0; // while whole gradients are there
        if (isSummedEach)
            summing = run.peak(d, FlatOrder::MakesGradients) + device.leastWhole;
        else if (const Bytes most = run.peak(d, FlatOrder::AllHaveGradients); most > 0)
            summing = most + device.held.whole + gathered;
        bounds.peak =
            std::max(bounds.peak,
                     device.held.states + std::max({run.peak(d), run.peak(d, FlatOrder::AllRead) + gathered, summing}));
    }
    return bounds;
}

// Other cuts of the same layers have the same sums. Where devices differ, all layers are on the fastest one.
PlanBounds plainBounds(const PlanSetting& setting, const Workload& workload, const Cluster& cluster)
{
    const std::vector<int> layersPerStage = evenPartition(workload, setting.pipeline);
    const std::vector<Recompute> recompute(setting.recompute == Recompute::None ? 0 : layersPerStage.size(),
                                           setting.recompute);
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    Bytes held = 0;
    for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
        const auto known = std::find(cluster.devices.begin(), cluster.devices.end(), cluster.devices[d]);
        if (known != cluster.devices.begin() + static_cast<std::ptrdiff_t>(d))
            continue;
        Dataflow dataflow;
        const Costs costs = formulaCosts(workload, layersPerStage, cluster,
                                         std::vector<int>(layersPerStage.size(), static_cast<int>(d)), &dataflow,
                                         nullptr, {recompute, setting.zero});
        Nanoseconds work = 0;
        Bytes bytes = 0;
        for (const StageCosts& stage : costs.stages) {
            work += stage.forward + std::min(stage.backward, stage.inputGrad + stage.weightGrad);
            bytes += stage.parameters + stage.gradients + stage.optimizerState + stage.savedUntilInputGrad
                     + stage.savedUntilWeightGrad;
        }
        // A shared parameter may lie on one device; with its gradient and state it takes a few times its own bytes.
        constexpr Bytes timesOwn = 12;
        for (const SharedParameter& shared : dataflow.shared)
            bytes -= timesOwn * shared.bytes;
        held = d == 0 ? bytes : std::min(held, bytes);
        least = std::min(least, work);
    }
    // Other cuts round every stage's times anew.
    const Nanoseconds rounding = 4 * static_cast<Nanoseconds>(workload.layers.size());
    return {std::max<Nanoseconds>(0, least - rounding) * setting.microbatches / setting.pipeline,
            std::max<Bytes>(0, held / setting.pipeline)};
}

PlanBounds boundsOf(const PlanRequest& request, const PlanSetting& setting, const PlanOrder& order)
{
    const std::shared_ptr<const Cluster> cluster = clusterOf(request, setting);
    if (order.family->search == FamilySearch::None) {
        const FlatOrder flat = flatOrderOf(*order.family, setting.pipeline, order.chunks, setting.microbatches);
        if (LayerCosts::holdFor(request.shape, *cluster)) {
            const Workload workload = workloadOf(request, setting, flat.pieces);
            const LayerPattern pattern = patternOf(workload);
            const LayerCosts costs(pattern, workloadOf(request, setting, flat.pieces, pattern.repeated), *cluster,
                                   setting.pipeline, {&setting.recompute, 1}, {&setting.zero, 1});
            if (!costs.whyNot(0).empty())
                throw Error("--pin", costs.whyNot(0), {});
            const std::vector<int> layersPerStage = evenPartition(workload, flat.stages);
            std::vector<Nanoseconds> ends;
            const KindCosts kinds = costs.kinds(flat, layersPerStage, 0);
            const PlanBounds quick = quickBoundsOf(flat, kinds, layersPerStage, setting, costs, 0);
            const PlanBounds whole = boundsOf(flat, runFlat(flat, kinds, ends), layersPerStage, setting, costs, 0);
            return {std::max(quick.step, whole.step), std::max(quick.peak, whole.peak)};
        }
    }
    PlanBounds bounds = plainBounds(setting, workloadOf(request, setting), *cluster);
    if (order.family->cutsSequences) // pieces attend to what is before them alone, at best to half of all pairs
        bounds = {bounds.step / 2, 0};
    return bounds;
}

} // namespace pipewright
