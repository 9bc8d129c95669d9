// SPDX-License-Identifier: GPL-3.0-or-later
// ZB-1p, ZB-2p and everything between (arXiv 2401.10241, section 3.1): one greedy pass over the microbatches places F
// and I as early as memory allows and lets W fill the gaps. Three yes-or-no choices of the greedy make eight schedules;
// the one of least span wins. Each is O(devices x microbatches).
#include "core/base/indexed.h"
#include "core/families/orders.h"
#include "core/families/searchinputs.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

struct Choices {
    bool stopBeforeBubble; ///< warm-up ends before the F that would make the first I wait, not after it
    bool preferBackward;   ///< a stage that is two forwards ahead of the next may skip one
    bool fillGreedily;     ///< W also fills gaps shorter than itself that would not become the largest bubble
};

/// Inputs of all eight runs.
struct Problem {
    int stages, microbatches;
    std::vector<StageTimes> times;
    Nanoseconds transfer;
    SearchMemory memory;

    Nanoseconds time(Op op, int stage) const
    {
        const StageTimes& t = times[stage];
        return op == Op::F ? t.forward : op == Op::I ? t.inputGrad : t.weightGrad;
    }
    std::int64_t step(Op op, int stage) const
    {
        const ActivationSteps& steps = memory.ofStage[stage];
        return op == Op::F ? steps.forward : op == Op::I ? steps.inputGrad : steps.weightGrad;
    }
    /// What must be free before a pass: F leaves room for the I after it.
    std::int64_t needs(Op op, int stage) const { return step(op, stage) + (op == Op::F ? memory.growth[stage] : 0); }
    std::int64_t limit(int stage) const { return memory.limit[stage]; }
};

/// The state of a device and its stage in the greedy construction.
struct Lane {
    std::vector<Op> ops;
    std::vector<Nanoseconds> forwardEnd, inputGradEnd; ///< per microbatch
    int forwards = 0, inputGrads = 0, weightGrads = 0;
    Nanoseconds firstStart = 0, end = 0, bubble = 0;
    std::int64_t memory = 0;

    bool owesWeightGrad() const { return weightGrads < inputGrads; }
};

class Greedy {
public:
    Greedy(const Problem& problem, const Choices& choices)
        : m_problem(problem), m_choices(choices), m_lanes(problem.stages)
    {
        for (Lane& l : m_lanes) {
            l.ops.reserve(3 * problem.microbatches);
            l.forwardEnd.reserve(problem.microbatches);
            l.inputGradEnd.reserve(problem.microbatches);
        }
    }

    bool run()
    {
        warmUp();
        std::vector<char> placesForward(m_lanes.size());
        for (int m = 1; m < m_problem.microbatches; ++m)
            if (!placeForwards(placesForward) || !placeInputGrads())
                return false;
        for (int s = 0; s < m_problem.stages; ++s)
            while (lane(s).weightGrads < m_problem.microbatches)
                put(s, Op::W);
        return true;
    }

    Nanoseconds span() const
    {
        Nanoseconds longest = 0;
        for (const Lane& l : m_lanes)
            longest = std::max(longest, l.end - l.firstStart);
        return longest;
    }
    ByStage<Lane> takeLanes() { return std::move(m_lanes); }

private:
    Lane& lane(StageIndex stage) { return m_lanes[stage]; }
    Nanoseconds time(Op op, int stage) const { return m_problem.time(op, stage); }

    /// Arrival time of the input of this stage's next F or I.
    Nanoseconds arrival(Op op, int stage)
    {
        const Lane& l = lane(stage);
        if (op == Op::F)
            return stage == 0 ? 0 : lane(stage - 1).forwardEnd[l.forwards] + m_problem.transfer;
        return stage + 1 == m_problem.stages ? 0 : lane(stage + 1).inputGradEnd[l.inputGrads] + m_problem.transfer;
    }

    void put(int stage, Op op)
    {
        Lane& l = lane(stage);
        const Nanoseconds start = op == Op::W ? l.end : std::max(l.end, arrival(op, stage));
        if (l.ops.empty())
            l.firstStart = start;
        else
            l.bubble += start - l.end;
        m_maxBubble = std::max(m_maxBubble, l.bubble);
        l.end = start + time(op, stage);
        l.memory += m_problem.step(op, stage);
        l.ops.push_back(op);
        if (op == Op::F) {
            ++l.forwards;
            l.forwardEnd.push_back(l.end);
        } else if (op == Op::I) {
            ++l.inputGrads;
            l.inputGradEnd.push_back(l.end);
        } else {
            ++l.weightGrads;
        }
    }

    /// Every stage's first F; then as many more as fit into memory and before the first I arrives, each stage fewer
    /// than the one before it; then every stage's first I.
    void warmUp()
    {
        const int last = m_problem.stages - 1;
        for (int s = 0; s <= last; ++s)
            put(s, Op::F);
        std::vector<int> extra(m_lanes.size(), 0);
        Nanoseconds gradient = lane(last).end + time(Op::I, last); // end of the next stage's first I
        for (int s = last - 1; s >= 0; --s) {
            const Nanoseconds due = gradient + m_problem.transfer, forward = time(Op::F, s);
            Nanoseconds end = lane(s).end;
            std::int64_t memory = lane(s).memory;
            int& count = extra[s];
            while (1 + count < m_problem.microbatches && memory + m_problem.needs(Op::F, s) <= m_problem.limit(s)
                   && !(m_choices.stopBeforeBubble ? end + forward > due : end >= due)) {
                memory += m_problem.step(Op::F, s);
                end += forward;
                ++count;
            }
            gradient = std::max(end, due) + time(Op::I, s);
        }
        for (std::size_t s = 1; s < extra.size(); ++s) {
            const bool all = 1 + extra[s] == m_problem.microbatches;
            extra[s] = std::max(0, std::min(extra[s], extra[s - 1] - (all ? 0 : 1)));
        }
        for (int s = 0; s <= last; ++s)
            for (int k = 0; k < extra[s]; ++k)
                put(s, Op::F);
        for (int s = last; s >= 0; --s)
            put(s, Op::I);
    }

