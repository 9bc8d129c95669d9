// SPDX-License-Identifier: GPL-3.0-or-later
// What a search for plans has worked out so far, so that an interrupted one goes on where it stopped: the predictions
// of single plans, and the bounds of all plans whose blocks have one order. What is neither is made again, in about the
// time of the first plan. Predictions count from the beginning, so that what bounds left out because of them stays out.
#pragma once

#include "core/plan/plan.h"
#include "core/plan/planranking.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct PlanState {
    struct Predicted {
        std::uint32_t setting = 0; ///< of PlanSettings::possible
        const Family* family = nullptr;
        int chunks = 1;
        Nanoseconds step = 0;
        Bytes peak = 0;
        double tokensPerSecondPerDevice = 0;
        bool exceeds = false; ///< the memory
        std::string whyNot;   ///< why it cannot be; empty: it can
    };
    /// All plans of one order of blocks.
    struct Bounded {
        const Family* family = nullptr;
        int chunks = 1, pipeline = 1, microbatches = 1;
        std::vector<PlanCandidate> open; ///< to be predicted
        std::map<std::string, std::int64_t> refused;
        std::int64_t exceeding = 0, decided = 0;
    };
    std::string program;                         ///< the version that wrote it
    std::map<std::string, std::string> question; ///< see questionOf()
    std::vector<Predicted> predicted;
    std::vector<Bounded> bounded;
};

/// All that the state depends on, by name: model, cluster, devices, pins and so on.
std::map<std::string, std::string> questionOf(const PlanRequest& request);

std::string stateText(const PlanState& state);
/// Throws Error at `where` for a text that is no state, of another version of the program, or of another question than
/// the request's, which it names.
PlanState readState(std::string_view text, const std::string& where, const std::string& program,
                    const PlanRequest& request);

} // namespace pipewright
