// SPDX-License-Identifier: GPL-3.0-or-later
// Subtracts matched blocks and summarises by quantiles. O(tasks log tasks).
#include "traces/analysis/comparison.h"

#include "core/predict/bubbles.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

/// (predicted - measured) / measured; for a measured 0 it is 0 or 1.
double relativeError(double predicted, double measured)
{
    if (measured == 0)
        return predicted == 0 ? 0 : std::copysign(1.0, predicted);
    return (predicted - measured) / measured;
}

/// Nearest-rank quantiles, so that every number occurs in the data.
Quantiles quantilesOf(std::vector<double> values)
{
    Quantiles result;
    if (values.empty())
        return result;
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
        const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
        return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
    };
    result.median = at(0.5);
    result.p95 = at(0.95);
    return result;
}

void takePredictedPeak(Comparison::Device& device, Bytes peak)
{
    device.predictedPeak = peak;
    if (device.measuredPeak)
        device.peakError = relativeError(static_cast<double>(peak), static_cast<double>(*device.measuredPeak));
}

} // namespace

void takePredictedPeaks(Comparison& comparison, const std::vector<Bytes>& peaks)
{
    for (std::size_t device = 0; device < comparison.devices.size() && device < peaks.size(); ++device)
        takePredictedPeak(comparison.devices[device], peaks[device]);
}

Comparison compare(const Program& program, const Timeline& predicted, const Timeline& measured,
                   const std::vector<Bytes>& measuredPeaks)
{
    const Metrics predictedMetrics = measure(program, predicted);
    const Metrics measuredMetrics = measure(program, measured);
    Comparison result;
    result.predictedMakespan = predictedMetrics.makespan;
    result.measuredMakespan = measuredMetrics.makespan;
    result.makespanError =
        relativeError(static_cast<double>(result.predictedMakespan), static_cast<double>(result.measuredMakespan));

    for (std::size_t device = 0; device < program.devices.size(); ++device) {
        Comparison::Device entry;
        entry.predictedBusy = predictedMetrics.devices[device].busy;
        entry.measuredBusy = measuredMetrics.devices[device].busy;
        entry.busyError =
            relativeError(static_cast<double>(entry.predictedBusy), static_cast<double>(entry.measuredBusy));
        entry.predictedPeak = program.devices[device].peakBytes;
        if (device < measuredPeaks.size() && (measuredPeaks[device] > 0 || entry.predictedPeak == 0))
            entry.measuredPeak = measuredPeaks[device];
        takePredictedPeak(entry, entry.predictedPeak);
        result.devices.push_back(entry);
    }

    // Starts are relative to the first task, as makespans are: a recorded step begins a little before its first block.
    const Nanoseconds predictedOrigin = firstStart(predicted);
    const Nanoseconds measuredOrigin = firstStart(measured);
    std::vector<double> startErrors, durationErrors;
    for (TaskId task = 0; task < program.tasks.size(); ++task) {
        if (program.tasks[task].kind != TaskKind::Compute)
            continue;
        if (measured.start[task] == notRun || predicted.start[task] == notRun) {
            ++result.unmatched;
            continue;
        }
        ++result.matched;
        const Nanoseconds predictedDuration = predicted.end[task] - predicted.start[task];
        const Nanoseconds measuredDuration = measured.end[task] - measured.start[task];
        const Nanoseconds startDifference =
            std::abs((predicted.start[task] - predictedOrigin) - (measured.start[task] - measuredOrigin));
        Comparison::BlockError block;
        block.task = task;
        if (result.measuredMakespan > 0)
            block.startError = static_cast<double>(startDifference) / static_cast<double>(result.measuredMakespan);
        block.durationError =
            std::abs(relativeError(static_cast<double>(predictedDuration), static_cast<double>(measuredDuration)));
        block.contribution = measuredDuration - predictedDuration;
        startErrors.push_back(block.startError);
        durationErrors.push_back(block.durationError);
        result.blocks.push_back(block);
    }
    result.startError = quantilesOf(std::move(startErrors));
    result.durationError = quantilesOf(std::move(durationErrors));
    std::stable_sort(result.blocks.begin(), result.blocks.end(),
                     [](const Comparison::BlockError& a, const Comparison::BlockError& b) {
                         return std::abs(a.contribution) > std::abs(b.contribution);
                     });
    return result;
}

} // namespace pipewright
