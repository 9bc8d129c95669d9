// SPDX-License-Identifier: GPL-3.0-or-later
// Links, events and memory are made once. A step wakes one thread per device; the calling thread watches them
// (deadline.cpp).
#include "executor/runtime/runtime.h"

#include "executor/runtime/collectives.h"
#include "executor/runtime/corewait.h"
#include "executor/runtime/devicethreads.h"
#include "executor/runtime/steadyclock.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <system_error>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace pipewright {

Runtime::Runtime(const Program& program, Backend& backend, StageWork& work, Recorder* recorder, RuntimeOptions options)
    : m_backend(backend), m_peers(backend.peers())
{
    m_run.program = &program;
    m_run.work = &work;
    m_run.recorder = recorder;
    m_run.options = std::move(options);
    if ((m_run.options.virtualClock || m_run.options.emulateLinks)
        && m_run.options.durations.size() != program.tasks.size())
        throw Error("run", "needs a duration for each of the " + std::to_string(program.tasks.size()) + " tasks",
                    "take them from the Evaluator of this program");
    const std::vector<BusUse>& busUses = m_run.options.busUses;
    if ((m_run.options.virtualClock || m_run.options.emulateLinks) && !program.busOfLink.empty()
        && busUses.size() != program.tasks.size())
        throw Error("run", "needs to know which transfers share a bus", "take it from busUses()");
    for (const BusUse& use : busUses)
        while (static_cast<int>(m_run.buses.size()) <= std::max(use.bus, use.back))
            m_run.buses.push_back(std::make_unique<Bus>());
    for (auto first = program.groupOfDevice.begin(); first != program.groupOfDevice.end();) {
        const auto end =
            std::find_if(first, program.groupOfDevice.end(), [first](int group) { return group != *first; });
        // Members in separate processes synchronise in the collective itself.
        m_run.barriers.push_back(std::make_unique<Barrier>(m_peers ? 1 : static_cast<int>(end - first)));
        first = end;
    }
    if (static_cast<int>(program.devices.size()) > backend.devices())
        throw Error("run",
                    "the program has " + std::to_string(program.devices.size()) + " devices, the " + backend.name()
                        + " backend " + std::to_string(backend.devices()),
                    "use a design with fewer devices");
    if (m_peers && static_cast<int>(program.devices.size()) != backend.devices())
        throw Error("run",
                    "the program has " + std::to_string(program.devices.size()) + " devices, and there are "
                        + std::to_string(backend.devices()) + " processes",
                    "start one process per device");
    if (m_peers && m_run.options.virtualClock)
        throw Error("clock", "several processes have no common virtual clock", "use --backend host, or the real clock");
    work.useDevices(backend);
    allocate();
    work.prepare(program, m_run.regions);
    startActors();
}

Runtime::~Runtime()
{
    endThreads();
    if (m_inStep && !m_givingUp.joinable())
        stopActors(); // the step failed with its actors: what they have begun may wait for other processes
    m_actors.clear(); // with them captured graphs, for which giving up communicators waits
    if (m_givingUp.joinable())
        m_givingUp.join();
    if (m_peers)
        m_peers->endRun();
}

