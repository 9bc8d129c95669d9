// SPDX-License-Identifier: GPL-3.0-or-later
// The pieces layersOf() is made of: each adds the work, the parameters, the kept tensors and the workspace of one part
// of a layer. The names of parameters and tensors are a contract with the executor's layers, which find their memory
// by them.
#pragma once

#include "core/workload/workload.h"

namespace pipewright {

/// First norm, query/key/value projections, attention core, output projection.
void addAttention(const ModelShape& shape, Layer& layer);
/// Second norm and the MLP of layer `index`: plain, gated, or experts with their router.
void addMlp(const ModelShape& shape, int index, Layer& layer);

Layer embeddingLayer(const ModelShape& shape);
Layer headLayer(const ModelShape& shape);

} // namespace pipewright
