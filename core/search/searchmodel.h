// SPDX-License-Identifier: GPL-3.0-or-later
// A design as the search sees it: flat tasks with a device, a duration, dependencies and their effect on the device's
// memory. A recompute is a task of its own, which may run anywhere between its forward and its backward. Times and
// memory are the predictor's, without buffers of values that wait for their block or their transfer, and without links
// that block or share a bus. This is a relaxation, so bounds hold over every order that can run (modelled.h lists for
// which designs); every schedule found is predicted exactly before it counts. A task's duration includes the host's gap
// before it; lead() gives the gap that lies before the measured time. Building is O(blocks).
#pragma once

#include "core/base/indexed.h"
#include "core/design/design.h"
#include "core/search/memorylimit.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pipewright {

enum class SearchObjective {
    Makespan, ///< the whole step
    Span      ///< the longest time from a device's first block to its last, as in the zero-bubble papers
};

/// The tasks that a microbatch has in a stage, by their turn: F, R, then B or I, and W.
inline constexpr int forwardKind = 0, recomputeKind = 1, backwardKind = 2, weightKind = 3, taskKinds = 4;
constexpr int kindOf(Op op)
{
    switch (op) {
    case Op::F: return forwardKind;
    case Op::R: return recomputeKind;
    case Op::B:
    case Op::I: return backwardKind;
    case Op::W: return weightKind;
    case Op::U: break; // no task
    }
    return taskKinds;
}

struct SearchTask {
    std::int32_t device = 0, stage = 0, microbatch = 0;
    Op op = Op::F;
    Nanoseconds duration = 0;      ///< with the host's gap before it
    Nanoseconds earliest = 0;      ///< its pin
    std::int32_t input = -1;       ///< the task of the neighbouring stage whose value it needs …
    Nanoseconds delay = 0;         ///< … and its transfer time
    std::int32_t local = -1;       ///< the block of the same stage and microbatch that comes first: F or R, or I of W
    std::int32_t lockedAfter = -1; ///< the previous locked block of the device
    Bytes taken = 0;               ///< at its start
    Bytes passing = 0;             ///< while it runs only
    Bytes freed = 0;               ///< at its end
};

/// Inputs other than from the neighbouring stage: skip connections. Sorted by task.
struct ExtraInput {
    std::int32_t task = -1, input = -1;
    Nanoseconds delay = 0;
};

/// Tasks placed or timed between two checks of the stop condition, in addition to one whole schedule: a few
/// milliseconds.
inline constexpr std::int64_t tasksBetweenStops = 16'384;

/// Passes over millions of tasks take a good part of a second each. They report their progress here; every 65,536 tasks
/// it calls a function that may throw to end them.
class Patience {
public:
    Patience() = default; ///< never ends a pass
    explicit Patience(std::function<void()> look) : m_look(std::move(look)) {}
    void spend(std::size_t tasks)
    {
        if (m_look && (m_spent += tasks) >= betweenLooks) {
            m_spent = 0;
            m_look();
        }
    }

private:
    static constexpr std::size_t betweenLooks = 1 << 16;

    std::function<void()> m_look;
    std::size_t m_spent = 0;
};

using Lanes = std::vector<std::vector<std::int32_t>>; ///< device -> tasks in the order they run

class SearchModel {
public:
    /// Throws Error when the design is of a kind that cannot be searched (replicas, sequence pieces, overlapped
    /// pairs) or whose costs do not fit. `locked` are blocks that are placed.
    SearchModel(const Design& design, const MemoryLimit& limit, std::span<const Block> locked = {},
                Patience patience = {});

    std::vector<SearchTask> tasks; ///< per stage and microbatch: F, R where the stage recomputes, then B or I and W
    std::vector<ExtraInput> extras;
    std::vector<int> deviceOfStage;
    ByDevice<std::vector<int>> stagesOfDevice; ///< ascending
    ByDevice<Bytes> capacity;                  ///< for the tasks' bytes; noCapacity: unlimited
    ByDevice<Nanoseconds> updates;             ///< after the device's last block
    ByDevice<Nanoseconds> firstGap;            ///< before its first block, which is a forward
    ByDevice<Bytes> limitOfDevice;             ///< as given, with persistent bytes; for a factor only activations
    bool hostGaps = false;                     ///< the costs have some
    /// For devices, a bus or each other, or blocks for gathers and sums with copies: predictions may be longer than in
    /// the model.
    bool transfersWait = false;
    bool exactBytes = false; ///< the limit is on all bytes: the prediction decides, `capacity` is an estimate
    int stages = 0, microbatches = 0, devices = 0;
    static constexpr Bytes noCapacity = Bytes{1} << 62;

