// SPDX-License-Identifier: GPL-3.0-or-later
// Collects hand-offs per pair and size and fits latency and bandwidth by least squares. O(tasks) per step.
#include "traces/analysis/handoff.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

Handoffs::Handoffs(const Program& program) : m_program(program), m_bytes(program.tasks.size(), 0)
{
    const auto isTransfer = [&](TaskId id) { return id != none && program.tasks[id].kind == TaskKind::Transfer; };
    for (const Program::ExtraDependency& extra : program.extraDependencies)
        if (extra.after != none) {
            m_extra.emplace_back(extra.task, extra.after);
            if (isTransfer(extra.after))
                m_consumers.emplace_back(extra.after, extra.task);
        }
    std::sort(m_extra.begin(), m_extra.end());
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        if (isTransfer(id)) {
            for (const BufferId buffer : program.reads(id))
                m_bytes[id] += program.buffers[buffer].bytes;
        } else if (isTransfer(program.afterData[id])) {
            m_consumers.emplace_back(program.afterData[id], id);
        }
    }
}

void Handoffs::add(const Timeline& timeline)
{
    const auto endOf = [&](TaskId id) { return id == none ? Nanoseconds{notRun} : timeline.end[id]; };
    for (const auto& [transfer, consumer] : m_consumers) {
        const TaskId producer = m_program.afterData[transfer];
        if (producer == none || timeline.start[transfer] == notRun || timeline.start[consumer] == notRun
            || timeline.start[producer] == notRun)
            continue;
        const Task& task = m_program.tasks[transfer];
        Sums& sums = m_pairs[{task.device, task.peer}][m_bytes[transfer]];
        sums.copied += static_cast<double>(timeline.end[transfer] - timeline.start[transfer]);
        ++sums.copiedCount;

        // The consumer waited for this transfer when all its other dependencies had ended before.
        Nanoseconds others = endOf(m_program.afterOnDevice[consumer]);
        if (m_program.afterData[consumer] != transfer)
            others = std::max(others, endOf(m_program.afterData[consumer]));
        for (auto extra = std::lower_bound(m_extra.begin(), m_extra.end(), std::pair{consumer, TaskId{0}});
             extra != m_extra.end() && extra->first == consumer; ++extra)
            if (extra->second != transfer)
                others = std::max(others, endOf(extra->second));
        if (others > timeline.end[transfer])
            continue;
        sums.waited += static_cast<double>(std::max<Nanoseconds>(0, timeline.start[consumer] - timeline.end[producer]));
        ++sums.waitedCount;
    }
}

double Handoffs::Sums::seconds() const
{
    return (waitedCount > 0 ? waited / static_cast<double>(waitedCount) : copied / static_cast<double>(copiedCount))
           * 1e-9;
}

double Handoffs::Sums::weight() const
{
    return static_cast<double>(waitedCount > 0 ? waitedCount : copiedCount);
}

/// `bytesPerSecond`: the bandwidth to assume when these sizes do not determine one; 0: unlimited.
LinkCosts Handoffs::fitOne(const BySize& sizes, double bytesPerSecond)
{
    double weight = 0, meanBytes = 0, meanSeconds = 0;
    for (const auto& [bytes, sums] : sizes) {
        weight += sums.weight();
        meanBytes += sums.weight() * static_cast<double>(bytes);
        meanSeconds += sums.weight() * sums.seconds();
    }
    meanBytes /= weight;
    meanSeconds /= weight;
    double covariance = 0, variance = 0;
    for (const auto& [bytes, sums] : sizes) {
        const double distance = static_cast<double>(bytes) - meanBytes;
        covariance += sums.weight() * distance * (sums.seconds() - meanSeconds);
        variance += sums.weight() * distance * distance;
    }
    double secondsPerByte = bytesPerSecond > 0 ? 1 / bytesPerSecond : 0;
    if (variance > 0)
        secondsPerByte = std::max(0.0, covariance / variance);
    // A negative latency is extrapolation: fit a line through the origin instead.
    if (secondsPerByte * meanBytes > meanSeconds)
        secondsPerByte = meanBytes > 0 ? meanSeconds / meanBytes : 0;
    LinkCosts link;
    link.bytesPerSecond = secondsPerByte > 0 ? 1 / secondsPerByte : 0;
    link.latency = std::llround((meanSeconds - secondsPerByte * meanBytes) * 1e9);
    return link;
}

bool Handoffs::fit(Costs& costs) const
{
    if (m_pairs.empty())
        return false;
    BySize all;
    for (const auto& [pair, sizes] : m_pairs)
        for (const auto& [bytes, sums] : sizes) {
            Sums& total = all[bytes];
            total.waited += sums.waited;
            total.copied += sums.copied;
            total.waitedCount += sums.waitedCount;
            total.copiedCount += sums.copiedCount;
        }
    costs.link = fitOne(all, 0);
    costs.linkOfPair.clear();
    costs.link.origin = CostOrigin::Estimated; // of pairs that were not seen: what the others take on average
    for (const auto& [pair, sizes] : m_pairs) {
        costs.linkOfPair[pair] = fitOne(sizes, costs.link.bytesPerSecond);
        costs.linkOfPair[pair].origin = CostOrigin::Measured;
    }
    return true;
}

} // namespace pipewright
