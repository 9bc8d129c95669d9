// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks without maths: each takes the time it is given and holds the bytes that the Program gives it.
// With the virtual clock it takes no time at all; the runtime then keeps the time.
#pragma once

#include "core/design/costs.h"
#include "executor/runtime/bus.h"
#include "executor/runtime/collectives.h"
#include "executor/runtime/partedpairs.h"
#include "executor/runtime/stagework.h"
#include "traces/store/tracewriter.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace pipewright {

/// What the predictor gives each task of a program, by TaskId: both blocks of an overlapped pair take as long
/// as the pair. O(tasks).
std::vector<Nanoseconds> taskDurations(const Program& program, const Costs& costs);
/// The same for a device that does one thing at a time: a pair's time, shared out between its two blocks in
/// proportion to what each takes alone. O(tasks).
std::vector<Nanoseconds> workTimes(const Program& program, const Costs& costs);
/// Which transfers share a bus, by TaskId, for how long each keeps it, and how long the predictor lets it wait for its
/// turn. Empty when the Program has no bus. O(tasks + transfers log transfers).
std::vector<BusUse> busUses(const Program& program, const Costs& costs);

/// What the host lets each block and update wait, by TaskId; empty: nothing. O(tasks).
std::vector<Nanoseconds> hostGaps(const Program& program, const Costs& costs);

class TimedWork final : public StageWork {
public:
    enum class Pace {
        Virtual, ///< returns at once
        Sleep,   ///< gives its core away: any number of devices run beside each other
        Burn,    ///< keeps its core busy and really holds its bytes, as real work does
    };
    /// What to spend on each task, in nanoseconds: see workTimes().
    TimedWork(std::vector<Nanoseconds> durations, Pace pace);
    /// Pairs that run on two threads (partedPairs()), for as long as their parts take and not as `durations` says.
    void runOnTwoStreams(const Program& program, std::map<TaskId, PairTimes::Plan> pairs);
    /// When the parts of such pairs ran since the last call, to be recorded. Between steps.
    std::vector<GpuRecord> takeParts();

    /// Burning work touches every page once, so that a run needs the memory that it says it needs.
    void prepare(const Program& program, std::span<const Region> regions) override;
    void beginStep(int) override {}
    double endStep(int) override;
    void compute(const TaskContext& context) override;
    bool endsWithFirst(TaskId second) const override { return m_seconds.contains(second); }
    void update(const TaskContext& context) override { spend(context); }
    void beforeCollective(const TaskContext& context) override;
    void collective(const TaskContext& context) override { spend(context); }
    Region sharedPart(const Task&, const BufferView& gradients) override { return gradients.region; }
    void reduce(const TaskContext& context, Region, Region, bool) override { spend(context); }

    /// Returns when the task's time is over, or soon after a stop.
    void spend(const TaskContext& context) const;

private:
    void runPair(const TaskContext& context, const PairTimes::Plan& plan, TaskId second);
    void spendHere(Nanoseconds time, const std::atomic<bool>& stopped) const;

    std::vector<Nanoseconds> m_durations;
    std::map<TaskId, PairTimes::Plan> m_pairs; ///< by the first task
    std::map<TaskId, TaskId> m_secondOf;
    std::set<TaskId> m_seconds;
    std::mutex m_partsMutex; ///< devices run their pairs at the same time
    std::vector<GpuRecord> m_partsDone;
    Pace m_pace;
    std::vector<int> m_others; ///< of this process's group, in theirs
    std::unique_ptr<Exchange> m_exchange;
    float m_here = 0;              ///< what is sent to say so
    std::vector<float> m_received; ///< of the others
};

} // namespace pipewright
