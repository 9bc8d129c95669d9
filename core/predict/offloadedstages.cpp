// SPDX-License-Identifier: GPL-3.0-or-later
// Greedy: every trial is a whole prediction. Stages are tried in the order of their saved bytes per microbatch, largest
// first; a stage is kept when the peak of some device falls. O(stages) predictions for the free ones, O(stages²) when
// memory is short.
#include "core/predict/offloadedstages.h"

#include "core/design/redesign.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace pipewright {

namespace {

struct Outcome {
    Nanoseconds makespan = 0;
    std::vector<Bytes> peaks;
};

Outcome outcomeOf(const Design& design)
{
    const Prediction prediction = predict(design);
    Outcome outcome{prediction.metrics.makespan, {}};
    for (const DeviceMetrics& device : prediction.metrics.devices)
        outcome.peaks.push_back(device.peakBytes);
    return outcome;
}

Bytes keptBy(const StageCosts& stage)
{
    return stage.savedUntilInputGrad + stage.savedUntilWeightGrad;
}

class Choosing {
public:
    Choosing(const Design& design, std::optional<Bytes> limit, const std::function<bool()>& stop)
        : m_limit(limit), m_stop(stop),
          m_result{
              withOffload(design, std::vector<bool>{}), {}, {}, 0, 0, {}, {}, true,
          },
          m_now(outcomeOf(m_result.design)), m_chosen(static_cast<std::size_t>(design.schedule.stages()), false)
    {
        m_result.forFree = m_result.forRoom = m_chosen;
        m_result.before = m_now.makespan;
        m_result.peaksBefore = m_now.peaks;
    }

    OffloadedStages run()
    {
        std::vector<std::size_t> stages(m_chosen.size());
        std::iota(stages.begin(), stages.end(), std::size_t{0});
        const auto& costs = m_result.design.costs.stages;
        std::erase_if(stages, [&](std::size_t s) { return keptBy(costs[s]) == 0; });
        std::stable_sort(stages.begin(), stages.end(),
                         [&](std::size_t a, std::size_t b) { return keptBy(costs[a]) > keptBy(costs[b]); });
        for (const std::size_t stage : stages)
            if (const Outcome with = trial(stage); with.makespan <= m_now.makespan && saves(with))
                keep(stage, with, m_result.forFree);
        while (!stopped() && excess(m_now) > 0) {
            std::optional<std::pair<std::size_t, Outcome>> best;
            for (const std::size_t stage : stages)
                if (!m_chosen[stage] && !stopped())
                    if (Outcome with = trial(stage);
                        excess(with) < excess(m_now) && (!best || with.makespan < best->second.makespan))
                        best = {stage, std::move(with)};
            if (!best)
                break;
            keep(best->first, best->second, m_result.forRoom);
        }
        m_result.design = withOffload(m_result.design, m_chosen);
        m_result.after = m_now.makespan;
        m_result.peaks = m_now.peaks;
        m_result.fits = excess(m_now) == 0;
        return std::move(m_result);
    }

private:
    bool stopped() const { return m_stop && m_stop(); }

    Outcome trial(std::size_t stage) const
    {
        std::vector<bool> with = m_chosen;
        with[stage] = true;
        return outcomeOf(withOffload(m_result.design, std::move(with)));
    }

    bool saves(const Outcome& with) const
    {
        for (std::size_t d = 0; d < with.peaks.size(); ++d)
            if (with.peaks[d] < m_now.peaks[d])
                return true;
        return false;
    }

    /// The bytes by which devices exceed their memory, summed over devices.
    Bytes excess(const Outcome& outcome) const
    {
        Bytes sum = 0;
        const auto& devices = m_result.design.cluster.devices;
        for (std::size_t d = 0; d < outcome.peaks.size(); ++d)
            if (const Bytes has = m_limit.value_or(d < devices.size() ? devices[d].memory : 0); has > 0)
                sum += std::max<Bytes>(0, outcome.peaks[d] - has);
        return sum;
    }

    void keep(std::size_t stage, const Outcome& with, std::vector<bool>& as)
    {
        m_chosen[stage] = as[stage] = true;
        m_now = with;
    }

    std::optional<Bytes> m_limit;
    const std::function<bool()>& m_stop;
    OffloadedStages m_result;
    Outcome m_now;
    std::vector<bool> m_chosen;
};

} // namespace

