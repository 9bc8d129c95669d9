// SPDX-License-Identifier: GPL-3.0-or-later
// What another model, cluster, number of devices or limit does to the best plan: the difference to the list before.
#pragma once

#include "core/plan/plan.h"

#include <QString>

namespace pipewright {

/// What is remembered of a list.
struct ListBefore {
    PlanRequest request;
    Nanoseconds step = 0; ///< of the best
    double tokensPerSecond = 0;
    QString plan;
    bool complete = false;
};
/// Precondition: the list has a plan.
ListBefore listBefore(const PlanRequest& request, const PlanResult& result);

/// "64 → 96 devices: the best step goes from …"; empty where the same was asked for.
QString changeText(const ListBefore& before, const ListBefore& now);

} // namespace pipewright
