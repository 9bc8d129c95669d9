// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/actor.h"

#include "core/base/diagnostic.h"
#include "executor/clock.h"

#include <algorithm>
#include <csignal>
#include <new>
#include <thread>

namespace pipewright {

Actor::Actor(RunState& run, int device, std::unique_ptr<Stream> stream, bool checkMemory)
    : m_run(run)
    , m_device(device)
    , m_plan(&run.plan.devices[static_cast<std::size_t>(device)])
    , m_stream(std::move(stream))
    , m_meter(device, checkMemory, m_plan->mostLive)
    , m_hasFaults(std::any_of(run.faults.begin(), run.faults.end(),
                              [&](const Fault& fault) { return fault.device == device; }))
{
}

void Actor::runStep()
{
    try {
        recordMemory();
        for (std::uint32_t i = 0; i < m_plan->instructions.size(); ++i) {
            m_instruction.store(i, std::memory_order_relaxed);
            setState(State::Running);
            makeProgress();
            if (m_run.stopped.load(std::memory_order_relaxed) || (m_hasFaults && !strike(i)))
                return;
            if (!execute(m_plan->instructions[i]))
                return;
        }
        m_meter.expectOnlyPersistent();
        m_instruction.store(static_cast<std::uint32_t>(m_plan->instructions.size()), std::memory_order_relaxed);
        setState(State::Done);
    } catch (...) {
        m_failure = std::current_exception();
        setState(State::Failed);
    }
    makeProgress();
}

bool Actor::execute(const PlannedInstruction& instruction)
{
    switch (instruction.kind) {
    case InstructionKind::Compute:
    case InstructionKind::Update:
        return compute(instruction);
    case InstructionKind::Reduce:
        return reduce(instruction);
    case InstructionKind::Send:
        return send(instruction.send);
    case InstructionKind::Receive:
        acquire(instruction);
        return receive(instruction.receive);
    case InstructionKind::Free:
        if (instruction.send >= 0 && !waitFor(State::WaitsForSend, instruction.send))
            return false;
        for (std::uint32_t i = instruction.arrivals.begin; i < instruction.arrivals.end; ++i) {
            if (!waitFor(State::WaitsForArrival, static_cast<int>(m_plan->arrivals[i])))
                return false;
        }
        if (instruction.freed != none) {
            m_meter.release(instruction.freed, m_run.regions[instruction.freed]);
            recordMemory();
        }
        return true;
    }
    return true;
}

bool Actor::compute(const PlannedInstruction& instruction)
{
    for (std::uint32_t i = instruction.arrivals.begin; i < instruction.arrivals.end; ++i) {
        if (!waitFor(State::WaitsForArrival, static_cast<int>(m_plan->arrivals[i])))
            return false;
    }
    if (instruction.earliestStart > 0 && !waitForPin(instruction.earliestStart))
        return false;

    const std::span views(m_plan->views);
    const auto slice = [&](PlannedInstruction::Range range) { return views.subspan(range.begin, range.end - range.begin); };
    const TaskContext context{instruction.task, &m_run.program->tasks[instruction.task], m_run.step,
                              slice(instruction.reads), slice(instruction.writes), m_stream.get(), &m_run.stopped};
    Nanoseconds start = 0;
    if (m_run.virtualClock) {
        for (std::uint32_t i = instruction.arrivals.begin; i < instruction.arrivals.end; ++i)
            m_clock = std::max(m_clock, m_run.exchangeEnd[m_plan->arrivals[i]]);
        // Both blocks of a pair start and end together.
        if (instruction.pair != PlannedInstruction::Pair::Second)
            m_pairStart = m_clock;
        start = m_pairStart;
    }
    acquire(instruction);
    if (!m_run.virtualClock)
        start = now();
    if (instruction.kind == InstructionKind::Update)
        m_run.work->update(context);
    else
        m_run.work->compute(context);
    Nanoseconds end = 0;
    if (m_run.virtualClock) {
        end = start + m_run.durations[instruction.task];
        for (const BufferView& view : context.writes)
            m_run.bufferReady[view.id] = end;
        if (instruction.pair != PlannedInstruction::Pair::First)
            m_clock = std::max(m_clock, end);
    } else {
        end = now();
    }
    // A task cut short by a stop did not run: it must not look as if it had.
    if (m_run.stopped.load(std::memory_order_relaxed))
        return false;
    recordTask(instruction.task, start, end);
    releaseTransient(instruction);
    return true;
}

bool Actor::reduce(const PlannedInstruction& instruction)
{
    const auto& [root, other] = m_run.plan.reductions.at(instruction.task);
    const Task& task = m_run.program->tasks[instruction.task];
    const std::span views(m_plan->views);
    const TaskContext context{instruction.task, &task, m_run.step,
                              views.subspan(instruction.reads.begin, instruction.reads.end - instruction.reads.begin),
                              views.subspan(instruction.writes.begin, instruction.writes.end - instruction.writes.begin),
                              m_stream.get(), &m_run.stopped};
    acquire(instruction);
    Nanoseconds start = now();
    if (instruction.send < 0) {
        m_run.work->reduce(context, root.region, other.region, true);
    } else {
        const Exchange& incoming = m_run.plan.exchanges[static_cast<std::size_t>(instruction.receive)];
        if (m_run.virtualClock) // the other owner reads when this side was ready
            m_run.exchangeStart[static_cast<std::size_t>(instruction.send)] = m_clock;
        // The own sum may change only when the other owner has read it.
        if (!receive(instruction.receive) || !send(instruction.send)
            || !waitFor(State::WaitsForArrival, instruction.receive) || !waitFor(State::WaitsForSend, instruction.send))
            return false;
        if (m_run.virtualClock) {
            m_clock = std::max(m_clock, m_run.exchangeStart[static_cast<std::size_t>(instruction.receive)]);
            start = m_clock;
        }
        const bool isRoot = task.device == m_device;
        m_run.work->reduce(context, isRoot ? root.region : other.region, incoming.destination.front(), false);
    }
    if (m_run.virtualClock)
        m_clock = start + m_run.durations[instruction.task];
    if (m_run.stopped.load(std::memory_order_relaxed))
        return false;
    if (task.device == m_device)
        recordTask(instruction.task, start, now());
    releaseTransient(instruction);
    return true;
}

bool Actor::waitForPin(Nanoseconds earliestStart)
{
    const Nanoseconds time = m_run.stepStart + earliestStart;
    if (m_run.virtualClock) {
        m_clock = std::max(m_clock, time);
        return true;
    }
    return pause(time - steadyNow());
}

/// False when the device is not to go on.
bool Actor::strike(std::uint32_t index)
{
    for (const Fault& fault : m_run.faults) {
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
            if (!pause(fault.delay))
                return false;
            break;
        case Fault::Kind::Throws: throw Error("device " + std::to_string(m_device), "an injected fault made its maths fail");
        case Fault::Kind::OutOfMemory: throw std::bad_alloc();
        case Fault::Kind::LinkStalls: m_linksStalled = true; break;
        case Fault::Kind::Killed: std::raise(SIGKILL); break;
        }
    }
    return true;
}

