// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/gptlayers.h"

#include <algorithm>

namespace pipewright {

using kernels::LinearShape;
using kernels::Operations;
using kernels::Store;

namespace {

/// Finds a pair of parameters of one layer.
struct PairFinder {
    const ParameterLayout& layout;
    int layer;

    ParameterPair norm(const std::string& name) const
    {
        return {layout.at(layer, name + ".gamma"), layout.at(layer, name + ".beta")};
    }
    ParameterPair linear(const std::string& name) const
    {
        return {layout.at(layer, name + ".weight"), layout.at(layer, name + ".bias")};
    }
    ParameterPair matrix(const std::string& name) const { return {layout.at(layer, name + ".weight"), {}, false}; }
};

LinearShape shapeOf(int rows, const ParameterPair& linear)
{
    return {rows, linear.weight.columns, linear.weight.rows};
}

void linearForward(const Operations& on, int rows, const ParameterPair& linear, std::span<const float> parameters,
                   std::span<const float> input, std::span<float> output, Store store = Store::Replace)
{
    const std::span<const float> bias = linear.hasBias ? linear.bias.in(parameters) : std::span<const float>();
    on.run(kernels::LinearForward{shapeOf(rows, linear), input, linear.weight.in(parameters), bias, output, store});
}

void linearInputGrad(const Operations& on, int rows, const ParameterPair& linear, std::span<const float> parameters,
                     std::span<const float> outputGrad, std::span<float> inputGrad)
{
    on.run(kernels::LinearInputGrad{shapeOf(rows, linear), outputGrad, linear.weight.in(parameters), inputGrad});
}

void linearWeightGrad(const Operations& on, int rows, const ParameterPair& linear, std::span<const float> input,
                      std::span<const float> outputGrad, std::span<float> gradients)
{
    const std::span<float> bias = linear.hasBias ? linear.bias.in(gradients) : std::span<float>();
    on.run(kernels::LinearWeightGrad{shapeOf(rows, linear), input, outputGrad, linear.weight.in(gradients), bias});
}

void normForward(const Operations& on, int rows, const ParameterPair& norm, std::span<const float> parameters,
                 std::span<const float> input, std::span<float> output)
{
    on.run(kernels::LayerNormForward{rows, norm.weight.columns, input, norm.weight.in(parameters),
                                     norm.bias.in(parameters), output});
}

/// Adds the gradient of the norm's input to the stream and those of gamma and beta to the gradients.
void normInputGrad(const Operations& on, int rows, const ParameterPair& norm, std::span<const float> parameters,
                   std::span<const float> input, std::span<const float> outputGrad, std::span<float> stream,
                   std::span<float> gradients)
{
    const int columns = norm.weight.columns;
    on.run(kernels::LayerNormInputGrad{rows, columns, input, norm.weight.in(parameters), outputGrad, stream});
    on.run(kernels::LayerNormWeightGrad{rows, columns, input, outputGrad, norm.weight.in(gradients),
                                        norm.bias.in(gradients)});
}

} // namespace

EmbeddingLayer::EmbeddingLayer(const ModelShape& shape, int layer, const StageLayout& layout,
                               const ParameterLayout& parameters)
    : m_length(int(shape.sequence / shape.sequencePieces)),
      m_hidden(int(shape.hidden)), m_tables{parameters.at(layer, "table.weight"),
                                            parameters.at(layer, "positions.weight")},
      m_tokens(layout.slice(layer, "tokens")), m_outputGrad(layout.slice(layer, "embedding.outputGrad"))
{
}

void EmbeddingLayer::forward(std::span<const float> parameters, std::span<const std::int32_t> tokens,
                             const StageMemory& memory, std::span<float> stream) const
{
    const Operations& on = *memory.operations;
    on.copy(tokens, memory.integers(m_tokens));
    on.run(kernels::EmbeddingForward{m_length, m_hidden, tokens, m_tables.weight.in(parameters),
                                     positions(parameters, memory.piece), stream});
}

void EmbeddingLayer::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    on.run(kernels::EmbeddingWeightGrad{m_length, m_hidden, memory.integers(m_tokens), memory.floats(m_outputGrad),
                                        m_tables.weight.in(gradients), positions(gradients, memory.piece)});
}

