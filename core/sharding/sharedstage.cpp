// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/sharedstage.h"

#include <algorithm>
#include <utility>

namespace pipewright::sharding {

namespace {

constexpr std::int64_t mostExpansions = 100'000; // in place of a time limit, so that costs are reproducible

} // namespace

LayerRange rangeOf(const Workload& workload, int first, int count)
{
    const std::vector<Layer>& layers = workload.layers;
    LayerRange range;
    for (int l = 0; l < first + count; ++l) {
        switch (layers[l].kind) {
        case LayerKind::Embedding: range.embedding = range.embedding || l >= first; break;
        case LayerKind::Transformer:
        case LayerKind::Mlp: ++(l < first ? range.first : range.count); break;
        case LayerKind::Head:
        case LayerKind::Other: break;
        }
    }
    range.head = first + count == static_cast<int>(layers.size());
    return range;
}

LayerRange stageRange(const Workload& workload, int first, int count)
{
    LayerRange range = rangeOf(workload, first, count);
    // Only the dense layers before the first with experts differ from the rest, and those that look at all tokens.
    if (workload.shape.window == 0 || workload.shape.fullAttentionEvery == 0)
        range.first = workload.shape.experts > 0 ? std::min(range.first, workload.shape.denseLayers) : 0;
    return range;
}

const SharedStage& SharedStages::plan(const Workload& workload, int first, int count, const DeviceSpec& group,
                                      const StatedPlan& stated, std::stop_token stop)
{
    const LayerRange range = stageRange(workload, first, count);
    for (const auto& known : m_known)
        if (known->range == range && known->group == *group.group && known->stated == stated
            && known->shape == workload.shape && known->state == workload.state)
            return known->stage;
    auto added = std::make_unique<Known>(
        Known{workload.shape, workload.state, range, *group.group, stated, {{}, machineOf(*group.group), {}}});
    added->stage.graph = stageGraph(workload.shape, workload.state, range);
    PlanOptions options;
    options.maxExpansions = mostExpansions;
    options.deadline.stop = std::move(stop);
    added->stage.plan = planOf(stated, added->stage.graph, added->stage.machine, options);
    m_known.push_back(std::move(added));
    return m_known.back()->stage;
}

} // namespace pipewright::sharding
