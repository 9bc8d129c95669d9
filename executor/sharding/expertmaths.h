// SPDX-License-Identifier: GPL-3.0-or-later
// Mixture of experts: every token chooses its most likely experts, which take tokens in order until their slots
// are full. Groups of tokens are independent, so a device that has only some of them routes them as it would
// have been done for all. Choosing is not differentiated, the weights are.
#pragma once

#include "executor/sharding/plainmaths.h"

namespace pipewright::sharding {

std::span<const NodeMaths> expertMaths();

/// Whether a node chooses experts; then as many for every token.
bool routesTokens(const Node& node);
std::int64_t chosenPerToken(const Node& node);

} // namespace pipewright::sharding