TransformerLayer::TransformerLayer(const ModelShape& shape, int layer, const StageLayout& layout,
                                   const ParameterLayout& parameters)
    : m_rows(int(shape.tokens())),
      m_hidden(int(shape.hidden)), m_attention{int(shape.microbatchSize), int(shape.sequence / shape.sequencePieces),
                                               shape.heads, int(shape.headSize), shape.sequencePieces}
{
    const PairFinder find{parameters, layer};
    m_ln1 = find.norm("ln1");
    m_qkv = find.linear("qkv");
    m_projection = find.linear("projection");
    m_ln2 = find.norm("ln2");
    m_fc1 = find.linear("fc1");
    m_fc2 = find.linear("fc2");
    const auto at = [&](const char* tensor) { return layout.slice(layer, tensor); };
    m_at = {at("ln1.input"),
            at("attention.query"),
            at("attention.key"),
            at("attention.value"),
            at("attention.probabilities"),
            at("ln2.input"),
            at("mlp.activationInput"),
            at("qkv.input"),
            at("projection.input"),
            at("fc1.input"),
            at("fc2.input"),
            at("qkv.outputGrad"),
            at("projection.outputGrad"),
            at("fc1.outputGrad"),
            at("fc2.outputGrad"),
            at("d.ln"),
            at("d.scores"),
            at("attention.sequenceGradient")};
}

void TransformerLayer::forward(std::span<const float> parameters, const StageMemory& memory,
                               std::span<float> stream) const
{
    const Operations& on = *memory.operations;
    const auto tensor = [&](const Slice& slice) { return memory.floats(slice); };
    on.copy(stream, tensor(m_at.ln1Input));
    normForward(on, m_rows, m_ln1, parameters, tensor(m_at.ln1Input), tensor(m_at.qkvInput));
    // Query, key and value are tensors of their own: a third of the weight's rows each.
    const auto weight = m_qkv.weight.in(parameters), bias = m_qkv.bias.in(parameters);
    const std::size_t third = weight.size() / 3, width = std::size_t(m_hidden);
    const Slice parts[] = {m_at.query, m_at.key, m_at.value};
    for (std::size_t part = 0; part < 3; ++part)
        on.run(kernels::LinearForward{{m_rows, m_hidden, m_hidden},
                                      tensor(m_at.qkvInput),
                                      weight.subspan(part * third, third),
                                      bias.subspan(part * width, width),
                                      tensor(parts[part]),
                                      Store::Replace});
    recomputeCore(memory);
    linearForward(on, m_rows, m_projection, parameters, tensor(m_at.projectionInput), stream, Store::Add);

    on.copy(stream, tensor(m_at.ln2Input));
    normForward(on, m_rows, m_ln2, parameters, tensor(m_at.ln2Input), tensor(m_at.fc1Input));
    linearForward(on, m_rows, m_fc1, parameters, tensor(m_at.fc1Input), tensor(m_at.activationInput));
    on.run(kernels::GeluForward{tensor(m_at.activationInput), tensor(m_at.fc2Input)});
    linearForward(on, m_rows, m_fc2, parameters, tensor(m_at.fc2Input), stream, Store::Add);
}

void TransformerLayer::recomputeCore(const StageMemory& memory) const
{
    memory.operations->run(kernels::AttentionForward{m_attention, memory.floats(m_at.query), memory.floats(m_at.key),
                                                     memory.floats(m_at.value), memory.floats(m_at.probabilities),
                                                     memory.floats(m_at.projectionInput), earlier(memory)});
}

