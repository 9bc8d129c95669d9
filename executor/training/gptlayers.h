// SPDX-License-Identifier: GPL-3.0-or-later
// The three kinds of layer of the runnable GPT: pre-norm transformer, embedding before it, head after it.
// Each owns nothing but places: which parameters and which saved tensors are its own. Values pass through
// a residual stream of tokens x hidden that a layer changes in place: F turns it from the layer's input into
// its output, I from the gradient of the output into the gradient of the input. Hence the stream itself is
// the only memory handed from layer to layer, and F needs no scratch at all.
//
// I also accumulates the gradients of the layer norms, because they need tensors that are kept until I only;
// W accumulates everything that belongs to a matrix, its bias included. Both add, with +=.
#pragma once

#include "executor/training/parameterlayout.h"
#include "executor/training/stagelayout.h"

#include <span>

namespace pipewright {

/// A norm's or a linear layer's two parameters; `bias` (a norm's beta) may be absent.
struct ParameterPair {
    Parameter weight, bias;
    bool hasBias = true;
};

class EmbeddingLayer {
public:
    EmbeddingLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    /// Keeps the tokens and fills the stream.
    void forward(std::span<const float> parameters, std::span<const std::int32_t> tokens, const StageMemory& memory,
                 std::span<float> stream) const;
    /// The place of the stream's gradient in I: it is what W needs, so I has nothing left to do here.
    std::span<float> outputGrad(const StageMemory& memory) const { return memory.floats(m_outputGrad); }
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    /// The rows of the position table, or of its gradient, that a piece uses.
    template<class T>
    std::span<T> positions(std::span<T> flat, int piece) const
    {
        const std::size_t count = std::size_t(m_length) * std::size_t(m_hidden);
        return m_tables.bias.in(flat).subspan(std::size_t(piece) * count, count);
    }

    int m_length, m_hidden; ///< tokens of a sequence, or of a piece of one
    ParameterPair m_tables; ///< table and positions
    Slice m_tokens, m_outputGrad;
};

class TransformerLayer {
public:
    TransformerLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    void forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const;
    /// Scores, softmax and context again from the kept queries, keys and values; the context comes out the same.
    void recomputeCore(const StageMemory& memory) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    struct Saved {
        Slice ln1Input, query, key, value, probabilities, ln2Input, activationInput; // until I
        Slice qkvInput, projectionInput, fc1Input, fc2Input;                         // until W
        Slice qkvGrad, projectionGrad, fc1Grad, fc2Grad;                             // from I
        Slice normGrad, scoresGrad;                                                  // workspace of I
        Slice sequenceGradient;                                                      // from piece to piece
    };
    kernels::EarlierPieces earlier(const StageMemory& memory) const
    {
        return {memory.earlier, std::size_t(m_at.key.offset) / sizeof(float),
                std::size_t(m_at.value.offset) / sizeof(float)};
    }

    int m_rows, m_hidden;
    kernels::AttentionShape m_attention;
    ParameterPair m_ln1, m_qkv, m_projection, m_ln2, m_fc1, m_fc2;
    Saved m_at;
};

class HeadLayer {
public:
    /// `lossScale`: weight of one token's loss, 1 / (tokens of a microbatch · microbatches of a step).
    HeadLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
              float lossScale);

    /// The place of the stream in F of a stage that ends here: the final norm's saved input.
    std::span<float> stream(const StageMemory& memory) const { return memory.floats(m_normInput); }
    /// From that stream; loss[0] becomes this microbatch's share of the step's loss.
    void forward(std::span<const float> parameters, std::span<const std::int32_t> targets, const StageMemory& memory,
                 std::span<float> loss) const;
    /// After F on the host: rows whose target got the largest probability.
    int correct(const StageMemory& memory) const;
    /// Replaces the stream by the gradient of the final norm's input.
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    int m_rows, m_vocabulary;
    float m_lossScale;
    ParameterPair m_norm, m_projection;
    Slice m_normInput, m_input, m_probabilities, m_targets, m_logitsGrad, m_normGrad;
};

} // namespace pipewright
