// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/plan.h"

#include "core/model/transformer.h"
#include "core/plan/flatorder.h"
#include "core/plan/planbounds.h"
#include "core/plan/plangroup.h"
#include "core/plan/plantally.h"
#include "core/plan/planwords.h"
#include "core/plan/trainingplan.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

namespace pipewright {

namespace {

using Clock = std::chrono::steady_clock;

class PlanSearch {
public:
    explicit PlanSearch(const PlanRequest& request) : m_request(request), m_began(Clock::now()) {}

    PlanResult run()
    {
        check();
        m_settings = settingsOf(m_request, m_request.shape);
        m_groups = groupsOf(m_settings.possible);
        if (!m_settings.possible.empty()) {
            m_model = workloadOf(m_request, {.zero = {}, .recompute = {}});
            m_pattern = patternOf(*m_model);
        }
        const std::vector<PlanOrder> most = orders({.pipeline = 2, .zero = {}, .recompute = {}});
        m_cutsSequences =
            std::any_of(most.begin(), most.end(), [](const PlanOrder& order) { return order.family->cutsSequences; });
        std::int64_t plans = 0;
        for (const PlanSetting& setting : m_settings.possible)
            plans += static_cast<std::int64_t>(orders(setting).size());
        m_tally.emplace(m_request, m_settings, plans, m_began);
        // The usual ones first: they hold a good plan, and all others take long.
        const auto usualEnd = std::stable_partition(m_groups.begin(), m_groups.end(), [this](const PlanGroup& group) {
            const PlanSetting& setting = m_settings.possible[group.begin];
            return setting.tensor <= 8 && setting.context == 1 && setting.microbatchSize == 1;
        });
        const auto usual = static_cast<std::size_t>(usualEnd - m_groups.begin());
        inParallel(usual, [&](std::size_t g) { cost(m_groups[g]); });
        tryFirst();
        inParallel(m_groups.size() - usual, [&](std::size_t g) { cost(m_groups[usual + g]); });
        tryFirst();
        boundAll();
        std::vector<PlanCandidate>& open = m_tally->sortedOpen();
        bool bestComplete = false, frontierComplete = false;
        double bestSeconds = 0;
        for (const Aim aim : {Aim::Best, Aim::Frontier}) {
            if (aim == Aim::Frontier && !m_request.frontier)
                break;
            inParallel(open.size(), [&](std::size_t i) { predictIfHopeful(open[i], aim); });
            (aim == Aim::Best ? bestComplete : frontierComplete) = !m_cut;
            if (aim == Aim::Best) {
                m_tally->complete = bestComplete;
                bestSeconds = seconds();
            }
        }
        std::vector<RankedPlan> found;
        m_result = m_tally->finish(m_cut, found);
        m_result.complete = bestComplete;
        m_result.frontierComplete = frontierComplete;
        m_result.bestSeconds = bestSeconds;
        list(found);
        m_result.seconds = seconds();
        return std::move(m_result);
    }

private:
    void check() const
    {
        if (m_request.devices < 1 || m_request.devices > maxPlanDevices)
            throw Error("--devices", fmt::format("{} devices", m_request.devices),
                        fmt::format("between 1 and {}", maxPlanDevices));
        if (m_request.batch < 1)
            throw Error("--batch", fmt::format("{} sequences", m_request.batch), "at least 1");
        if (m_request.top < 1)
            throw Error("--top", fmt::format("{} plans", m_request.top), "at least 1");
        (void)ordersOf(m_request, {.zero = {}, .recompute = {}}, m_request.shape.layers); // unknown families
    }

    double seconds() const { return std::chrono::duration<double>(Clock::now() - m_began).count(); }
    bool isOver()
    {
        const bool over = (m_request.isStopped && m_request.isStopped())
                          || (m_request.timeLimit.count() > 0 && Clock::now() - m_began >= m_request.timeLimit);
        if (over)
            m_cut = true;
        return over;
    }

    /// Exceptions but those of single plans come out of here.
    void inParallel(std::size_t count, const std::function<void(std::size_t)>& work, bool untilOver = true)
    {
        std::atomic<std::size_t> next{0};
        std::mutex failing;
        std::exception_ptr failure;
        const auto loop = [&] {
            try {
                for (std::size_t i = next++; i < count && !(untilOver && isOver()); i = next++)
                    work(i);
            } catch (...) {
                const std::lock_guard lock(failing);
                failure = std::current_exception();
                next = count;
            }
        };
        {
            std::vector<std::jthread> threads;
            for (int t = 1; t < std::min(m_request.threads, mostThreads); ++t)
                threads.emplace_back(loop);
            loop();
        }
        if (failure)
            std::rethrow_exception(failure);
    }

