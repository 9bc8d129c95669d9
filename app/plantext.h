// SPDX-License-Identifier: GPL-3.0-or-later
// Plans as JSON and as text.
#pragma once

#include "app/command.h"

#include "core/plan/plan.h"
#include "core/plan/plandifference.h"
#include "core/plan/planrefine.h"

#include <string>
#include <vector>

namespace pipewright::app {

/// `files`: the plans' designs, or none. `noisy`: they were predicted under noise too.
Json toJson(const PlanResult& result, const std::vector<std::string>& files, bool noisy);
void print(const PlanResult& result, const PlanRequest& request);

/// Where the best plan `with` one dimension fixed ("tensor=16") stands beside the best of all, or why there is none.
Json answerJson(const std::string& fixed, const PlanResult& with, const PlanResult& all);
void printAnswer(const std::string& fixed, const PlanResult& with, const PlanResult& all);

/// `file`: its design, or empty.
Json refinedJson(const RefinedPlan& refined, const std::string& file);

/// The list with `changes` ("devices=96"), and its difference to the one without them.
Json whatIfJson(const std::string& changes, const PlanDifference& difference, const PlanResult& other);
/// `complete`: both lists are.
void printWhatIf(const std::string& changes, const PlanDifference& difference, bool complete);

/// ", mostly: …": the reason that refused most plans; empty without any.
std::string mostlyBecause(const PlanResult& result);

} // namespace pipewright::app
