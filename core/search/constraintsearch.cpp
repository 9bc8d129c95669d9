// SPDX-License-Identifier: GPL-3.0-or-later
// One Gecode space per model: a unary resource per device, linear constraints for data dependencies, and memory as
// precedences and as a cumulative resource. Branch and bound with a restart at every improvement; times are rounded
// down to whole ticks, which keeps lower bounds valid. Propagation costs O(n log n) per device and node; the number of
// nodes is exponential in the worst case.
#include "core/search/constraintsearch.h"

#ifdef PIPEWRIGHT_GECODE

#include "core/search/heldbytes.h"
#include "core/search/symmetricpredecessors.h"

#include <gecode/int.hh>
#include <gecode/search.hh>

#include <algorithm>
#include <numeric>

namespace pipewright {

namespace {

constexpr std::size_t mostPairs = 6'000; ///< limit on the pairs of blocks whose order is not fixed
constexpr unsigned long nodesOfSlice = 1'000;
constexpr int mostRejected = 50;

/// The design in whole ticks: durations and delays rounded down, which only makes schedules shorter.
struct Ticks {
    const SearchModel& model;
    SearchObjective objective;
    Nanoseconds tick = 1;
    bool exact = true;  ///< nothing was rounded
    int sequential = 0; ///< sum of all durations and delays
    std::vector<std::int32_t> predecessor;
    std::vector<std::pair<std::int32_t, std::int32_t>> openPairs;

    /// Negative for a dependency that may begin before its predecessor ends: a recompute runs while its gradient
    /// arrives.
    int of(Nanoseconds time) const { return static_cast<int>((time < 0 ? time - tick + 1 : time) / tick); }
    int duration(std::int32_t task) const { return of(model.tasks[task].duration); }
    int lead(int device) const { return of(model.lead(objective, device) + tick - 1); } ///< rounded up: subtracted
};

/// Pairs of blocks of one device whose order neither data dependencies nor the order of the microbatches fixes.
std::vector<std::pair<std::int32_t, std::int32_t>> openPairs(const SearchModel& model,
                                                             const std::vector<std::int32_t>& predecessor)
{
    const auto count = static_cast<std::int32_t>(model.tasks.size());
    std::vector<std::vector<bool>> before(model.tasks.size(), std::vector<bool>(model.tasks.size(), false));
    std::vector<bool> done(model.tasks.size(), false);
    std::function<void(std::int32_t)> visit = [&](std::int32_t t) {
        if (done[t])
            return;
        done[t] = true;
        const auto take = [&](std::int32_t other) {
            if (other < 0)
                return;
            visit(other);
            for (std::size_t i = 0; i < model.tasks.size(); ++i)
                before[t][i] = before[t][i] || before[other][i];
            before[t][other] = true;
        };
        take(model.tasks[t].input);
        take(model.tasks[t].local);
        take(predecessor[t]);
        for (const ExtraInput& extra : model.extrasOf(t))
            take(extra.input);
    };
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    for (std::int32_t t = 0; t < count; ++t)
        visit(t);
    for (std::int32_t a = 0; a < count; ++a)
        for (std::int32_t b = a + 1; b < count; ++b) {
            const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
            if (model.tasks[i].device == model.tasks[j].device && !before[i][j] && !before[j][i])
                pairs.emplace_back(a, b);
        }
    return pairs;
}

/// The objective: the length of the schedule, or the time from the first forward to a block.
struct Aim {
    const Incumbent* incumbent = nullptr; ///< for whole schedules: only values below its best count
    std::int32_t task = -1;
    bool toItsEnd = false;
    Nanoseconds below = 0; ///< for a block: only values below this count

