// SPDX-License-Identifier: GPL-3.0-or-later
// Splits each task's deviation in duration and lag among causes, then replays once per cause. O(causes × tasks).
#include "traces/analysis/explanation.h"

#include "core/base/median.h"
#include "core/predict/busqueues.h"
#include "core/predict/criticalpath.h"
#include "core/predict/evaluator.h"
#include "traces/analysis/idletime.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

namespace pipewright {

namespace {

using Key = std::tuple<Cause::Kind, int, int, bool>; ///< kind, device, peer, faster

/// Deviation of a task's duration and lag from the prediction, for one cause.
struct Change {
    TaskId task = none;
    Nanoseconds duration = 0, lag = 0; ///< to be subtracted when the cause is removed
};

class Explainer {
public:
    Explainer(const Program& program, const Costs& costs, const Timeline& predicted, const Timeline& measured,
              Nanoseconds coreWait)
        : m_coreWait(coreWait), m_program(program), m_predicted(predicted), m_evaluator(program, costs),
          m_expected(durations()), m_replay(program, measured, m_expected), m_memory(memoryWaits(program, m_replay))
    {
    }

    Explanation run()
    {
        Explanation result;
        result.predicted = lengthOf(m_predicted);
        result.measured = lengthOf(m_replay.measured());
        collectBlocks();
        collectCoreWaits();
        collectSums();
        collectTransfers();
        for (const auto& [key, changes] : m_changes)
            addCause(key, changes, result);
        const Nanoseconds difference = result.measured - result.predicted;
        const auto rank = [difference](const Cause& cause) {
            const Nanoseconds change = cause.contribution != 0 ? cause.contribution : cause.excess;
            const bool alike = difference == 0 || change == 0 || (change > 0) == (difference > 0);
            return std::tuple(alike, std::abs(cause.contribution), cause.excess);
        };
        std::stable_sort(result.causes.begin(), result.causes.end(),
                         [&](const Cause& a, const Cause& b) { return rank(a) > rank(b); });
        putAllRight(result);
        result.blocks = blockDifferences(m_program, m_predicted, m_replay, m_memory);
        result.gaps = idleGaps(m_program, m_replay, m_memory);
        result.devices = idleTimes(m_program, m_replay, result.gaps);
        result.completed = m_replay.measured();
        result.criticalPath = criticalPath(m_program, m_replay.measured());
        sharePath(result);
        findStraggler(result);
        return result;
    }

private:
    std::vector<Nanoseconds> durations() const
    {
        std::vector<Nanoseconds> result;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t)
            result.push_back(m_evaluator.duration(t));
        return result;
    }

    void note(Cause::Kind kind, int device, int peer, const Change& change)
    {
        if (change.duration != 0 || change.lag != 0)
            m_changes[{kind, device, peer, change.duration + change.lag < 0}].push_back(change);
    }

    void collectBlocks()
    {
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            if (usesLink(task) || !m_replay.recorded(t))
                continue;
            note(Cause::Kind::SlowerBlocks, task.device, -1, {t, m_replay.duration[t] - m_expected[t], 0});
            if (!m_replay.knowsInputs(t))
                continue;
            const Nanoseconds memory = m_memory[t];
            note(Cause::Kind::MemoryWait, task.device, -1, {t, 0, memory});
            note(Cause::Kind::HostGap, task.device, -1,
                 {t, 0, std::max<Nanoseconds>(0, m_replay.lag[t]) - memory - expectedLag(t)});
        }
    }

    /// The lag that is part of the prediction: a gap of the host, or the wait for a shared bus.
    Nanoseconds expectedLag(TaskId t) const
    {
        return m_predicted.start[t] == notRun
                   ? 0
                   : std::max<Nanoseconds>(0, m_predicted.start[t] - m_replay.ready(t, m_predicted));
    }

