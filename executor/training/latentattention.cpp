// SPDX-License-Identifier: GPL-3.0-or-later
// Down-projections, norms and up-projections around the same attention kernels as groupedattention.cpp; the backward
// goes through them in reverse. O(tokens^2 x width) for the attention, plus the matrix products.
#include "executor/training/latentattention.h"

#include "executor/training/attentions.h"
#include "executor/training/groupedattention.h"

namespace pipewright {

using kernels::Store;

namespace {

/// Outputs [first, first + count) of one of a layer's weights.
Linear partOf(const ParameterLayout& parameters, int layer, const char* name, std::int64_t first, std::int64_t count)
{
    return Linear(parameters, layer, name).part(int(first), int(count));
}

std::int64_t queryWidth(const ModelShape& shape)
{
    return shape.heads * (shape.headSize + shape.rotaryHeadSize);
}

std::int64_t queryDownWidth(const ModelShape& shape)
{
    return shape.queryLatent > 0 ? shape.queryLatent : queryWidth(shape);
}

} // namespace

LatentAttention::LatentAttention(const ModelShape& shape, int layer, int number, const StageLayout& layout,
                                 const ParameterLayout& parameters)
    : m_rows(int(shape.tokens())), m_keys{shape.heads, int(shape.headSize), int(shape.rotaryHeadSize)},
      m_attention(attentionOf(shape, number)), m_rotary(frequenciesOf(shape.rotary)),
      m_norm(shape, parameters, layer, "ln1"), m_queryDown(partOf(parameters, layer, "qkv", 0, queryDownWidth(shape))),
      m_latentDown(partOf(parameters, layer, "qkv", queryDownWidth(shape), shape.keyValueLatent)),
      m_sharedDown(
          partOf(parameters, layer, "qkv", queryDownWidth(shape) + shape.keyValueLatent, shape.rotaryHeadSize)),
      m_latentNorm(shape, parameters, layer, "keyValueNorm"),
      m_keyUp(partOf(parameters, layer, "keyValueLatent", 0, shape.heads * shape.headSize)),
      m_valueUp(
          partOf(parameters, layer, "keyValueLatent", shape.heads * shape.headSize, shape.heads * shape.valueHeadSize)),
      m_projection(parameters, layer, "projection"), m_normInput(layout.slice(layer, "ln1.input")),
      m_latentNormInput(layout.slice(layer, "keyValueNorm.input")), m_query(layout.slice(layer, "attention.query")),
      m_key(layout.slice(layer, "attention.key")), m_value(layout.slice(layer, "attention.value")),
      m_logSums(layout.slice(layer, "attention.probabilities")), m_qkvInput(layout.slice(layer, "qkv.input")),
      m_latentInput(layout.slice(layer, "keyValueLatent.input")),
      m_projectionInput(layout.slice(layer, "projection.input")), m_qkvGrad(layout.slice(layer, "qkv.outputGrad")),
      m_latentGrad(layout.slice(layer, "keyValueLatent.outputGrad")),
      m_projectionGrad(layout.slice(layer, "projection.outputGrad")), m_normGrad(layout.slice(layer, "d.ln")),
      m_dots(layout.slice(layer, "d.scores")), m_keyGrad(layout.slice(layer, "d.key")),
      m_sequenceGradient(layout.slice(layer, "attention.sequenceGradient"))
{
    if (shape.queryLatent > 0)
        m_queryLatent =
            QueryLatent{Norm(shape, parameters, layer, "queryNorm"), Linear(parameters, layer, "queryLatent"),
                        layout.slice(layer, "queryNorm.input"), layout.slice(layer, "queryLatent.input"),
                        layout.slice(layer, "queryLatent.outputGrad")};
    requireStreamed(m_attention, m_logSums);
}

LatentAttention::DownGrads LatentAttention::downGrads(const StageMemory& memory) const
{
    const std::span<float> all = memory.floats(m_qkvGrad);
    const std::size_t rows = std::size_t(m_rows), query = rows * std::size_t(m_queryDown.outputs()),
                      latent = rows * std::size_t(m_latentDown.outputs());
    return {all.first(query), all.subspan(query, latent), all.subspan(query + latent)};
}

LatentAttention::UpGrads LatentAttention::upGrads(const StageMemory& memory) const
{
    const std::span<float> all = memory.floats(m_latentGrad);
    const std::size_t own = std::size_t(m_rows) * std::size_t(m_keyUp.outputs());
    return {all.first(own), all.subspan(own)};
}

void LatentAttention::turn(const StageMemory& memory, std::span<float> values, bool backwards) const
{
    memory.operations->run(kernels::Rotate{m_rotary, m_attention.length, memory.piece * m_attention.length,
                                           m_keys.heads, m_attention.querySize, m_keys.ownSize, m_keys.sharedSize, true,
                                           backwards, values});
}

void LatentAttention::forward(std::span<const float> parameters, const StageMemory& memory,
                              std::span<float> stream) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<float> input = memory.floats(m_qkvInput), query = memory.floats(m_query),
                           key = memory.floats(m_key), latent = memory.floats(m_latentInput);
    on.copy(stream, memory.floats(m_normInput));
    m_norm.forward(on, m_rows, parameters, memory.floats(m_normInput), input);

