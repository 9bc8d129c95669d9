// SPDX-License-Identifier: GPL-3.0-or-later
// The mathematics of one stage: forward, input gradient and weight gradient of a range of layers for one
// microbatch. It owns no memory and no state: parameters (in whichever weight version), saved tensors and
// gradients are arguments, nothing is allocated, and the same arguments give the same bits. One object may
// be used by several threads at once, each with memory of its own.
//
// A microbatch may be a piece of its sequences (StageMemory::piece): then F needs the tensors that earlier pieces saved
// until I, and I runs on the pieces from the last to the first.
//
// After F a stage needs its input only through its saved tensors, so the input's buffer may be freed. The
// order in which microbatches pass I decides the order in which layer norm gradients are summed; the order
// in which they pass W decides it for everything else. A full backward is I followed by W.
#pragma once

#include "executor/stage/layermaths.h"
#include "executor/stage/parameterlayout.h"

#include <optional>
#include <span>
#include <vector>

namespace pipewright {

/// What F takes: tokens (a classifier's features, the bytes of pictures) in the stage with the embedding, activation in
/// every other, targets in the stage with the head; what skip connections bring is added to the activation, in this
/// order. They are shape.inputs() and shape.targets() integers, row by row. In the stage with the head `loss` is one
/// element: it becomes the microbatch's share of the step's loss.
struct StageInput {
    std::span<const std::int32_t> tokens;
    std::span<const float> activation;
    std::span<const std::int32_t> targets;
    std::span<float> loss{};
    std::span<const std::span<const float>> skips{};
};

class StageMaths {
public:
    /// Layers [first, last) of a runnable workload (Error otherwise). The loss of a step is the mean over its
    /// `microbatches` of their mean token losses, and gradients are of that. In a stage that recomputes, F writes the
    /// tensors that it does not keep into its workspace.
    StageMaths(const Workload& workload, int first, int last, int microbatches, Recompute recompute = Recompute::None);

    const StageLayout& layout() const { return m_layout; }
    const ParameterLayout& parameters() const { return m_parameters; }
    std::size_t activationElements() const { return m_activationElements; } ///< tokens x hidden, in and out
    bool hasEmbedding() const { return m_embeddingGrad.has_value(); }
    bool hasHead() const { return m_headStream.has_value(); }

    /// F: fills the two saved buffers and, except in the stage with the head, `output`, which may be the activation.
    void forward(std::span<const float> parameters, const StageInput& input, const StageMemory& memory,
                 std::span<float> output) const;

    /// R: fills the two recomputed buffers with the tensors that F computed and did not keep; reads `input` only in a
    /// stage that recomputes fully. The loss is the same again.
    void recompute(std::span<const float> parameters, const StageInput& input, const StageMemory& memory) const;

    /// R of the attention cores alone, from the kept queries, keys and values.
    void recomputeCores(std::span<const float> parameters, const StageMemory& memory) const;

    /// After F on the host, in the stage with the head: how many targets got the largest probability.
    int correct(const StageMemory& memory) const;

    /// After F, in the stage with the head: the class probabilities of every row that counts for the loss.
    std::span<const float> probabilities(const StageMemory& memory) const { return memory.floats(m_probabilities); }

    /// I: reads savedUntilInputGrad, the attention's output in savedUntilWeightGrad (a GPU needs it), `outputGrad` in a
    /// stage without a head, and the gradients from skip connections that leave this stage. Writes savedFromInputGrad
    /// and, in a stage without an embedding, `inputGrad`, which is also the gradient of the skip connections that
    /// arrive. Uses the workspace; adds the layer norms' gradients to `gradients`.
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<const float> outputGrad,
                   std::span<float> inputGrad, std::span<float> gradients,
                   std::span<const std::span<const float>> skipGrads = {}) const;

    /// W: reads savedUntilWeightGrad and savedFromInputGrad; adds all other gradients to `gradients`.
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

    /// B: I, then W.
    void backward(std::span<const float> parameters, const StageMemory& memory, std::span<const float> outputGrad,
                  std::span<float> inputGrad, std::span<float> gradients,
                  std::span<const std::span<const float>> skipGrads = {}) const;

private:
    /// `memoryOf` gives the memory of a layer.
    template<class MemoryOf>
    void runForward(std::span<const float> parameters, const StageInput& input, MemoryOf memoryOf,
                    std::span<float> stream) const;

    StageLayout m_layout;
    ParameterLayout m_parameters;
    std::size_t m_activationElements;
    std::vector<LayerMaths> m_layers;
    std::optional<Slice> m_embeddingGrad; ///< in which I has the stream's gradient in a stage with the embedding
    std::optional<Slice> m_headStream;    ///< where the head takes the stream from
    Slice m_probabilities, m_targets;     ///< the head's
};

} // namespace pipewright