    Nanoseconds best() const { return incumbent != nullptr ? incumbent->best() : below; }
};

class Orders : public Gecode::Space {
public:
    Orders(const Ticks& ticks, const Aim& aim, bool byPairs)
        : m_ticks(&ticks), m_aim(&aim), m_start(*this, static_cast<int>(ticks.model.tasks.size()), 0, horizon()),
          m_value(*this, 0, worth() - 1)
    {
        sequence();
        for (int d = 0; d < ticks.model.devices; ++d)
            device(d);
        measure();
        if (byPairs) {
            Gecode::BoolVarArgs first;
            for (const auto& [a, b] : ticks.openPairs)
                first << inOneOrder(a, b);
            Gecode::branch(*this, first, Gecode::BOOL_VAR_AFC_MAX(0.99), Gecode::BOOL_VAL_MAX());
        }
        Gecode::branch(*this, m_value, Gecode::INT_VAL_MIN());
        Gecode::branch(*this, m_start, Gecode::INT_VAR_MIN_MIN(), Gecode::INT_VAL_MIN());
    }
    Orders(Orders& other) : Space(other), m_ticks(other.m_ticks), m_aim(other.m_aim)
    {
        m_start.update(*this, other.m_start);
        m_value.update(*this, other.m_value);
    }
    Gecode::Space* copy() override { return new Orders(*this); }
    /// Requires a value below the best of all threads, not below that of the last solution: it may have been rejected.
    void constrain(const Gecode::Space&) override { Gecode::rel(*this, m_value, Gecode::IRT_LE, worth()); }

    Nanoseconds value() const { return m_value.val() * m_ticks->tick; }

    Lanes lanes() const
    {
        Lanes lanes(static_cast<std::size_t>(m_ticks->model.devices));
        for (std::size_t t = 0; t < m_ticks->model.tasks.size(); ++t)
            lanes[m_ticks->model.tasks[t].device].push_back(static_cast<std::int32_t>(t));
        for (std::vector<std::int32_t>& lane : lanes)
            // Blocks of zero duration share a start; a dependency has the lower number.
            std::stable_sort(lane.begin(), lane.end(),
                             [&](std::int32_t a, std::int32_t b) { return m_start[a].val() < m_start[b].val(); });
        return lanes;
    }

private:
    int worth() const { return m_ticks->of(m_aim->best()); } ///< only values below this count

    /// Upper limit of the start times. For a target block: all other blocks may follow it one by one. With the span as
    /// objective a device may begin when the first stage ends, since every gradient goes there.
    int horizon() const
    {
        if (m_aim->incumbent == nullptr)
            return worth() + m_ticks->sequential;
        int lead = 0; // times begin before what is measured
        for (int d = 0; d < m_ticks->model.devices; ++d)
            lead = std::max(lead, m_ticks->lead(d));
        return (m_ticks->objective == SearchObjective::Span ? 2 : 1) * (worth() + lead);
    }

    void precede(std::int32_t first, std::int32_t second, Nanoseconds delay)
    {
        if (first < 0)
            return;
        Gecode::linear(*this, Gecode::IntArgs({1, -1}), Gecode::IntVarArgs({m_start[second], m_start[first]}),
                       Gecode::IRT_GQ, m_ticks->of(m_ticks->model.tasks[first].duration) + m_ticks->of(delay));
    }

    void sequence()
    {
        for (std::int32_t t = 0; t < m_start.size(); ++t) {
            const SearchTask& task = m_ticks->model.tasks[t];
            precede(task.input, t, task.delay);
            precede(task.local, t, 0);
            precede(m_ticks->predecessor[t], t, 0);
            for (const ExtraInput& extra : m_ticks->model.extrasOf(t))
                precede(extra.input, t, extra.delay);
        }
    }

    Gecode::BoolVar inOneOrder(std::int32_t a, std::int32_t b)
    {
        const Gecode::BoolVar first(*this, 0, 1), second(*this, 0, 1);
        Gecode::rel(*this, first, Gecode::IRT_NQ, second);
        const auto follows = [&](std::int32_t one, std::int32_t other, Gecode::BoolVar if_) {
            Gecode::linear(*this, Gecode::IntArgs({1, -1}), Gecode::IntVarArgs({m_start[other], m_start[one]}),
                           Gecode::IRT_GQ, m_ticks->duration(one), Gecode::Reify(if_, Gecode::RM_IMP));
        };
        follows(a, b, first);
        follows(b, a, second);
        return first;
    }

