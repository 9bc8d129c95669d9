// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/layercosts.h"

#include "core/design/stagecosts.h"
#include "core/model/recomputedtensors.h"
#include "core/plan/planwords.h"

#include <algorithm>
#include <numeric>

namespace pipewright {

namespace {

/// Layers without their names: no parameter is shared among them.
std::vector<Layer> kindsOf(const LayerPattern& pattern, const Workload& workload)
{
    std::vector<Layer> kinds;
    for (const int first : pattern.firstOfKind) {
        Layer layer = workload.layers[static_cast<std::size_t>(first)];
        layer.name.clear();
        kinds.push_back(std::move(layer));
    }
    return kinds;
}

/// Of stages of these layers on a device, a model of their own.
Costs costsOfStages(const Workload& workload, const std::vector<Layer>& layers, const std::vector<int>& layersPerStage,
                    const Cluster& cluster, int device, const std::vector<Recompute>& recompute, const Zero& zero)
{
    Workload model;
    model.shape = workload.shape;
    model.optimizer = workload.optimizer;
    model.state = workload.state;
    model.layers = layers;
    return formulaCosts(model, layersPerStage, cluster, std::vector<int>(layersPerStage.size(), device), nullptr,
                        nullptr, {recompute, zero});
}

/// A device that computes and copies no slower than any other.
int fastestOf(const Cluster& cluster)
{
    const auto slower = [](const DeviceSpec& a, const DeviceSpec& b) { return a.peakFlops < b.peakFlops; };
    return static_cast<int>(std::max_element(cluster.devices.begin(), cluster.devices.end(), slower)
                            - cluster.devices.begin());
}

/// As many parameters as so many layers have.
Layer timesParameters(Layer layer, int count)
{
    for (std::int64_t* const parameters : {&layer.parameters, &layer.frozenParameters, &layer.expertParameters,
                                           &layer.narrowParameters, &layer.narrowExpertParameters})
        *parameters *= count;
    return layer;
}

} // namespace

LayerPattern patternOf(const Workload& workload)
{
    LayerPattern pattern;
    std::vector<Layer> kinds; // without their names
    std::vector<int> first;
    int repeated = 0, front = -1;
    for (int i = 0; i < std::ssize(workload.layers); ++i) {
        Layer layer = workload.layers[static_cast<std::size_t>(i)];
        layer.name.clear();
        if (isBlock(layer.kind)) {
            front = front < 0 ? i : front;
            ++repeated;
        }
        const auto known = std::find(kinds.begin(), kinds.end(), layer);
        pattern.kindOfLayer.push_back(static_cast<std::uint8_t>(known - kinds.begin()));
        if (known != kinds.end())
            continue;
        if (isBlock(layer.kind))
            pattern.repeated = i - front + 1;
        kinds.push_back(std::move(layer));
        first.push_back(i);
    }
    for (const int i : first) // the ends behind the repeated layers move up
        pattern.firstOfKind.push_back(i < front + repeated ? i : i - repeated + pattern.repeated);
    return pattern;
}

bool LayerCosts::holdFor(const ModelShape& shape, const Cluster& cluster)
{
    if (shape.architecture == Architecture::Table || shape.autograd || cluster.devices.empty())
        return false;
    const DeviceSpec& fastest = cluster.devices[static_cast<std::size_t>(fastestOf(cluster))];
    return fastest.group == nullptr
           && std::all_of(cluster.devices.begin(), cluster.devices.end(), [&](DeviceSpec device) {
                  if (device.memoryBandwidth > fastest.memoryBandwidth
                      || device.peakOf(shape.products) > fastest.peakOf(shape.products))
                      return false;
                  if (device == fastest)
                      return true;
                  device.name = fastest.name;
                  for (const ProductType products : allProductTypes)
                      device.peakOf(products) = fastest.peakOf(products);
                  device.memoryBandwidth = fastest.memoryBandwidth;
                  return device == fastest;
              });
}

LayerCosts::LayerCosts(const LayerCosts& whole, const LayerPattern& pattern, const Workload& workload,
                       const Cluster& cluster, std::span<const Recompute> recomputes)
    : m_kindOfLayer(whole.m_kindOfLayer), m_states(whole.m_states), m_repeated(whole.m_repeated), m_runs(whole.m_runs)
{
    costKinds(kindsOf(pattern, workload), workload, cluster, recomputes);
}

void LayerCosts::costKinds(const std::vector<Layer>& kinds, const Workload& workload, const Cluster& cluster,
                           std::span<const Recompute> recomputes)
{
    std::vector<int> examples{fastestOf(cluster)}; // of each speed
    for (int d = 0; d < std::ssize(cluster.devices); ++d) {
        const auto known = std::find_if(examples.begin(), examples.end(), [&](int example) {
            return cluster.devices[static_cast<std::size_t>(example)] == cluster.devices[static_cast<std::size_t>(d)];
        });
        m_speedOfDevice.push_back(static_cast<std::uint8_t>(known - examples.begin()));
        if (known == examples.end())
            examples.push_back(d);
    }
    for (const int device : examples)
        m_kinds.push_back(kindsOn(device, kinds, workload, cluster, recomputes));
}

LayerCosts::Kinds LayerCosts::kindsOn(int device, const std::vector<Layer>& kinds, const Workload& workload,
                                      const Cluster& cluster, std::span<const Recompute> recomputes)
{
    Kinds all;
    m_whyNot.clear();
    // Every kind of layer alone, and twice; once for each kind of recomputation.
    std::vector<Layer> layers;
    std::vector<int> layersPerStage;
    std::vector<Recompute> again;
    for (const Recompute& recompute : recomputes) {
        m_whyNot.emplace_back();
        all.emplace_back();
        try {
            checkRecompute(workload.shape, {recompute});
        } catch (const Error& error) {
            m_whyNot.back() = shortReason(error);
            continue;
        }
        for (const Layer& layer : kinds)
            for (const int count : {1, 2}) {
                layers.insert(layers.end(), static_cast<std::size_t>(count), layer);
                layersPerStage.push_back(count);
                again.push_back(recompute);
            }
    }
    if (!layers.empty())
        m_links = costsOfStages(workload, layers, layersPerStage, cluster, device, again, {});
    std::size_t stage = 0;
    for (std::size_t r = 0; r < all.size(); ++r)
        for (std::size_t k = 0; k < kinds.size() && m_whyNot[r].empty(); ++k, stage += 2) {
            const StageCosts &one = m_links.stages[stage], &two = m_links.stages[stage + 1];
            Kind& kind = all[r].emplace_back();
            kind.alone = one;
            for (const Op op : allOps)
                for (const BlockPart& part : one.parts[indexOf(op)])
                    if (part.stream == PartStream::Communication)
                        kind.exchange[indexOf(op)] += part.time + 1;
            kind.alone.parts = {};
            kind.readsInput = recomputes[r].readsInput() && one.recompute > 0;
            kind.addsUntilInputGrad = two.savedUntilInputGrad - one.savedUntilInputGrad;
            kind.addsUntilWeightGrad = two.savedUntilWeightGrad - one.savedUntilWeightGrad;
            kind.addsFromInputGrad = two.savedFromInputGrad - one.savedFromInputGrad;
        }
    m_links.stages.clear();
    return all;
}

LayerCosts::LayerCosts(const LayerPattern& pattern, const Workload& workload, const Cluster& cluster, int pipeline,
                       std::span<const Recompute> recomputes, std::span<const Zero> zeros)
    : m_kindOfLayer(pattern.kindOfLayer)
{
    const std::vector<Layer> kinds = kindsOf(pattern, workload);
    costKinds(kinds, workload, cluster, recomputes);
    std::vector<int> counts(kinds.size());
    for (const std::uint8_t kind : m_kindOfLayer)
        ++counts[kind];
    m_repeated = static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    const int all = counts[m_repeated], most = (all + pipeline - 1) / pipeline; // a device's share
    if (pipeline > 1)
        for (int count = 1; count < all / pipeline; count += std::max(1, count / 2))
            m_runs.push_back(count);
    for (const int count : {all / pipeline, most})
        if (count > 0 && (m_runs.empty() || count > m_runs.back()))
            m_runs.push_back(count);
    std::vector<Layer> layers = kinds;
    for (const int count : m_runs)
        layers.push_back(timesParameters(kinds[m_repeated], count));
    for (const Zero& zero : zeros) {
        const Costs costs =
            costsOfStages(workload, layers, std::vector<int>(layers.size(), 1), cluster, fastestOf(cluster), {}, zero);
        State& state = m_states.emplace_back();
        for (std::size_t k = 0; k < kinds.size(); ++k) {
            const StageCosts& one = costs.stages[k];
            const Layer& layer = kinds[k];
            Held& held = state.ofKind.emplace_back();
            if (layer.sharedParameters > 0) // which may lie on one device
                continue;
            const Bytes rounding = zero.level > 0 ? 64 : 0; // each share is rounded up by itself
            const auto less = [&](Bytes bytes) { return std::max<Bytes>(0, bytes - rounding); };
            held.states = less(one.parameters + one.gradients + one.optimizerState);
            held.optimizer = one.optimizerState;
            held.gathered = one.gatheredParameters;
            // Summed once, the device's share lies in the whole sum.
            held.whole = less(one.wholeGradients
                              - (zero.reduce == Zero::Reduce::Each ? 0 : std::min(one.gradients, one.wholeGradients)));
            held.update = std::max<Nanoseconds>(0, one.update - 2);
        }
        for (std::size_t r = kinds.size(); r < costs.stages.size(); ++r)
            state.ofRun.push_back({costs.stages[r].reduceGradients, costs.stages[r].gather});
    }
}

Nanoseconds LayerCosts::work(std::size_t recompute) const
{
    Nanoseconds sum = 0;
    for (const std::uint8_t k : m_kindOfLayer) {
        const StageCosts& layer = m_kinds.front()[recompute][k].alone;
        sum += layer.forward + std::min(layer.backward, layer.inputGrad + layer.weightGrad) - 4;
    }
    return std::max<Nanoseconds>(0, sum);
}

Bytes LayerCosts::keptByForward(std::size_t recompute) const
{
    Bytes sum = 0;
    for (const std::uint8_t k : m_kindOfLayer) {
        const StageCosts& layer = m_kinds.front()[recompute][k].alone;
        sum += layer.savedUntilInputGrad + layer.savedUntilWeightGrad;
    }
    return sum;
}

Bytes LayerCosts::states(std::size_t zero) const
{
    Bytes sum = 0;
    for (const std::uint8_t k : m_kindOfLayer)
        sum += m_states[zero].ofKind[k].states;
    return sum;
}

LayerCosts::Stage LayerCosts::stageOf(const std::vector<Kind>& kinds, LayerRun layers) const
{
    Stage stage;
    StageCosts& of = stage.costs;
    of.forward = of.inputGrad = of.weightGrad = of.backward = 0;
    std::size_t before = none;
    for (int layer = layers.first; layer < layers.second; ++layer) {
        const std::size_t k = m_kindOfLayer[static_cast<std::size_t>(layer)];
        const Kind& kind = kinds[k];
        of.forward += kind.alone.forward;
        of.inputGrad += kind.alone.inputGrad;
        of.weightGrad += kind.alone.weightGrad;
        of.backward += kind.alone.backward;
        const bool again = k == before;
        of.savedUntilInputGrad += again ? kind.addsUntilInputGrad : kind.alone.savedUntilInputGrad;
        of.savedUntilWeightGrad += again ? kind.addsUntilWeightGrad : kind.alone.savedUntilWeightGrad;
        of.savedFromInputGrad += again ? kind.addsFromInputGrad : kind.alone.savedFromInputGrad;
        of.workspaceForward = std::max(of.workspaceForward, kind.alone.workspaceForward);
        of.workspaceInputGrad = std::max(of.workspaceInputGrad, kind.alone.workspaceInputGrad);
        of.workspaceWeightGrad = std::max(of.workspaceWeightGrad, kind.alone.workspaceWeightGrad);
        of.workspaceBackward = std::max(of.workspaceBackward, kind.alone.workspaceBackward);
        for (const Op op : allOps)
            stage.exchange[indexOf(op)] += kind.exchange[indexOf(op)];
        before = k;
    }
    of.output = kinds[m_kindOfLayer[static_cast<std::size_t>(layers.second - 1)]].alone.output;
    return stage;
}

KindCosts LayerCosts::kinds(const FlatOrder& order, std::span<const int> layersPerStage, std::size_t recompute) const
{
    KindCosts costs(order.kinds());
    int layer = 0;
    Bytes output = 0; // of the stage before
    std::vector<Stage> ofSpeed(m_kinds.size());
    for (int stage = 0; stage < order.stages; ++stage) {
        const int begin = layer, end = layer += layersPerStage[static_cast<std::size_t>(stage)];
        const Nanoseconds rounding = end - begin;
        for (std::size_t speed = 0; speed < m_kinds.size(); ++speed)
            ofSpeed[speed] = stageOf(m_kinds[speed][recompute], {begin, end});
        const bool isInputKept = m_kinds.front()[recompute][m_kindOfLayer[static_cast<std::size_t>(begin)]].readsInput;
        const Bytes input = isInputKept ? output : 0;
        for (int replica = 0; replica < order.replicas(); ++replica) {
            const std::vector<int>& placement = order.deviceOfStage[static_cast<std::size_t>(replica)];
            const int here = placement[static_cast<std::size_t>(stage)];
            const Stage& ofDevice = ofSpeed[m_speedOfDevice[static_cast<std::size_t>(here)]];
            const StageCosts& of = ofDevice.costs;
            const auto at = [&](Op op) { return order.kindOf(op, stage, replica); };
            const auto set = [&](Op op, Nanoseconds time, Bytes kept, Bytes freed, Bytes workspace) {
                costs.time[at(op)] = std::max<Nanoseconds>(0, time - rounding);
                costs.exchange[at(op)] = ofDevice.exchange[indexOf(op)];
                costs.kept[at(op)] = kept;
                costs.freed[at(op)] = freed;
                costs.workspace[at(op)] = workspace;
            };
            const Bytes saved = of.savedUntilInputGrad + of.savedUntilWeightGrad;
            set(Op::F, of.forward, saved + input, 0, of.workspaceForward);
            set(Op::B, of.backward, 0, saved + input, of.workspaceBackward);
            set(Op::I, of.inputGrad, of.savedFromInputGrad, of.savedUntilInputGrad + input, of.workspaceInputGrad);
            set(Op::W, of.weightGrad, 0, of.savedUntilWeightGrad + of.savedFromInputGrad, of.workspaceWeightGrad);
            if (stage > 0) {
                const int there = placement[static_cast<std::size_t>(stage) - 1];
                if (there != here) {
                    costs.delay[at(Op::F)] = m_links.linkBetween(there, here).transferTime(output);
                    const Nanoseconds back = m_links.linkBetween(here, there).transferTime(output);
                    for (const Op op : {Op::B, Op::I})
                        costs.delay[order.kindOf(op, stage - 1, replica)] = back;
                }
            }
        }
        output = ofSpeed.front().costs.output;
    }
    return costs;
}

LayerCosts::Held LayerCosts::held(std::span<const LayerRun> stages, std::size_t zero) const
{
    Held held;
    const State& state = m_states[zero];
    for (const auto& [first, last] : stages)
        for (int layer = first; layer < last; ++layer) {
            const Held& of = state.ofKind[m_kindOfLayer[static_cast<std::size_t>(layer)]];
            held.states += of.states;
            held.optimizer += of.optimizer;
            held.gathered += of.gathered;
            held.whole += of.whole;
            held.update += of.update;
        }
    return held;
}

LayerCosts::Exchanges LayerCosts::exchanges(LayerRun stage, std::size_t zero) const
{
    const auto repeated = static_cast<int>(
        std::count(m_kindOfLayer.begin() + stage.first, m_kindOfLayer.begin() + stage.second, m_repeated));
    const State& state = m_states[zero];
    const auto above = std::upper_bound(m_runs.begin(), m_runs.end(), repeated);
    if (above == m_runs.begin() || state.ofRun.empty())
        return {};
    return state.ofRun[static_cast<std::size_t>(above - m_runs.begin()) - 1];
}

} // namespace pipewright
