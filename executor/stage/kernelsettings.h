// SPDX-License-Identifier: GPL-3.0-or-later
// What kernels need to know of a node, for stages and for members of groups: sizes from the shapes of its operands, or
// of a member's share of them, and the rest from its attributes.
#pragma once

#include "core/model/modelshape.h"
#include "core/model/tensorgraph.h"
#include "kernels/activation.h"
#include "kernels/experts.h"
#include "kernels/groupedattention.h"
#include "kernels/latentkeys.h"
#include "kernels/rotary.h"

#include <string_view>
#include <vector>

namespace pipewright {

double attributeOr(const Node& node, std::string_view name, double otherwise);

/// Throws Error for an operation that is no such function.
kernels::ActivationKind activationKind(std::string_view operation);
float normEpsilon(const Node& norm);

/// `query`, `key`: of the operands. `firstHead`: of a member's share of the heads.
kernels::GroupedAttentionShape attentionOf(const Node& attention, const Shape& query, const Shape& key,
                                           int firstHead = 0);
/// Values of a head of the queries.
std::int64_t querySizeOf(const Node& attention);
/// Whether queries and keys are rotated by their positions, and how; `values`: of queries or keys of this shape, or
/// their gradients. In latent attention the last values of every head, in neighbouring pairs.
bool isRotated(const Node& attention);
kernels::Rotate rotationOf(const Node& attention, const Shape& shape, bool backwards, std::span<float> values,
                           int firstPosition = 0);

/// Every head's own part of its keys, and the one that all share.
kernels::LatentKeys latentKeysOf(const Node& joinKeys, const Shape& own, const Shape& shared);

/// `logits`: of the tokens for all experts.
kernels::Router routerOf(const Node& route, const Shape& logits);
/// Of the load-balancing term: it is a mean over so many layers and microbatches of an update.
double balanceOver(const ModelShape& shape, int microbatches);

/// All different attentions of a model's layers, once each; none for a model without attention.
std::vector<kernels::GroupedAttentionShape> attentionsOf(const ModelShape& shape);

} // namespace pipewright
