// SPDX-License-Identifier: GPL-3.0-or-later
// The pieces layersOf() is made of: each adds the work, the parameters and the kept tensors of one part
// of a layer. Tensor names are a contract with the executor's layers.
#pragma once

#include "core/workload/workload.h"

namespace pipewright {

/// First norm, query/key/value projections, attention core, output projection.
void addAttention(const ModelShape& shape, Layer& layer);
/// Second norm and the MLP of layer `index`: plain, gated, or experts with their router.
void addMlp(const ModelShape& shape, int index, Layer& layer);

Layer embeddingLayer(const ModelShape& shape);
Layer headLayer(const ModelShape& shape);

/// Parameters of one norm of `width` values: weight, and with biases (layer norm) also a shift.
std::int64_t normParameters(const ModelShape& shape, std::int64_t width);
/// Adds a matrix product of `rows` x `inner` with `inner` x `columns` and its two gradients.
void addProduct(Layer& layer, std::int64_t rows, std::int64_t inner, std::int64_t columns);

} // namespace pipewright
