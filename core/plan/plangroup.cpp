// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/plangroup.h"

#include "core/base/diagnostic.h"
#include "core/plan/planwords.h"

#include <algorithm>

namespace pipewright {

namespace {

template<typename T>
std::size_t indexIn(const std::vector<T>& all, const T& one)
{
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), one) - all.begin());
}

template<typename T>
void addOnce(std::vector<T>& all, const T& one)
{
    if (indexIn(all, one) == all.size())
        all.push_back(one);
}

/// The bounds of one setting, or why it cannot be.
PlanGroup::Bounded bounded(const PlanSetting& setting, const PlanGroup& group)
{
    PlanGroup::Bounded found;
    const std::size_t recompute = group.recomputeOf(setting), zero = group.zeroOf(setting);
    found.whyNot = group.costs->whyNot(recompute);
    if (!found.whyNot.empty())
        return found;
    found.bounds = boundsOf(setting, *group.costs, recompute, zero);
    if (group.limit > 0 && group.costs->states(zero) / setting.pipeline > group.limit) {
        found.exceeds = true;
        found.whyNot = "memory: the states alone exceed a device";
    }
    return found;
}

} // namespace

std::size_t PlanGroup::recomputeOf(const PlanSetting& setting) const
{
    return indexIn(recomputes, setting.recompute);
}

std::size_t PlanGroup::zeroOf(const PlanSetting& setting) const
{
    return indexIn(zeros, setting.zero);
}

std::vector<PlanGroup> groupsOf(const std::vector<PlanSetting>& settings)
{
    const auto isOther = [](const PlanSetting& a, const PlanSetting& b) {
        return !(a.parallel() == b.parallel()) || a.pipeline != b.pipeline || a.microbatchSize != b.microbatchSize;
    };
    std::vector<PlanGroup> groups;
    for (std::size_t i = 0; i < settings.size(); ++i) {
        if (i == 0 || isOther(settings[i - 1], settings[i]))
            groups.emplace_back().begin = i;
        PlanGroup& group = groups.back();
        group.end = i + 1;
        addOnce(group.recomputes, settings[i].recompute);
        addOnce(group.zeros, settings[i].zero);
    }
    return groups;
}

void costGroup(const PlanRequest& request, const std::vector<PlanSetting>& settings, const LayerPattern& pattern,
               bool cutsSequences, PlanGroup& group)
{
    const PlanSetting& first = settings[group.begin];
    group.settings.resize(group.end - group.begin);
    const auto refuse = [](PlanGroup::Bounded& setting, const Error& error) { setting.whyNot = shortReason(error); };
    try {
        const std::shared_ptr<const Cluster> cluster = clusterOf(request, first);
        group.limit = memoryLimitOf(request, *cluster);
        if (!LayerCosts::holdFor(request.shape, *cluster)) {
            const Workload workload = workloadOf(request, first);
            for (std::size_t i = group.begin; i < group.end; ++i)
                try {
                    group.settings[i - group.begin].bounds = plainBounds(settings[i], workload, *cluster);
                } catch (const Error& error) {
                    refuse(group.settings[i - group.begin], error);
                }
            return;
        }
        group.costs = std::make_unique<const LayerCosts>(pattern, workloadOf(request, first, 1, pattern.repeated),
                                                         *cluster, first.pipeline, group.recomputes, group.zeros);
        for (std::size_t i = group.begin; i < group.end; ++i)
            group.settings[i - group.begin] = bounded(settings[i], group);
        try {
            if (cutsSequences)
                group.pieces = std::make_unique<const LayerCosts>(
                    *group.costs, pattern, workloadOf(request, first, defaultSequencePieces, pattern.repeated),
                    *cluster, group.recomputes);
        } catch (const Error& error) {
            group.whyNotPieces = shortReason(error);
        }
    } catch (const Error& error) {
        for (PlanGroup::Bounded& setting : group.settings)
            refuse(setting, error);
    }
}

} // namespace pipewright
