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

/// Of stages of these layers, a model of their own.
Costs costsOfStages(const Workload& workload, const std::vector<Layer>& layers, const std::vector<int>& layersPerStage,
                    const Cluster& cluster, const std::vector<Recompute>& recompute, const Zero& zero)
{
    Workload model;
    model.shape = workload.shape;
    model.optimizer = workload.optimizer;
    model.state = workload.state;
    model.layers = layers;
    return formulaCosts(model, layersPerStage, cluster, std::vector<int>(layersPerStage.size(), 0), nullptr, nullptr,
                        {recompute, zero});
}

/// As many parameters as so many layers have.
Layer timesParameters(Layer layer, int count)
{
    for (std::int64_t* const parameters : {&layer.parameters, &layer.frozenParameters, &layer.expertParameters})
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
    return shape.architecture != Architecture::Table && !shape.autograd && !cluster.devices.empty()
           && cluster.devices.front().group == nullptr
           && std::all_of(cluster.devices.begin(), cluster.devices.end(),
                          [&](const DeviceSpec& device) { return device == cluster.devices.front(); });
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
    // Every kind of layer alone, and twice; once for each kind of recomputation.
    std::vector<Layer> layers;
    std::vector<int> layersPerStage;
    std::vector<Recompute> again;
    for (const Recompute& recompute : recomputes) {
        m_whyNot.emplace_back();
        m_kinds.emplace_back();
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
        m_links = costsOfStages(workload, layers, layersPerStage, cluster, again, {});
    std::size_t stage = 0;
    for (std::size_t r = 0; r < m_kinds.size(); ++r)
        for (std::size_t k = 0; k < kinds.size() && m_whyNot[r].empty(); ++k, stage += 2) {
            const StageCosts &one = m_links.stages[stage], &two = m_links.stages[stage + 1];
            Kind& kind = m_kinds[r].emplace_back();
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
        const Costs costs = costsOfStages(workload, layers, std::vector<int>(layers.size(), 1), cluster, {}, zero);
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
        const StageCosts& layer = m_kinds[recompute][k].alone;
        sum += layer.forward + std::min(layer.backward, layer.inputGrad + layer.weightGrad) - 4;
    }
    return std::max<Nanoseconds>(0, sum);
}

Bytes LayerCosts::keptByForward(std::size_t recompute) const
{
    Bytes sum = 0;
    for (const std::uint8_t k : m_kindOfLayer)
        sum += m_kinds[recompute][k].alone.savedUntilInputGrad + m_kinds[recompute][k].alone.savedUntilWeightGrad;
    return sum;
}

Bytes LayerCosts::states(std::size_t zero) const
{
    Bytes sum = 0;
    for (const std::uint8_t k : m_kindOfLayer)
        sum += m_states[zero].ofKind[k].states;
    return sum;
}

KindCosts LayerCosts::kinds(const FlatOrder& order, std::span<const int> layersPerStage, std::size_t recompute) const
{
    KindCosts costs(order.kinds());
    const std::vector<Kind>& kinds = m_kinds[recompute];
    int layer = 0;
    Bytes output = 0; // of the stage before
    for (int stage = 0; stage < order.stages; ++stage) {
        StageCosts of;
        of.forward = of.inputGrad = of.weightGrad = of.backward = 0;
        std::array<Nanoseconds, opCount> exchange{};
        const int end = layer + layersPerStage[static_cast<std::size_t>(stage)];
        const Nanoseconds rounding = end - layer;
        const bool isInputKept = kinds[m_kindOfLayer[static_cast<std::size_t>(layer)]].readsInput;
        for (std::size_t before = none; layer < end; ++layer) {
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
                exchange[indexOf(op)] += kind.exchange[indexOf(op)];
            before = k;
        }
        const Bytes input = isInputKept ? output : 0;
        of.output = kinds[m_kindOfLayer[static_cast<std::size_t>(end - 1)]].alone.output;
        for (int replica = 0; replica < order.replicas(); ++replica) {
            const std::vector<int>& placement = order.deviceOfStage[static_cast<std::size_t>(replica)];
            const int here = placement[static_cast<std::size_t>(stage)];
            const auto at = [&](Op op) { return order.kindOf(op, stage, replica); };
            const auto set = [&](Op op, Nanoseconds time, Bytes kept, Bytes freed, Bytes workspace) {
                costs.time[at(op)] = std::max<Nanoseconds>(0, time - rounding);
                costs.exchange[at(op)] = exchange[indexOf(op)];
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
        output = of.output;
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