void TransformerLayer::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                                 std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    const auto tensor = [&](const Slice& slice) { return memory.floats(slice); };
    on.copy(stream, tensor(m_at.fc2Grad));
    linearInputGrad(on, m_rows, m_fc2, parameters, stream, tensor(m_at.fc1Grad));
    on.run(kernels::GeluInputGrad{tensor(m_at.activationInput), tensor(m_at.fc1Grad), tensor(m_at.fc1Grad)});
    linearInputGrad(on, m_rows, m_fc1, parameters, tensor(m_at.fc1Grad), tensor(m_at.normGrad));
    normInputGrad(on, m_rows, m_ln2, parameters, tensor(m_at.ln2Input), tensor(m_at.normGrad), stream, gradients);

    on.copy(stream, tensor(m_at.projectionGrad));
    linearInputGrad(on, m_rows, m_projection, parameters, stream, tensor(m_at.normGrad));
    on.run(kernels::AttentionInputGrad{m_attention, tensor(m_at.query), tensor(m_at.key), tensor(m_at.value),
                                       tensor(m_at.probabilities), tensor(m_at.projectionInput), tensor(m_at.normGrad),
                                       tensor(m_at.qkvGrad), tensor(m_at.scoresGrad), earlier(memory),
                                       tensor(m_at.sequenceGradient)});
    linearInputGrad(on, m_rows, m_qkv, parameters, tensor(m_at.qkvGrad), tensor(m_at.normGrad));
    normInputGrad(on, m_rows, m_ln1, parameters, tensor(m_at.ln1Input), tensor(m_at.normGrad), stream, gradients);
}

void TransformerLayer::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    const auto accumulate = [&](const ParameterPair& linear, const Slice& input, const Slice& outputGrad) {
        linearWeightGrad(on, m_rows, linear, memory.floats(input), memory.floats(outputGrad), gradients);
    };
    accumulate(m_qkv, m_at.qkvInput, m_at.qkvGrad);
    accumulate(m_projection, m_at.projectionInput, m_at.projectionGrad);
    accumulate(m_fc1, m_at.fc1Input, m_at.fc1Grad);
    accumulate(m_fc2, m_at.fc2Input, m_at.fc2Grad);
}

HeadLayer::HeadLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
                     float lossScale)
    : m_rows(int(shape.tokens())), m_vocabulary(int(shape.vocabulary)), m_lossScale(lossScale),
      m_norm(PairFinder{parameters, layer}.norm("norm")),
      m_projection(PairFinder{parameters, layer}.matrix("projection")), m_normInput(layout.slice(layer, "norm.input")),
      m_input(layout.slice(layer, "head.input")), m_probabilities(layout.slice(layer, "head.probabilities")),
      m_targets(layout.slice(layer, "targets")), m_logitsGrad(layout.slice(layer, "head.logitsGrad")),
      m_normGrad(layout.slice(layer, "d.ln"))
{
}

void HeadLayer::forward(std::span<const float> parameters, std::span<const std::int32_t> targets,
                        const StageMemory& memory, std::span<float> loss) const
{
    const Operations& on = *memory.operations;
    on.copy(targets, memory.integers(m_targets));
    normForward(on, m_rows, m_norm, parameters, memory.floats(m_normInput), memory.floats(m_input));
    const std::span<float> logits = memory.floats(m_probabilities);
    linearForward(on, m_rows, m_projection, parameters, memory.floats(m_input), logits);
    on.run(kernels::CrossEntropyForward{m_rows, m_vocabulary, logits, targets, m_lossScale, loss});
}

int HeadLayer::correct(const StageMemory& memory) const
{
    const std::span<const float> probabilities = memory.floats(m_probabilities);
    const std::span<const std::int32_t> targets = memory.integers(m_targets);
    int count = 0;
    for (int row = 0; row < m_rows; ++row) {
        const auto begin = probabilities.begin() + std::ptrdiff_t(row) * m_vocabulary;
        count += std::max_element(begin, begin + m_vocabulary) - begin == targets[std::size_t(row)];
    }
    return count;
}

void HeadLayer::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                          std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    on.run(kernels::CrossEntropyInputGrad{m_rows, m_vocabulary, memory.floats(m_probabilities),
                                          memory.integers(m_targets), m_lossScale, memory.floats(m_logitsGrad)});
    linearInputGrad(on, m_rows, m_projection, parameters, memory.floats(m_logitsGrad), memory.floats(m_normGrad));
    on.run(kernels::Fill{stream, 0});
    normInputGrad(on, m_rows, m_norm, parameters, memory.floats(m_normInput), memory.floats(m_normGrad), stream,
                  gradients);
}

void HeadLayer::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    linearWeightGrad(on, m_rows, m_projection, memory.floats(m_input), memory.floats(m_logitsGrad), gradients);
}

} // namespace pipewright
