// SPDX-License-Identifier: GPL-3.0-or-later
// The greedy heuristic of arXiv 2401.10241, section 6 (ZB-V): rounds of gradients and forwards down and up the V, with
// W in the gaps, for each combination of the yes-or-no choices; repeated with the bubbles of the last run allowed.
// O(devices × microbatches) per run.
#include "core/families/zbvheuristic.h"

#include "core/base/indexed.h"

#include <algorithm>
#include <array>
#include <limits>

namespace pipewright {

namespace {

/// The passes of a microbatch in the order of their data: forward down and up the V, gradient down and up. On device i
/// they belong to stages i, 2p-1-i, 2p-1-i and i. `legs` is their number.
enum Leg { forwardDown, forwardUp, gradientDown, gradientUp, legs };

constexpr Nanoseconds notYet = -1;

struct VProblem {
    int devices, microbatches;
    const std::vector<StageTimes>& times;
    Nanoseconds transfer;
    const SearchMemory& memory;
    int forwardsThatFit; ///< on every device, before its first gradient

    int stage(Leg leg, int device) const
    {
        return leg == forwardDown || leg == gradientUp ? device : 2 * devices - 1 - device;
    }
    const StageTimes& timesOf(Leg leg, int device) const { return times[stage(leg, device)]; }
    const ActivationSteps& stepsOf(Leg leg, int device) const { return memory.ofStage[stage(leg, device)]; }
    std::int64_t step(Leg leg, int device) const
    {
        return leg < gradientDown ? stepsOf(leg, device).forward : stepsOf(leg, device).inputGrad;
    }
    /// What must be free before a pass: a forward leaves room for a gradient after it.
    std::int64_t needs(Leg leg, int device) const
    {
        return step(leg, device) + (leg < gradientDown ? memory.growth[device] : 0);
    }
    std::int64_t limit(int device) const { return memory.limit[device]; }
    Nanoseconds time(Leg leg, int device) const
    {
        return leg < gradientDown ? timesOf(leg, device).forward : timesOf(leg, device).inputGrad;
    }
};

struct VChoices {
    bool fillBeforeForward, fillBeforeGradient; ///< W goes into gaps shorter than itself
};

struct VLane {
    std::vector<Block> blocks;
    std::array<std::vector<Nanoseconds>, legs> end; ///< per microbatch
    std::vector<Leg> owed;                          ///< gradient legs whose W is still to come, oldest first …
    std::size_t firstOwed = 0;                      ///< … from here on
    std::array<int, legs> weightGrads{};
    Nanoseconds now = 0, bubble = 0;
    std::int64_t memory = 0;

    int count(Leg leg) const { return static_cast<int>(end[leg].size()); }
    int forwards() const { return count(forwardDown) + count(forwardUp); }
    bool owesWeightGrad() const { return firstOwed < owed.size(); }
};

class Run {
public:
    /// `approved`: bubbles per device of an earlier run that this run may have too; or empty.
    Run(const VProblem& problem, VChoices choices, const std::vector<Nanoseconds>& approved)
        : m_problem(problem), m_choices(choices), m_approved(approved), m_lanes(problem.devices)
    {
        if (!approved.empty())
            m_maxApproved = *std::max_element(approved.begin(), approved.end());
        for (VLane& l : m_lanes) {
            l.blocks.reserve(6 * problem.microbatches);
            for (auto& ends : l.end)
                ends.reserve(problem.microbatches);
        }
    }

    /// False when memory does not suffice.
    bool run()
    {
        warmUp();
        for (int round = 0; m_fits && round < 2 * m_problem.microbatches; ++round) {
            gradientRound();
            forwardRound();
        }
        for (int d = 0; m_fits && d < m_problem.devices; ++d)
            while (lane(d).owesWeightGrad())
                putWeightGrad(d);
        return m_fits;
    }

    Nanoseconds bubble() const { return m_maxBubble; }
    std::vector<Nanoseconds> bubbles() const
    {
        std::vector<Nanoseconds> all;
        for (const VLane& l : m_lanes)
            all.push_back(l.bubble);
        return all;
    }
    VOrder take()
    {
        VOrder result;
        for (VLane& l : m_lanes)
            result.order.push_back(std::move(l.blocks));
        result.bubble = m_maxBubble;
        return result;
    }

private:
    VLane& lane(DeviceIndex device) { return m_lanes[device]; }
    const VLane& lane(DeviceIndex device) const { return m_lanes[device]; }
    int last() const { return m_problem.devices - 1; }

