// SPDX-License-Identifier: GPL-3.0-or-later
// The layers of the runnable classifier before its head, which is the GPT's: a bag of features, and residual MLPs
// with a norm before each. They pass on a stream of rows x hidden as the GPT's layers do (gptlayers.h), a row per
// sample, and divide the work between I and W in the same way.
#pragma once

#include "executor/training/gptlayers.h"

namespace pipewright {

class FeatureLayer {
public:
    FeatureLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    /// Keeps the features and fills the stream.
    void forward(std::span<const float> parameters, std::span<const std::int32_t> features, const StageMemory& memory,
                 std::span<float> stream) const;
    /// The place of the stream's gradient in I: it is what W needs, so I has nothing left to do here.
    std::span<float> outputGrad(const StageMemory& memory) const { return memory.floats(m_outputGrad); }
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    int m_length, m_hidden; ///< features of a row
    Parameter m_table;
    Slice m_features, m_outputGrad;
};

class MlpLayer {
public:
    MlpLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    void forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    int m_rows, m_hidden, m_ffn;
    ParameterPair m_norm, m_fc1, m_fc2;
    Slice m_normInput, m_activationInput, m_fc1Input, m_fc2Input, m_fc1Grad, m_fc2Grad, m_normGrad;
};

} // namespace pipewright
