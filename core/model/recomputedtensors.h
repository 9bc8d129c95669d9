// SPDX-License-Identifier: GPL-3.0-or-later
// The tensors of a layer that recomputation makes again, and the memory of a forward that writes more tensors than it
// keeps. Selective recomputation makes the attention core again (scores, softmax, and their dropout; arXiv 2205.05198,
// section 5), every other kind all that a forward writes, but for the keys and values of a piece of a sequence, which
// the forwards of later pieces read.
//
// A forward also writes the tensors that it does not keep. Layers run one after another and share that memory, except
// the head: the input of its final norm holds the values between the earlier layers.
#pragma once

#include "core/base/recompute.h"
#include "core/model/workload.h"

#include <span>
#include <vector>

namespace pipewright {

/// Throws Error for stages that are to recompute what the model does not keep.
void checkRecompute(const ModelShape& shape, const std::vector<Recompute>& ofStage);

/// Layers that full recomputation inside the backward recomputes: all but embedding and head (as Megatron's
/// --recompute-granularity full and torchtitan's full activation checkpointing).
bool isCheckpointed(LayerKind kind);

/// Whether recomputation, not F, writes this tensor for the backward. Tensors of lifetime FromInputGrad are written by
/// I only.
bool isRecomputed(const SavedTensor& tensor, Recompute recompute, int sequencePieces);

/// Bytes of these tensors of a layer.
Bytes recomputedBytes(const Layer& layer, Recompute recompute, int sequencePieces);

/// Where F writes the tensors that it does not keep.
Bytes forwardScratch(std::span<const Layer> layersOfStage, Recompute recompute, int sequencePieces);

/// Memory for the values between layers, where the stage has no buffer in which R can write them.
Bytes recomputeScratch(std::span<const Layer> layersOfStage, Recompute recompute);

/// FLOPs of scores and context in the forward. Only the attention core has no work in the weight gradient.
double attentionCoreFlops(const Layer& layer);

/// FLOPs that are done again.
double recomputedFlops(const Layer& layer, Recompute recompute);

} // namespace pipewright
