// SPDX-License-Identifier: GPL-3.0-or-later
// One step is one walk over the device's instructions. The addresses of buffers and the transfers that fill them are
// planned beforehand (plan.h). The walk waits for events of links, for barriers of groups and for pins; stopping the
// run ends all these waits. On a device that runs work asynchronously the walk only issues it (actormarks.cpp).
// O(instructions of the device) per step, without an allocation.
#include "executor/runtime/actor.h"

#include "core/base/diagnostic.h"
#include "executor/runtime/collectives.h"
#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <new>
#include <thread>

namespace pipewright {

Actor::Actor(RunState& run, int device, Device& hardware, bool checkMemory, bool captureBlocks)
    : m_run(run), m_device(device), m_plan(&run.plan.devices[device]), m_stream(hardware.createStream()),
      m_operations(hardware.createOperations(*m_stream)), m_meter(device, checkMemory, m_plan->mostLive),
      m_hostMeter(device, checkMemory, m_plan->mostLive),
      m_hasFaults(std::any_of(run.options.faults.begin(), run.options.faults.end(),
                              [&](const Fault& fault) { return fault.device == device; }))
{
    const std::size_t instructions = m_plan->instructions.size();
    m_stopwatch = hardware.createStopwatch(*m_stream, 2 * instructions + 1);
    m_marks = hardware.createBlockMarks(*m_stream, captureBlocks);
    m_capture = m_marks && captureBlocks;
    if (m_stopwatch) {
        m_laterTasks.reserve(instructions);
        m_laterMemory.reserve(2 * instructions + 1);
    }
    for (std::size_t i = 0; m_marks && i < instructions; ++i)
        m_labels.push_back(m_plan->instructions[i].task == none
                               ? std::string()
                               : "PP:" + run.program->label(m_plan->instructions[i].task));
}

void Actor::runStep()
{
    try {
        m_places = 0;
        m_laterTasks.clear();
        m_laterMemory.clear();
        const Nanoseconds start = steadyNow();
        if (marks())
            mark();
        recordMemory();
        if (!walk() || !settle())
            return;
        noteStepTime(steadyNow() - start);
        m_meter.expectOnlyPersistent();
        m_hostMeter.expectOnlyPersistent();
        m_instruction.store(static_cast<std::uint32_t>(m_plan->instructions.size()), std::memory_order_relaxed);
        setState(State::Done);
    } catch (...) {
        m_failure = std::current_exception();
        setState(State::Failed);
    }
    makeProgress();
}

/// Returns false when the device must not continue.
bool Actor::walk()
{
    for (std::uint32_t i = 0; i < m_plan->instructions.size(); ++i) {
        m_instruction.store(i, std::memory_order_relaxed);
        setState(State::Running);
        makeProgress();
        if (m_run.stopped.load(std::memory_order_relaxed) || (m_hasFaults && !injectFault(i)))
            return false;
        const PlannedInstruction& instruction = m_plan->instructions[i];
        if (!execute(instruction))
            return false;
        for (std::uint32_t post = instruction.posts.begin; post < instruction.posts.end; ++post)
            postSum(static_cast<int>(m_plan->posts[post]));
    }
    return true;
}

/// Runs the block's maths on the calling thread, or issues it on the device's stream.
void Actor::issue(const PlannedInstruction& instruction, const TaskContext& context)
{
    const bool update = instruction.kind == InstructionKind::Update;
    if (!m_marks)
        return update ? m_run.work->update(context) : m_run.work->compute(context);
    m_marks->begin(instruction.task, m_labels[m_instruction.load(std::memory_order_relaxed)].c_str());
    if (update)
        m_run.work->update(context);
    else if (!m_capture || !m_run.work->repeats(*context.task) || !m_marks->replay(instruction.task, nullptr))
        m_run.work->compute(context);
    m_marks->end(nullptr);
}

bool Actor::execute(const PlannedInstruction& instruction)
{
    switch (instruction.kind) {
    case InstructionKind::Compute:
    case InstructionKind::Update: return compute(instruction);
    case InstructionKind::Reduce: return reduce(instruction);
    case InstructionKind::Collective: return collective(instruction);
    case InstructionKind::Send: return send(instruction.send);
    case InstructionKind::Receive: acquire(instruction); return receive(instruction.receive);
    case InstructionKind::Offload:
        acquire(instruction);
        copyToHost(instruction.send);
        return true;
    case InstructionKind::Reload:
        acquire(instruction);
        copyFromHost(instruction.receive);
        return true;
    case InstructionKind::Gather:
    case InstructionKind::ReduceGradients: break; // the plan refuses them
    case InstructionKind::Free:
        if (instruction.send >= 0 && !waitFor(State::WaitsForSend, instruction.send))
            return false;
        for (std::uint32_t i = instruction.arrivals.begin; i < instruction.arrivals.end; ++i) {
            if (!waitFor(State::WaitsForArrival, static_cast<int>(m_plan->arrivals[i])))
                return false;
        }
        if (instruction.freed != none) {
            Region place = m_run.regions[instruction.freed];
            if (m_run.program->buffers.kind(instruction.freed) == BufferKind::KeptGradients)
                place.data = nullptr; // until the next step its values may be looked at
            meterOf(instruction.freed).release(instruction.freed, place);
            recordMemory();
        }
        return true;
    }
    return true;
}

TaskContext Actor::contextOf(const PlannedInstruction& instruction) const
{
    const auto views = [&](PlannedInstruction::Range range) {
        return std::span(m_plan->views).subspan(range.begin, range.end - range.begin);
    };
    return {instruction.task,
            &m_run.program->tasks[instruction.task],
            m_run.step,
            views(instruction.reads),
            views(instruction.writes),
            m_stream.get(),
            &m_run.stopped,
            m_operations.get(),
            m_device};
}

bool Actor::compute(const PlannedInstruction& instruction)
{
    const bool waits = hostGap(instruction.task) > 0
                       && std::any_of(m_plan->arrivals.begin() + instruction.arrivals.begin,
                                      m_plan->arrivals.begin() + instruction.arrivals.end,
                                      [this](std::uint32_t transfer) { return !m_run.arrived[transfer]->complete(); });
    if (!waitForArrivals(instruction))
        return false;
    if (instruction.earliestStart > 0 && !waitForPin(instruction.earliestStart))
        return false;

    const TaskContext context = contextOf(instruction);
    if (!letHostWait(instruction.task, waits))
        return false;
    Nanoseconds start = 0;
    const std::size_t startPlace = markStart();
    if (m_run.options.virtualClock) {
        // Both blocks of a pair start and end together.
        if (instruction.pair != PlannedInstruction::Pair::Second)
            m_pairStart = m_clock + hostGap(instruction.task);
        start = m_pairStart;
    }
    acquire(instruction);
    const bool endedWithFirst =
        instruction.pair == PlannedInstruction::Pair::Second && m_run.work->endsWithFirst(instruction.task);
    if (!m_run.options.virtualClock) {
        start = endedWithFirst ? m_pairStart : now();
        if (instruction.pair == PlannedInstruction::Pair::First)
            m_pairStart = start;
    }
    issue(instruction, context);
    Nanoseconds end = 0;
    if (m_run.options.virtualClock) {
        end = start + m_run.options.durations[instruction.task];
        for (const BufferView& view : context.writes)
            m_run.virtualClock.bufferReady[view.id] = end;
        if (instruction.pair != PlannedInstruction::Pair::First)
            m_clock = std::max(m_clock, end);
    } else {
        m_lastEnd = end = endedWithFirst ? m_lastEnd : now();
    }
    // A task cut short by a stop is not recorded.
    if (m_run.stopped.load(std::memory_order_relaxed))
        return false;
    if (m_stopwatch)
        recordLater(instruction.task, startPlace);
    else
        recordTask(instruction.task, start, end);
    releaseTransient(instruction);
    return true;
}

/// With a PairSum of the backend the inbox stays unused: the sum is made in place and may be complete already.
bool Actor::reduce(const PlannedInstruction& instruction)
{
    const auto& [root, other] = m_run.plan.reductions.at(instruction.task);
    const Task& task = m_run.program->tasks[instruction.task];
    const TaskContext context = contextOf(instruction);
    if (!waitForArrivals(instruction))
        return false;
    acquire(instruction);
    if (sumOf(instruction.sum)) {
        if (instruction.postsSum)
            postSum(instruction.sum);
        if (!waitFor(State::WaitsForArrival, instruction.receive))
            return false;
        releaseTransient(instruction);
        return true;
    }
    Nanoseconds start = now();
    const std::size_t startPlace = markStart();
    if (instruction.send < 0) {
        m_run.work->reduce(context, root.region, other.region, true);
    } else {
        const PlannedTransfer& incoming = m_run.plan.transfers[instruction.receive];
        if (m_run.options.virtualClock) // the other owner reads it: when this side was ready
            m_run.virtualClock.transferStart[instruction.send] = m_clock;
        // This device's sum may change only after the other owner has read it.
        if (!receive(instruction.receive) || !send(instruction.send)
            || !waitFor(State::WaitsForArrival, instruction.receive) || !waitFor(State::WaitsForSend, instruction.send))
            return false;
        if (m_run.options.virtualClock) {
            m_clock =
                std::max(m_clock, m_run.virtualClock.transferStart[instruction.receive]) + waitForBus(instruction.task);
            start = m_clock;
        } else if (m_run.sumTurns) {
            if (!waitForTurn(instruction.task))
                return false;
            start = now();
        }
        const bool isRoot = task.device == m_device;
        m_run.work->reduce(context, isRoot ? root.region : other.region, incoming.destination.front(), false);
    }
    if (m_run.options.virtualClock) {
        m_clock = start + m_run.options.durations[instruction.task];
        for (const BufferView& view : context.writes)
            m_run.virtualClock.bufferReady[view.id] = m_clock;
        for (const BufferView* const sum : {&root, &other}) // the sum may be sent on
            if (sum->description.device == m_device)
                m_run.virtualClock.bufferReady[sum->id] = m_clock;
    }
    if (m_run.stopped.load(std::memory_order_relaxed))
        return false;
    if (m_stopwatch)
        recordLater(task.device == m_device ? instruction.task : none, startPlace);
    else if (task.device == m_device)
        recordTask(instruction.task, start, now());
    releaseTransient(instruction);
    return true;
}

/// Null: there is none, or the two devices exchange their values over links and each adds them up.
PairSum* Actor::sumOf(int sum) const
{
    return sum < 0 || m_run.sums.empty() ? nullptr : m_run.sums[m_run.plan.sums[sum].pair].get();
}

/// Called when this device's values are complete.
void Actor::postSum(int sum)
{
    PairSum* pair = sumOf(sum);
    if (!pair || m_linksStalled)
        return;
    const PlannedSum& what = m_run.plan.sums[sum];
    const auto fromRoot = static_cast<std::size_t>(what.transfer), fromOther = fromRoot + 1;
    const bool isRoot = m_run.program->tasks[what.task].device == m_device;
    // The sum replaces the values that this device would have sent, so their region is both input and result.
    Posting posting{what.task, m_run.plan.transfers[isRoot ? fromRoot : fromOther].source,
                    m_run.arrived[isRoot ? fromOther : fromRoot].get()};
    posting.timed = m_run.recorder != nullptr;
    pair->post(what.index, m_device, *m_stream, posting);
}

/// The first device of each pair records its sums.
void Actor::recordSums()
{
    m_finished.clear();
    for (std::size_t pair = 0; pair < m_run.sums.size(); ++pair)
        if (m_run.sums[pair] && m_run.plan.sumPairs[pair].first == m_device)
            m_run.sums[pair]->finished(m_finished);
    for (const Copied& sum : m_finished)
        m_run.recorder->record(
            m_device, TaskRecord{sum.task, m_run.step, m_run.program->tasks[sum.task].device, sum.start, sum.end});
}

bool Actor::waitForPin(Nanoseconds earliestStart)
{
    const Nanoseconds time = m_run.stepStart + earliestStart;
    if (m_run.options.virtualClock) {
        m_clock = std::max(m_clock, time);
        return true;
    }
    return pause(time - steadyNow());
}

Nanoseconds Actor::hostGap(TaskId task) const
{
    return m_run.options.hostGaps.empty() ? 0 : m_run.options.hostGaps[task];
}

/// Spends the host gap before a task of modelled work, counted from when the device became free or, if the task waited
/// for a value, from its arrival. Returns false when stopped.
bool Actor::letHostWait(TaskId task, bool hasWaited)
{
    const Nanoseconds gap = m_run.options.virtualClock ? 0 : hostGap(task);
    if (gap == 0 || m_stream->spend(gap))
        return true;
    const Nanoseconds now = steadyNow();
    return pause((hasWaited ? now : std::max(m_lastEnd, m_run.stepStart)) + gap - now);
}

/// Returns false when the device must not continue.
bool Actor::injectFault(std::uint32_t index)
{
    for (const Fault& fault : m_run.options.faults) {
        if (fault.device != m_device || fault.step != m_run.step || index < fault.instruction)
            continue;
        switch (fault.kind) {
        case Fault::Kind::Dies:
            setState(State::Dead);
            makeProgress();
            return false;
        case Fault::Kind::Stalls:
            setState(State::Stalled);
            while (pause(1'000'000'000)) {
            }
            return false;
        case Fault::Kind::Slows:
            if (m_run.options.virtualClock) {
                m_clock += fault.delay;
                m_slowed = true;
            } else if (!pause(fault.delay)) {
                return false;
            }
            break;
        case Fault::Kind::Throws:
            throw Error("device " + std::to_string(m_device), "an injected fault made its maths fail");
        case Fault::Kind::OutOfMemory: throw std::bad_alloc();
        case Fault::Kind::LinkStalls: m_linksStalled = true; break;
        case Fault::Kind::Killed: std::raise(SIGKILL); break;
        }
    }
    return true;
}

/// Returns false when the run was stopped meanwhile.
bool Actor::pause(Nanoseconds duration)
{
    constexpr Nanoseconds slice = 5'000'000;
    const Nanoseconds until = steadyNow() + duration;
    for (Nanoseconds left = duration; left > 0; left = until - steadyNow()) {
        if (m_run.stopped.load(std::memory_order_acquire))
            return false;
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left, slice)));
    }
    return !m_run.stopped.load(std::memory_order_acquire);
}