/// Two blocks of memory per device: one for transient and one for persistent buffers.
void Runtime::allocate()
{
    const Program& program = *m_run.program;
    m_run.regions.resize(program.buffers.size());
    std::vector<BufferPlaces> places;
    for (std::size_t d = 0; d < program.devices.size(); ++d)
        places.push_back(planBuffers(program, static_cast<int>(d)));
    predict(places);
    std::vector<std::vector<BufferLife>> allLifetimes;
    for (std::size_t d = 0; d < program.devices.size(); ++d) {
        Device& device = m_backend.device(static_cast<int>(d));
        BufferPlaces& own = places[d];
        // Of another process's buffers only the sizes are known here.
        const bool local = m_backend.isLocal(static_cast<int>(d));
        const auto at = [local](const Allocation& memory, Bytes offset) {
            return local ? memory.region().data + offset : nullptr;
        };
        const auto& transient = m_memory.emplace_back(device.allocate(local ? own.arena.bytes : 0));
        const auto& store = m_hostStores.emplace_back(hostStore(static_cast<int>(d), own.arena.hostBytes));
        m_run.hostStores.push_back(store.get());
        for (std::size_t i = 0; i < own.lifetimes.size(); ++i) {
            const BufferId buffer = own.lifetimes[i].buffer;
            std::byte* const place = !isInHostMemory(program.buffers[buffer].kind)
                                         ? at(*transient, own.arena.offsets[i])
                                     : store ? store->region().data + own.arena.offsets[i]
                                             : nullptr;
            m_run.regions[buffer] = {place, program.buffers[buffer].bytes};
        }
        const auto& lasting = m_memory.emplace_back(device.allocate(local ? own.lastingBytes : 0));
        for (const auto& [buffer, offset] : own.lasting)
            m_run.regions[buffer] = {at(*lasting, offset), program.buffers[buffer].bytes};
        m_arenaBytes.push_back(own.arena.bytes); // as planned, for every device
        m_persistentBytes.push_back(own.persistent);
        allLifetimes.push_back(std::move(own.lifetimes));
    }
    plan(std::move(allLifetimes));
}

/// Null where the device offloads nothing, or another process runs it.
std::unique_ptr<HostStore> Runtime::hostStore(int device, Bytes bytes)
{
    if (bytes == 0 || !m_backend.isLocal(device))
        return nullptr;
    std::unique_ptr<HostStore> store;
    try {
        store = m_backend.device(device).createHostStore(bytes);
    } catch (const std::bad_alloc&) {
        throw Error("device " + std::to_string(device),
                    "cannot allocate " + formatSize(bytes) + " of host memory for what it offloads",
                    "let fewer stages offload");
    } catch (const std::system_error& error) {
        throw Error("device " + std::to_string(device),
                    std::string("cannot start the threads that copy what it offloads: ") + error.what(),
                    "let no stage offload, or allow more threads (ulimit -u)");
    }
    if (!store)
        throw Error("schedule.offload", "the " + m_backend.name() + " backend does not offload",
                    "let every stage keep what it made (--offload none), or use --backend host or cuda");
    return store;
}

/// Before anything is allocated: half of it may be more than a machine shared with others can spare.
void Runtime::predict(std::span<const BufferPlaces> places)
{
    const std::vector<PlannedLink> links = planLinks(*m_run.program, *m_run.work);
    const int stored = storedSends(*m_run.program, m_run.options.eagerSlots);
    m_predicted = predictMemory(*m_run.program, places, links, stored, *m_run.work, m_backend);
    if (Diagnostics why = whyNotFitting(m_predicted, m_backend, m_run.options.deviceMemory); !why.empty())
        throw Error(std::move(why));
}

void Runtime::plan(std::vector<std::vector<BufferLife>> lifetimes)
{
    const Program& program = *m_run.program;
    m_run.plan = planRun(program, m_run.regions, std::move(lifetimes), *m_run.work);
    const int stored = storedSends(program, m_run.options.eagerSlots);
    for (const PlannedLink& link : m_run.plan.links)
        m_run.links.push_back(m_backend.isLocal(link.from) || m_backend.isLocal(link.to) ? m_backend.createLink(
                                  link.from, link.to, linkOptions(link, stored, m_run.options.emulateLinks))
                                                                                         : nullptr);
    for (const SumPair& pair : m_run.plan.sumPairs)
        m_run.sums.push_back(m_run.work->addsUp() && (m_backend.isLocal(pair.first) || m_backend.isLocal(pair.second))
                                 ? m_backend.createPairSum(pair.first, pair.second, pair.sums)
                                 : nullptr);
    for (std::size_t d = 0; d < program.devices.size(); ++d) {
        m_actorOfDevice.push_back(m_actors.size());
        if (!m_backend.isLocal(static_cast<int>(d)))
            continue;
        Device& device = m_backend.device(static_cast<int>(d));
        m_run.linksFinishLater = m_run.linksFinishLater || device.capabilities().asynchronous;
        const bool check = m_run.options.checkMemory && device.capabilities().hostAddressable;
        m_actors.push_back(
            std::make_unique<Actor>(m_run, static_cast<int>(d), device, check, m_run.options.captureBlocks));
        m_actors.back()->meter().addPersistent(m_persistentBytes[d]);
    }
    for (const PlannedTransfer& transfer : m_run.plan.transfers) {
        const auto event = [&](int device) {
            return m_backend.isLocal(device) ? m_backend.device(device).createEvent(actor(device).stream()) : nullptr;
        };
        m_run.arrived.push_back(event(transfer.to));
        m_run.sent.push_back(event(transfer.from));
    }
    if (m_run.options.emulateLinks && !m_run.options.busUses.empty() && !m_peers && !m_run.linksFinishLater)
        m_run.sumTurns = std::make_unique<SumTurns>();
    if (m_run.options.virtualClock)
        m_run.virtualClock.prepare(program.buffers.size(), m_run.plan.transfers.size());
}

