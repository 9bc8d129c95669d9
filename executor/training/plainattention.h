// SPDX-License-Identifier: GPL-3.0-or-later
// GPT's attention as a residual part of a layer: norm, one linear layer for query, key and value, causal attention with
// as many key as query heads, projection, added to the stream (endlayers.h says what a stream is).
#pragma once

#include "executor/training/linear.h"
#include "executor/training/norm.h"
#include "executor/training/stagelayout.h"

#include <span>

namespace pipewright {

class PlainAttention {
public:
    PlainAttention(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    void forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const;
    /// Recomputes scores, softmax and context from the kept queries, keys and values; the context is the same.
    void recomputeCore(std::span<const float> parameters, const StageMemory& memory) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    int m_rows;
    kernels::AttentionShape m_attention;
    Norm m_norm;
    Linear m_qkv, m_projection;
    Slice m_normInput, m_query, m_key, m_value, m_probabilities; // until I
    Slice m_qkvInput, m_projectionInput;                         // until W
    Slice m_qkvGrad, m_projectionGrad;                           // from I
    Slice m_normGrad, m_scoresGrad;                              // workspace of I
    Slice m_sequenceGradient;                                    // from piece to piece
};

} // namespace pipewright
