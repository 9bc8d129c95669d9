// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/sharedstage.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

namespace pipewright::sharding {

struct PlannedStage {
    ModelShape shape;
    StateBytesPerParameter state;
    LayerRange range;
    Cluster group;
    StatedPlan stated;
    SharedStage stage;

    /// Whether the inputs are those of `asked`, which may have no plan yet.
    bool isFor(const PlannedStage& asked) const
    {
        return range == asked.range && group == asked.group && stated == asked.stated && shape == asked.shape
               && state == asked.state;
    }
};

namespace {

using Planned = std::shared_ptr<const PlannedStage>;

constexpr std::int64_t mostExpansions = 100'000; // in place of a time limit, so that costs are reproducible

template<typename List>
auto findPlan(List& plans, const PlannedStage& asked)
{
    return std::find_if(plans.begin(), plans.end(), [&](const Planned& known) { return known->isFor(asked); });
}

/// The plans that were asked for last.
class RecentPlans {
public:
    /// Null: it is not there.
    Planned find(const PlannedStage& asked)
    {
        const std::lock_guard lock(m_mutex);
        const auto found = findPlan(m_plans, asked);
        if (found == m_plans.end())
            return nullptr;
        m_plans.splice(m_plans.begin(), m_plans, found);
        return m_plans.front();
    }

    void add(Planned plan)
    {
        const std::lock_guard lock(m_mutex);
        m_plans.push_front(std::move(plan));
        if (m_plans.size() > most)
            m_plans.pop_back();
    }

private:
    static constexpr std::size_t most = 128; // of a large model some 100 KiB each

    std::mutex m_mutex;
    std::list<Planned> m_plans; ///< the latest first
};

RecentPlans& recentPlans()
{
    static RecentPlans plans;
    return plans;
}

Planned planned(PlannedStage asked, std::stop_token stop)
{
    if (Planned known = recentPlans().find(asked))
        return known;
    SharedStage& stage = asked.stage;
    stage.machine = machineOf(asked.group);
    stage.graph = stageGraph(asked.shape, asked.state, asked.range);
    PlanOptions options;
    options.maxExpansions = mostExpansions;
    options.deadline.stop = stop;
    stage.plan = planOf(asked.stated, stage.graph, stage.machine, options);
    auto plan = std::make_shared<const PlannedStage>(std::move(asked));
    if (!stop.stop_requested()) // else a better one may be found
        recentPlans().add(plan);
    return plan;
}

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
    const ModelShape& shape = workload.shape;
    if (shape.window == 0 || (shape.fullAttentionEvery == 0 && shape.fullAttentionLayers.empty()))
        range.first = shape.experts > 0 ? std::min(range.first, shape.denseLayers) : 0;
    return range;
}

const SharedStage& SharedStages::plan(const Workload& workload, int first, int count, const DeviceSpec& group,
                                      const StatedPlan& stated, std::stop_token stop)
{
    PlannedStage asked{workload.shape, workload.state, stageRange(workload, first, count), *group.group, stated, {}};
    const auto known = findPlan(m_known, asked);
    if (known != m_known.end())
        return (*known)->stage;
    return m_known.emplace_back(planned(std::move(asked), std::move(stop)))->stage;
}

} // namespace pipewright::sharding