/// False when the run was stopped meanwhile.
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

void Actor::acquire(const PlannedInstruction& instruction)
{
    if (instruction.acquired.begin == instruction.acquired.end)
        return;
    for (std::uint32_t i = instruction.acquired.begin; i < instruction.acquired.end; ++i) {
        const BufferId buffer = m_plan->lifetimes[i].buffer;
        m_meter.acquire(buffer, m_run.regions[buffer]);
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
    if (m_run.recorder)
        m_run.recorder->record(m_device, MemoryRecord{m_device, m_run.step, now(), m_meter.live()});
}

void Actor::recordTask(TaskId task, Nanoseconds start, Nanoseconds end)
{
    if (m_run.recorder)
        m_run.recorder->record(m_device, TaskRecord{task, m_run.step, m_device, start, end});
}

Nanoseconds Actor::now() const
{
    return m_run.virtualClock ? m_clock : steadyNow();
}

ActorStatus Actor::status() const
{
    ActorStatus status;
    status.state = m_state.load(std::memory_order_seq_cst);
    status.instruction = m_instruction.load(std::memory_order_relaxed);
    if (status.state == State::WaitsForArrival || status.state == State::WaitsForSend) {
        status.exchange = m_exchange.load(std::memory_order_relaxed);
        const auto& events = status.state == State::WaitsForArrival ? m_run.arrived : m_run.sent;
        status.ready = events[static_cast<std::size_t>(status.exchange)]->complete();
    } else if (status.state == State::WaitsForLink) {
        status.exchange = m_exchange.load(std::memory_order_relaxed);
        status.ready = m_run.leftLink[static_cast<std::size_t>(status.exchange)].load(std::memory_order_acquire);
    }
    return status;
}

} // namespace pipewright