    /// Of what blocks and gaps took beyond the prediction, the share that waits for cores explain counts as these.
    void collectCoreWaits()
    {
        double beyond = 0;
        const auto counts = [](const Key& key) {
            const Cause::Kind kind = std::get<0>(key);
            return (kind == Cause::Kind::SlowerBlocks || kind == Cause::Kind::HostGap) && !std::get<3>(key);
        };
        for (const auto& [key, changes] : m_changes)
            if (counts(key))
                for (const Change& change : changes)
                    beyond += static_cast<double>(change.duration + change.lag);
        if (m_coreWait <= 0 || beyond <= 0)
            return;
        const double share =
            std::min(1.0, static_cast<double>(m_coreWait) * static_cast<double>(m_program.devices.size()) / beyond);
        std::vector<Change> waits;
        for (auto& [key, changes] : m_changes) {
            if (!counts(key))
                continue;
            for (Change& change : changes) {
                waits.push_back({change.task, std::llround(share * static_cast<double>(change.duration)),
                                 std::llround(share * static_cast<double>(change.lag))});
                change.duration -= waits.back().duration;
                change.lag -= waits.back().lag;
            }
            std::erase_if(changes, [](const Change& rest) { return rest.duration == 0 && rest.lag == 0; });
        }
        std::erase_if(m_changes, [](const auto& entry) { return entry.second.empty(); });
        for (const Change& wait : waits)
            note(Cause::Kind::CoreWait, -1, -1, wait);
    }