    void device(int d)
    {
        const SearchModel& model = m_ticks->model;
        Gecode::IntVarArgs starts;
        Gecode::IntArgs durations;
        for (std::int32_t t = 0; t < m_start.size(); ++t)
            if (model.tasks[t].device == d) {
                starts << m_start[t];
                durations << m_ticks->duration(t);
            }
        if (starts.size() > 1)
            Gecode::unary(*this, starts, durations, Gecode::IPL_ADVANCED);
        if (model.capacity[d] != SearchModel::noCapacity)
            memory(d);
    }

    /// Activations as intervals that hold bytes, rounded so that every feasible schedule stays feasible.
    void memory(int d)
    {
        const SearchModel& model = m_ticks->model;
        const Bytes capacity = model.capacity[d];
        const Bytes grain = std::max<Bytes>(1, capacity / 10'000);
        Gecode::IntVarArgs starts, durations, ends;
        Gecode::IntArgs usage;
        bool needed = false;
        const auto hold = [&](std::int32_t from, std::int32_t until, Bytes bytes) {
            if (bytes < grain)
                return;
            const Gecode::IntVar length(*this, 0, horizon()), end(*this, 0, horizon());
            Gecode::linear(*this, Gecode::IntArgs({1, -1}), Gecode::IntVarArgs({end, m_start[until]}), Gecode::IRT_EQ,
                           m_ticks->duration(until));
            starts << m_start[from];
            durations << length;
            ends << end;
            usage << static_cast<int>(bytes / grain);
        };
        for (const int s : model.stagesOfDevice[d]) {
            const HeldBytes first(model, s, 0);
            // The microbatches of one stage keep their order.
            if (const Bytes both = first.throughout(), taken = first.afterForward(); both > 0 && capacity >= taken)
                for (Bytes m = 1 + (capacity - taken) / both; m < model.microbatches; ++m) {
                    const auto late = static_cast<int>(m),
                               early = late - static_cast<int>(1 + (capacity - taken) / both);
                    precede(HeldBytes(model, s, early).last(), model.forward(s, late), 0);
                }
            needed = needed || model.stagesOfDevice[d].size() > 1 || !first.isConstant();
            for (int m = 0; m < model.microbatches; ++m)
                for (const HeldBytes::Interval& interval : HeldBytes(model, s, m).intervals())
                    hold(interval.from, interval.until, interval.bytes);
        }
        if (needed && starts.size() > 0)
            Gecode::cumulative(*this, static_cast<int>((capacity + grain - 1) / grain), starts, durations, ends, usage);
    }

    void measure()
    {
        const SearchModel& model = m_ticks->model;
        Gecode::rel(*this, m_start[model.forward(0, 0)], Gecode::IRT_EQ, 0);
        if (m_aim->incumbent == nullptr) {
            Gecode::linear(*this, Gecode::IntArgs({1, -1}), Gecode::IntVarArgs({m_value, m_start[m_aim->task]}),
                           Gecode::IRT_GQ, m_aim->toItsEnd ? m_ticks->duration(m_aim->task) : 0);
            return;
        }
        const bool span = m_ticks->objective == SearchObjective::Span;
        for (int d = 0; d < model.devices; ++d) {
            const std::vector<int>& stages = model.stagesOfDevice[d];
            for (const int s : stages) {
                // The first block of a device is the first forward of its first stage; the step begins at 0.
                const std::int32_t last = model.weightGrad(s, model.microbatches - 1) >= 0
                                              ? model.weightGrad(s, model.microbatches - 1)
                                              : model.backward(s, model.microbatches - 1);
                const int more =
                    m_ticks->duration(last) + (span ? 0 : m_ticks->of(model.updates[d])) - m_ticks->lead(d);
                const std::int32_t first = model.forward(span ? stages.front() : 0, 0);
                Gecode::linear(*this, Gecode::IntArgs({1, -1, 1}),
                               Gecode::IntVarArgs({m_value, m_start[last], m_start[first]}), Gecode::IRT_GQ, more);
            }
        }
    }

    const Ticks* m_ticks;
    const Aim* m_aim;
    Gecode::IntVarArray m_start;
    Gecode::IntVar m_value;
};

class Slice : public Gecode::Search::Stop {
public:
    bool stop(const Gecode::Search::Statistics& statistics, const Gecode::Search::Options&) override
    {
        return statistics.node >= until || (*asked)();
    }
    unsigned long until = 0;
    const std::function<bool()>* asked = nullptr;
};

/// Two engines that alternate. The second branches over pairs of blocks; it is left out where there are too many pairs.
class Engines {
public:
    void restart(const Ticks& ticks, const Aim& aim)
    {
        for (const bool byPairs : {false, true}) {
            m_engine[byPairs].reset();
            if (byPairs && ticks.openPairs.size() > mostPairs)
                continue;
            Orders root(ticks, aim, byPairs);
            Gecode::Search::Options options;
            options.threads = 1;
            options.stop = &m_slice[byPairs];
            m_engine[byPairs] = std::make_unique<Gecode::BAB<Orders>>(&root, options);
        }
    }

