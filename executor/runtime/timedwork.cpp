// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/timedwork.h"

#include "core/predict/busqueues.h"
#include "core/predict/evaluator.h"
#include "executor/runtime/peers.h"
#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <utility>

namespace pipewright {

std::vector<Nanoseconds> taskDurations(const Program& program, const Costs& costs)
{
    const Evaluator evaluator(program, costs);
    std::vector<Nanoseconds> durations;
    durations.reserve(program.tasks.size());
    for (TaskId task = 0; task < program.tasks.size(); ++task)
        durations.push_back(evaluator.duration(task));
    return durations;
}

std::vector<Nanoseconds> workTimes(const Program& program, const Costs& costs)
{
    std::vector<Nanoseconds> times = taskDurations(program, costs);
    const auto alone = [&](TaskId id) {
        const Task& task = program.tasks[id];
        return static_cast<double>(costs.duration(task.op, task.stage, task.microbatch()));
    };
    for (const Program::Overlap& pair : program.overlaps) {
        const double first = alone(pair.first), both = first + alone(pair.second);
        const Nanoseconds together = times[pair.first];
        times[pair.first] = both > 0 ? std::llround(static_cast<double>(together) * (first / both)) : 0;
        times[pair.second] = together - times[pair.first];
    }
    return times;
}

namespace {

/// When a transfer could begin if it had not to wait for other transfers.
Nanoseconds valueReady(const Program& program, const Evaluator& evaluator, TaskId transfer, const Timeline& timeline)
{
    const TaskId maker = program.afterData[transfer];
    Nanoseconds ready = maker == none ? 0 : timeline.end[maker];
    for (const Program::ExtraDependency& extra : evaluator.extras(transfer))
        if (extra.after != none && program.tasks[extra.after].kind != TaskKind::Transfer)
            ready = std::max(ready, timeline.end[extra.after]);
    return ready;
}

} // namespace

std::vector<BusUse> busUses(const Program& program, const Costs& costs)
{
    const bool streams = program.communication == Communication::OneStream;
    if (program.busOfLink.empty() && !streams)
        return {};
    const Evaluator evaluator(program, costs);
    Timeline timeline;
    evaluator.evaluate(timeline);
    std::map<std::string, int> numbers;
    std::vector<BusUse> uses(program.tasks.size());
    const auto numberOf = [&](std::string_view bus) {
        return bus.empty() ? -1 : numbers.try_emplace(std::string(bus), static_cast<int>(numbers.size())).first->second;
    };
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        const BusesOfTask buses = busesOf(program, task);
        if (buses.any()) {
            const BusTimes times = busTimes(program, t, evaluator.duration(t), costs);
            uses[t] = {numberOf(buses.there), times.there, buses.back == buses.there ? -1 : numberOf(buses.back),
                       times.back, timeline.start[t] - evaluator.ready(t, timeline)};
        }
        if (streams && task.kind == TaskKind::Transfer)
            uses[t].wait = timeline.start[t] - valueReady(program, evaluator, t, timeline);
    }
    return uses;
}

std::vector<Nanoseconds> hostGaps(const Program& program, const Costs& costs)
{
    std::vector<Nanoseconds> gaps;
    if (!costs.hasHostGaps())
        return gaps;
    const Evaluator evaluator(program, costs);
    for (TaskId task = 0; task < program.tasks.size(); ++task)
        gaps.push_back(evaluator.startOf(task, 0));
    return gaps;
}

TimedWork::TimedWork(std::vector<Nanoseconds> durations, Pace pace) : m_durations(std::move(durations)), m_pace(pace) {}

void TimedWork::prepare(const Program& program, std::span<const Region> regions)
{
    if (Peers* const peers = m_backend ? m_backend->peers() : nullptr; peers && !program.groupOfDevice.empty()) {
        const auto groupOf = [&](int device) { return program.groupOfDevice[static_cast<std::size_t>(device)]; };
        for (int device = 0; device < peers->count(); ++device)
            if (device != peers->self() && groupOf(device) == groupOf(peers->self()))
                m_others.push_back(device);
        m_received.resize(m_others.size());
        if (!m_others.empty())
            m_exchange = peers->createExchange(m_others);
    }
    if (m_pace != Pace::Burn)
        return;
    constexpr Bytes page = 4096;
    for (BufferId b = 0; b < regions.size(); ++b) {
        // Memory that the host cannot address is not lazily allocated, so it needs no touching.
        if (m_backend && !m_backend->device(program.buffers[b].device).capabilities().hostAddressable)
            continue;
        for (Bytes at = 0; regions[b].data != nullptr && at < regions[b].bytes; at += page)
            regions[b].data[at] = std::byte{1};
    }
}

double TimedWork::endStep(int)
{
    if (m_exchange)
        m_exchange->endStep();
    return noLoss;
}

void TimedWork::beforeCollective(const TaskContext& context)
{
    if (!m_exchange)
        return;
    m_exchange->beginGroup();
    for (std::size_t other = 0; other < m_others.size(); ++other) {
        m_exchange->send(*context.stream, {&m_here, 1}, m_others[other]);
        m_exchange->receive(*context.stream, {&m_received[other], 1}, m_others[other]);
    }
    m_exchange->endGroup();
}

void TimedWork::runOnTwoStreams(const Program& program, std::map<TaskId, PairTimes::Plan> pairs)
{
    m_pairs = std::move(pairs);
    for (const Program::Overlap& pair : program.overlaps)
        if (m_pairs.contains(pair.first)) {
            m_secondOf[pair.first] = pair.second;
            m_seconds.insert(pair.second);
        }
}

void TimedWork::compute(const TaskContext& context)
{
    if (endsWithFirst(context.id))
        return;
    if (const auto pair = m_pairs.find(context.id); pair != m_pairs.end())
        runPair(context, pair->second, m_secondOf.at(context.id));
    else
        spend(context);
}

void TimedWork::runPair(const TaskContext& context, const PairTimes::Plan& plan, TaskId second)
{
    runParts(plan, [&](std::size_t block, std::size_t part) {
        const BlockPart& what = plan.parts[block][part];
        GpuRecord record;
        record.start = steadyNow();
        spendHere(what.time, *context.stopped);
        record.end = steadyNow();
        record.step = context.step;
        record.task = block == 0 ? context.id : second;
        record.kind = GpuRecord::Kind::Part;
        record.name = what.name;
        record.stream = static_cast<std::int32_t>(what.stream);
        record.toDevice = context.device;
        const std::lock_guard lock(m_partsMutex);
        m_partsDone.push_back(std::move(record));
    });
}

std::vector<GpuRecord> TimedWork::takeParts()
{
    const std::lock_guard lock(m_partsMutex);
    return std::exchange(m_partsDone, {});
}

void TimedWork::spend(const TaskContext& context) const
{
    if (m_pace == Pace::Virtual || (context.stream != nullptr && context.stream->spend(m_durations[context.id])))
        return;
    spendHere(m_durations[context.id], *context.stopped);
}

void TimedWork::spendHere(Nanoseconds time, const std::atomic<bool>& stopped) const
{
    constexpr Nanoseconds slice = 5'000'000; // the longest delay until a stop is noticed
    const Nanoseconds until = steadyNow() + time;
    for (Nanoseconds left = until - steadyNow(); left > 0; left = until - steadyNow()) {
        if (stopped.load(std::memory_order_relaxed))
            return;
        if (m_pace == Pace::Sleep)
            std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left, slice)));
    }
}

} // namespace pipewright