    /// A sum moves gradients between two devices, as transfers do.
    void collectSums()
    {
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            if (!isReduction(task.kind) || !usesLink(task) || !m_replay.recorded(t))
                continue;
            const Nanoseconds late =
                m_replay.knowsInputs(t) ? std::max<Nanoseconds>(0, m_replay.lag[t]) - expectedLag(t) : 0;
            note(Cause::Kind::Transfer, task.device, task.otherDevice(), {t, m_replay.duration[t] - m_expected[t], 0});
            if (onBus(t))
                note(Cause::Kind::Contention, task.device, task.otherDevice(), {t, 0, late});
            else
                note(Cause::Kind::HostGap, task.device, -1, {t, 0, late});
        }
    }

    /// Time from the producer's end to the transfer's end.
    Nanoseconds handOff(TaskId t) const { return std::max<Nanoseconds>(0, m_replay.lag[t]) + m_replay.duration[t]; }

    bool onBus(TaskId t) const { return busesOf(m_program, m_program.tasks[t]).any(); }

    Nanoseconds beyond(TaskId t) const { return handOff(t) - m_expected[t] - expectedLag(t); }

    /// The part of a transfer's lag after both its value was ready and its target was free.
    Nanoseconds hesitation(TaskId t) const
    {
        const Timeline& timeline = m_replay.measured();
        const Nanoseconds ready = timeline.start[t] - m_replay.lag[t];
        const TaskId before = m_previousOnTarget[t];
        const Nanoseconds free = before == none ? ready : std::max(ready, timeline.end[before]);
        return std::max<Nanoseconds>(0, timeline.start[t] - free);
    }

    /// The source's next task after each send and the target's previous one before each receive.
    void findNeighbours()
    {
        m_nextOnSource.assign(m_program.tasks.size(), none);
        m_previousOnTarget.assign(m_program.tasks.size(), none);
        for (const Program::Device& device : m_program.devices) {
            TaskId previous = none;
            std::vector<TaskId> sends;
            for (const Instruction& instruction : device.instructions) {
                if (instruction.kind == InstructionKind::Receive)
                    m_previousOnTarget[instruction.task] = previous;
                else if (instruction.kind == InstructionKind::Send)
                    sends.push_back(instruction.task);
                if (instruction.kind != InstructionKind::Compute || !m_replay.recorded(instruction.task))
                    continue;
                previous = instruction.task;
                for (const TaskId send : sends)
                    m_nextOnSource[send] = previous;
                sends.clear();
            }
        }
    }

    void collectTransfers()
    {
        findNeighbours();
        std::vector<TaskId> byStart;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t)
            if (m_program.tasks[t].kind == TaskKind::Transfer && m_replay.recorded(t) && m_replay.knowsInputs(t))
                byStart.push_back(t);
        const Timeline& timeline = m_replay.measured();
        std::sort(byStart.begin(), byStart.end(),
                  [&](TaskId a, TaskId b) { return timeline.start[a] < timeline.start[b]; });
        // Transfers that shared a device's link with another.
        std::vector<bool> crowded(m_program.tasks.size(), false);
        std::vector<TaskId> active;
        for (const TaskId t : byStart) {
            std::erase_if(active, [&](TaskId other) { return timeline.end[other] <= timeline.start[t]; });
            for (const TaskId other : active)
                if (m_program.tasks[other].device == m_program.tasks[t].device
                    || m_program.tasks[other].destination() == m_program.tasks[t].destination())
                    crowded[t] = crowded[other] = true;
            active.push_back(t);
        }
        std::map<std::pair<int, int>, std::vector<Nanoseconds>> alone;
        for (const TaskId t : byStart)
            if (!crowded[t])
                alone[{m_program.tasks[t].device, m_program.tasks[t].destination()}].push_back(beyond(t));
        for (const TaskId t : byStart) {
            const Task& task = m_program.tasks[t];
            const auto usual = alone.find({task.device, task.destination()});
            // For a transfer that shared its link, the excess over the link's usual time counts as contention.
            Nanoseconds waited = 0;
            if (crowded[t] && usual != alone.end())
                waited = std::max<Nanoseconds>(0, beyond(t) - std::max<Nanoseconds>(0, medianOf(usual->second)));
            // A late start: the target was busy, or one of the two hosts was late.
            Nanoseconds late = std::max<Nanoseconds>(0, m_replay.lag[t]) - expectedLag(t);
            // Hesitation that fits into the link's predicted cost is part of that cost.
            const Nanoseconds space = std::max<Nanoseconds>(0, m_expected[t] - m_replay.duration[t]);
            const Nanoseconds hesitated = hesitation(t) - space - expectedLag(t);
            if (onBus(t)) { // it began when its turn came
                waited = std::max({Nanoseconds{0}, waited, late});
            } else if (hesitated > 0) {
                const TaskId next = m_nextOnSource[t];
                const bool sourceStayed = next == none || timeline.start[next] >= timeline.start[t];
                note(Cause::Kind::HostGap, sourceStayed ? task.device : task.destination(), -1, {t, 0, hesitated});
                late -= hesitated;
                waited = std::max<Nanoseconds>(0, waited - hesitated);
            }
            const Nanoseconds ofLag = std::clamp<Nanoseconds>(late, 0, waited);
            note(Cause::Kind::Contention, task.device, task.destination(), {t, waited - ofLag, ofLag});
            note(Cause::Kind::Transfer, task.device, task.destination(),
                 {t, m_replay.duration[t] - m_expected[t] - (waited - ofLag), late - ofLag});
        }
    }

    void addCause(const Key& key, const std::vector<Change>& changes, Explanation& result) const
    {
        std::vector<Nanoseconds> duration = m_replay.duration, lag = m_replay.lag;
        Cause cause;
        std::tie(cause.kind, cause.device, cause.peer, cause.faster) = key;
        for (const Change& change : changes) {
            duration[change.task] -= change.duration;
            lag[change.task] -= change.lag;
            cause.excess += change.duration + change.lag;
        }
        cause.contribution = result.measured - m_replay.makespan(duration, lag);
        std::vector<Change> sorted = changes;
        std::stable_sort(sorted.begin(), sorted.end(), [](const Change& a, const Change& b) {
            return std::abs(a.duration + a.lag) > std::abs(b.duration + b.lag);
        });
        for (const Change& change : sorted)
            cause.tasks.push_back(change.task);
        result.causes.push_back(std::move(cause));
    }

    void putAllRight(Explanation& result) const
    {
        std::vector<Nanoseconds> duration = m_replay.duration, lag = m_replay.lag;
        for (const auto& [key, changes] : m_changes)
            for (const Change& change : changes) {
                duration[change.task] -= change.duration;
                lag[change.task] -= change.lag;
            }
        result.allRight = m_replay.makespan(duration, lag);
    }

    void sharePath(Explanation& result) const
    {
        const Timeline& timeline = m_replay.measured();
        Nanoseconds reached = notRun;
        for (const TaskId t : result.criticalPath) {
            // Tasks of the path may overlap: clocks differ a little, and data may be sent before its task ends.
            reached = reached == notRun ? timeline.start[t] : reached;
            result.path.waiting += std::max<Nanoseconds>(0, timeline.start[t] - reached);
            (usesLink(m_program.tasks[t]) ? result.path.transferring : result.path.computing) +=
                std::max<Nanoseconds>(0, timeline.end[t] - std::max(timeline.start[t], reached));
            reached = std::max(reached, timeline.end[t]);
        }
    }

    void findStraggler(Explanation& result) const
    {
        std::vector<double> expected(m_program.devices.size(), 0), took(m_program.devices.size(), 0);
        for (TaskId t = 0; t < m_program.tasks.size(); ++t)
            if (m_program.tasks[t].kind == TaskKind::Compute && m_replay.recorded(t)) {
                expected[m_program.tasks[t].device] += static_cast<double>(m_expected[t]);
                took[m_program.tasks[t].device] += static_cast<double>(m_replay.duration[t]);
            }
        std::vector<double> ratios;
        for (std::size_t d = 0; d < took.size(); ++d)
            if (expected[d] > 0)
                ratios.push_back(took[d] / expected[d]);
        if (ratios.empty())
            return;
        const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>((ratios.size() - 1) / 2);
        std::nth_element(ratios.begin(), middle, ratios.end());
        const double median = *middle;
        double worst = 1.1;
        for (std::size_t d = 0; d < took.size(); ++d) {
            if (expected[d] <= 0 || median <= 0)
                continue;
            result.devices[d].slowness = took[d] / expected[d] / median;
            // Where it waited for cores no longer than others may have, its blocks are not to blame.
            const bool mayHaveWaited = took[d] - expected[d] * median <= static_cast<double>(m_coreWait);
            if (result.devices[d].slowness > worst && !mayHaveWaited) {
                worst = result.devices[d].slowness;
                result.straggler = static_cast<int>(d);
            }
        }
    }

    Nanoseconds m_coreWait; ///< of a device, on average; at most 0: nothing is known of it
    const Program& m_program;
    const Timeline& m_predicted;
    Evaluator m_evaluator;
    std::vector<Nanoseconds> m_expected;
    Replay m_replay;
    std::vector<TaskId> m_nextOnSource, m_previousOnTarget; ///< per transfer
    std::vector<Nanoseconds> m_memory;                      ///< per task: the part of its lag that waits for memory
    std::map<Key, std::vector<Change>> m_changes;
};

} // namespace