    /// The engine to run next, for one slice of nodes or until `stop` returns true. `stop` must outlive the slice.
    /// Null: this engine is left out.
    Gecode::BAB<Orders>* next(const std::function<bool()>& stop)
    {
        const std::size_t turn = m_turn++ % 2;
        if (m_engine[turn]) {
            m_slice[turn].asked = &stop;
            m_slice[turn].until = m_engine[turn]->statistics().node + nodesOfSlice;
        }
        return m_engine[turn].get();
    }

private:
    Slice m_slice[2];
    std::unique_ptr<Gecode::BAB<Orders>> m_engine[2];
    unsigned m_turn = 0;
};

class GecodeSearch : public ConstraintSearch {
public:
    GecodeSearch(Ticks ticks, Incumbent& incumbent)
        : m_ticks(std::move(ticks)), m_incumbent(incumbent), m_capacity(m_ticks.model.capacity)
    {
        m_aim.incumbent = &incumbent;
    }

    bool resume(const std::function<bool()>& stop) override
    {
        if (m_incumbent.best() == Incumbent::noValue
            || m_incumbent.best() / m_ticks.tick > Gecode::Int::Limits::max / 4)
            return true;
        if (m_incumbent.best() != m_from) {
            m_from = m_incumbent.best();
            m_engines.restart(m_ticks, m_aim);
        }
        Gecode::BAB<Orders>* const engine = m_engines.next(stop);
        if (!engine)
            return true;
        while (const std::unique_ptr<Orders> found{engine->next()}) {
            const Nanoseconds before = m_incumbent.best();
            m_incumbent.offer(found->lanes(), 0, "constraint programming", m_capacity);
            if (m_incumbent.best() < before)
                return true; // restart with the better bound
            if (++m_rejected > mostRejected)
                return false; // feasible with memory in whole grains, but not in bytes
        }
        if (engine->stopped())
            return true;
        // No value is below the one that the engines started from. Rounding may take one tick from the first start.
        if (m_rejected == 0)
            m_incumbent.proveBound(m_ticks.exact ? m_from : (m_from / m_ticks.tick - 1) * m_ticks.tick,
                                   "constraint programming ruled out every shorter order");
        return false;
    }

private:
    Ticks m_ticks;
    Aim m_aim;
    Incumbent& m_incumbent;
    ByDevice<Bytes> m_capacity;
    Engines m_engines;
    Nanoseconds m_from = Incumbent::noValue; ///< the best when the engines began
    int m_rejected = 0;
};

class GecodeLeastTime : public LeastTimeSearch {
public:
    GecodeLeastTime(Ticks ticks, std::int32_t task, bool toItsEnd, Nanoseconds known) : m_ticks(std::move(ticks))
    {
        m_aim.task = task;
        m_aim.toItsEnd = toItsEnd;
        m_aim.below = known;
        m_engines.restart(m_ticks, m_aim);
    }