MemoryMeter& Actor::meterOf(BufferId buffer)
{
    return isInHostMemory(m_run.program->buffers[buffer].kind) ? m_hostMeter : m_meter;
}

void Actor::acquire(const PlannedInstruction& instruction)
{
    if (instruction.acquired.begin == instruction.acquired.end)
        return;
    for (std::uint32_t i = instruction.acquired.begin; i < instruction.acquired.end; ++i) {
        const BufferId buffer = m_plan->lifetimes[i].buffer;
        meterOf(buffer).acquire(buffer, m_run.regions[buffer]);
    }
    recordMemory();
}

void Actor::releaseTransient(const PlannedInstruction& instruction)
{
    bool released = false;
    for (std::uint32_t i = instruction.acquired.begin; i < instruction.acquired.end; ++i) {
        if (!m_plan->lifetimes[i].transient())
            continue;
        const BufferId buffer = m_plan->lifetimes[i].buffer;
        m_meter.release(buffer, m_run.regions[buffer]);
        released = true;
    }
    if (released)
        recordMemory();
}

void Actor::recordMemory()
{
    if (!m_run.recorder)
        return;
    if (m_stopwatch)
        m_laterMemory.push_back({m_places - 1, m_meter.live()});
    else
        m_run.recorder->record(m_device, MemoryRecord{m_device, m_run.step, now(), m_meter.live()});
}

void Actor::recordTask(TaskId task, Nanoseconds start, Nanoseconds end)
{
    if (m_run.recorder)
        m_run.recorder->record(m_device, TaskRecord{task, m_run.step, m_device, start, end});
}

Nanoseconds Actor::now() const
{
    return m_run.options.virtualClock ? m_clock : steadyNow();
}

ActorStatus Actor::status() const
{
    ActorStatus status;
    status.state = m_state.load(std::memory_order_seq_cst);
    status.instruction = m_instruction.load(std::memory_order_relaxed);
    if (status.state == State::WaitsForArrival || status.state == State::WaitsForSend) {
        const bool arrives = status.state == State::WaitsForArrival;
        status.transfer = (arrives ? m_arriving : m_sending).load(std::memory_order_relaxed);
        const auto& events = arrives ? m_run.arrived : m_run.sent;
        // A copy to or from the host's memory needs no other device to end.
        status.ready = m_run.plan.transfers[status.transfer].link < 0 || events[status.transfer]->complete();
    } else if (status.state == State::WaitsForMembers) {
        status.ready = barrierOfGroup().rounds() != m_barrierRound.load(std::memory_order_relaxed);
    }
    return status;
}

} // namespace pipewright
