// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/plan.h"

#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/plan/planbounds.h"
#include "core/plan/planwords.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

namespace pipewright {

namespace {

using Clock = std::chrono::steady_clock;

/// A predicted plan, small enough to keep all of them.
struct Found {
    Nanoseconds step = 0;
    Bytes peak = 0;
    std::size_t setting = 0, order = 0;
    auto operator<=>(const Found&) const = default;
};

struct Setting {
    std::size_t index = 0; ///< of PlanSettings::possible
    PlanBounds bounds;
    std::vector<std::uint8_t> done; ///< by order: predicted
};

class PlanSearch {
public:
    explicit PlanSearch(const PlanRequest& request) : m_request(request), m_began(Clock::now()) {}

    PlanResult run()
    {
        check();
        m_settings = settingsOf(m_request, m_request.shape);
        for (const auto& [reason, count] : m_settings.byShape)
            refuse(m_result.refused.shape, reason, count);
        for (const auto& [reason, count] : m_settings.byBatch)
            refuse(m_result.refused.batch, reason, count);
        const std::vector<std::size_t> groups = groupsOf(m_settings.possible);
        inParallel(groups.size() - 1, [&](std::size_t g) { bound(groups[g], groups[g + 1]); });
        m_tolerance = m_result.considered > exactUpTo ? frontierTolerance : 0;
        m_result.frontierTolerance = m_tolerance;
        std::stable_sort(m_open.begin(), m_open.end(), [](const Setting& a, const Setting& b) {
            return std::tie(a.bounds.likely, a.index) < std::tie(b.bounds.likely, b.index);
        });
        for (const Aim aim : {Aim::Start, Aim::Best, Aim::Frontier}) {
            if (aim == Aim::Frontier && !m_request.frontier)
                break;
            m_done = 0;
            inParallel(aim == Aim::Start ? std::min(m_open.size(), triedFirst) : m_open.size(),
                       [&](std::size_t i) { predictAll(m_open[i], aim); });
            if (aim == Aim::Start)
                continue;
            (aim == Aim::Best ? m_result.complete : m_result.frontierComplete) = !m_cut;
        }
        take();
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
    void inParallel(std::size_t count, const std::function<void(std::size_t)>& work)
    {
        std::atomic<std::size_t> next{0};
        std::exception_ptr failure;
        const auto loop = [&] {
            try {
                for (std::size_t i = next++; i < count && !isOver(); i = next++)
                    work(i);
            } catch (...) {
                const std::lock_guard lock(m_mutex);
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

    void refuse(std::int64_t& kind, const std::string& reason, std::int64_t count)
    {
        kind += count;
        m_result.considered += count;
        m_result.reasons[reason] += count;
    }

    std::vector<PlanOrder> orders(const PlanSetting& setting) const
    {
        return ordersOf(m_request, setting, m_request.shape.layers);
    }

    /// Settings [begin, end), which share a model and devices.
    void bound(std::size_t begin, std::size_t end)
    {
        std::optional<Workload> workload;
        std::shared_ptr<const Cluster> cluster;
        for (std::size_t index = begin; index < end; ++index) {
            const PlanSetting& setting = m_settings.possible[index];
            const std::size_t count = orders(setting).size();
            try {
                if (!cluster) {
                    workload = workloadOf(m_request, setting);
                    cluster = clusterOf(m_request, setting);
                }
                const PlanBounds bounds = boundsOf(m_request, setting, *workload, *cluster);
                const std::lock_guard lock(m_mutex);
                if (bounds.limit > 0 && bounds.peak > bounds.limit)
                    refuse(m_result.refused.memory, "memory: the states alone exceed a device",
                           static_cast<std::int64_t>(count));
                else {
                    m_result.considered += static_cast<std::int64_t>(count);
                    m_open.push_back({index, bounds, std::vector<std::uint8_t>(count, 0)});
                }
            } catch (const Error& error) {
                const std::lock_guard lock(m_mutex);
                refuse(m_result.refused.shape, shortReason(error), static_cast<std::int64_t>(count));
            }
        }
    }

    /// Where each run of settings with one model and devices begins, and the end of the last.
    static std::vector<std::size_t> groupsOf(const std::vector<PlanSetting>& settings)
    {
        const auto isOther = [](const PlanSetting& a, const PlanSetting& b) {
            return !(a.parallel() == b.parallel()) || a.pipeline != b.pipeline || a.microbatchSize != b.microbatchSize;
        };
        std::vector<std::size_t> begins{0};
        for (std::size_t i = 1; i < settings.size(); ++i)
            if (isOther(settings[i - 1], settings[i]))
                begins.push_back(i);
        if (!settings.empty())
            begins.push_back(settings.size());
        return begins;
    }

    /// Start: good plans early, so that later more bounds are above them.
    enum class Aim { Start, Best, Frontier };
    static constexpr std::size_t triedFirst = 100;     ///< settings …
    static constexpr std::string_view family = "v-zb"; ///< … in the family that idles least

    /// Whether no plan with these bounds is what is looked for.
    bool isHopeless(const PlanBounds& bounds, Aim aim)
    {
        const std::lock_guard lock(m_mutex);
        if (aim != Aim::Frontier)
            return m_best.size() == static_cast<std::size_t>(m_request.top) && bounds.step >= *m_best.rbegin();
        // The frontier has its steps ascending and its peaks descending.
        const auto behind = m_frontier.upper_bound(bounds.step);
        return behind != m_frontier.begin()
               && static_cast<double>(std::prev(behind)->second) * (1 - m_tolerance)
                      <= static_cast<double>(bounds.peak);
    }

    void predictAll(Setting& open, Aim aim)
    {
        const PlanSetting& setting = m_settings.possible[open.index];
        const std::vector<PlanOrder> all = orders(setting);
        std::optional<Workload> workload; // made when something is left to be done
        std::shared_ptr<const Cluster> cluster;
        for (std::size_t o = 0; o < all.size(); ++o) {
            if (open.done[o] != 0 || (aim == Aim::Start && all.size() > 1 && all[o].family->name != family)
                || (!all[o].family->cutsSequences && isHopeless(open.bounds, aim)))
                continue;
            if (o > 0 && isOver())
                return;
            if (!workload) {
                workload = workloadOf(m_request, setting);
                cluster = clusterOf(m_request, setting);
            }
            PlanBounds ofFamily = open.bounds;
            ofFamily.step = stepBoundOf(setting, open.bounds, all[o], *workload, *cluster);
            if (isHopeless(ofFamily, aim))
                continue;
            open.done[o] = 1;
            predictOne(open, all[o], o);
        }
        const std::lock_guard lock(m_mutex);
        ++m_done;
        if (m_request.progress)
            m_request.progress({m_done, m_open.size(), m_best.empty() ? 0 : *m_best.begin(), seconds(),
                                m_result.considered, m_result.predicted, m_result.complete});
    }

    void predictOne(const Setting& open, const PlanOrder& order, std::size_t number)
    {
        const PlanSetting& setting = m_settings.possible[open.index];
        try {
            const Design design = designOf(m_request, setting, *order.family, order.chunks);
            const OutlinedPrediction prediction = predictOutline(design);
            Bytes peak = 0;
            for (const DeviceMetrics& device : prediction.metrics.devices)
                peak = std::max(peak, device.peakBytes);
            const std::lock_guard lock(m_mutex);
            ++m_result.predicted;
            if (open.bounds.limit > 0 && peak > open.bounds.limit) {
                ++m_result.refused.memory;
                ++m_result.reasons["memory: the fullest device needs more"];
                return;
            }
            const Nanoseconds step = prediction.metrics.makespan;
            if (note({step, peak, open.index, number}) && m_request.found)
                m_request.found({setting, order.family, order.chunks, step, peak,
                                 tokensPerSecond(design, step) / m_request.devices});
        } catch (const Error& error) {
            const std::lock_guard lock(m_mutex);
            ++m_result.refused.shape;
            ++m_result.reasons[fmt::format("{}: {}", order.family->name, shortReason(error))];
        }
    }

    /// Whether it is among the best or on the frontier so far.
    bool note(const Found& found)
    {
        m_found.push_back(found);
        m_best.insert(found.step);
        if (m_best.size() > static_cast<std::size_t>(m_request.top))
            m_best.erase(std::prev(m_best.end()));
        const auto behind = m_frontier.upper_bound(found.step);
        if (behind != m_frontier.begin() && std::prev(behind)->second <= found.peak)
            return found.step <= *m_best.rbegin();
        for (auto worse = m_frontier.lower_bound(found.step); worse != m_frontier.end() && worse->second >= found.peak;)
            worse = m_frontier.erase(worse);
        m_frontier[found.step] = found.peak;
        return true;
    }

    /// The list: the best, and those of the frontier behind them.
    void take()
    {
        std::sort(m_found.begin(), m_found.end());
        std::vector<std::size_t> chosen;
        Bytes least = std::numeric_limits<Bytes>::max();
        for (std::size_t i = 0; i < m_found.size(); ++i) {
            const bool isOnFrontier = m_found[i].peak < least;
            least = std::min(least, m_found[i].peak);
            if (isOnFrontier)
                m_result.frontier.push_back(chosen.size());
            if (isOnFrontier || i < static_cast<std::size_t>(m_request.top))
                chosen.push_back(i);
        }
        for (const std::size_t i : chosen)
            m_result.plans.push_back(planOf(m_found[i]));
        for (std::size_t i = 0; i < m_result.plans.size(); ++i)
            for (std::size_t j = 0; j < m_result.plans.size(); ++j)
                if (i != j && isAlike(m_result.plans[i].step, m_result.plans[j].step))
                    m_result.plans[i].alike.push_back(j);
    }

    static bool isAlike(Nanoseconds a, Nanoseconds b)
    {
        return static_cast<double>(std::max(a, b) - std::min(a, b))
               <= planTolerance * static_cast<double>(std::min(a, b));
    }

    TrainingPlan planOf(const Found& found)
    {
        TrainingPlan plan;
        plan.setting = m_settings.possible[found.setting];
        const PlanOrder order = orders(plan.setting)[found.order];
        plan.family = order.family;
        plan.design = designOf(m_request, plan.setting, *order.family, order.chunks);
        plan.chunks = plan.design.schedule.chunks();
        const Prediction prediction = predict(plan.design);
        plan.step = prediction.metrics.makespan;
        for (const DeviceMemory& device : memoryBreakdown(plan.design, prediction).devices)
            if (device.peak > plan.peak) {
                plan.peak = device.peak;
                plan.memory = device;
            }
        if (m_request.noise)
            plan.noisy = spreadOfStep(prediction.program, plan.design.costs, *m_request.noise);
        plan.tokensPerSecondPerDevice = tokensPerSecond(plan.design, plan.step) / m_request.devices;
        plan.mfu = modelFlopsUtilization(plan.design, plan.step);
        const StepShares shares = sharesOf(plan.design, prediction);
        if (m_result.plans.empty())
            m_first = shares;
        plan.why = whyText(shares, m_result.plans.empty() ? nullptr : &m_first);
        return plan;
    }

    static constexpr int maxPlanDevices = 65'536;
    static constexpr int mostThreads = 256;
    static constexpr std::int64_t exactUpTo = 50'000; ///< plans of the space
    static constexpr double frontierTolerance = 0.1;

    const PlanRequest& m_request;
    const Clock::time_point m_began;
    PlanSettings m_settings;
    std::vector<Setting> m_open;
    PlanResult m_result;
    StepShares m_first;
    std::atomic<bool> m_cut{false};
    std::mutex m_mutex; ///< of what follows, and of m_result while threads run
    std::vector<Found> m_found;
    std::multiset<Nanoseconds> m_best;       ///< the shortest steps
    std::map<Nanoseconds, Bytes> m_frontier; ///< step -> peak
    std::size_t m_done = 0;
    double m_tolerance = 0; ///< set before threads run
};

} // namespace

PlanResult findPlans(const PlanRequest& request)
{
    return PlanSearch(request).run();
}

Design designOf(const PlanRequest& request, const PlanSetting& setting, const Family& family, int chunks)
{
    NewDesign choice;
    choice.workload = workloadOf(request, setting);
    choice.cluster = *clusterOf(request, setting);
    choice.family = family.name;
    choice.devices = setting.pipeline;
    choice.microbatches = setting.microbatches;
    choice.zero = setting.zero;
    if (family.chunksSelectable)
        choice.chunks = chunks;
    Design design = designFromModel(choice);
    if (setting.recompute != Recompute::None)
        design = withRecompute(
            design, std::vector<Recompute>(static_cast<std::size_t>(design.schedule.stages()), setting.recompute));
    return design;
}

} // namespace pipewright
