// SPDX-License-Identifier: GPL-3.0-or-later
// Designs for the search, and the best of all their orders where there are few.
#pragma once

#include "core/search/search.h"
#include "makers/designs.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace pipewright::test {

inline SearchOptions options(SearchObjective objective, double factor, int rounds)
{
    SearchOptions options;
    options.objective = objective;
    options.limit.factor = factor;
    options.timeLimit = std::chrono::milliseconds(0);
    options.rounds = rounds;
    return options;
}

/// Every order of every device against every other; the best value, or nothing.
class EveryOrder {
public:
    EveryOrder(const SearchModel& model, SearchObjective objective)
        : m_model(model), m_objective(objective), m_times(model), m_lanes(static_cast<std::size_t>(model.devices)),
          m_ran(model.tasks.size(), 0)
    {
        m_count.assign(m_lanes.size(), 0);
        for (const SearchTask& task : model.tasks)
            ++m_count[task.device];
    }
    Nanoseconds best()
    {
        extend(0);
        return m_best;
    }

private:
    void extend(std::size_t device)
    {
        if (device == m_lanes.size()) {
            if (m_times.run(m_lanes))
                m_best = std::min(m_best, m_times.value(m_lanes, m_objective));
            return;
        }
        std::vector<std::int32_t>& lane = m_lanes[device];
        if (lane.size() == m_count[device]) {
            if (lanePeak(m_model, lane) <= m_model.capacity[device])
                extend(device + 1);
            return;
        }
        for (std::size_t t = 0; t < m_model.tasks.size(); ++t) {
            const SearchTask& task = m_model.tasks[t];
            if (static_cast<std::size_t>(task.device) != device || m_ran[t] != 0
                || (task.local >= 0 && m_ran[task.local] == 0)
                || (task.lockedAfter >= 0 && m_ran[task.lockedAfter] == 0))
                continue;
            m_ran[t] = 1;
            lane.push_back(static_cast<std::int32_t>(t));
            extend(device);
            lane.pop_back();
            m_ran[t] = 0;
        }
    }

    const SearchModel& m_model;
    SearchObjective m_objective;
    LaneTimes m_times;
    Lanes m_lanes;
    std::vector<std::uint8_t> m_ran;
    std::vector<std::size_t> m_count;
    Nanoseconds m_best = SearchModel::noCapacity;
};

/// Number of orders of all devices, with the passes of each stage and microbatch in their fixed order.
inline double ordersOf(const std::vector<int>& deviceOfStage, int devices, int microbatches, int passes)
{
    double orders = 1;
    for (int d = 0; d < devices; ++d) {
        const auto cells = static_cast<int>(std::count(deviceOfStage.begin(), deviceOfStage.end(), d)) * microbatches;
        for (int i = 2; i <= cells * passes; ++i)
            orders *= i;
        for (int i = 0; i < cells; ++i)
            orders /= passes == 2 ? 2 : 6;
    }
    return orders;
}

/// Up to 14 blocks with a random placement, random times and transfers, in part with microbatches that differ; the
/// order runs one microbatch after the other.
inline Design smallDesign(std::mt19937& random)
{
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    Design design;
    Schedule& schedule = design.schedule;
    const bool split = below(2) == 0;
    int devices = 0, stages = 0;
    do {
        devices = 2 + below(3);
        stages = devices + below(4);
        schedule.microbatches = 1 + below(4);
        schedule.deviceOfStage.clear();
        for (int s = 0; s < stages; ++s)
            schedule.deviceOfStage.push_back(s < devices ? s : below(devices));
        std::shuffle(schedule.deviceOfStage.begin(), schedule.deviceOfStage.end(), random);
    } while (stages * schedule.microbatches * (split ? 3 : 2) > 14
             || ordersOf(schedule.deviceOfStage, devices, schedule.microbatches, split ? 3 : 2) > 1e5);
    schedule.family = "custom";
    schedule.backward = split ? BackwardStyle::Split : BackwardStyle::Full;
    schedule.firstStageMaySplit = true;
    schedule.order.resize(static_cast<std::size_t>(devices));
    const auto place = [&](Op op, int s, int m) { schedule.order[schedule.deviceOfStage[s]].push_back({op, s, m, 0}); };
    for (int m = 0; m < schedule.microbatches; ++m) {
        for (int s = 0; s < stages; ++s)
            place(Op::F, s, m);
        for (int s = stages; s-- > 0;) {
            place(split ? Op::I : Op::B, s, m);
            if (split)
                place(Op::W, s, m);
        }
    }
    design.costs = uniformCosts({}, stages, 1);
    for (int d = 0; stages % 2 == 0 && d < devices; ++d)
        design.costs.hostGaps.push_back({{2 * d + 3, 4, d + 1, 5, 2, 0}, {}});
    for (StageCosts& stage : design.costs.stages) {
        stage.forward = 1 + below(6);
        stage.inputGrad = 1 + below(6);
        stage.weightGrad = 1 + below(6);
        stage.backward = stage.inputGrad + stage.weightGrad;
        stage.savedUntilInputGrad = 1 + below(5);
        stage.savedUntilWeightGrad = below(5);
        stage.update = below(2);
    }
    if (below(3) == 0)
        for (int m = 0; m < schedule.microbatches; ++m)
            design.costs.microbatches.push_back({1.0 + below(2), 1.0 + below(2)});
    design.costs.link.latency = below(3);
    design.cluster.devices.resize(static_cast<std::size_t>(devices));
    return design;
}

} // namespace pipewright::test
