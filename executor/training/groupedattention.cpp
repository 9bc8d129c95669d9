// SPDX-License-Identifier: GPL-3.0-or-later
// Attention in tiles with an online softmax, which keeps one log-sum per row and recomputes the probabilities in the
// backward pass (Dao et al., arXiv 2205.14135); the kernels do that. O(tokens^2 x width), or O(tokens x window x
// width).
#include "executor/training/groupedattention.h"

#include "core/base/diagnostic.h"
#include "core/model/transformer.h"
#include "executor/training/attentions.h"

namespace pipewright {

kernels::RotaryFrequencies frequenciesOf(const Rotary& rotary)
{
    const auto scaling = [&] {
        switch (rotary.scaling) {
        case Rotary::Scaling::None: return kernels::RotaryScaling::None;
        case Rotary::Scaling::Linear: return kernels::RotaryScaling::Linear;
        case Rotary::Scaling::Llama3: return kernels::RotaryScaling::Llama3;
        case Rotary::Scaling::Yarn: return kernels::RotaryScaling::Yarn;
        }
        return kernels::RotaryScaling::None;
    };
    return {rotary.base, scaling(), rotary.factor, rotary.low, rotary.high, double(rotary.original)};
}

void requireStreamed(const kernels::GroupedAttentionShape& shape, const Slice& logSums)
{
    if (std::size_t(logSums.elements) != shape.numbers())
        throw Error("model.attention",
                    "the matrices of scores are to be stored, and this attention keeps one number per query and head",
                    "write \"attention\": \"streamed\"");
}

GroupedAttention::GroupedAttention(const ModelShape& shape, int layer, int number, const StageLayout& layout,
                                   const ParameterLayout& parameters)
    : m_rows(int(shape.tokens())), m_headSize(int(shape.headSize)), m_attention(attentionOf(shape, number)),
      m_residual(shape, layer, layout, parameters, Residual::attention), m_qkv(parameters, layer, "qkv"),
      m_valueLinear(m_qkv.part((shape.heads + shape.keyValueHeads) * m_headSize, shape.keyValueHeads * m_headSize)),
      m_projection(parameters, layer, "projection"),
      m_queries(headsOf(shape, "query", 0, shape.heads, layer, layout, parameters)),
      m_keys(headsOf(shape, "key", shape.heads * m_headSize, shape.keyValueHeads, layer, layout, parameters)),
      m_value(layout.slice(layer, "attention.value")), m_logSums(layout.slice(layer, "attention.probabilities")),
      m_projectionInput(layout.slice(layer, "projection.input")), m_qkvGrad(layout.slice(layer, "qkv.outputGrad")),
      m_projectionGrad(layout.slice(layer, "projection.outputGrad")), m_normGrad(layout.slice(layer, "d.ln")),
      m_dots(layout.slice(layer, "d.scores")), m_sequenceGradient(layout.slice(layer, "attention.sequenceGradient"))
{
    if (!shape.learnedPositions) {
        const bool local = shape.localRotaryBase > 0 && windowOf(shape, number) > 0;
        m_rotary = frequenciesOf(local ? Rotary{.base = shape.localRotaryBase} : shape.rotary);
    }
    if (const Parameter* sinks = parameters.findAt(layer, "sinks"))
        m_sinks = *sinks;
    requireStreamed(m_attention, m_logSums);
}

GroupedAttention::Heads GroupedAttention::headsOf(const ModelShape& shape, const char* name, int firstOutput, int heads,
                                                  int layer, const StageLayout& layout,
                                                  const ParameterLayout& parameters) const
{
    const std::string norm = std::string(name) + "Norm", output = std::string("attention.") + name;
    Heads of{m_qkv.part(firstOutput, heads * m_headSize), heads, {}, {}, layout.slice(layer, output)};
    if (shape.queryKeyNorm) {
        of.norm.emplace(shape, parameters, layer, norm);
        of.normInput = layout.slice(layer, norm + ".input");
    }
    return of;
}

void GroupedAttention::turn(const StageMemory& memory, const Heads& of, std::span<float> values, bool backwards) const
{
    if (m_rotary)
        memory.operations->run(kernels::Rotate{*m_rotary, m_attention.length, memory.piece * m_attention.length,
                                               of.heads, m_headSize, 0, m_headSize, false, backwards, values});
}

std::array<std::span<float>, 3> GroupedAttention::gradients(const StageMemory& memory) const
{
    const std::span<float> all = memory.floats(m_qkvGrad);
    const std::size_t queries = m_attention.queries(), keys = m_attention.keys();
    return {all.first(queries), all.subspan(queries, keys), all.subspan(queries + keys)};
}

void GroupedAttention::forward(std::span<const float> parameters, const StageMemory& memory,
                               std::span<float> stream) const
{
    const kernels::Operations& on = *memory.operations;
    m_residual.enter(parameters, memory, stream);
    const std::span<float> input = m_residual.input(memory);
    for (const Heads* of : {&m_queries, &m_keys}) {
        const std::span<float> output = memory.floats(of->output);
        of->linear.forward(on, m_rows, parameters, input, of->norm ? memory.floats(of->normInput) : output);
        if (of->norm)
            of->norm->forward(on, m_rows * of->heads, parameters, memory.floats(of->normInput), output);
        turn(memory, *of, output, false);
    }
    m_valueLinear.forward(on, m_rows, parameters, input, memory.floats(m_value));
    recomputeCore(parameters, memory);
    m_projection.forward(on, m_rows, parameters, memory.floats(m_projectionInput), m_residual.sum(memory, stream),
                         m_residual.store());
    m_residual.leave(parameters, memory, stream);
}

void GroupedAttention::recomputeCore(std::span<const float> parameters, const StageMemory& memory) const
{
    memory.operations->run(kernels::GroupedAttentionForward{
        m_attention, memory.floats(m_queries.output), memory.floats(m_keys.output), memory.floats(m_value),
        memory.floats(m_logSums), memory.floats(m_projectionInput), memory.earlierPieces(m_keys.output, m_value),
        sinksIn(parameters)});
}

void GroupedAttention::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                                 std::span<float> gradientSums) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<float> scratch = memory.floats(m_normGrad);
    const std::span<float> outputGrad = memory.floats(m_projectionGrad);
    m_residual.enterGrad(parameters, memory, stream, outputGrad, gradientSums);
    const std::span<float> contextGrad = scratch.first(m_attention.outputs());
    m_projection.inputGrad(on, m_rows, parameters, outputGrad, contextGrad);
    const auto [queryGrad, keyGrad, valueGrad] = gradients(memory);
    on.run(kernels::GroupedAttentionInputGrad{
        m_attention, memory.floats(m_queries.output), memory.floats(m_keys.output), memory.floats(m_value),
        memory.floats(m_logSums), memory.floats(m_projectionInput), contextGrad, queryGrad, keyGrad, valueGrad,
        memory.floats(m_dots), memory.earlierPieces(m_keys.output, m_value), memory.floats(m_sequenceGradient),
        sinksIn(parameters), sinksIn(gradientSums)});
    const std::span<float> inputGrad = scratch.first(stream.size());
    m_valueLinear.inputGrad(on, m_rows, parameters, valueGrad, inputGrad);
    for (const auto& [of, grad] : {std::pair{&m_queries, queryGrad}, std::pair{&m_keys, keyGrad}}) {
        turn(memory, *of, grad, true);
        if (of->norm)
            of->norm->inputGradInPlace(on, m_rows * of->heads, parameters, memory.floats(of->normInput), grad,
                                       gradientSums);
        of->linear.inputGrad(on, m_rows, parameters, grad, inputGrad, kernels::Store::Add);
    }
    m_residual.leaveGrad(parameters, memory, inputGrad, stream, gradientSums);
}

void GroupedAttention::weightGrad(const StageMemory& memory, std::span<float> gradientSums) const
{
    const kernels::Operations& on = *memory.operations;
    const auto [queryGrad, keyGrad, valueGrad] = gradients(memory);
    const std::span<const float> input = m_residual.input(memory);
    m_queries.linear.weightGrad(on, m_rows, input, queryGrad, gradientSums);
    m_keys.linear.weightGrad(on, m_rows, input, keyGrad, gradientSums);
    m_valueLinear.weightGrad(on, m_rows, input, valueGrad, gradientSums);
    m_projection.weightGrad(on, m_rows, memory.floats(m_projectionInput), memory.floats(m_projectionGrad),
                            gradientSums);
}

} // namespace pipewright
