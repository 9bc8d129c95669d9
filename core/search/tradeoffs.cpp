// SPDX-License-Identifier: GPL-3.0-or-later
// Candidates from the table of families; one schedule and one prediction each. The Pareto front is one sweep in
// ascending memory, O(n log n).
#include "core/search/tradeoffs.h"

#include "core/design/carriedover.h"
#include "core/predict/offloadedstages.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

namespace pipewright {

namespace {

constexpr std::array limits{0.35, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0};
constexpr std::array chunkCounts{2, 3, 4};

} // namespace

std::string TradeOffCandidate::label() const
{
    std::string text(family->title);
    if (offloadStages > 0)
        return text
               + fmt::format(" as it is, {} stage{} offload{}", offloadStages, offloadStages == 1 ? "" : "s",
                             offloadStages == 1 ? "s" : "");
    if (choice.chunks)
        text += fmt::format(", {} chunks", *choice.chunks);
    if (choice.memoryLimit)
        text += fmt::format(", limit {:g} ×", *choice.memoryLimit);
    return text;
}

std::vector<TradeOffCandidate> tradeOffCandidates(const Design& base)
{
    std::vector<TradeOffCandidate> candidates;
    for (const Family& family : families()) {
        if (family.search != FamilySearch::None) { // their parameter is the memory limit
            for (const double limit : limits)
                candidates.push_back({&family, {std::nullopt, limit}});
        } else if (family.chunksSelectable) {
            for (const int chunks : chunkCounts)
                if (!base.workload
                    || chunks * base.schedule.devices() <= static_cast<int>(base.workload->layers.size()))
                    candidates.push_back({&family, {chunks, std::nullopt}});
        } else {
            candidates.push_back({&family, {}});
        }
    }
    int offloading = 0;
    const Family* const present = findFamily(base.schedule.family);
    if (present != nullptr && base.costs.hostLink)
        for (const StageCosts& stage : base.costs.stages)
            if (stage.savedUntilInputGrad + stage.savedUntilWeightGrad > 0)
                candidates.push_back({present, {}, ++offloading});
    return candidates;
}

Design designOf(const Design& base, const TradeOffCandidate& candidate, std::function<bool()> stop)
{
    return candidate.offloadStages > 0 ? withLongestWaiting(base, candidate.offloadStages)
                                       : withFamily(base, *candidate.family, candidate.choice, std::move(stop));
}

TradeOff evaluateTradeOff(const Design& base, const TradeOffCandidate& candidate, std::stop_token stop,
                          const std::optional<SpreadOptions>& noise)
{
    TradeOff result;
    result.candidate = candidate;
    const auto stopped = [&] {
        if (stop.stop_requested())
            result.reason = "it was stopped";
        return stop.stop_requested();
    };
    try {
        if (stopped())
            return result;
        const Design design = designOf(base, candidate, [stop] { return stop.stop_requested(); });
        if (stopped())
            return result;
        const Prediction prediction = predict(design);
        const Metrics& metrics = prediction.metrics;
        result.possible = true;
        result.optimizerChange = optimizerChange(base, design);
        result.bubble = metrics.rateMakespan;
        result.makespan = metrics.makespan;
        for (const DeviceMetrics& device : metrics.devices) {
            result.peakBytes = std::max(result.peakBytes, device.peakBytes);
            result.peakActivations = std::max(result.peakActivations, device.peakActivations);
        }
        if (noise)
            result.noisy = spreadOfStep(prediction.program, design.costs, *noise);
    } catch (const Error& error) {
        result.reason = error.what();
    }
    return result;
}

std::vector<TradeOff> rankedFamilies(const Design& base, RankBy by, const std::optional<SpreadOptions>& noise)
{
    std::vector<TradeOff> ranked;
    for (const TradeOffCandidate& candidate : tradeOffCandidates(base))
        if (candidate.choice.memoryLimit.value_or(1) == 1 && candidate.offloadStages == 0)
            ranked.push_back(evaluateTradeOff(base, candidate, {}, noise));
    const auto time = [by](const TradeOff& t) { return rankedTime(by, t.makespan, t.noisy); };
    std::stable_sort(ranked.begin(), ranked.end(), [&](const TradeOff& a, const TradeOff& b) {
        return a.possible != b.possible ? a.possible : a.possible && time(a) < time(b);
    });
    return ranked;
}

double memoryOf(const TradeOff& tradeOff)
{
    return tradeOff.peakBytes > 0 ? static_cast<double>(tradeOff.peakBytes) : tradeOff.peakActivations;
}

std::vector<bool> paretoFront(std::span<const TradeOff> tradeOffs, const TradeOffTolerance& tolerance)
{
    const auto beats = [&tolerance](const TradeOff& one, const TradeOff& other) {
        const double margin = tolerance.memoryShare * std::max(memoryOf(one), memoryOf(other));
        const double lessMemory = memoryOf(other) - memoryOf(one), lessBubble = other.bubble - one.bubble;
        return one.possible && lessMemory >= -margin && lessBubble >= -tolerance.bubble
               && (lessMemory > margin || lessBubble > tolerance.bubble);
    };
    std::vector<bool> front(tradeOffs.size(), false);
    for (std::size_t i = 0; i < tradeOffs.size(); ++i)
        front[i] = tradeOffs[i].possible
                   && std::none_of(tradeOffs.begin(), tradeOffs.end(),
                                   [&](const TradeOff& other) { return beats(other, tradeOffs[i]); });
    return front;
}

} // namespace pipewright
