// SPDX-License-Identifier: GPL-3.0-or-later
// Takes the lag of every block in the replay of a step. O(tasks) per step.
#include "traces/analysis/hostgaps.h"

#include "core/predict/evaluator.h"
#include "core/program/overlaps.h"
#include "traces/analysis/idletime.h"

#include <algorithm>

namespace pipewright {

HostGapSamples::HostGapSamples(const Program& program, const Costs& costs)
    : m_program(program), m_partner(overlapPartners(program)), m_samples(program.devices.size())
{
    const Evaluator evaluator(program, costs);
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        m_durations.push_back(evaluator.duration(t));
}

/// Whether it is known when the task could have begun. An unrecorded transfer is no obstacle if, by its predicted time,
/// it must have arrived while the device was still busy.
bool HostGapSamples::knowsInputs(TaskId task, const Timeline& timeline) const
{
    const TaskId before = m_program.afterOnDevice[task];
    if (before != none && timeline.start[before] == notRun)
        return false;
    const auto knows = [&](TaskId input) {
        if (input == none || timeline.start[input] != notRun)
            return true;
        const TaskId producer = m_program.afterData[input];
        return moves(m_program.tasks[input].kind) && producer != none && timeline.start[producer] != notRun
               && before != none && timeline.end[producer] + m_durations[input] <= timeline.end[before];
    };
    bool known = knows(m_program.afterData[task]), any = before != none || m_program.afterData[task] != none;
    const auto& extras = m_program.extraDependencies;
    auto extra = std::lower_bound(extras.begin(), extras.end(), task,
                                  [](const Program::ExtraDependency& e, TaskId t) { return e.task < t; });
    for (; extra != extras.end() && extra->task == task; ++extra) {
        known = known && knows(extra->after) && extra->earliestStart == 0; // an earliest start may have delayed it
        any = any || extra->after != none;
    }
    return known && any;
}

void HostGapSamples::add(const Timeline& timeline)
{
    const Replay replay(m_program, timeline, m_durations);
    const std::vector<Nanoseconds> memory = memoryWaits(m_program, replay);
    for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
        const Task& task = m_program.tasks[t];
        const bool second = !m_partner.empty() && m_partner[t] != none && m_partner[t] < t;
        if (traitsOf(task.kind).computes && replay.recorded(t) && !second && knowsInputs(t, timeline))
            m_samples[task.device][indexOf(task.op)].push_back(std::max<Nanoseconds>(0, replay.lag[t] - memory[t]));
    }
}

std::vector<HostGapFit> HostGapSamples::fits() const
{
    std::vector<HostGapFit> fits;
    for (std::size_t d = 0; d < m_samples.size(); ++d)
        for (const Op op : allOps)
            if (const auto& samples = m_samples[d][indexOf(op)]; !samples.empty())
                fits.push_back({static_cast<int>(d), op, typicalOf(samples)});
    return fits;
}

void HostGapSamples::assignTo(Costs& costs) const
{
    std::vector<Nanoseconds> all;
    for (const auto& device : m_samples)
        for (const Op op : allOps)
            all.insert(all.end(), device[indexOf(op)].begin(), device[indexOf(op)].end());
    if (all.empty())
        return;
    costs.hostGaps.assign(m_samples.size(), {});
    for (std::size_t d = 0; d < m_samples.size(); ++d) {
        std::vector<Nanoseconds> passes; // without updates, whose gaps differ
        for (const Op op : allOps)
            if (isPass(op))
                passes.insert(passes.end(), m_samples[d][indexOf(op)].begin(), m_samples[d][indexOf(op)].end());
        const Nanoseconds usual = typicalOf(passes.empty() ? all : passes).value;
        for (const Op op : allOps) {
            const auto& samples = m_samples[d][indexOf(op)];
            costs.hostGaps[d].before[indexOf(op)] = samples.empty() ? usual : typicalOf(samples).value;
            costs.hostGaps[d].origin[indexOf(op)] = samples.empty() ? CostOrigin::Estimated : CostOrigin::Measured;
        }
    }
    if (!costs.hasHostGaps())
        costs.hostGaps.clear();
}

} // namespace pipewright
