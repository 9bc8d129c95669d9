// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against bubble over the published schedules: which families and settings can be had for a model on
// its cluster, what each gives, and which of them nothing else beats in both. Candidates are independent, so a
// caller may work them out one by one in the background and stop between any two, or amid one.
#pragma once

#include "core/design/redesign.h"

#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace pipewright {

struct TradeOffCandidate {
    const Family* family = nullptr;
    FamilyChoice choice;
    std::string label() const; ///< "V-Half", "Interleaved 1F1B, 4 chunks", "Adaptive V, limit 0.5 ×"
};

/// Every family once; those with chunks to choose with 2 to 4 where the model has layers for them, those that
/// search with memory limits from a third of 1F1B's activations to twice as much.
std::vector<TradeOffCandidate> tradeOffCandidates(const Design& base);

struct TradeOff {
    TradeOffCandidate candidate;
    bool possible = false;
    std::string reason; ///< why not
    double bubble = 0;  ///< rate_makespan
    Nanoseconds makespan = 0;
    Bytes peakBytes = 0;        ///< of the fullest device
    double peakActivations = 0; ///< the same in microbatches on one device
};

/// Makes the schedule and predicts it; what is impossible comes back with its reason. Where nobody waits for it any
/// more it ends before the next of the two, or amid a search, and says so: possible is then false.
TradeOff evaluateTradeOff(const Design& base, const TradeOffCandidate& candidate, std::stop_token stop = {});

/// What a trade-off needs: bytes where the design knows any, else activations.
double memoryOf(const TradeOff& tradeOff);

/// For each, whether it is possible and no other one needs less memory with no more bubble, or has less bubble
/// with no more memory. O(n log n).
std::vector<bool> paretoFront(std::span<const TradeOff> tradeOffs);

} // namespace pipewright