void Runtime::startActors()
{
    try {
        for (std::size_t d = 0; d < m_actors.size(); ++d)
            m_threads.emplace_back([this, d] { actorThread(d); });
    } catch (const std::exception& error) { // no thread or no memory available
        const std::size_t started = m_threads.size();
        endThreads();
        throw noThread(m_actors[started]->device(), error.what());
    }
}

void Runtime::endThreads()
{
    m_quit.store(true, std::memory_order_release);
    m_round.fetch_add(1, std::memory_order_release);
    m_round.notify_all();
    for (std::thread& thread : m_threads)
        thread.join();
    m_threads.clear();
}

void Runtime::actorThread(std::size_t device)
{
#ifdef __linux__
    // Timed blocks sleep: by default the kernel may wake threads 50 microseconds late.
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
#endif
    for (std::uint32_t seen = 0;;) {
        m_round.wait(seen, std::memory_order_acquire);
        seen = m_round.load(std::memory_order_acquire);
        if (m_quit.load(std::memory_order_acquire))
            return;
        const Nanoseconds before = waitedForCore();
        m_actors[device]->runStep();
        const Nanoseconds waited = waitedForCore() - before;
        const std::lock_guard lock(m_mutex);
        m_coreWait = before < 0 || m_coreWait < 0 ? -1 : m_coreWait + waited;
        if (--m_running == 0)
            m_finished.notify_one();
    }
}

StepOutcome Runtime::runStep(int step)
{
    for (const auto& link : m_run.links)
        if (link)
            link->reset();
    for (const auto& sum : m_run.sums)
        if (sum)
            sum->reset();
    if (m_run.sumTurns)
        m_run.sumTurns->clear();
    for (const auto* events : {&m_run.arrived, &m_run.sent})
        for (const auto& event : *events)
            if (event)
                event->reset();
    // Checked here as well as in watch(): a step may be over before watch() looks.
    const bool cancelledBefore = m_peers ? m_peers->allReduce({.cancelled = cancelled()}).cancelled : cancelled();
    if (cancelledBefore) {
        StepOutcome outcome;
        outcome.start = outcome.end = steadyNow();
        outcome.loss = noLoss;
        outcome.cancelled = true;
        return outcome;
    }
    m_inStep = true;
    m_run.step = step;
    m_run.collectiveSpans.clear();
    m_run.work->beginStep(step);
    m_backend.beginStep();

    StepOutcome outcome;
    if (m_run.options.virtualClock) {
        for (const auto& actor : m_actors)
            outcome.start = std::max(outcome.start, actor->clock());
        for (const auto& actor : m_actors)
            actor->setClock(outcome.start);
    } else {
        outcome.start = steadyNow();
    }
    m_run.stepStart = outcome.start;
    for (const auto& actor : m_actors)
        actor->prepareStep();
    {
        const std::lock_guard lock(m_mutex);
        m_running = m_actors.size();
        m_coreWait = 0;
    }
    m_round.fetch_add(1, std::memory_order_release);
    m_round.notify_all();

    RunSnapshot snapshot;
    std::string reason;
    const Verdict verdict = watch(snapshot, reason);
    if (verdict == Verdict::Failed)
        fail(reason, snapshot);
    if (m_run.options.virtualClock) {
        for (const auto& actor : m_actors)
            outcome.end = std::max(outcome.end, actor->clock());
    } else {
        outcome.end = steadyNow();
    }
    outcome.cancelled = verdict == Verdict::Cancelled;
    if (!m_peers && !m_run.options.virtualClock)
        outcome.coreWait = m_coreWait < 0 ? -1 : m_coreWait / static_cast<Nanoseconds>(m_actors.size());
    outcome.loss = outcome.cancelled ? noLoss : m_run.work->endStep(step);
    if (m_peers && !outcome.cancelled) {
        publish();
        const StepShare all = m_peers->allReduce({outcome.start, outcome.end, outcome.loss, false});
        outcome.start = all.start;
        outcome.end = all.end;
        outcome.loss = all.loss;
    }
    m_inStep = false;
    return outcome;
}

