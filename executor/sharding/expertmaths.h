// SPDX-License-Identifier: GPL-3.0-or-later
// Mixture of experts: every token chooses its most likely experts, which take tokens in order until their slots are
// full. Groups of tokens are independent, so a device that has some of them routes these exactly as a device with all
// of them would. The choice is not differentiated, the weights are.
#pragma once

#include "executor/sharding/plainmaths.h"

namespace pipewright::sharding {

std::span<const NodeMaths> expertMaths();

/// The kernels would read beside the experts of a router that cannot choose so many. Null: no objection.
const char* whyNotRouted(const TensorGraph& graph, const Node& node);

/// Whether a node chooses experts, and how many for each token.
bool routesTokens(const Node& node);
std::int64_t chosenPerToken(const Node& node);

} // namespace pipewright::sharding
