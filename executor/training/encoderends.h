// SPDX-License-Identifier: GPL-3.0-or-later
// The two ends of an encoder like BERT (Devlin et al., arXiv 1810.04805). Before the layers, the embeddings of a token,
// of its position and of its segment are summed and normed; segments here are the two halves of a sequence. After the
// layers comes one of two heads. With a tied table it is the masked-token head: a square matrix, an activation, a norm,
// the table and a bias. Otherwise it is the pooler: a square matrix and tanh on the first token. A published pooler has
// no loss of its own; here its outputs are scores of classes, and the class is the token after the sequence, modulo the
// number of outputs.
#pragma once

#include "executor/training/endlayers.h"

namespace pipewright {

class EncoderEmbedding {
public:
    EncoderEmbedding(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    void forward(std::span<const float> parameters, std::span<const std::int32_t> tokens, const StageMemory& memory,
                 std::span<float> stream) const;
    std::span<float> outputGrad(const StageMemory& memory) const { return m_tokens.outputGrad(memory); }
    /// Turns it into the gradient of the sum before the norm.
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    /// Calls visit(first value of a half of a sequence, number of its values, which half) for every half of a
    /// microbatch.
    template<class Visit>
    void forEachHalf(std::size_t values, Visit visit) const;

    int m_rows, m_length, m_hidden;
    EmbeddingLayer m_tokens; ///< of tokens and positions
    Parameter m_segments;
    Norm m_norm;
    Slice m_normInput;
};

class PoolerHead {
public:
    PoolerHead(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
               float lossScale);

    std::span<float> stream(const StageMemory& memory) const { return memory.floats(m_stream); }
    void forward(std::span<const float> parameters, std::span<const std::int32_t> targets, const StageMemory& memory,
                 std::span<float> loss) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    int m_rows, m_length, m_hidden;
    float m_lossScale;
    Linear m_pooler;
    Slice m_stream, m_input, m_output, m_probabilities, m_targets, m_outputGrad, m_firstGrad;
};

class MaskedTokenHead {
public:
    MaskedTokenHead(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
                    float lossScale);

    std::span<float> stream(const StageMemory& memory) const { return memory.floats(m_transformInput); }
    void forward(std::span<const float> parameters, std::span<const std::int32_t> targets, const StageMemory& memory,
                 std::span<float> loss) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    int m_rows;
    kernels::ActivationKind m_activation;
    Linear m_transform;
    HeadLayer m_tokens; ///< norm, projection and loss
    Slice m_transformInput, m_activationInput, m_transformGrad;
};

} // namespace pipewright
