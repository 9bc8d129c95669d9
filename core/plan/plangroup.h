// SPDX-License-Identifier: GPL-3.0-or-later
// Settings that share a model and devices: what their layers cost, computed once, and the bounds of each setting.
#pragma once

#include "core/plan/layercosts.h"
#include "core/plan/planbounds.h"

#include <memory>
#include <string>
#include <vector>

namespace pipewright {

struct PlanGroup {
    std::size_t begin = 0, end = 0; ///< of PlanSettings::possible
    std::vector<Recompute> recomputes;
    std::vector<Zero> zeros;
    Bytes limit = 0; ///< of a device's memory; 0: not known
    /// Null: no bounds by layers hold. `pieces`: of a model in pieces of sequences, null where there can be none.
    std::unique_ptr<const LayerCosts> costs, pieces;
    std::string whyNotPieces;

    struct Bounded {
        PlanBounds bounds;
        std::string whyNot;   ///< why none of its plans can be; empty: some may
        bool exceeds = false; ///< because of the memory
    };
    std::vector<Bounded> settings; ///< from `begin` on

    std::size_t recomputeOf(const PlanSetting& setting) const;
    std::size_t zeroOf(const PlanSetting& setting) const;
};

/// Without their costs.
std::vector<PlanGroup> groupsOf(const std::vector<PlanSetting>& settings);

/// Fills in the rest. `pattern`: of the request's model. `cutsSequences`: some family does.
void costGroup(const PlanRequest& request, const std::vector<PlanSetting>& settings, const LayerPattern& pattern,
               bool cutsSequences, PlanGroup& group);

} // namespace pipewright
