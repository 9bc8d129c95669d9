// SPDX-License-Identifier: GPL-3.0-or-later
// The list while the search runs: of the plans found so far the best, and those of the frontier behind them.
#pragma once

#include "core/plan/plan.h"

#include <vector>

namespace pipewright {

class FoundPlans {
public:
    void clear(int top); ///< how many of the best are kept
    void add(const std::vector<PlanFound>& plans);
    const std::vector<PlanFound>& plans() const { return m_plans; }      ///< shortest step first
    const std::vector<bool>& onFrontier() const { return m_onFrontier; } ///< of each: no other is as short with less

private:
    int m_top = 0;
    std::vector<PlanFound> m_plans;
    std::vector<bool> m_onFrontier;
};

} // namespace pipewright