std::string OffloadedStages::text() const
{
    const std::string free = textOf(forFree), room = textOf(forRoom);
    if (free.empty() && room.empty())
        return fits ? "no stage offloads: none can without a longer step, and memory does not demand it"
                    : "no stage offloads: none would make the design fit its devices";
    std::string text;
    const auto name = [&](const std::string& stages, const char* why) {
        if (!stages.empty())
            text += fmt::format("{}stages {} {}", text.empty() ? "" : ", ", stages, why);
    };
    name(free, "at no cost of time");
    name(room, "for want of memory");
    text += fmt::format("; step {} instead of {}, highest peak {} instead of {}", formatDuration(after),
                        formatDuration(before), formatSize(*std::max_element(peaks.begin(), peaks.end())),
                        formatSize(*std::max_element(peaksBefore.begin(), peaksBefore.end())));
    return fits ? text : text + "; it still does not fit its devices";
}

OffloadedStages chooseOffloadedStages(const Design& design, std::optional<Bytes> limit,
                                      const std::function<bool()>& stop)
{
    if (!design.costs.hostLink) // reports the missing host link
        withOffload(design, std::vector<bool>(static_cast<std::size_t>(design.schedule.stages()), true));
    return Choosing(design, limit, stop).run();
}

namespace {

/// The stages that save bytes, ordered by the mean time until the first reader.
std::vector<std::size_t> longestWaitingFirst(const Design& kept)
{
    const Prediction prediction = predict(kept);
    const auto stages = static_cast<std::size_t>(kept.schedule.stages());
    const auto microbatches = static_cast<std::size_t>(kept.schedule.microbatches);
    constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
    std::vector<Nanoseconds> made(stages * microbatches, never), read(stages * microbatches, never), waits(stages, 0);
    for (TaskId t = 0; t < prediction.program.tasks.size(); ++t) {
        const Task& task = prediction.program.tasks[t];
        if (task.kind != TaskKind::Compute)
            continue;
        const std::size_t cell =
            static_cast<std::size_t>(task.stage) * microbatches + static_cast<std::size_t>(task.microbatch());
        if (task.op == Op::F)
            made[cell] = prediction.timeline.end[t];
        else
            read[cell] = std::min(read[cell], prediction.timeline.start[t]);
    }
    for (std::size_t cell = 0; cell < made.size(); ++cell)
        if (made[cell] != never && read[cell] != never)
            waits[cell / microbatches] += read[cell] - made[cell];
    std::vector<std::size_t> order(stages);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t s) { return keptBy(kept.costs.stages[s]) == 0; });
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return waits[a] > waits[b]; });
    return order;
}

std::vector<bool> firstOf(const std::vector<std::size_t>& order, std::size_t count, const Design& design)
{
    std::vector<bool> offload(static_cast<std::size_t>(design.schedule.stages()), false);
    for (std::size_t i = 0; i < std::min(count, order.size()); ++i)
        offload[order[i]] = true;
    return offload;
}

double leavingShare(const Program& program)
{
    double left = 0, kept = 0;
    for (const Buffer& buffer : program.buffers)
        if (isInHostMemory(buffer.kind))
            left += static_cast<double>(buffer.bytes);
        else if (buffer.kind == BufferKind::SavedUntilInputGrad || buffer.kind == BufferKind::SavedUntilWeightGrad)
            kept += static_cast<double>(buffer.bytes);
    return kept > 0 ? left / kept : 0;
}

} // namespace

std::vector<OffloadPoint> offloadCurve(const Design& design, const std::function<bool()>& stop)
{
    const Design kept = withOffload(design, std::vector<bool>{});
    const std::vector<std::size_t> order = longestWaitingFirst(kept);
    std::vector<OffloadPoint> curve;
    for (std::size_t count = 0; count <= order.size() && !(stop && stop()); ++count) {
        OffloadPoint& point = curve.emplace_back();
        point.offload = firstOf(order, count, kept);
        const Prediction prediction = predict(withOffload(kept, point.offload));
        point.makespan = prediction.metrics.makespan;
        for (const DeviceMetrics& device : prediction.metrics.devices)
            point.peak = std::max(point.peak, device.peakBytes);
        point.share = leavingShare(prediction.program);
    }
    return curve;
}

Design withLongestWaiting(const Design& design, int count)
{
    const Design kept = withOffload(design, std::vector<bool>{});
    return withOffload(kept, firstOf(longestWaitingFirst(kept), static_cast<std::size_t>(count), kept));
}

Design withOffload(const Design& design, const OffloadChoice& choice, const std::string& where)
{
    switch (choice.kind) {
    case OffloadChoice::Kind::None: return withOffload(design, std::vector<bool>{});
    case OffloadChoice::Kind::Auto: return chooseOffloadedStages(design).design;
    case OffloadChoice::Kind::Stages:
        return withOffload(design, stagesIn(choice.stages, design.schedule.stages(), where));
    }
    return design;
}

} // namespace pipewright
