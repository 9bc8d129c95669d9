// SPDX-License-Identifier: GPL-3.0-or-later
// Runs one device: walks its instruction list, in order, once per step. Sends and receives are only posted, unless the
// Program's transfers block; computing waits for the values it reads, and a Free for the send that still reads the
// buffer. Actors interact only through links, sums and barriers; the watching thread can read an actor's status at any
// time.
#pragma once

#include "executor/runtime/barrier.h"
#include "executor/runtime/bus.h"
#include "executor/runtime/collectivespans.h"
#include "executor/runtime/memorymeter.h"
#include "executor/runtime/plan.h"
#include "executor/runtime/recorder.h"
#include "executor/runtime/virtualclock.h"

#include <atomic>
#include <exception>
#include <functional>

namespace pipewright {

/// A deliberate failure, for tests and for seeing how a schedule reacts to it.
struct Fault {
    enum class Kind {
        Dies,        ///< the device stops permanently before `instruction`
        Stalls,      ///< it hangs there, still alive
        Slows,       ///< every instruction from there on takes `delay` longer
        Throws,      ///< the maths fails there
        OutOfMemory, ///< an allocation fails there
        LinkStalls,  ///< nothing that the device sends from there on arrives
        Killed,      ///< the whole process is killed there, as a crash or another program would
    };
    Kind kind = Kind::Dies;
    int device = 0;
    int step = 0;
    std::uint32_t instruction = 0;
    Nanoseconds delay = 0;
};

struct RuntimeOptions {
    int eagerSlots = 0;                      ///< 0: rendezvous; k: a directed pair of devices buffers up to k sends
    Nanoseconds deadline = 30'000'000'000;   ///< a run without any progress for this long is given up
    Nanoseconds watchInterval = 20'000'000;  ///< how often the watching thread checks for progress
    bool checkMemory = false;                ///< refuse overlapping buffers, overwrite released ones
    bool virtualClock = false;               ///< keep logical time instead of measuring; needs `durations`
    Bytes deviceMemory = 0;                  ///< limit of a device's memory; 0: all that it has
    bool captureBlocks = false;              ///< where supported: a block is captured once and issued as a whole
    bool emulateLinks = false;               ///< a transfer takes at least its duration; needs `durations`
    std::vector<Nanoseconds> durations = {}; ///< per task
    /// Per task, where the Program has buses and links are emulated or the clock is virtual (busUses() of timedwork.h).
    std::vector<BusUse> busUses = {};
    /// Per task: how much later it begins than it could (hostGaps()). Includes the gaps of a real host.
    std::vector<Nanoseconds> hostGaps = {};
    std::vector<Fault> faults = {};
    const std::atomic<bool>* cancel = nullptr; ///< the step ends soon after it becomes true
    /// Ends the process, given the reason, when a step is over (cancelled, or without progress for the deadline) and a
    /// device's block does not return within `patience`. Without it the runtime waits for the block.
    std::function<void(const Diagnostics&)> abandon = nullptr;
    Nanoseconds patience = 2'000'000'000;
};

/// What an actor is doing.
struct ActorStatus {
    enum class State : std::uint8_t {
        Idle,
        Running,
        WaitsForArrival,
        WaitsForSend,
        WaitsForMembers,
        Stalled,
        Dead,
        Failed,
        Done
    };
    State state = State::Idle;
    std::uint32_t instruction = 0;
    int transfer = -1; ///< for which it waits
    /// The awaited event has happened, so the actor is about to continue.
    bool ready = false;
};

/// What the actors of a run share. Written while no actor runs, except where noted.
struct RunState {
    const Program* program = nullptr;
    Plan plan;
    std::vector<Region> regions;
    std::vector<std::unique_ptr<Link>> links;
    std::vector<std::unique_ptr<PairSum>> sums;        ///< per pair of the plan; null: sent over links
    std::vector<HostStore*> hostStores;                ///< per device; null: nothing of it is offloaded
    std::vector<std::unique_ptr<Event>> arrived, sent; ///< per transfer
    std::vector<std::unique_ptr<Bus>> buses;
    std::unique_ptr<SumTurns> sumTurns;             ///< of sums on buses; null where the backend's links have no buses
    std::vector<std::unique_ptr<Barrier>> barriers; ///< per group, where devices are members of groups
    CollectiveSpans collectiveSpans;                ///< of members on asynchronous devices
    StageWork* work = nullptr;
    Recorder* recorder = nullptr; ///< may be null
    RuntimeOptions options;
    int step = 0;
    Nanoseconds stepStart = 0;
    bool linksFinishLater = false; ///< copies are reported after they arrived, see Link::finished
    std::atomic<bool> stopped{false};

    VirtualClock virtualClock;
};

class Actor {
public:
    /// `captureBlocks`: repeating blocks are captured once and issued as a whole from then on.
    Actor(RunState& run, int device, Device& hardware, bool checkMemory, bool captureBlocks);

    /// Called before the actors of a step start, so that an actor that has not begun does not count as done.
    void prepareStep()
    {
        m_slowed = false;
        setState(State::Idle);
    }
    /// One step, on the calling thread. Returns early when stopped or when a fault is injected. An exception
    /// of the maths or of a memory check is kept in failure().
    void runStep();