    /// True when this stage can skip its next F in this round without a bubble, or with one that is not the largest.
    bool leavesForwardOut(int stage)
    {
        const Lane& here = lane(stage);
        const Lane& behind = lane(stage + 1);
        if (here.forwards < behind.forwards + 2)
            return false;
        const Nanoseconds needed = behind.end + time(Op::F, stage + 1) + time(Op::I, stage + 1) + m_problem.transfer;
        if (here.end >= needed)
            return true;
        Nanoseconds freeing = 0; // the Ws that must run first to free memory
        std::int64_t memory = here.memory + m_problem.needs(Op::F, stage);
        for (int w = here.weightGrads; memory > m_problem.limit(stage) && w < here.inputGrads; ++w) {
            freeing += time(Op::W, stage);
            memory += m_problem.step(Op::W, stage);
        }
        if (here.end + time(Op::F, stage) + freeing <= needed)
            return false;
        return needed - here.end <= m_maxBubble - here.bubble;
    }

    bool freeMemory(int stage, Op op)
    {
        Lane& l = lane(stage);
        while (l.memory + m_problem.needs(op, stage) > m_problem.limit(stage)) {
            if (!l.owesWeightGrad())
                return false;
            put(stage, Op::W);
        }
        return true;
    }

    void fillGap(int stage, Op op)
    {
        Lane& l = lane(stage);
        const Nanoseconds until = arrival(op, stage);
        while (l.owesWeightGrad() && l.end + time(Op::W, stage) <= until)
            put(stage, Op::W);
        if (l.owesWeightGrad() && l.end < until && (m_choices.fillGreedily || until - l.end > m_maxBubble - l.bubble))
            put(stage, Op::W);
    }

    bool placeForwards(std::vector<char>& places)
    {
        for (int s = 0; s < m_problem.stages; ++s)
            places[s] = lane(s).forwards < m_problem.microbatches
                        && !(m_choices.preferBackward && s + 1 < m_problem.stages && leavesForwardOut(s));
        for (std::size_t s = places.size() - 1; s-- > 0;) // a stage skips its F when the next stage does
            places[s] = places[s] && places[s + 1];
        for (int s = 0; s < m_problem.stages; ++s) {
            if (!places[s])
                continue;
            if (!freeMemory(s, Op::F))
                return false;
            if (s > 0)
                fillGap(s, Op::F);
            put(s, Op::F);
        }
        return true;
    }

    bool placeInputGrads()
    {
        for (int s = m_problem.stages; s-- > 0;) {
            if (!freeMemory(s, Op::I))
                return false;
            if (s + 1 < m_problem.stages)
                fillGap(s, Op::I);
            if (s == 0 && lane(0).forwards == m_problem.microbatches) // no stage waits for stage 0 any more
                while (lane(0).owesWeightGrad())
                    put(0, Op::W);
            put(s, Op::I);
        }
        return true;
    }

    const Problem& m_problem;
    Choices m_choices;
    ByStage<Lane> m_lanes;
    Nanoseconds m_maxBubble = 0;
};

Diagnostics checkAutomatic(const FamilyParameters& p)
{
    return checkSearchInputs(p, 1, 1);
}

Schedule makeAutomatic(const FamilyParameters& p)
{
    const Problem problem{p.devices, p.microbatches, passTimes(p, 1), p.transfer, SearchMemory(p, 1)};
    std::optional<Nanoseconds> bestSpan;
    ByStage<Lane> best;
    for (const bool stopBeforeBubble : {true, false})
        for (const bool preferBackward : {true, false})
            for (const bool fillGreedily : {true, false}) {
                if (bestSpan && p.stop && p.stop())
                    continue;
                Greedy greedy(problem, {stopBeforeBubble, preferBackward, fillGreedily});
                if (greedy.run() && (!bestSpan || greedy.span() < *bestSpan)) {
                    bestSpan = greedy.span();
                    best = greedy.takeLanes();
                }
            }
    if (!bestSpan)
        throw noScheduleFits(p, "allow more memory");
    Schedule schedule;
    schedule.deviceOfStage = searchPlacement(p.devices, 1);
    schedule.firstStageMaySplit = true;
    for (int s = 0; s < p.devices; ++s) {
        std::vector<Block>& order = schedule.order.emplace_back();
        order.reserve(3 * p.microbatches);
        LaneBuilder builder(order, s, p.microbatches);
        for (const Op op : best[s].ops)
            builder.next(op);
    }
    return schedule;
}

} // namespace

Family zeroBubbleAuto()
{
    return {.name = "zb-auto",
            .title = "ZB-1p / ZB-2p",
            .description = "Places forwards and both backward halves by measured times under a memory limit.",
            .backward = BackwardStyle::Split,
            .check = checkAutomatic,
            .make = makeAutomatic,
            .search = FamilySearch::Placed};
}

} // namespace pipewright
