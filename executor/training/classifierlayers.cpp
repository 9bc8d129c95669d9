// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/classifierlayers.h"

namespace pipewright {

using kernels::Store;

FeatureLayer::FeatureLayer(const ModelShape& shape, int layer, const StageLayout& layout,
                           const ParameterLayout& parameters)
    : m_length(int(shape.inputs() / shape.tokens())), m_hidden(int(shape.hidden)),
      m_table(parameters.at(layer, "table.weight")), m_features(layout.slice(layer, "features")),
      m_outputGrad(layout.slice(layer, "embedding.outputGrad"))
{
}

void FeatureLayer::forward(std::span<const float> parameters, std::span<const std::int32_t> features,
                           const StageMemory& memory, std::span<float> stream) const
{
    memory.operations->copy(features, memory.integers(m_features));
    memory.operations->run(kernels::FeatureBagForward{m_length, m_hidden, features, m_table.in(parameters), stream});
}

void FeatureLayer::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    memory.operations->run(kernels::FeatureBagWeightGrad{m_length, m_hidden, memory.integers(m_features),
                                                         memory.floats(m_outputGrad), m_table.in(gradients)});
}

MlpLayer::MlpLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters)
    : m_rows(int(shape.tokens())), m_hidden(int(shape.hidden)),
      m_ffn(int(shape.ffn)), m_norm{parameters.at(layer, "ln2.gamma"), parameters.at(layer, "ln2.beta")},
      m_fc1{parameters.at(layer, "fc1.weight"), parameters.at(layer, "fc1.bias")},
      m_fc2{parameters.at(layer, "fc2.weight"), parameters.at(layer, "fc2.bias")},
      m_normInput(layout.slice(layer, "ln2.input")), m_activationInput(layout.slice(layer, "mlp.activationInput")),
      m_fc1Input(layout.slice(layer, "fc1.input")), m_fc2Input(layout.slice(layer, "fc2.input")),
      m_fc1Grad(layout.slice(layer, "fc1.outputGrad")), m_fc2Grad(layout.slice(layer, "fc2.outputGrad")),
      m_normGrad(layout.slice(layer, "d.ln"))
{
}

void MlpLayer::forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const
{
    const kernels::Operations& on = *memory.operations;
    const auto tensor = [&](const Slice& slice) { return memory.floats(slice); };
    on.copy(stream, tensor(m_normInput));
    on.run(kernels::LayerNormForward{m_rows, m_hidden, tensor(m_normInput), m_norm.weight.in(parameters),
                                     m_norm.bias.in(parameters), tensor(m_fc1Input)});
    on.run(kernels::LinearForward{{m_rows, m_hidden, m_ffn},
                                  tensor(m_fc1Input),
                                  m_fc1.weight.in(parameters),
                                  m_fc1.bias.in(parameters),
                                  tensor(m_activationInput),
                                  Store::Replace});
    on.run(kernels::GeluForward{tensor(m_activationInput), tensor(m_fc2Input)});
    on.run(kernels::LinearForward{{m_rows, m_ffn, m_hidden},
                                  tensor(m_fc2Input),
                                  m_fc2.weight.in(parameters),
                                  m_fc2.bias.in(parameters),
                                  stream,
                                  Store::Add});
}

void MlpLayer::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                         std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    const auto tensor = [&](const Slice& slice) { return memory.floats(slice); };
    on.copy(stream, tensor(m_fc2Grad));
    on.run(kernels::LinearInputGrad{{m_rows, m_ffn, m_hidden}, stream, m_fc2.weight.in(parameters), tensor(m_fc1Grad)});
    on.run(kernels::GeluInputGrad{tensor(m_activationInput), tensor(m_fc1Grad), tensor(m_fc1Grad)});
    on.run(kernels::LinearInputGrad{
        {m_rows, m_hidden, m_ffn}, tensor(m_fc1Grad), m_fc1.weight.in(parameters), tensor(m_normGrad)});
    on.run(kernels::LayerNormInputGrad{m_rows, m_hidden, tensor(m_normInput), m_norm.weight.in(parameters),
                                       tensor(m_normGrad), stream});
    on.run(kernels::LayerNormWeightGrad{m_rows, m_hidden, tensor(m_normInput), tensor(m_normGrad),
                                        m_norm.weight.in(gradients), m_norm.bias.in(gradients)});
}

void MlpLayer::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    on.run(kernels::LinearWeightGrad{{m_rows, m_hidden, m_ffn},
                                     memory.floats(m_fc1Input),
                                     memory.floats(m_fc1Grad),
                                     m_fc1.weight.in(gradients),
                                     m_fc1.bias.in(gradients)});
    on.run(kernels::LinearWeightGrad{{m_rows, m_ffn, m_hidden},
                                     memory.floats(m_fc2Input),
                                     memory.floats(m_fc2Grad),
                                     m_fc2.weight.in(gradients),
                                     m_fc2.bias.in(gradients)});
}

} // namespace pipewright