std::string_view nameOf(const Cause& cause)
{
    switch (cause.kind) {
    case Cause::Kind::SlowerBlocks: return cause.faster ? "faster blocks" : "slower blocks";
    case Cause::Kind::Transfer: return "transfer";
    case Cause::Kind::Contention: return "contention";
    case Cause::Kind::HostGap: return "host gap";
    case Cause::Kind::MemoryWait: return "memory wait";
    case Cause::Kind::CoreWait: return "core wait";
    }
    return {};
}

std::string describe(const Cause& cause)
{
    return describe(cause, [](int device) { return "device " + std::to_string(device); });
}

std::string describe(const Cause& cause, const std::function<std::string(int)>& nameOfDevice)
{
    if (cause.kind == Cause::Kind::CoreWait)
        return "waiting for a processor core";
    const std::string device = nameOfDevice(cause.device), peer = nameOfDevice(cause.peer);
    const bool faster = cause.faster;
    switch (cause.kind) {
    case Cause::Kind::SlowerBlocks: return (faster ? "faster blocks on " : "slower blocks on ") + device;
    case Cause::Kind::Transfer:
        return (faster ? "faster transfers from " : "slower transfers from ") + device + " to " + peer;
    case Cause::Kind::Contention: return "waiting for the busy link from " + device + " to " + peer;
    case Cause::Kind::HostGap: return (faster ? "shorter gaps of the host on " : "gaps of the host on ") + device;
    case Cause::Kind::MemoryWait: return "waits for memory on " + device;
    case Cause::Kind::CoreWait: break;
    }
    return {};
}

std::string_view nameOf(BlockDifference::Why why)
{
    switch (why) {
    case BlockDifference::Why::OnTime: return "on time";
    case BlockDifference::Why::DeviceBusy: return "device busy";
    case BlockDifference::Why::LateData: return "late data";
    case BlockDifference::Why::Transfer: return "transfer";
    case BlockDifference::Why::HostGap: return "host gap";
    case BlockDifference::Why::MemoryWait: return "memory wait";
    }
    return {};
}

Explanation explain(const Program& program, const Costs& costs, const Timeline& predicted, const Timeline& measured,
                    Nanoseconds coreWait)
{
    return Explainer(program, costs, predicted, measured, coreWait).run();
}

} // namespace pipewright