    bool resume(const std::function<bool()>& stop) override
    {
        Gecode::BAB<Orders>* const engine = m_engines.next(stop);
        if (!engine)
            return true;
        while (const std::unique_ptr<Orders> found{engine->next()})
            m_aim.below = std::min(m_aim.below, found->value()); // both engines search below it from now on
        if (engine->stopped())
            return true;
        m_least =
            m_ticks.exact ? m_aim.below : std::max<Nanoseconds>(0, (m_aim.below / m_ticks.tick - 1) * m_ticks.tick);
        return false;
    }

    Nanoseconds least() const override { return m_least; }

private:
    Ticks m_ticks;
    Aim m_aim;
    Engines m_engines;
    Nanoseconds m_least = 0;
};

/// Nothing when the design is outside the limits of this search.
std::optional<Ticks> ticksOf(const SearchModel& model, SearchObjective objective)
{
    if (model.tasks.size() > mostTasksToConstrain)
        return std::nullopt;
    Ticks ticks{model, objective, 0, true, 0, symmetricPredecessors(model), {}};
    if (ticks.predecessor.empty())
        return std::nullopt;
    Nanoseconds work = 0, delays = 0;
    const auto note = [&](Nanoseconds time) {
        ticks.tick = std::gcd(ticks.tick, time);
        work += std::max<Nanoseconds>(0, time);
    };
    for (const SearchTask& task : model.tasks) {
        if (task.earliest > 0 || task.duration <= 0)
            return std::nullopt;
        note(task.duration);
        note(task.delay);
    }
    for (const ExtraInput& extra : model.extras) {
        note(extra.delay);
        delays += extra.delay;
    }
    const Nanoseconds sequential = work + delays;
    for (const Nanoseconds update : model.updates)
        note(update);
    for (const Nanoseconds gap : model.firstGap)
        note(gap);
    // More than some million ticks only widen the domains.
    if (const Nanoseconds coarse = work / 4'000'000 + 1; coarse > ticks.tick) {
        ticks.tick = coarse;
        ticks.exact = false;
    }
    ticks.sequential = ticks.of(sequential) + 1;
    ticks.openPairs = openPairs(model, ticks.predecessor);
    return ticks;
}

} // namespace

std::unique_ptr<ConstraintSearch> makeConstraintSearch(const SearchModel& model, const SearchOptions& options,
                                                       Incumbent& incumbent)
{
    std::optional<Ticks> ticks = ticksOf(model, options.objective);
    return ticks ? std::make_unique<GecodeSearch>(std::move(*ticks), incumbent) : nullptr;
}

std::unique_ptr<LeastTimeSearch> makeLeastTimeSearch(const SearchModel& model, std::int32_t task, bool toItsEnd,
                                                     Nanoseconds known)
{
    std::optional<Ticks> ticks = ticksOf(model, SearchObjective::Span);
    if (!ticks || known / ticks->tick > Gecode::Int::Limits::max / 4)
        return nullptr;
    return std::make_unique<GecodeLeastTime>(std::move(*ticks), task, toItsEnd, known);
}

} // namespace pipewright

#else

namespace pipewright {

std::unique_ptr<ConstraintSearch> makeConstraintSearch(const SearchModel&, const SearchOptions&, Incumbent&)
{
    return nullptr;
}

std::unique_ptr<LeastTimeSearch> makeLeastTimeSearch(const SearchModel&, std::int32_t, bool, Nanoseconds)
{
    return nullptr;
}

} // namespace pipewright

#endif
