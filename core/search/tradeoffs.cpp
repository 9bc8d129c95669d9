// SPDX-License-Identifier: GPL-3.0-or-later
// Candidates from the table of families; one schedule and one prediction each. The Pareto front is one sweep in
// ascending memory, O(n log n).
#include "core/search/tradeoffs.h"

#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace pipewright {

namespace {

constexpr std::array limits{0.35, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0};
constexpr std::array chunkCounts{2, 3, 4};

} // namespace

std::string TradeOffCandidate::label() const
{
    std::string text(family->title);
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
    return candidates;
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
        const Design design =
            withFamily(base, *candidate.family, candidate.choice, [stop] { return stop.stop_requested(); });
        if (stopped())
            return result;
        const Prediction prediction = predict(design);
        const Metrics& metrics = prediction.metrics;
        result.possible = true;
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
        if (candidate.choice.memoryLimit.value_or(1) == 1)
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

std::vector<bool> paretoFront(std::span<const TradeOff> tradeOffs)
{
    std::vector<std::size_t> order(tradeOffs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t i) { return !tradeOffs[i].possible; });
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const double left = memoryOf(tradeOffs[a]), right = memoryOf(tradeOffs[b]);
        return left != right ? left < right : tradeOffs[a].bubble < tradeOffs[b].bubble;
    });
    // In ascending memory a point is on the front when it has less bubble than all before it, or equals the last one.
    std::vector<bool> front(tradeOffs.size(), false);
    double leastBubble = std::numeric_limits<double>::infinity(), itsMemory = -1;
    for (const std::size_t i : order) {
        const double memory = memoryOf(tradeOffs[i]);
        if (tradeOffs[i].bubble < leastBubble) {
            leastBubble = tradeOffs[i].bubble;
            itsMemory = memory;
            front[i] = true;
        } else if (tradeOffs[i].bubble == leastBubble && memory == itsMemory) {
            front[i] = true;
        }
    }
    return front;
}

} // namespace pipewright