    int device() const { return m_device; }
    ActorStatus status() const;
    std::uint64_t progress() const { return m_progress.load(std::memory_order_seq_cst); }
    std::exception_ptr failure() const { return m_failure; }
    Stream& stream() { return *m_stream; }
    MemoryMeter& meter() { return m_meter; }
    const MemoryMeter& hostMeter() const { return m_hostMeter; }
    /// Virtual clock: when this device's last task ended.
    Nanoseconds clock() const { return m_clock; }
    void setClock(Nanoseconds time) { m_clock = time; }

private:
    using State = ActorStatus::State;

    bool walk();
    bool settle();
    void recordSettled();
    void issue(const PlannedInstruction& instruction, const TaskContext& context);
    std::size_t mark();
    std::size_t markStart();
    bool marks() const;
    void noteStepTime(Nanoseconds time);
    bool execute(const PlannedInstruction& instruction);
    bool compute(const PlannedInstruction& instruction);
    bool reduce(const PlannedInstruction& instruction);
    bool waitForArrivals(const PlannedInstruction& instruction);
    TaskContext contextOf(const PlannedInstruction& instruction) const;
    bool collective(const PlannedInstruction& instruction);
    void recordCollective(TaskId task, Nanoseconds start, Nanoseconds end);
    Barrier& barrierOfGroup() const;
    PairSum* sumOf(int sum) const;
    void postSum(int sum);
    void recordSums();
    bool send(int transfer);
    bool receive(int transfer);
    void copyToHost(int transfer);
    void copyFromHost(int transfer);
    Nanoseconds startOfCopy(int transfer, Nanoseconds& wireFree);
    void recordHostCopies();
    MemoryMeter& meterOf(BufferId buffer);
    void stampSend(std::size_t transfer);
    Nanoseconds waitForBus(TaskId transfer) const;
    bool waitForTurn(TaskId sum);
    Nanoseconds meetingStart(std::size_t transfer) const;
    Posting posting(const PlannedTransfer& what, bool isTask, std::span<const Region> regions, Event* done) const;
    bool finishBlocking(State side, int transfer);
    bool waitFor(State state, int transfer);
    bool isTransferTask(int transfer) const;
    bool waitForPin(Nanoseconds earliestStart);
    Nanoseconds hostGap(TaskId task) const;
    bool letHostWait(TaskId task, bool hasWaited);
    bool injectFault(std::uint32_t index);
    bool pause(Nanoseconds duration);

    void acquire(const PlannedInstruction& instruction);
    void releaseTransient(const PlannedInstruction& instruction);
    void recordMemory();
    void recordTask(TaskId task, Nanoseconds start, Nanoseconds end);
    void recordLater(TaskId task, std::size_t start);
    void recordCopy(int transfer, const Copied& copied);
    void recordFinished(int link);
    void setState(State state) { m_state.store(state, std::memory_order_seq_cst); }
    void makeProgress() { m_progress.fetch_add(1, std::memory_order_seq_cst); }
    Nanoseconds now() const;

    RunState& m_run;
    const int m_device;
    const DevicePlan* m_plan = nullptr;
    std::unique_ptr<Stream> m_stream;
    std::unique_ptr<kernels::Operations> m_operations;
    MemoryMeter m_meter;
    MemoryMeter m_hostMeter; ///< of its buffers in the host's memory
    bool m_hasFaults = false;
    bool m_linksStalled = false; ///< a fault: sends have no effect
    Nanoseconds m_clock = 0;
    Nanoseconds m_lastEnd = 0;               ///< real clock: of the last block
    Nanoseconds m_pairStart = 0;             ///< of the current overlapped pair
    bool m_slowed = false;                   ///< virtual clock: by an injected fault, in this step
    Nanoseconds m_outFree = 0, m_inFree = 0; ///< virtual clock: when the last copy to, and from, the host's memory ends
    std::exception_ptr m_failure;
    std::vector<Copied> m_finished;

    // An asynchronous device: its times are known only at the end of the step.
    struct LaterTask {
        TaskId task = none;
        std::uint32_t instruction = 0;
        std::size_t start = 0, end = 0; ///< stopwatch marks
    };
    struct LaterMemory {
        std::size_t place = 0;
        Bytes bytes = 0;
    };
    std::unique_ptr<Stopwatch> m_stopwatch;
    std::unique_ptr<BlockMarks> m_marks;
    bool m_capture = false;
    bool m_isLong = true;     ///< the last step took so long that its progress must be seen; until there was one, too
    std::size_t m_places = 0; ///< marked in this step
    std::vector<LaterTask> m_laterTasks;
    std::vector<LaterMemory> m_laterMemory;
    std::vector<std::string> m_labels; ///< per instruction, for m_marks

    alignas(64) std::atomic<std::uint64_t> m_progress{0};
    std::atomic<State> m_state{State::Idle};
    std::atomic<std::uint32_t> m_instruction{0};
    /// The transfers for which it last waited, to arrive and to be sent. One number for both could be the other side's
    /// when somebody reads it, and another process has that side's event.
    std::atomic<int> m_arriving{-1}, m_sending{-1};
    std::atomic<std::uint64_t> m_barrierRound{0}; ///< the round of its group's barrier for which it last waited
};

} // namespace pipewright
