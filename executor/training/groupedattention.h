// SPDX-License-Identifier: GPL-3.0-or-later
// The attention of current models as a residual part of a layer (residual.h): query, key and value with grouped heads,
// a norm on queries and keys where the model has one, positions (rotary or from a table), attention that keeps one
// number per query and head and may be limited to a window, and a projection, added to the stream (endlayers.h says
// what a stream is).
#pragma once

#include "executor/training/linear.h"
#include "executor/training/norm.h"
#include "executor/training/residual.h"
#include "executor/training/stagelayout.h"

#include <array>
#include <optional>
#include <span>

namespace pipewright {

/// The frequencies of a model's rotary positions, and what its scores are multiplied by because of them.
kernels::RotaryFrequencies frequenciesOf(const Rotary& rotary);

/// Throws Error where the model asks to keep more than one number per query and head.
void requireStreamed(const kernels::GroupedAttentionShape& shape, const Slice& logSums);

class GroupedAttention {
public:
    GroupedAttention(const ModelShape& shape, int layer, int number, const StageLayout& layout,
                     const ParameterLayout& parameters);

    void forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const;
    /// Recomputes the kept numbers and the context from the kept queries, keys and values; the result is the same.
    void recomputeCore(std::span<const float> parameters, const StageMemory& memory) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    /// Queries or keys: a linear layer, perhaps a norm of each head, perhaps turned.
    struct Heads {
        Linear linear;
        int heads;
        std::optional<Norm> norm;
        Slice normInput, output;
    };
    Heads headsOf(const ModelShape& shape, const char* name, int firstOutput, int heads, int layer,
                  const StageLayout& layout, const ParameterLayout& parameters) const;
    void turn(const StageMemory& memory, const Heads& of, std::span<float> values, bool backwards) const;
    /// Gradients of queries, keys and values: three consecutive matrices.
    std::array<std::span<float>, 3> gradients(const StageMemory& memory) const;

    int m_rows, m_headSize;
    kernels::GroupedAttentionShape m_attention;
    std::optional<kernels::RotaryFrequencies> m_rotary;
    std::optional<Parameter> m_sinks;
    template<class T>
    std::span<T> sinksIn(std::span<T> flat) const
    {
        return m_sinks ? m_sinks->in(flat) : std::span<T>();
    }
    Residual m_residual;
    Linear m_qkv, m_valueLinear, m_projection;
    Heads m_queries, m_keys;
    Slice m_value, m_logSums;          // until I
    Slice m_projectionInput;           // until W
    Slice m_qkvGrad, m_projectionGrad; // from I
    Slice m_normGrad, m_dots;          // workspace of I
    Slice m_sequenceGradient;          // from piece to piece
};

} // namespace pipewright