/// Ends the step that runs. What is in flight is given up by a thread of its own, which may have to wait for the
/// actors' graphs.
void Runtime::stopActors()
{
    m_run.stopped.store(true, std::memory_order_seq_cst);
    for (const auto& actor : m_actors)
        actor->stream().interrupt();
    std::vector<Abortable*> all{m_run.work};
    for (const auto& link : m_run.links)
        if (link)
            all.push_back(link.get());
    for (const auto& sum : m_run.sums)
        if (sum)
            all.push_back(sum.get());
    const auto giveUp = [this, all = std::move(all)] { m_backend.giveUp(all); };
    try {
        m_givingUp = std::thread(giveUp);
    } catch (const std::system_error&) { // no thread can be started any more
        giveUp();
    }
}

/// Called when no actor runs, so that their failures can be read.
void Runtime::fail(const std::string& reason, const RunSnapshot& snapshot)
{
    Diagnostics diagnostics{{Severity::Error, "step " + std::to_string(m_run.step), reason, {}}};
    for (const auto& actor : m_actors) {
        if (!actor->failure())
            continue;
        try {
            std::rethrow_exception(actor->failure());
        } catch (const Error& error) {
            diagnostics.insert(diagnostics.end(), error.diagnostics().begin(), error.diagnostics().end());
        } catch (const std::bad_alloc&) {
            diagnostics.push_back({Severity::Error, "device " + std::to_string(actor->device()),
                                   "could not allocate what its maths needs",
                                   "use fewer or smaller microbatches, or another schedule"});
        } catch (const std::exception& error) {
            diagnostics.push_back({Severity::Error, "maths", error.what(), {}});
        }
    }
    const Diagnostics stall = explainStall(m_run, snapshot);
    diagnostics.insert(diagnostics.end(), stall.begin(), stall.end());
    if (m_peers && m_peers->failureReason().empty()) {
        // The other processes report this text: include what is known of this process's device.
        std::string why = diagnostics.front().what;
        for (std::size_t i = 1; i < diagnostics.size(); ++i)
            if (diagnostics[i].where == "device " + std::to_string(m_peers->self()))
                why += "; " + diagnostics[i].where + " " + diagnostics[i].what;
        m_peers->fail(why);
    }
    throw Error(std::move(diagnostics));
}

std::vector<Bytes> Runtime::hostPeakBytes() const
{
    std::vector<Bytes> peaks(m_run.program->devices.size());
    for (const auto& actor : m_actors)
        peaks[actor->device()] = actor->hostMeter().peak();
    return peaks;
}

std::vector<Bytes> Runtime::peakBytes() const
{
    std::vector<Bytes> peaks(m_run.program->devices.size());
    for (const auto& actor : m_actors)
        peaks[actor->device()] = actor->meter().peak();
    return peaks;
}

} // namespace pipewright
