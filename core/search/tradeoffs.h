// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against bubble for the published schedules: the families and settings possible for a model on its cluster, the
// result of each, and the Pareto front. Candidates are independent, so a caller may evaluate them one by one in the
// background and stop between or within them.
#pragma once

#include "core/design/redesign.h"
#include "core/predict/spread.h"

#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace pipewright {

struct TradeOffCandidate {
    const Family* family = nullptr;
    FamilyChoice choice;
    int offloadStages = 0;     ///< above 0: the present order with this many stages offloading; 0: the family's order
    std::string label() const; ///< "V-Half", "Interleaved 1F1B, 4 chunks", "ZB-H1 as it is, 2 stages offload"
};

/// The schedule of a candidate, for the same model and cluster. Throws Error. `stop` ends searches early.
Design designOf(const Design& base, const TradeOffCandidate& candidate, std::function<bool()> stop = {});

/// Every family once. A family with selectable chunks: with 2 to 4 where the model has enough layers. A family that
/// searches: with memory limits from 0.35 to 2 times 1F1B's activations. Where the link to the host's memory is known
/// also the present order with one to all of its stages offloading.
std::vector<TradeOffCandidate> tradeOffCandidates(const Design& base);

struct TradeOff {
    TradeOffCandidate candidate;
    bool possible = false;
    std::string reason; ///< why it is not possible
    double bubble = 0;  ///< rate_makespan
    Nanoseconds makespan = 0;
    Bytes peakBytes = 0;         ///< of the fullest device
    double peakActivations = 0;  ///< the same in units of one microbatch's activations on a device
    StepSpread noisy;            ///< of the makespan, where noise was asked for
    std::string optimizerChange; ///< "SGD with momentum in place of AdamW"; empty: it trains as the base does
};

/// Makes the schedule and predicts it, with `noise` given also under noise. An impossible or stopped candidate returns
/// with possible false and the reason. A stop takes effect between the steps or within a search.
TradeOff evaluateTradeOff(const Design& base, const TradeOffCandidate& candidate, std::stop_token stop = {},
                          const std::optional<SpreadOptions>& noise = {});

/// Every possible family once for each number of chunks, shortest time first; a family that searches gets the memory of
/// 1F1B. The impossible ones follow, with their reasons.
std::vector<TradeOff> rankedFamilies(const Design& base, RankBy by, const std::optional<SpreadOptions>& noise);

/// Peak memory: in bytes where the design knows them, else in activations.
double memoryOf(const TradeOff& tradeOff);

/// Differences that are too small to choose by. By default none.
struct TradeOffTolerance {
    double memoryShare = 0; ///< of the peak memory
    double bubble = 0;      ///< in shares, 0.001 is a tenth of a percent
};

/// Per candidate, whether it is possible and Pareto-optimal in memory and bubble: no other candidate is better in one
/// of them by more than the tolerance and worse in the other by at most the tolerance. O(n^2); there are tens of
/// candidates.
std::vector<bool> paretoFront(std::span<const TradeOff> tradeOffs, const TradeOffTolerance& tolerance = {});

} // namespace pipewright