    m_latentDown.forward(on, m_rows, parameters, input, memory.floats(m_latentNormInput));
    m_latentNorm.forward(on, m_rows, parameters, memory.floats(m_latentNormInput), latent);
    m_valueUp.forward(on, m_rows, parameters, latent, memory.floats(m_value));
    const std::size_t owned = std::size_t(m_rows) * std::size_t(m_keyUp.outputs());
    const std::span<float> own = query.first(owned),
                           shared = query.subspan(owned, std::size_t(m_rows) * std::size_t(m_keys.sharedSize));
    m_keyUp.forward(on, m_rows, parameters, latent, own);
    m_sharedDown.forward(on, m_rows, parameters, input, shared);
    on.run(kernels::JoinKeys{m_keys, own, shared, key});
    turn(memory, key, false);

    if (m_queryLatent) {
        const std::span<float> normInput = memory.floats(m_queryLatent->normInput),
                               upInput = memory.floats(m_queryLatent->input);
        m_queryDown.forward(on, m_rows, parameters, input, normInput);
        m_queryLatent->norm.forward(on, m_rows, parameters, normInput, upInput);
        m_queryLatent->up.forward(on, m_rows, parameters, upInput, query);
    } else {
        m_queryDown.forward(on, m_rows, parameters, input, query);
    }
    turn(memory, query, false);
    recomputeCore(parameters, memory);
    m_projection.forward(on, m_rows, parameters, memory.floats(m_projectionInput), stream, Store::Add);
}

void LatentAttention::recomputeCore(std::span<const float>, const StageMemory& memory) const
{
    memory.operations->run(kernels::GroupedAttentionForward{
        m_attention, memory.floats(m_query), memory.floats(m_key), memory.floats(m_value), memory.floats(m_logSums),
        memory.floats(m_projectionInput), memory.earlierPieces(m_key, m_value)});
}

void LatentAttention::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                                std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<float> scratch = memory.floats(m_normGrad), keyGrad = memory.floats(m_keyGrad);
    const DownGrads down = downGrads(memory);
    const UpGrads up = upGrads(memory);
    const std::span<float> queryGrad = m_queryLatent ? memory.floats(m_queryLatent->outputGrad) : down.query,
                           contextGrad = scratch.first(m_attention.outputs());
    on.copy(stream, memory.floats(m_projectionGrad));
    m_projection.inputGrad(on, m_rows, parameters, stream, contextGrad);
    on.run(kernels::GroupedAttentionInputGrad{
        m_attention, memory.floats(m_query), memory.floats(m_key), memory.floats(m_value), memory.floats(m_logSums),
        memory.floats(m_projectionInput), contextGrad, queryGrad, keyGrad, up.value, memory.floats(m_dots),
        memory.earlierPieces(m_key, m_value), memory.floats(m_sequenceGradient)});
    turn(memory, queryGrad, true);
    turn(memory, keyGrad, true);
    on.run(kernels::SplitKeysGrad{m_keys, keyGrad, up.own, down.shared});

    m_keyUp.inputGrad(on, m_rows, parameters, up.own, down.latent);
    m_valueUp.inputGrad(on, m_rows, parameters, up.value, down.latent, Store::Add);
    m_latentNorm.inputGradInPlace(on, m_rows, parameters, memory.floats(m_latentNormInput), down.latent, gradients);
    if (m_queryLatent) {
        m_queryLatent->up.inputGrad(on, m_rows, parameters, queryGrad, down.query);
        m_queryLatent->norm.inputGradInPlace(on, m_rows, parameters, memory.floats(m_queryLatent->normInput),
                                             down.query, gradients);
    }
    const std::span<float> inputGrad = scratch.first(stream.size());
    m_queryDown.inputGrad(on, m_rows, parameters, down.query, inputGrad);
    m_latentDown.inputGrad(on, m_rows, parameters, down.latent, inputGrad, Store::Add);
    m_sharedDown.inputGrad(on, m_rows, parameters, down.shared, inputGrad, Store::Add);
    m_norm.inputGrad(on, m_rows, parameters, memory.floats(m_normInput), inputGrad, stream, gradients);
}

void LatentAttention::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<const float> input = memory.floats(m_qkvInput), latent = memory.floats(m_latentInput);
    const DownGrads down = downGrads(memory);
    const UpGrads up = upGrads(memory);
    m_queryDown.weightGrad(on, m_rows, input, down.query, gradients);
    m_latentDown.weightGrad(on, m_rows, input, down.latent, gradients);
    m_sharedDown.weightGrad(on, m_rows, input, down.shared, gradients);
    if (m_queryLatent)
        m_queryLatent->up.weightGrad(on, m_rows, memory.floats(m_queryLatent->input),
                                     memory.floats(m_queryLatent->outputGrad), gradients);
    m_keyUp.weightGrad(on, m_rows, latent, up.own, gradients);
    m_valueUp.weightGrad(on, m_rows, latent, up.value, gradients);
    m_projection.weightGrad(on, m_rows, memory.floats(m_projectionInput), memory.floats(m_projectionGrad), gradients);
}

} // namespace pipewright
