// SPDX-License-Identifier: GPL-3.0-or-later
// The attention of a model's layers as kernels take it.
#pragma once

#include "core/model/modelshape.h"
#include "kernels/groupedattention.h"

#include <vector>

namespace pipewright {

/// The attention of the transformer layer `number`, for one microbatch or piece of one.
kernels::GroupedAttentionShape attentionOf(const ModelShape& shape, int number);

/// All different attentions, once each; none for a model without attention.
std::vector<kernels::GroupedAttentionShape> attentionsOf(const ModelShape& shape);

} // namespace pipewright
