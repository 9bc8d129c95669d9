// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of a layer: products to queries, keys and values, the core, and the product behind it.
#include "core/model/modelbuilder.h"

#include "core/model/transformer.h"

#include <cmath>

namespace pipewright {

int ModelBuilder::attention(int x, int index)
{
    const int mixed = m_shape.keyValueLatent > 0 ? latentCore(x, index) : groupedCore(x, index);
    return linear({"projection", "projection", m_graph.node(mixed).shape.back(), m_shape.hidden,
                   m_shape.bias || m_shape.projectionBias, Width::Model, Start::Residual},
                  mixed);
}

int ModelBuilder::groupedCore(int x, int index)
{
    const std::int64_t width = m_shape.heads * m_shape.headSize, narrow = m_shape.keyValueHeads * m_shape.headSize;
    const bool bias = m_shape.queryKeyValueBias;
    const int query =
        headNorm("query_norm", "queryNorm", linear({"query", "qkv", m_shape.hidden, width, bias}, x), m_shape.heads);
    const int key =
        headNorm("key_norm", "keyNorm", linear({"key", "qkv", m_shape.hidden, narrow, bias}, x), m_shape.keyValueHeads);
    const int value = linear({"value", "qkv", m_shape.hidden, narrow, bias}, x);
    return core("attention", {query, key, value}, index, m_shape.headSize);
}

// DeepSeek-V2's latent attention (arXiv 2405.04434), in the expanded form used in training: queries, keys and values
// pass through narrow latents with a norm each; every head's key is extended by one rotary part that all share.
int ModelBuilder::latentCore(int x, int index)
{
    const std::int64_t keySize = m_shape.headSize + m_shape.rotaryHeadSize, width = m_shape.heads * keySize;
    int query = -1;
    if (m_shape.queryLatent > 0) {
        const int down = linear({"query_down", "qkv", m_shape.hidden, m_shape.queryLatent}, x);
        query = linear({"query_up", "queryLatent", m_shape.queryLatent, width},
                       norm("query_norm", "queryNorm", down, Width::Own));
    } else {
        query = linear({"query", "qkv", m_shape.hidden, width}, x);
    }
    const int down = linear({"latent_down", "qkv", m_shape.hidden, m_shape.keyValueLatent}, x);
    const int rotary =
        m_shape.rotaryHeadSize > 0 ? linear({"rotary_key", "qkv", m_shape.hidden, m_shape.rotaryHeadSize}, x) : -1;
    const int latent = norm("latent_norm", "keyValueNorm", down, Width::Own);
    int key = linear({"key_up", "keyValueLatent", m_shape.keyValueLatent, m_shape.heads * m_shape.headSize}, latent);
    const int value =
        linear({"value_up", "keyValueLatent", m_shape.keyValueLatent, m_shape.heads * m_shape.valueHeadSize}, latent);
    if (rotary >= 0)
        key = apply("key", "join_keys", {key, rotary}, "attention", Width::Own, {{"heads", double(m_shape.heads)}});
    return core("latent_attention", {query, key, value}, index, keySize);
}

int ModelBuilder::core(std::string_view operation, std::vector<int> operands, int index, std::int64_t querySize)
{
    if (m_shape.attentionSinks)
        operands.push_back(parameter("sinks", {m_shape.heads}, "sinks", Start::Zero));
    return apply("attention", operation, std::move(operands), "attention", Width::Own, attentionOf(index, querySize));
}

int ModelBuilder::headNorm(const char* name, const char* part, int x, int heads)
{
    if (!m_shape.queryKeyNorm)
        return x;
    Attributes attributes = epsilon();
    attributes["heads"] = heads;
    const std::string node = name;
    std::vector<int> operands{x,
                              parameter(node + ".gain", {m_shape.headSize}, std::string(part) + ".gamma", Start::One)};
    if (m_shape.bias)
        operands.push_back(parameter(node + ".bias", {m_shape.headSize}, std::string(part) + ".beta", Start::Zero));
    return apply(name, "head_norm", std::move(operands), part, Width::Own, std::move(attributes));
}

Attributes ModelBuilder::attentionOf(int index, std::int64_t querySize) const
{
    Attributes of{{"heads", double(m_shape.heads)}};
    if (m_shape.keyValueLatent == 0) {
        of["key_value_heads"] = m_shape.keyValueHeads;
    } else {
        of["query_size"] = static_cast<double>(querySize);
        if (m_shape.rotaryHeadSize > 0)
            of["rotary_size"] = static_cast<double>(m_shape.rotaryHeadSize);
    }
    const auto window = static_cast<double>(windowOf(m_shape, index));
    const double usual = 1 / std::sqrt(static_cast<double>(querySize));
    double scale = m_shape.queryScale > 0 ? 1 / std::sqrt(m_shape.queryScale) : usual;
    if (m_shape.linearBiases)
        of["linear_biases"] = 1;
    if (!m_shape.learnedPositions && !m_shape.linearBiases) {
        const bool local = m_shape.localRotaryBase > 0 && window > 0;
        const Rotary rotary = local ? Rotary{.base = m_shape.localRotaryBase} : m_shape.rotary;
        of["rotary_base"] = rotary.base;
        if (rotary.scaling != Rotary::Scaling::None) {
            of["rotary_scaling"] = static_cast<double>(rotary.scaling);
            of["rotary_factor"] = rotary.factor;
            of["rotary_low"] = rotary.low;
            of["rotary_high"] = rotary.high;
            of["rotary_original"] = static_cast<double>(rotary.original);
        }
        scale *= m_shape.rotary.attentionFactor * m_shape.rotary.attentionFactor;
    }
    if (scale != usual)
        of["scale"] = scale;
    if (window > 0)
        of["window"] = window;
    if (m_shape.attentionSoftCap > 0)
        of["soft_cap"] = m_shape.attentionSoftCap;
    if (!m_shape.looksBack())
        of["bidirectional"] = 1;
    if (m_shape.sequencePieces > 1)
        of["keys"] = static_cast<double>(m_shape.sequence);
    switch (m_shape.attention) {
    case AttentionMemory::Stored: of["stored"] = 1; break;
    case AttentionMemory::Streamed: of["streamed"] = 1; break;
    case AttentionMemory::Recomputed: break;
    }
    if (m_shape.dropout)
        of["dropout"] = 1;
    return of;
}

} // namespace pipewright