    std::vector<PlanOrder> orders(const PlanSetting& setting) const
    {
        return ordersOf(m_request, setting, m_request.shape.layers);
    }

    void cost(PlanGroup& group)
    {
        costGroup(m_request, m_settings.possible, m_pattern, m_cutsSequences, group);
        for (std::size_t i = group.begin; i < group.end; ++i) {
            const PlanGroup::Bounded& setting = group.settings[i - group.begin];
            if (setting.whyNot.empty())
                continue;
            const auto count = static_cast<std::int64_t>(orders(m_settings.possible[i]).size());
            m_tally->refuse(setting.exceeds ? PlanTally::Because::Memory : PlanTally::Because::Shape, setting.whyNot,
                            count);
        }
    }

    struct Likely {
        Nanoseconds step = 0; ///< about
        std::size_t setting = 0;
        const PlanGroup* group = nullptr;
        auto operator<=>(const Likely&) const = default;
    };

    /// Good plans early, so that later more bounds are above them: from the settings of least work and bubble on, in
    /// the families that idle least, what fits; then what fits in less and less memory.
    void tryFirst()
    {
        constexpr int usualChunks = 2;
        std::vector<Likely> likely;
        Bytes limit = 0;
        for (const PlanGroup& group : m_groups)
            for (std::size_t i = group.begin; i < group.end && group.costs; ++i) {
                const PlanSetting& setting = m_settings.possible[i];
                const PlanGroup::Bounded& known = group.settings[i - group.begin];
                if (!known.whyNot.empty())
                    continue;
                limit = std::max(limit, group.limit);
                const Nanoseconds step = known.bounds.step;
                const Nanoseconds bubble = step * (setting.pipeline - 1) / setting.microbatches / usualChunks;
                likely.push_back({step + bubble, i, &group});
            }
        std::sort(likely.begin(), likely.end());
        if (limit == 0)
            limit = std::numeric_limits<Bytes>::max();
        constexpr int wanted = 8, steps = 6;
        constexpr std::size_t looked = 100, lookedLater = 12; // settings
        tryWithin(likely, limit, looked, wanted);
        constexpr double smaller = 0.7;
        auto within = static_cast<double>(limit);
        for (int i = 0; i < steps && !isOver(); ++i, within *= smaller)
            tryWithin(likely, static_cast<Bytes>(within * smaller), lookedLater, 1);
    }

    void tryWithin(const std::vector<Likely>& likely, Bytes limit, std::size_t most, int wanted)
    {
        constexpr std::int64_t manyBlocks = 100'000; // not worth looking at for a guess
        std::vector<Likely> settings;
        for (const Likely& each : likely)
            if (settings.size() < most && each.group->settings[each.setting - each.group->begin].bounds.peak <= limit)
                settings.push_back(each);
        std::atomic<int> found{0};
        inParallel(settings.size(), [&](std::size_t n) {
            if (found >= wanted)
                return;
            const std::size_t i = settings[n].setting;
            const PlanSetting& setting = m_settings.possible[i];
            const PlanGroup& group = *settings[n].group;
            std::optional<PlanCandidate> best; // of the families that idle least
            for (const PlanOrder& order : orders(setting)) {
                constexpr std::string_view likelyBest[] = {"v-zb",  "v-half",           "v-min",        "zb-h1",
                                                           "zb-h2", "interleaved-1f1b", "combined-1f1b"};
                if (std::int64_t{setting.pipeline} * setting.microbatches * order.chunks > manyBlocks
                    || (setting.pipeline > 1
                        && std::ranges::find(likelyBest, order.family->name) == std::end(likelyBest)))
                    continue;
                try {
                    const FlatOrder flat =
                        flatOrderOf(*order.family, setting.pipeline, order.chunks, setting.microbatches);
                    const std::vector<int> layersPerStage = evenPartition(*m_model, flat.stages);
                    std::vector<Nanoseconds> ends;
                    const FlatRun run =
                        runFlat(flat, group.costs->kinds(flat, layersPerStage, group.recomputeOf(setting)), ends);
                    const PlanCandidate plan{
                        boundsOf(flat, run, layersPerStage, setting, *group.costs, group.zeroOf(setting)),
                        static_cast<std::uint32_t>(i), order.chunks, order.family};
                    if (plan.bounds.peak <= limit && (!best || plan.bounds.step < best->bounds.step))
                        best = plan;
                } catch (const Error&) {
                    // The family does not apply, which is told when all are looked at.
                }
            }
            if (!best || found >= wanted)
                return;
            bool isKnown = false;
            if (!m_tally->claim(*best, isKnown))
                return;
            if (!isKnown)
                predictOne(*best);
            ++found;
        });
    }

