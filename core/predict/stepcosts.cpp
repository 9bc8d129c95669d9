// SPDX-License-Identifier: GPL-3.0-or-later
// Counts transfers and sums in the Program, follows chains of transfers along its dependencies, and takes peaks from a
// replay of the instruction lists.
#include "core/predict/stepcosts.h"

#include "core/predict/peakbreakdown.h"
#include "core/program/weightreport.h"

#include <algorithm>
#include <map>
#include <vector>

namespace pipewright {

namespace {

enum class Kept { Activations, Weights, Nothing };

Kept keptAs(BufferKind kind, bool sharded)
{
    if (isSavedActivation(kind))
        return Kept::Activations;
    const BufferTraits& traits = traitsOf(kind);
    const bool stays = traits.use != BufferUse::Made
                       && (traits.use != BufferUse::Received || sharded); // else they replace the parameters
    return traits.isWeights && stays ? Kept::Weights : Kept::Nothing;
}

class Counting {
public:
    Counting(const Program& program, const Timeline& timeline) : m_program(program), m_timeline(timeline) {}

    StepCosts run()
    {
        m_costs.devices = static_cast<int>(m_program.devices.size());
        for (const StageWeights& stage : weightReport(m_program))
            m_costs.updates = std::max(m_costs.updates, stage.updates);
        for (int device = 0; device < m_costs.devices; ++device)
            replay(device);
        Bytes together = 0;
        for (const auto& [time, change] : m_changes)
            m_costs.allActivations = std::max(m_costs.allActivations, together += change);
        countTraffic();
        countRows();
        return m_costs;
    }

private:
    /// Replays a device's instructions and tracks its live buffers.
    void replay(int device)
    {
        Bytes weights = 0, activations = 0;
        for (const Buffer& buffer : m_program.buffers)
            if (buffer.device == device && buffer.kind == BufferKind::Parameters)
                weights += buffer.bytes;
        m_costs.parameters = std::max(m_costs.parameters, weights);
        Nanoseconds now = 0;
        const auto change = [&](BufferId id, Bytes sign, Nanoseconds time) {
            const Buffer& buffer = m_program.buffers[id];
            const Kept kept = buffer.device == device ? keptAs(buffer.kind, m_program.shardedStates) : Kept::Nothing;
            if (kept == Kept::Weights && buffer.kind != BufferKind::Parameters)
                m_costs.parameters = std::max(m_costs.parameters, weights += sign * buffer.bytes);
            if (kept == Kept::Activations) {
                m_costs.activations = std::max(m_costs.activations, activations += sign * buffer.bytes);
                m_changes[time] += sign * buffer.bytes;
            }
        };
        for (const Instruction& instruction : m_program.devices[static_cast<std::size_t>(device)].instructions) {
            if (instruction.kind == InstructionKind::Free) {
                if (instruction.buffer != none)
                    change(instruction.buffer, -1, now);
                continue;
            }
            if (instruction.kind != InstructionKind::Send)
                for (const BufferId id : m_program.writes(instruction.task))
                    change(id, 1, m_timeline.start[instruction.task]);
            now = m_timeline.end[instruction.task];
        }
    }

    void countTraffic()
    {
        Bytes boundaries = 0, gradients = 0;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t)
            for (const BufferId id : m_program.writes(t)) {
                const Buffer& buffer = m_program.buffers[id];
                const bool moved = m_program.tasks[t].kind == TaskKind::Transfer;
                if (moved && (buffer.kind == BufferKind::ReceivedOutput || buffer.kind == BufferKind::ReceivedGradient))
                    boundaries += buffer.bytes;
                else if (buffer.kind == BufferKind::ReduceInbox) // each side receives the other's sum
                    gradients += buffer.bytes;
            }
        const WeightTraffic traffic = weightTraffic(m_program);
        m_costs.gradientTraffic = (gradients + traffic.gradients) / m_costs.updates;
        m_costs.weightTraffic = traffic.weights / m_costs.updates;
        m_costs.boundaryTraffic = boundaries / m_costs.updates;
    }

    /// The longest chain of transfers without a block between them. Work on a transferred value that is no block, such
    /// as adding it to a sum, does not end a chain.
    void countRows()
    {
        std::vector<int> row(m_program.tasks.size(), 0);
        std::multimap<TaskId, TaskId> more;
        for (const Program::ExtraDependency& extra : m_program.extraDependencies)
            if (extra.after != none && extra.when == Program::ExtraDependency::When::Ended)
                more.emplace(extra.task, extra.after);
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const TaskKind kind = m_program.tasks[t].kind;
            int before = m_program.afterData[t] != none ? row[m_program.afterData[t]] : 0;
            const auto [first, last] = more.equal_range(t);
            for (auto at = first; at != last; ++at)
                before = std::max(before, row[at->second]);
            if (kind == TaskKind::Compute)
                continue; // a new row begins behind it
            row[t] = before + int{joinsDevices(kind)};
            m_costs.transfersInRow = std::max(m_costs.transfersInRow, row[t]);
        }
    }

    const Program& m_program;
    const Timeline& m_timeline;
    StepCosts m_costs;
    std::map<Nanoseconds, Bytes> m_changes; ///< of the activations of all devices
};

} // namespace

StepCosts stepCosts(const Program& program, const Timeline& timeline)
{
    return Counting(program, timeline).run();
}

} // namespace pipewright
