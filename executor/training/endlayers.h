// SPDX-License-Identifier: GPL-3.0-or-later
// The two ends of a model. Before the layers: an embedding of tokens, or a classifier's bag of features. After them:
// the final norm, the projection to the vocabulary and the loss. The ends of an encoder are in encoderends.h, the first
// layer of a vision transformer in patchembedding.h. The layers between have files of their own (plainattention.h,
// groupedattention.h, mlp.h).
//
// A part owns no memory; it only knows which parameters and which saved tensors are its own. Values pass through a
// residual stream of tokens x hidden that a layer changes in place: F turns it from the layer's input into its output,
// I from the gradient of the output into the gradient of the input. Hence the stream itself is the only memory handed
// from layer to layer, and F needs no scratch at all.
//
// I also accumulates the gradients of the norms, because they need tensors that are kept only until I; W accumulates
// the gradients of everything that belongs to a matrix, its bias included. Both add, with +=.
#pragma once

#include "executor/training/linear.h"
#include "executor/training/norm.h"
#include "executor/training/stagelayout.h"

#include <optional>
#include <span>

namespace pipewright {

class EmbeddingLayer {
public:
    EmbeddingLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    /// Keeps the tokens and fills the stream.
    void forward(std::span<const float> parameters, std::span<const std::int32_t> tokens, const StageMemory& memory,
                 std::span<float> stream) const;
    /// The place of the stream's gradient in I: it is what W needs.
    std::span<float> outputGrad(const StageMemory& memory) const { return memory.floats(m_outputGrad); }
    /// Scales the stream's gradient as the table's rows were scaled; nothing without a scale.
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    /// The rows of the position table, or of its gradient, that a piece uses; empty without a table.
    template<class T>
    std::span<T> positions(std::span<T> flat, int piece) const
    {
        if (!m_positions)
            return {};
        const std::size_t count = std::size_t(m_length) * std::size_t(m_hidden);
        return m_positions->in(flat).subspan(std::size_t(piece) * count, count);
    }

    void scale(const kernels::Operations& on, std::span<float> values) const;

    int m_length, m_hidden; ///< tokens of a sequence, or of a piece of one
    float m_scale;          ///< of the table's rows
    Parameter m_table;
    std::optional<Parameter> m_positions;
    Slice m_tokens, m_outputGrad;
};

class FeatureLayer {
public:
    FeatureLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    /// Keeps the features and fills the stream.
    void forward(std::span<const float> parameters, std::span<const std::int32_t> features, const StageMemory& memory,
                 std::span<float> stream) const;
    /// The place of the stream's gradient in I, as in EmbeddingLayer.
    std::span<float> outputGrad(const StageMemory& memory) const { return memory.floats(m_outputGrad); }
    void inputGrad(std::span<const float>, const StageMemory&, std::span<float>) const {}
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    int m_length, m_hidden; ///< features of a row
    Parameter m_table;
    Slice m_features, m_outputGrad;
};

/// After F on the host: rows whose target got the largest probability.
int countCorrect(std::span<const float> probabilities, std::span<const std::int32_t> targets);

class HeadLayer {
public:
    /// `lossScale`: weight of one target's loss, 1 / (counted targets of a microbatch · microbatches of a step).
    HeadLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
              float lossScale);

    /// The place of the stream in F of a stage that ends here: the final norm's saved input.
    std::span<float> stream(const StageMemory& memory) const { return memory.floats(m_normInput); }
    /// From that stream; loss[0] becomes this microbatch's share of the step's loss.
    void forward(std::span<const float> parameters, std::span<const std::int32_t> targets, const StageMemory& memory,
                 std::span<float> loss) const;
    /// Replaces the stream by the gradient of the final norm's input.
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    int m_rows, m_vocabulary;
    int m_apart; ///< rows from one that is read to the next: 1, or a sequence if only its first is read
    float m_lossScale, m_softCap; ///< 0: logits stay as they are
    Norm m_norm;
    Linear m_projection;
    Slice m_normInput, m_input, m_probabilities, m_targets, m_logitsGrad, m_normGrad;
    Slice m_capped; ///< where logits are
};

} // namespace pipewright
