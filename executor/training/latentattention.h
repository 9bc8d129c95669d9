// SPDX-License-Identifier: GPL-3.0-or-later
// DeepSeek's latent attention as a residual part of a layer: queries go through one narrow latent with a norm, keys and
// values together through another; every head's key ends with one rotary part that all heads share (arXiv 2405.04434,
// section 2.1). It is computed in the expanded form, as in training. Keys are assembled in the memory that queries get
// afterwards, so the forward needs no scratch.
#pragma once

#include "executor/training/linear.h"
#include "executor/training/norm.h"
#include "executor/training/stagelayout.h"

#include <optional>
#include <span>

namespace pipewright {

class LatentAttention {
public:
    LatentAttention(const ModelShape& shape, int layer, int number, const StageLayout& layout,
                    const ParameterLayout& parameters);

    void forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const;
    /// Recomputes the kept numbers and the context from the kept queries, keys and values; the result is the same.
    void recomputeCore(std::span<const float> parameters, const StageMemory& memory) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    /// From a latent to the queries.
    struct QueryLatent {
        Norm norm;
        Linear up;
        Slice normInput, input, outputGrad;
    };
    /// Gradients of the outputs of the first linear layer: queries (or their latent), latent, rotary part.
    struct DownGrads {
        std::span<float> query, latent, shared;
    };
    DownGrads downGrads(const StageMemory& memory) const;
    /// Gradients of the outputs of the up-projections of keys and values.
    struct UpGrads {
        std::span<float> own, value;
    };
    UpGrads upGrads(const StageMemory& memory) const;
    void turn(const StageMemory& memory, std::span<float> values, bool backwards) const;

    int m_rows;
    kernels::LatentKeys m_keys;
    kernels::GroupedAttentionShape m_attention;
    kernels::RotaryFrequencies m_rotary;
    Norm m_norm;
    Linear m_queryDown, m_latentDown, m_sharedDown; ///< one weight
    std::optional<QueryLatent> m_queryLatent;
    Norm m_latentNorm;
    Linear m_keyUp, m_valueUp; ///< one weight
    Linear m_projection;
    Slice m_normInput, m_latentNormInput, m_query, m_key, m_value, m_logSums; // until I
    Slice m_qkvInput, m_latentInput, m_projectionInput;                       // until W
    Slice m_qkvGrad, m_latentGrad, m_projectionGrad;                          // from I
    Slice m_normGrad, m_dots, m_keyGrad;                                      // workspace of I
    Slice m_sequenceGradient;                                                 // from piece to piece
};

} // namespace pipewright
