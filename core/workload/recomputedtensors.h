// SPDX-License-Identifier: GPL-3.0-or-later
// What recomputation makes again of a layer's tensors, and the memory in which a forward works that keeps less than it
// makes. Selective recomputation makes the attention core again (scores, softmax, and their dropout; arXiv 2205.05198,
// section 5), full recomputation everything that a forward writes, but for the keys and values of a piece of a
// sequence, which the forwards of later pieces read.
//
// A forward that keeps nothing of some tensors still writes them: its layers run one after another and share that
// memory, but for the head, whose final norm's input carries the values between the layers before it.
#pragma once

#include "core/base/recompute.h"
#include "core/workload/workload.h"

#include <span>
#include <vector>

namespace pipewright {

/// Throws Error for stages that are to recompute what the model does not keep.
void checkRecompute(const ModelShape& shape, const std::vector<Recompute>& ofStage);

/// Is it R that writes this tensor for the backward, and not F? Tensors of lifetime FromInputGrad are written by I
/// only.
bool isRecomputed(const SavedTensor& tensor, Recompute recompute, int sequencePieces);

/// Bytes of a layer's tensors that R writes.
Bytes recomputedBytes(const Layer& layer, Recompute recompute, int sequencePieces);

/// Where F writes the tensors that it does not keep.
Bytes forwardScratch(std::span<const Layer> layersOfStage, Recompute recompute, int sequencePieces);

/// The values between layers, where R has no place of the stage for them.
Bytes recomputeScratch(std::span<const Layer> layersOfStage, Recompute recompute);

/// FLOPs of scores and context in the forward. Of all work only the core has none in the weight gradient.
double attentionCoreFlops(const Layer& layer);

/// FLOPs that R does.
double recomputedFlops(const Layer& layer, Recompute recompute);

} // namespace pipewright