    /// Plans whose blocks are in the same order.
    struct Ordered {
        PlanOrder order;
        int pipeline = 1, microbatches = 1;
        std::vector<std::size_t> groups;
        std::int64_t blocks() const { return std::int64_t{pipeline} * order.chunks * microbatches; }
    };

    void boundAll()
    {
        std::map<std::pair<int, int>, std::vector<std::size_t>> alike;
        for (std::size_t g = 0; g < m_groups.size(); ++g)
            if (const PlanGroup& group = m_groups[g]; group.begin < group.end) {
                const PlanSetting& first = m_settings.possible[group.begin];
                alike[{first.pipeline, first.microbatches}].push_back(g);
            }
        std::vector<Ordered> all;
        for (const auto& [shape, groups] : alike)
            for (const PlanOrder& order : orders({.pipeline = shape.first, .zero = {}, .recompute = {}}))
                all.push_back({order, shape.first, shape.second, groups});
        // The longest first, so that no thread is left with one at the end.
        std::stable_sort(all.begin(), all.end(),
                         [](const Ordered& a, const Ordered& b) { return a.blocks() > b.blocks(); });
        inParallel(all.size(), [&](std::size_t i) { boundThose(all[i]); });
    }

    bool isOffered(const PlanSetting& setting, const PlanOrder& order) const
    {
        if (!setting.zero.reshard.every)
            return true;
        const std::vector<PlanOrder> offered = orders(setting);
        return std::any_of(offered.begin(), offered.end(), [&](const PlanOrder& each) {
            return each.family == order.family && each.chunks == order.chunks;
        });
    }

    void boundThose(const Ordered& those)
    {
        if (m_tally->takeBounded(those.order, those.pipeline, those.microbatches))
            return;
        PlanState::Bounded bounded{.family = those.order.family,
                                   .chunks = those.order.chunks,
                                   .pipeline = those.pipeline,
                                   .microbatches = those.microbatches,
                                   .open = {},
                                   .refused = {}};
        std::vector<PlanCandidate>& open = bounded.open;
        std::map<std::string, std::int64_t>& refused = bounded.refused;
        std::int64_t &exceeding = bounded.exceeding, &decided = bounded.decided;
        const Family& family = *those.order.family;
        std::optional<FlatOrder> order;
        std::string whyNot;
        std::optional<std::vector<int>> layersPerStage;
        std::vector<Nanoseconds> ends;
        bool freedOffered = false, asked = false;
        for (const std::size_t g : those.groups) {
            const PlanGroup& group = m_groups[g];
            const LayerCosts* const costs = family.cutsSequences ? group.pieces.get() : group.costs.get();
            for (std::size_t r = 0; r < group.recomputes.size(); ++r) {
                if (isOver())
                    return;
                std::optional<KindCosts> kinds;
                std::optional<FlatRun> run;
                for (std::size_t i = group.begin; i < group.end; ++i) {
                    const PlanSetting& setting = m_settings.possible[i];
                    const PlanGroup::Bounded& known = group.settings[i - group.begin];
                    if (!known.whyNot.empty() || setting.recompute != group.recomputes[r])
                        continue;
                    if (setting.zero.reshard.every && !std::exchange(asked, true))
                        freedOffered = isOffered(setting, those.order);
                    if (setting.zero.reshard.every && !freedOffered)
                        continue;
                    ++decided;
                    if (family.search != FamilySearch::None || !group.costs) {
                        open.push_back({family.cutsSequences ? PlanBounds{} : known.bounds,
                                        static_cast<std::uint32_t>(i), those.order.chunks, &family});
                        continue;
                    }
                    if (costs == nullptr) {
                        ++refused[group.whyNotPieces];
                        continue;
                    }
                    if (!family.cutsSequences && m_tally->isHopeless(known.bounds))
                        continue;
                    if (!order && whyNot.empty())
                        try {
                            FlatOrder made =
                                flatOrderOf(family, those.pipeline, those.order.chunks, those.microbatches);
                            layersPerStage = evenPartition(*m_model, made.stages);
                            order = std::move(made);
                        } catch (const Error& error) {
                            whyNot = fmt::format("{}: {}", family.name, shortReason(error));
                        }
                    if (const std::string why = order ? whyNotShared(*order, setting) : whyNot; !why.empty()) {
                        ++refused[why];
                        continue;
                    }
                    const std::size_t zero = group.zeroOf(setting);
                    if (!kinds)
                        kinds = costs->kinds(*order, *layersPerStage, r);
                    PlanBounds bounds = quickBoundsOf(*order, *kinds, *layersPerStage, setting, *costs, zero);
                    if ((group.limit == 0 || bounds.peak <= group.limit) && !m_tally->isHopeless(bounds)) {
                        if (!run)
                            run = runFlat(*order, *kinds, ends);
                        bounds = boundsOf(*order, *run, *layersPerStage, setting, *costs, zero);
                    }
                    if (group.limit > 0 && bounds.peak > group.limit)
                        ++exceeding;
                    else if (!m_tally->isHopeless(bounds))
                        open.push_back({bounds, static_cast<std::uint32_t>(i), those.order.chunks, &family});
                }
            }
        }
        m_tally->count(bounded);
    }

