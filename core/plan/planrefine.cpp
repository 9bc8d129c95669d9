// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/planrefine.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/design/redesign.h"
#include "core/plan/planbounds.h"
#include "core/plan/planwords.h"
#include "core/predict/offloadedstages.h"
#include "core/predict/predict.h"
#include "core/search/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

using Clock = std::chrono::steady_clock;

/// "none on stages 0-3, full on stages 4-7".
template<typename Value>
std::string runsText(const std::vector<Value>& ofStage, const std::function<std::string(const Value&)>& name)
{
    std::vector<std::string> parts;
    for (std::size_t first = 0; first < ofStage.size();) {
        std::size_t last = first;
        while (last + 1 < ofStage.size() && ofStage[last + 1] == ofStage[first])
            ++last;
        parts.push_back(
            name(ofStage[first])
            + (first == last ? fmt::format(" on stage {}", first) : fmt::format(" on stages {}-{}", first, last)));
        first = last + 1;
    }
    return joined(parts, ", ");
}

std::string layersText(const std::vector<int>& layersPerStage)
{
    constexpr std::size_t few = 8;
    return "layers per stage "
           + (layersPerStage.size() <= few
                  ? joined(layersPerStage, ", ")
                  : runsText<int>(layersPerStage, [](int layers) { return std::to_string(layers); }));
}

class Refinement {
public:
    Refinement(const PlanRequest& request, const TrainingPlan& plan, const RefineOptions& options)
        : m_options(options), m_end(Clock::now() + options.timeLimit), m_recomputes(plan.setting.recompute)
    {
        m_best.design = plan.design;
        m_limit = memoryLimitOf(request, plan.design.cluster);
        m_best.before = m_best.step = plan.step;
        m_best.peak = plan.peak;
        m_ofStage.assign(static_cast<std::size_t>(plan.design.schedule.stages()), m_recomputes);
    }

    RefinedPlan run()
    {
        recomputeByStage();
        cutAndOrder();
        recomputeByStage();
        offload();
        if (m_ofStage != std::vector<Recompute>(m_ofStage.size(), m_recomputes))
            m_best.changes.push_back("recompute "
                                     + runsText<Recompute>(m_ofStage, [](Recompute kind) { return nameOf(kind); }));
        m_best.stopped = m_options.isStopped && m_options.isStopped();
        return std::move(m_best);
    }

private:
    bool isOver() const { return Clock::now() >= m_end || (m_options.isStopped && m_options.isStopped()); }

    /// Whether it is shorter and fits; then it is the best.
    bool take(Design design)
    {
        const Metrics metrics = predictOutline(design).metrics;
        Bytes peak = 0;
        for (const DeviceMetrics& device : metrics.devices)
            peak = std::max(peak, device.peakBytes);
        if (metrics.makespan >= m_best.step || (m_limit > 0 && peak > m_limit))
            return false;
        m_best.step = metrics.makespan;
        m_best.peak = peak;
        m_best.design = std::move(design);
        return true;
    }

    void notTried(const char* what, const Error& error)
    {
        m_best.notTried.push_back(fmt::format("{}: {}", what, shortReason(error)));
    }

    /// The last stages first: they hold the fewest microbatches, so that there is room.
    void recomputeByStage()
    {
        constexpr Recompute less[] = {Recompute::None, Recompute::Selective}; // the least first
        for (bool improves = m_recomputes != Recompute::None; improves && !isOver();) {
            improves = false;
            for (std::size_t stage = m_ofStage.size(); stage-- > 0 && !isOver();)
                for (const Recompute& kind : less) {
                    if (m_ofStage[stage] == kind)
                        break;
                    std::vector<Recompute> ofStage = m_ofStage;
                    ofStage[stage] = kind;
                    try {
                        if (!take(withRecompute(m_best.design, ofStage)))
                            continue;
                        m_ofStage = std::move(ofStage);
                        improves = true;
                        break;
                    } catch (const Error&) {
                        // The model has no attention core to make again: selective is not for it.
                    }
                }
        }
    }

    void cutAndOrder()
    {
        const Schedule before = m_best.design.schedule;
        const std::vector<int> cut = m_best.design.layersPerStage;
        if (before.devices() < 2 || isOver())
            return;
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(m_end - Clock::now());
        std::stop_source stop;
        PartitionOptions options;
        if (m_limit > 0)
            options.search.limit.bytes = m_limit;
        options.search.timeLimit = std::max(std::chrono::milliseconds(1), left * 3 / 4);
        options.search.threads = m_options.threads;
        options.search.seed = m_options.seed;
        options.search.stop = stop.get_token();
        options.search.progress = [&](const SearchProgress&) {
            if (m_options.isStopped && m_options.isStopped())
                stop.request_stop();
        };
        try {
            if (!take(searchPartition(m_best.design, options).design))
                return;
        } catch (const Error& error) {
            notTried("layers per stage and order", error);
            return;
        }
        if (m_best.design.layersPerStage != cut)
            m_best.changes.push_back(layersText(m_best.design.layersPerStage));
        if (m_best.design.schedule.order != before.order)
            m_best.changes.emplace_back("another order of blocks");
    }

    /// Activations of some stages go to the host's memory, and no stage recomputes.
    void offload()
    {
        if (m_recomputes == Recompute::None)
            return; // all fits, and copies only make blocks wait
        if (!m_best.design.cluster.hostLink) {
            m_best.notTried.emplace_back("offload: the cluster states no link to the host's memory");
            return;
        }
        if (isOver())
            return;
        try {
            const std::optional<Bytes> limit = m_limit > 0 ? std::optional(m_limit) : std::nullopt;
            const Design kept = withRecompute(m_best.design, {});
            OffloadedStages chosen = chooseOffloadedStages(kept, limit, [this] { return isOver(); });
            if (!take(std::move(chosen.design)))
                return;
            m_ofStage.assign(m_ofStage.size(), Recompute::None);
            m_best.changes.push_back("offload: " + chosen.text());
        } catch (const Error& error) {
            notTried("offload", error);
        }
    }

    const RefineOptions& m_options;
    const Clock::time_point m_end;
    const Recompute m_recomputes; ///< of the plan, all stages alike
    Bytes m_limit = 0;            ///< 0: not known
    RefinedPlan m_best;
    std::vector<Recompute> m_ofStage;
};

} // namespace

RefinedPlan refined(const PlanRequest& request, const TrainingPlan& plan, const RefineOptions& options)
{
    return Refinement(request, plan, options).run();
}

std::string refinedText(const RefinedPlan& plan)
{
    std::string text = "refined, not proved: ";
    if (plan.changes.empty())
        text += fmt::format("nothing shorter than {} was found", formatDuration(plan.before));
    else
        text += fmt::format("{} -> {}, {:+.2f} %, peak {}: {}", formatDuration(plan.before), formatDuration(plan.step),
                            100 * (static_cast<double>(plan.step) / static_cast<double>(plan.before) - 1),
                            formatSize(plan.peak), joined(plan.changes, "; "));
    if (plan.stopped)
        text += "; stopped";
    if (!plan.notTried.empty())
        text += ". Not tried: " + joined(plan.notTried, "; ");
    return text;
}

} // namespace pipewright
