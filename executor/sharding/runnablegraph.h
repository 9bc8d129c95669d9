// SPDX-License-Identifier: GPL-3.0-or-later
// Which graphs groups run: those of operations, attributes and sizes that their mathematics heeds (nodemaths.h).
#pragma once

#include "core/base/diagnostic.h"
#include "core/model/tensorgraph.h"

namespace pipewright::sharding {

/// The reasons why a graph cannot run here. `pieces`: its rows are one of so many pieces of their sequences.
Diagnostics whyNotRunnable(const TensorGraph& graph, int pieces = 1);

/// In a graph whose values are stored in bf16: whether this node's value stays fp32, as for tokens, losses and the
/// experts' weights. Gradients of parameters stay fp32 as well.
bool staysExact(const Node& node);

/// Whether a node chooses experts, and how many for each token.
bool routesTokens(const Node& node);
std::int64_t chosenPerToken(const Node& node);

} // namespace pipewright::sharding
