// SPDX-License-Identifier: GPL-3.0-or-later
// What another model, cluster, number of devices or limit does to the list: the difference to the one before.
#pragma once

#include "core/plan/plandifference.h"

#include <QString>

#include <memory>

namespace pipewright {

/// What is remembered of a list.
struct ListBefore {
    PlanRequest request;
    std::shared_ptr<const PlanResult> result;
};

/// "64 → 96 devices"; empty where the same was asked for.
QString changesText(const PlanRequest& before, const PlanRequest& now);

/// "Against the list before (64 → 96 devices): …", a line for each plan that entered or left the best.
QString changeText(const QString& changes, const PlanDifference& difference, bool complete);

} // namespace pipewright
