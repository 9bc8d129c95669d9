// SPDX-License-Identifier: GPL-3.0-or-later
// A layer on one member of a group of devices. Tensor parallelism (Megatron, arXiv 1909.08053) gives a member a part of
// the heads, of the MLP's width and of the vocabulary; sequence parallelism (arXiv 2205.05198) also a part of the
// tokens between matrix products. With context parallelism a member has a part of every sequence and gathers the keys
// and values of the others. Expert parallelism shares out experts over copies of the pipeline, which send tokens to
// and fro.
//
// Not counted: what Megatron hides behind products (gathering a layer's split input again for its weight gradient), the
// few numbers per token of a split softmax, and load imbalance of experts or of causal masks.
#pragma once

#include "core/base/diagnostic.h"
#include "core/workload/workload.h"

namespace pipewright {

/// Degrees that do not divide what they share out, or have nothing to share; places are "model.parallel.tensor".
Diagnostics checkParallelism(const ModelShape& shape);

/// The dimensions of what one member computes: the layers of this shape have a member's work and tensors, but for
/// what asMember() does.
ModelShape memberShape(const ModelShape& shape);

/// Makes a layer of memberShape() that of a member of `shape`: tensors split by sequence parallelism, the experts it
/// holds, and what it exchanges with other members.
void asMember(const ModelShape& shape, Layer& layer);

/// "tensor 8 with sequence, context 2, data 64"; empty for none.
std::string textOf(const Parallelism& parallel);

} // namespace pipewright