    /// The neighbour that a leg comes from; -1 where the leg begins.
    int source(Leg leg, int device) const
    {
        if (leg == forwardDown || leg == gradientDown)
            return device - 1;
        return device < last() ? device + 1 : -1;
    }
    /// End of the neighbour's pass that this leg needs next; notYet when it has not run.
    Nanoseconds madeAt(Leg leg, int device) const
    {
        const int from = source(leg, device);
        if (from < 0)
            return notYet;
        const std::size_t m = lane(device).count(leg);
        return m < lane(from).end[leg].size() ? lane(from).end[leg][m] : notYet;
    }

    void put(Leg leg, int device)
    {
        VLane& l = lane(device);
        const std::size_t m = l.count(leg);
        const bool ready = (leg == forwardDown || l.end[leg - 1].size() > m)
                           && (source(leg, device) < 0 || madeAt(leg, device) != notYet);
        if (!ready || static_cast<int>(m) >= m_problem.microbatches
            || l.memory + m_problem.needs(leg, device) > m_problem.limit(device)) {
            m_fits = false;
            return;
        }
        Nanoseconds start = l.now;
        if (source(leg, device) >= 0)
            start = std::max(start, madeAt(leg, device) + m_problem.transfer);
        if (l.count(forwardDown) > 0)
            l.bubble += start - l.now;
        m_maxBubble = std::max(m_maxBubble, l.bubble);
        l.now = start + m_problem.time(leg, device);
        l.memory += m_problem.step(leg, device);
        l.end[leg].push_back(l.now);
        l.blocks.push_back({leg < gradientDown ? Op::F : Op::I, m_problem.stage(leg, device), static_cast<int>(m)});
        if (leg >= gradientDown)
            l.owed.push_back(leg);
    }

    void putWeightGrad(int device)
    {
        VLane& l = lane(device);
        const Leg leg = l.owed[l.firstOwed++];
        l.now += m_problem.timesOf(leg, device).weightGrad;
        l.memory += m_problem.stepsOf(leg, device).weightGrad;
        l.blocks.push_back({Op::W, m_problem.stage(leg, device), l.weightGrads[leg]++});
    }

    Nanoseconds owedTime(int device) const
    {
        const VLane& l = lane(device);
        return m_problem.timesOf(l.owed[l.firstOwed], device).weightGrad;
    }

    void freeMemory(int device, std::int64_t needs)
    {
        while (lane(device).memory + needs > m_problem.limit(device)) {
            if (!lane(device).owesWeightGrad()) {
                m_fits = false;
                return;
            }
            putWeightGrad(device);
        }
    }

    /// Runs W before a pass that would wait: as many as fit, and one more on request or where the wait would become the
    /// worst bubble.
    void fillGap(Leg leg, int device, bool evenIfTooShort)
    {
        const Nanoseconds made = madeAt(leg, device);
        if (made == notYet)
            return;
        VLane& l = lane(device);
        const Nanoseconds due = made + m_problem.transfer;
        while (l.owesWeightGrad() && due >= l.now + owedTime(device))
            putWeightGrad(device);
        Nanoseconds worst = m_maxBubble;
        if (!m_approved.empty())
            worst = std::max(worst, m_maxApproved - m_approved[device]);
        if (l.owesWeightGrad() && evenIfTooShort && due - l.now > worst - l.bubble)
            putWeightGrad(device);
    }

    void warmUp()
    {
        for (int d = 0; d <= last(); ++d)
            put(forwardDown, d);
        for (int d = last(); m_fits && d >= 0; --d) {
            if (d < last()) {
                const Nanoseconds due = madeAt(forwardUp, d) + m_problem.transfer;
                while (m_fits && lane(d).forwards() + 2 + 2 * d <= m_problem.forwardsThatFit
                       && lane(d).now + m_problem.time(forwardDown, d) <= due
                       && lane(d).count(forwardDown) < m_problem.microbatches)
                    for (int j = 0; j <= d; ++j)
                        put(forwardDown, j);
            }
            put(forwardUp, d);
        }
        // Give each device as many forwards as the one before it, alternating between the chunks.
        Leg leg = forwardDown;
        for (int d = 1; d <= last(); ++d)
            while (m_fits && isBehind(d)) {
                for (int j = last(); j >= d; --j)
                    if (lane(j).count(leg) < m_problem.microbatches)
                        put(leg, j);
                leg = leg == forwardDown ? forwardUp : forwardDown;
            }
    }