    using Aim = PlanTally::Aim;

    void predictIfHopeful(PlanCandidate& plan, Aim aim)
    {
        if (plan.done || m_tally->isHopeless(plan.bounds, aim))
            return;
        plan.done = true;
        predictOne(plan);
    }

    void predictOne(const PlanCandidate& plan)
    {
        const PlanSetting& setting = m_settings.possible[plan.setting];
        PlanState::Predicted predicted{
            .setting = plan.setting, .family = plan.family, .chunks = plan.chunks, .whyNot = {}};
        try {
            const Design design = designOf(m_request, setting, *plan.family, plan.chunks);
            const OutlinedPrediction prediction = predictOutline(design);
            predicted.step = prediction.metrics.makespan;
            for (const DeviceMetrics& device : prediction.metrics.devices)
                predicted.peak = std::max(predicted.peak, device.peakBytes);
            const Bytes limit = memoryLimitOf(m_request, design.cluster);
            predicted.exceeds = limit > 0 && predicted.peak > limit;
            predicted.tokensPerSecondPerDevice = tokensPerSecond(design, predicted.step) / m_request.devices;
        } catch (const Error& error) {
            predicted.whyNot = fmt::format("{}: {}", plan.family->name, shortReason(error));
        }
        m_tally->count(predicted);
    }

    /// The list: the best, and those of the frontier behind them.
    void list(const std::vector<RankedPlan>& all)
    {
        std::vector<std::size_t> chosen;
        Bytes least = std::numeric_limits<Bytes>::max();
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool isOnFrontier = all[i].peak < least;
            least = std::min(least, all[i].peak);
            if (isOnFrontier)
                m_result.frontier.push_back(chosen.size());
            if (isOnFrontier || i < static_cast<std::size_t>(m_request.top))
                chosen.push_back(i);
        }
        m_result.plans.resize(chosen.size());
        std::optional<StepShares> first;
        const auto take = [&](std::size_t i, std::optional<StepShares>& before) {
            const RankedPlan& found = all[chosen[i]];
            m_result.plans[i] =
                trainingPlanOf(m_request, m_settings.possible[found.setting], *found.family, found.chunks, before);
        };
        if (!chosen.empty())
            take(0, first);
        inParallel(
            chosen.empty() ? 0 : chosen.size() - 1,
            [&](std::size_t i) {
                std::optional<StepShares> before = first;
                take(i + 1, before);
            },
            false);
        findAlike(m_result.plans);
    }

    static constexpr int maxPlanDevices = 65'536;
    static constexpr int mostThreads = 256;

    const PlanRequest& m_request;
    const Clock::time_point m_began;
    PlanSettings m_settings;
    std::vector<PlanGroup> m_groups;
    std::optional<Workload> m_model; ///< how it is cut depends on no degree
    LayerPattern m_pattern;          ///< likewise
    bool m_cutsSequences = false;    ///< a family
    std::optional<PlanTally> m_tally;
    PlanResult m_result;
    std::atomic<bool> m_cut{false};
};

} // namespace

PlanResult findPlans(const PlanRequest& request)
{
    return PlanSearch(request).run();
}

} // namespace pipewright
