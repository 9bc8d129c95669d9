// SPDX-License-Identifier: GPL-3.0-or-later
// The bytes of a stage for one microbatch: what its passes keep, by lifetime, and what they work in. The executor
// allocates exactly these.
//
// A full B takes the gradients of one layer after another, the input's and then the weights', as frameworks do, so that
// what I makes for W is there for one layer at a time.
//
// Where the backward recomputes, the stage is a row of segments: layers that are recomputed together, and those between
// them that are not. F keeps the input of every recomputed segment (the first one's is the stage's input, which stays).
// The backward takes one segment after another, from the last to the first: it recomputes what F did not keep, and
// goes on with I, and a full B with W. Where I and W are apart, I keeps what W reads, and W recomputes nothing.
#pragma once

#include "core/model/passworkspace.h"

#include <span>
#include <vector>

namespace pipewright {

/// Layers [first, last) of a stage.
struct RecomputeSegment {
    std::size_t first = 0, last = 0;
    Recompute recompute; ///< how these are recomputed at once: None, BlockSelective or Block
};

/// Of a stage whose backward recomputes; of any other every layer by itself, as a full B takes them.
std::vector<RecomputeSegment> segmentsOf(std::span<const Layer> layersOfStage, Recompute recompute);

/// What a segment keeps and makes again, by lifetime.
struct KeptBytes {
    Bytes untilInputGrad = 0, untilWeightGrad = 0, fromInputGrad = 0;
    Bytes againUntilInputGrad = 0, againUntilWeightGrad = 0;
};
KeptBytes keptBytes(std::span<const Layer> layers, Recompute recompute, int sequencePieces);

/// The input that F keeps for a segment.
Bytes keptInput(std::span<const Layer> layersOfStage, const RecomputeSegment& segment);

/// The values between segments where a pass has no buffer for them: of F in a stage with the head, of the backward in
/// one with the embedding.
struct BetweenSegments {
    Bytes forward = 0, backward = 0;
};
BetweenSegments betweenSegments(std::span<const Layer> layersOfStage, std::span<const RecomputeSegment> segments);

struct PassMemory {
    KeptBytes kept;          ///< againUntil…: of R blocks
    PassWorkspace workspace; ///< of a full B: with what I makes for W
};
PassMemory passMemory(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute);

} // namespace pipewright