    bool isBehind(int device) const
    {
        const VLane& here = lane(device);
        const VLane& before = lane(device - 1);
        return here.forwards() < before.forwards()
               || (here.count(forwardUp) <= before.count(forwardUp)
                   && before.count(forwardUp) < m_problem.microbatches);
    }

    void gradientRound()
    {
        for (int d = 0; m_fits && d <= last(); ++d)
            freeMemory(d, m_problem.memory.growth[d]);
        std::vector<int> up, down;
        for (int d = 0; d <= last(); ++d) {
            const bool goesUp = lane(d).count(gradientUp) < lane(d).count(gradientDown)
                                && (d == last() || madeAt(gradientUp, d) != notYet
                                    || lane(d).count(gradientDown) >= m_problem.microbatches);
            (goesUp ? up : down).push_back(d);
        }
        for (std::size_t i = up.size(); m_fits && i-- > 0;) {
            fillGap(gradientUp, up[i], true);
            put(gradientUp, up[i]);
        }
        for (const int d : down) {
            if (!m_fits)
                return;
            fillGap(gradientDown, d, m_choices.fillBeforeGradient);
            put(gradientDown, d);
        }
    }

    void forwardRound()
    {
        for (int d = 0; m_fits && d <= last(); ++d) {
            const VLane& l = lane(d);
            if (l.count(forwardUp) >= m_problem.microbatches)
                continue;
            Leg leg;
            if (l.count(forwardUp) >= l.count(forwardDown))
                leg = forwardDown;
            else if (d == last() || madeAt(forwardUp, d) != notYet)
                leg = forwardUp;
            else if (l.count(forwardDown) < m_problem.microbatches && (d == 0 || madeAt(forwardDown, d) != notYet))
                leg = forwardDown;
            else
                continue;
            freeMemory(d, m_problem.needs(leg, d));
            if (!m_fits)
                return;
            fillGap(leg, d, m_choices.fillBeforeForward);
            put(leg, d);
        }
    }

    const VProblem& m_problem;
    VChoices m_choices;
    const std::vector<Nanoseconds>& m_approved;
    Nanoseconds m_maxApproved = 0;
    ByDevice<VLane> m_lanes;
    Nanoseconds m_maxBubble = 0;
    bool m_fits = true;
};

/// Repeats the run with the previous run's bubbles approved while the largest bubble shrinks.
std::optional<VOrder> refined(const VProblem& problem, VChoices choices)
{
    std::optional<VOrder> best;
    std::vector<Nanoseconds> approved;
    Nanoseconds before = std::numeric_limits<Nanoseconds>::max();
    for (;;) {
        Run run(problem, choices, approved);
        if (!run.run())
            return best;
        const Nanoseconds bubble = run.bubble();
        std::vector<Nanoseconds> bubbles = run.bubbles();
        if (!best || bubble < best->bubble)
            best = run.take();
        if (bubble >= before)
            return best;
        before = bubble;
        approved = std::move(bubbles);
    }
}

} // namespace

std::vector<int> vPlacement(int devices)
{
    std::vector<int> deviceOfStage(2 * devices);
    for (int s = 0; s < 2 * devices; ++s)
        deviceOfStage[s] = std::min(s, 2 * devices - 1 - s);
    return deviceOfStage;
}

std::optional<VOrder> zeroBubbleVHeuristic(int devices, int microbatches, const std::vector<StageTimes>& times,
                                           Nanoseconds transfer, const SearchMemory& memory)
{
    int most = 0;
    for (int d = 0; d < devices; ++d)
        most = std::max(most, std::min(2 * (devices + microbatches), memory.forwardsThatFit(d)));
    VProblem problem{devices, microbatches, times, transfer, memory, most};
    std::optional<VOrder> best;
    const auto tryAll = [&] {
        for (const bool fillBeforeGradient : {true, false})
            for (const bool fillBeforeForward : {true, false}) {
                std::optional<VOrder> order = refined(problem, {fillBeforeForward, fillBeforeGradient});
                if (order && (!best || order->bubble < best->bubble))
                    best = std::move(order);
            }
    };
    tryAll();
    // Where stages differ, what fits on one device may not fit on another.
    while (!best && !memory.isEven() && problem.forwardsThatFit > 2) {
        --problem.forwardsThatFit;
        tryAll();
    }
    return best;
}

} // namespace pipewright