    /// The host's gap that the objective does not count: before the first block of the step, or of the device for a
    /// span.
    Nanoseconds lead(SearchObjective objective, DeviceIndex device) const
    {
        return firstGap[objective == SearchObjective::Span ? device : DeviceIndex(deviceOfStage.front())];
    }
    std::int32_t forward(StageIndex stage, MicrobatchIndex microbatch) const { return m_first(stage, microbatch); }
    std::int32_t recompute(StageIndex stage, MicrobatchIndex microbatch) const ///< -1: the stage recomputes nothing
    {
        return m_recomputes[stage] != 0 ? forward(stage, microbatch) + 1 : -1;
    }
    std::int32_t backward(StageIndex stage, MicrobatchIndex microbatch) const ///< I or B
    {
        return forward(stage, microbatch) + 1 + m_recomputes[stage];
    }
    std::int32_t weightGrad(StageIndex stage, MicrobatchIndex microbatch) const;       ///< -1: a full backward
    std::int32_t taskOf(int kind, StageIndex stage, MicrobatchIndex microbatch) const; ///< -1: none
    std::int32_t taskOf(const Block& block) const;                                     ///< -1: none
    bool recomputes() const;                                                           ///< does any stage?
    std::int32_t
    consumerOf(std::int32_t task) const; ///< the task of the neighbouring stage that takes its value; -1: none
    std::span<const ExtraInput> extrasOf(std::int32_t task) const;

    /// Bytes that a microbatch keeps in a stage from the end of one of its blocks to the start of the next.
    struct Kept {
        Bytes afterForward = 0, beforeBackward = 0; ///< equal where nothing is recomputed
        Bytes afterBackward = 0;                    ///< until W; 0 after a full backward

        Bytes untilBackward() const { return std::min(afterForward, beforeBackward); } ///< at least, from F on
    };
    Kept kept(StageIndex stage, MicrobatchIndex microbatch) const;

    /// The lanes of a schedule with the same placement; a full backward maps to both halves and vice versa, and a
    /// recompute that the schedule lacks is put right before its backward. Nothing when other blocks are missing.
    std::optional<Lanes> lanesOf(const Schedule& schedule) const;
    Schedule scheduleOf(const Lanes& lanes, const Schedule& like) const;

private:
    void addTasks(const Design& design, Patience& patience);
    void addInputs(const Design& design, Patience& patience);
    void addMemory(const Design& design, const MemoryLimit& limit, Patience& patience);
    void lock(const Schedule& schedule, std::span<const Block> locked);

    ByStageAndMicrobatch<std::int32_t> m_first;
    ByStage<std::uint8_t> m_recomputes; ///< 1: every microbatch has an R there
};

/// Start times of lanes when every task runs as early as possible.
class LaneTimes {
public:
    explicit LaneTimes(const SearchModel& model);
    /// False when the lanes deadlock. O(tasks); allocates nothing after the first call.
    bool run(const Lanes& lanes);
    const std::vector<Nanoseconds>& starts() const { return m_start; }
    const std::vector<std::int32_t>& sequence() const { return m_sequence; } ///< of the last run, in topological order
    Nanoseconds value(const Lanes& lanes, SearchObjective objective, Nanoseconds* sum = nullptr) const;
    std::int64_t work() const { return m_work; } ///< tasks timed so far

private:
    const SearchModel& m_model;
    std::vector<Nanoseconds> m_start, m_end;
    std::vector<std::uint8_t> m_done;
    std::vector<std::uint32_t> m_next;
    std::vector<std::int32_t> m_waiter, m_nextWaiter, m_runnable, m_sequence;
    std::int64_t m_work = 0;
    std::vector<Nanoseconds> m_free;
};

/// Peak bytes of a lane's tasks, without persistent ones. O(lane).
Bytes lanePeak(const SearchModel& model, const std::vector<std::int32_t>& lane);
/// True when every lane fits its capacity and respects local inputs and locks.
bool lanesAllowed(const SearchModel& model, const Lanes& lanes);

} // namespace pipewright
