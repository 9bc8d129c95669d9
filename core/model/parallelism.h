// SPDX-License-Identifier: GPL-3.0-or-later
// A layer on one member of a group of devices. Tensor parallelism (Megatron, arXiv 1909.08053) gives a member a part of
// the heads, of the MLP's width and of the vocabulary; sequence parallelism (arXiv 2205.05198) also a part of the
// tokens between matrix products. With context parallelism a member has a part of every sequence and gathers the keys
// and values of the others. Expert parallelism splits the experts over copies of the pipeline, which exchange tokens;
// folded (arXiv 2504.14960), over all devices of a stage, each of which sends its own tokens to whole experts. What is
// not counted is listed in core/predict/leftout.cpp.
#pragma once

#include "core/base/diagnostic.h"
#include "core/model/workload.h"

namespace pipewright {

/// Faults: degrees that do not divide what they split, or have nothing to split; places are "model.parallel.tensor".
Diagnostics checkParallelism(const ModelShape& shape);

/// The dimensions of what one member computes: the layers of this shape have a member's work and tensors, apart from
/// the changes of asMember().
ModelShape memberShape(const ModelShape& shape);

/// Completes a layer of memberShape() for a member of `shape`: the experts that it holds, and its exchanges with other
/// members.
void asMember(const ModelShape& shape, Layer& layer);

/// "tensor 8 with sequence, context 2, data 64"; empty for none.
std::string textOf(const Parallelism& parallel);

} // namespace pipewright
