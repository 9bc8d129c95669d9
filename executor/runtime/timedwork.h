// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks without maths: each takes a given time and holds the bytes that the Program gives it. With the virtual clock
// it returns at once; the runtime then keeps the time.
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

/// The predictor's duration of each task, by TaskId: both blocks of an overlapped pair take as long as the pair.
/// O(tasks).
std::vector<Nanoseconds> taskDurations(const Program& program, const Costs& costs);
/// The same for a device that runs one block at a time: a pair's time is divided between its two blocks in proportion
/// to their times alone. O(tasks).
std::vector<Nanoseconds> workTimes(const Program& program, const Costs& costs);
/// By TaskId: which transfers share a bus, how long each occupies it, and how long it waits for its turn in the
/// prediction, on the bus or in its devices' streams. Empty when the Program has neither. O(tasks + transfers log
/// transfers).
std::vector<BusUse> busUses(const Program& program, const Costs& costs);

/// The host's gap before each block and update, by TaskId; empty: no gaps. O(tasks).
std::vector<Nanoseconds> hostGaps(const Program& program, const Costs& costs);

class TimedWork final : public StageWork {
public:
    enum class Pace {
        Virtual, ///< returns at once
        Sleep,   ///< leaves its core free, so any number of devices run concurrently
        Burn,    ///< keeps its core busy and really holds its bytes, as real work does
    };
    /// `durations`: nanoseconds of each task, see workTimes().
    TimedWork(std::vector<Nanoseconds> durations, Pace pace);
    /// Pairs that run on two threads (partedPairs()), with the times of their parts instead of `durations`.
    void runOnTwoStreams(const Program& program, std::map<TaskId, PairTimes::Plan> pairs);
    std::vector<GpuRecord> takeParts() override; ///< of such pairs

    /// Pace::Burn touches every page once, so that the run really uses its memory.
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
    std::vector<int> m_others; ///< other members of this process's group, in their own processes
    std::unique_ptr<Exchange> m_exchange;
    float m_here = 0;              ///< the value sent to signal arrival
    std::vector<float> m_received; ///< from the others
};

} // namespace pipewright
