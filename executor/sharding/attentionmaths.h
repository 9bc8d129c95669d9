// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of attention: of queries that share keys and values, with sinks, and DeepSeek's latent attention.
#pragma once

#include "executor/sharding/plainmaths.h"

namespace pipewright::sharding {

std::span<const NodeMaths> attentionMaths();

/// The kernels need heads of one size. Null: no objection.
const char* whyNotHeads(const TensorGraph& graph, const Node& node);

} // namespace pipewright::sharding
