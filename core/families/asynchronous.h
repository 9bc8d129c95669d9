// SPDX-License-Identifier: GPL-3.0-or-later
// Common to the asynchronous families: one long 1F1B run that fills and drains once, with an update of each stage after
// every `accumulate` backwards. The families differ in the weight versions that their blocks read.
#pragma once

#include "core/families/orders.h"

namespace pipewright {

/// The given settings with the family's rule and its usual optimizer.
WeightPolicy policyOf(const FamilyParameters& p, WeightRule rule);

/// Device r keeps p - r microbatches in flight, as in 1F1B.
Schedule makeAsynchronous(const FamilyParameters& p, WeightRule rule, int accumulate);

/// The settings of the rule, and whether the microbatches make up whole updates of `accumulate`.
Diagnostics checkAsynchronous(const FamilyParameters& p, WeightRule rule, int accumulate);

} // namespace pipewright
