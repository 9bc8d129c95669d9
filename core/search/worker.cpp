// SPDX-License-Identifier: GPL-3.0-or-later
// One thread's portfolio: starting points (hints, families, rules), exhaustive search of small designs, then
// rounds of rule variation, lane search, window search and constraint programming. A round is a few milliseconds of
// work, so that a stop takes effect soon.
#include "core/search/worker.h"

#include "core/design/familywork.h"
#include "core/search/exactsearch.h"
#include "core/search/periodic.h"
#include "core/search/symmetricpredecessors.h"

#include <algorithm>

namespace pipewright {

namespace {

/// Work of one round in tasks timed: a few milliseconds.
constexpr std::int64_t tasksOfRound = 400'000;

/// Nodes of window search in a round.
constexpr std::int64_t nodesOfRound = 4'000;

/// Larger designs cannot be exhausted in useful time.
constexpr std::size_t mostTasksToExhaust = 96;
constexpr std::int64_t nodesToExhaust = 400'000;

/// Share of the time for the search of fewer microbatches, and the number of places to repeat it at.
constexpr double shareOfFewer = 0.3;
constexpr int placesToRepeat = 12;

} // namespace

SearchWorker::SearchWorker(const Design& design, const SearchModel& model, const SearchOptions& options,
                           Incumbent& incumbent, int index)
    : m_design(design), m_given(model), m_options(options), m_incumbent(incumbent), m_index(index),
      m_random(options.seed * 0x9e37'79b9'7f4a'7c15ULL + static_cast<std::uint64_t>(index)), m_capacity(model.capacity)
{
}

SearchWorker::Tools::Tools(const SearchModel& given, const SearchOptions& options)
    : model(given), policies(model), times(model), laneSearch(model, options.objective),
      windows(model, options.objective)
{
}

SearchWorker::Tools& SearchWorker::tools()
{
    if (!m_tools) {
        m_tools = std::make_unique<Tools>(m_given, m_options);
        m_tools->model.capacity = m_capacity;
    }
    return *m_tools;
}

void SearchWorker::run(const std::function<bool()>& stop)
{
    tryHints(stop);
    tryFamilies(stop); // first: with many blocks the rules alone take seconds
    tryRules(stop);
    if (mine(0))
        repeatFewer(stop);
    if (mine(0) && m_given.tasks.size() <= mostTasksToExhaust)
        exhaust(stop);
    if (mine(m_options.threads - 1)) { // not the thread that runs the exact search
        m_constraints = makeConstraintSearch(m_given, m_options, m_incumbent);
        if (m_given.tasks.size() > mostTasksToConstrain)
            m_parts = std::make_unique<ProofByParts>(m_design, m_given, m_options, m_incumbent);
    }
    const auto tasks = std::max<std::int64_t>(1, static_cast<std::int64_t>(m_given.tasks.size()));
    const int runs = static_cast<int>(std::clamp<std::int64_t>(tasksOfRound / (4 * tasks), 1, 50));
    for (int round = 0; !stop() && (m_options.rounds == 0 || round < m_options.rounds); ++round) {
        varyRules(runs, stop);
        searchLanes(stop);
        searchWindows(stop);
        if (m_constraints && !stop() && !m_constraints->resume(stop))
            m_constraints.reset();
        if (m_parts && !stop() && !m_parts->resume(stop))
            m_parts.reset();
    }
}

void SearchWorker::offer(const Lanes& lanes, const char* source)
{
    if (!tools().times.run(lanes))
        return;
    m_incumbent.offer(lanes, tools().times.value(lanes, m_options.objective), source, tools().model.capacity);
}

std::optional<Lanes> SearchWorker::lanesOf(const Schedule& schedule) const
{
    if (schedule.deviceOfStage != m_given.deviceOfStage || schedule.replicas() > 1 || schedule.sequencePieces > 1)
        return std::nullopt;
    return m_given.lanesOf(schedule);
}

void SearchWorker::offerSchedule(const Schedule& schedule, const char* source)
{
    if (const auto lanes = lanesOf(schedule); lanes && lanesAllowed(tools().model, *lanes))
        offer(*lanes, source);
}

void SearchWorker::tryHints(const std::function<bool()>& stop)
{
    int number = 0;
    for (const Schedule& hint : m_options.hints)
        if (mine(number++) && !stop())
            offerSchedule(hint, "hint");
}

/// Every family that has the same placement.
void SearchWorker::tryFamilies(const std::function<bool()>& stop)
{
    int number = 0;
    FamilyParameters parameters;
    parameters.devices = m_given.devices;
    parameters.microbatches = m_given.microbatches;
    takeWork(parameters, m_design.costs);
    parameters.stageSaved = memoryOfStages(m_design.costs);
    for (const Family& family : families()) {
        if (stop())
            return;
        // Families that try thousands of schedules over all devices take too long for a starting point.
        const bool heavy = family.search == FamilySearch::Tried && m_given.devices > 8;
        // Updates within the step change the training, so a family with them is not an order of this design.
        if (heavy || family.updates || !mine(number++))
            continue;
        FamilyParameters own = parameters;
        own.stop = stop;
        own.memoryLimit = m_options.limit.factor;
        if (family.chunksSelectable)
            own.chunks = m_given.stages / m_given.devices;
        else if (family.defaultChunks * m_given.devices != m_given.stages)
            continue;
        for (int s = 0; s < m_given.stages; ++s) { // with the host's gaps, as the tasks of the model
            const auto time = [&](Op op) {
                return m_design.costs.duration(op, s) + m_design.costs.hostGap(op, m_given.deviceOfStage[s]);
            };
            own.stageTimes.push_back({time(Op::F), time(Op::I), time(Op::W)});
        }
        try {
            offerSchedule(makeSchedule(family.name, own), family.name.data());
        } catch (const Error&) {
            // Families that are not possible here are skipped.
        }
    }
}

bool SearchWorker::tryPolicy(const Policy& policy, const std::function<bool()>& stop)
{
    auto lanes = tools().policies.run(policy, stop);
    if (!lanes || !tools().times.run(*lanes))
        return false;
    Nanoseconds sum = 0;
    const Nanoseconds value = tools().times.value(*lanes, m_options.objective, &sum);
    m_lastLanes = std::move(*lanes);
    m_incumbent.offer(m_lastLanes, value, "rules", tools().model.capacity);
    if (std::pair(value, sum) > std::pair(m_bestPolicy.value, m_bestPolicy.sum))
        return false;
    m_bestPolicy = {policy, value, sum};
    return true;
}

void SearchWorker::tryRules(const std::function<bool()>& stop)
{
    int number = 0;
    for (const double share : {1.0, 0.5, 2.0, 8.0, 0.25})
        for (const int more : {0, -1, 1})
            for (const int waits : {0, 1, 2, 3})
                for (const bool fill : {false, true})
                    for (const bool early : {false, true}) {
                        if (early && !m_given.recomputes())
                            continue;
                        if (stop())
                            return;
                        if (!mine(number++))
                            continue;
                        Policy policy = tools().policies.initial(share, more);
                        policy.waitInForward = waits % 2 == 0 ? 0 : 0.5;
                        policy.waitInWeight = waits < 2 ? 1 : 0.5;
                        policy.fillFirst = fill;
                        if (early)
                            policy.recomputeEarly = true;
                        tryPolicy(policy, stop);
                    }
}

/// Uses the given model: the reduced capacities would rule out feasible orders.
void SearchWorker::exhaust(const std::function<bool()>& stop)
{
    if (stop())
        return;
    ExactSearch exact(m_given, m_options, m_incumbent);
    if (exact.run(nodesToExhaust, stop) && m_incumbent.best() != Incumbent::noValue)
        m_incumbent.proveBound(m_incumbent.best(), "every other order was tried or ruled out");
}

/// Searches fewer microbatches and repeats the middle of the best schedule, cut at several places.
void SearchWorker::repeatFewer(const std::function<bool()>& stop)
{
    const int few = fewMicrobatches(m_given.microbatches, m_given.devices);
    if (few == 0 || stop() || symmetricPredecessors(m_given).empty())
        return;
    const Design design = withMicrobatches(m_design, few);
    const SearchModel model(design, m_options.limit);
    SearchOptions options = m_options;
    options.threads = 1;
    options.hints.clear();
    Incumbent incumbent(design, model, options, lowerBounds(model, options.objective).front().value);
    incumbent.offerGiven();
    const double limit = std::chrono::duration<double>(options.timeLimit).count() * shareOfFewer;
    SearchWorker(design, model, options, incumbent, 0).run([&] {
        return stop() || incumbent.proved() || (limit > 0 && incumbent.seconds() >= limit);
    });
    const Lanes lanes = incumbent.lanes();
    LaneTimes times(model);
    if (lanes.empty() || !times.run(lanes))
        return;
    for (int period = 1; period <= 4; ++period)
        for (int at = 0; at < placesToRepeat && !stop(); ++at) {
            const Nanoseconds cut =
                incumbent.best() * (placesToRepeat + 2 * at) / (4 * placesToRepeat); // within the middle half
            if (const auto longer = repeated(model, lanes, times.starts(), m_given, cut, period))
                offer(*longer, "repetition");
        }
}

void SearchWorker::varyRules(int runs, const std::function<bool()>& stop)
{
    if (m_bestPolicy.value == Incumbent::noValue)
        return;
    for (int run = 0; run < runs && !stop(); ++run)
        tryPolicy(varied(m_bestPolicy.policy, m_given.microbatches, m_random), stop);
}

/// Usually the best schedule; sometimes the last one of the rules, for diversity.
Lanes SearchWorker::lanesToImprove()
{
    Lanes lanes = m_random() % 3 == 0 && !m_lastLanes.empty() ? m_lastLanes : m_incumbent.lanes();
    if (!lanes.empty() && !lanesAllowed(tools().model, lanes))
        lanes.clear();
    return lanes;
}

void SearchWorker::searchLanes(const std::function<bool()>& stop)
{
    Lanes lanes = lanesToImprove();
    if (lanes.empty())
        return;
    const auto changes =
        std::clamp<std::int64_t>(tasksOfRound * 4 / static_cast<std::int64_t>(m_given.tasks.size()), 20, 20'000);
    const Nanoseconds value = tools().laneSearch.improve(lanes, static_cast<int>(changes), m_random, stop);
    m_incumbent.offer(lanes, value, "local search", tools().model.capacity);
}

void SearchWorker::searchWindows(const std::function<bool()>& stop)
{
    Lanes lanes = lanesToImprove();
    if (lanes.empty())
        return;
    const auto nodes = std::min<std::int64_t>(nodesOfRound, 20 * static_cast<std::int64_t>(m_given.tasks.size()));
    const Nanoseconds value = tools().windows.improve(lanes, nodes, m_random, stop);
    m_incumbent.offer(lanes, value, "windows", tools().model.capacity);
}

} // namespace pipewright
