// SPDX-License-Identifier: GPL-3.0-or-later
// The whole model again in double precision, forward only: its finite differences are the reference for the gradients
// of the stage maths. Also the memory of a stage for tests.
#pragma once

#include "core/model/transformer.h"
#include "executor/stage/modelkernels.h"
#include "executor/stage/stagemaths.h"
#include "kernels/reference/decoder.h"
#include "makers/models.h"

#include <cmath>
#include <vector>

namespace pipewright::test {

using reference::Values;

/// A whole transformer, forward only; `layout` is that of all layers in one stage.
class ReferenceModel {
public:
    ReferenceModel(const ModelShape& shape, const ParameterLayout& layout, const Values& parameters)
        : m_shape(shape), m_layout(layout), m_parameters(parameters), m_rows(int(shape.tokens())),
          m_hidden(int(shape.hidden))
    {
    }

    /// One microbatch's share of the loss.
    double loss(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets, int microbatches) const
    {
        m_balance = 0;
        Values x = m_shape.architecture == Architecture::Vision ? pictures(tokens) : words(tokens);
        for (int layer = 1; layer <= m_shape.layers; ++layer) {
            residual(layer, "ln1", "attentionNorm", x, [&](const Values& in) {
                return m_shape.keyValueLatent > 0 ? latentAttention(layer, in) : attention(layer, in);
            });
            residual(layer, "ln2", "mlpNorm", x, [&](const Values& in) {
                return hasExperts(m_shape, layer - 1) ? experts(layer, in) : mlp(layer, in);
            });
        }
        const Values scores = scoresOf(x);
        return m_balance / microbatches / std::max(expertLayersOf(m_shape), 1)
               + reference::crossEntropyForward(int(targets.size()), int(scores.size() / targets.size()), scores,
                                                targets, 1.0 / (double(m_shape.countedTargets()) * microbatches))
                     .loss;
    }

private:
    Values words(std::span<const std::int32_t> tokens) const
    {
        const int length = int(m_shape.sequence);
        const Values positions =
            m_shape.learnedPositions ? at(0, "positions.weight") : Values(std::size_t(length * m_hidden));
        Values x = reference::embeddingForward(length, m_hidden, tokens, at(0, "table.weight"), positions);
        if (m_shape.architecture != Architecture::Encoder) {
            for (double& value : x)
                value *= double(float(m_shape.embeddingScale));
            return m_shape.embeddingNorm ? norm(0, "norm", m_hidden, x) : x;
        }
        const Values segments = at(0, "segments.weight");
        for (int row = 0; row < m_rows; ++row)
            for (int i = 0; i < m_hidden; ++i) // the first half is the longer one
                x[std::size_t(row * m_hidden + i)] +=
                    segments[std::size_t((2 * (row % length) >= length + length % 2 ? m_hidden : 0) + i)];
        return norm(0, "norm", m_hidden, x);
    }
    Values pictures(std::span<const std::int32_t> bytes) const
    {
        const Values positions = at(0, "positions.weight"), token = at(0, "classToken");
        Values values;
        for (const std::int32_t byte : bytes)
            values.push_back(double(float(byte) / 127.5f - 1.0f));
        const Values patches = linear(0, "patches", values);
        Values x;
        for (std::size_t picture = 0; picture < std::size_t(m_shape.microbatchSize); ++picture) {
            const std::size_t begin = x.size(), each = patches.size() / std::size_t(m_shape.microbatchSize);
            x.insert(x.end(), token.begin(), token.end());
            x.insert(x.end(), patches.begin() + std::ptrdiff_t(picture * each),
                     patches.begin() + std::ptrdiff_t((picture + 1) * each));
            for (std::size_t i = 0; i < positions.size(); ++i)
                x[begin + i] += positions[i];
        }
        return x;
    }
    /// The first token of every sequence.
    Values firsts(const Values& x) const
    {
        Values result;
        for (int row = 0; row < m_rows; row += int(m_shape.sequence))
            result.insert(result.end(), x.begin() + std::ptrdiff_t(row) * m_hidden,
                          x.begin() + std::ptrdiff_t(row + 1) * m_hidden);
        return result;
    }
    Values scoresOf(const Values& x) const
    {
        const int head = m_shape.layers + 1;
        const bool encoder = m_shape.architecture == Architecture::Encoder;
        if (encoder && !m_shape.tiedHead)
            return reference::activationForward(kernels::ActivationKind::Tanh, linear(head, "pooler", firsts(x)));
        Values last = m_shape.architecture == Architecture::Vision ? firsts(x) : x;
        if (encoder)
            last = reference::activationForward(kindOf(m_shape.activation), linear(head, "transform", last));
        Values logits = linear(head, "projection", norm(head, "norm", m_hidden, last));
        for (double& logit : logits)
            if (m_shape.logitsSoftCap > 0)
                logit = m_shape.logitsSoftCap * std::tanh(logit / m_shape.logitsSoftCap);
        return logits;
    }
    template<class Part>
    void residual(int layer, const std::string& before, const std::string& behind, Values& x, Part part) const
    {
        if (m_shape.architecture == Architecture::Encoder) {
            addTo(x, part(x));
            x = norm(layer, before, m_hidden, x);
            return;
        }
        const Values out = part(norm(layer, before, m_hidden, x));
        addTo(x, m_shape.postNorm ? norm(layer, behind, m_hidden, out) : out);
    }
    bool has(int layer, const std::string& name) const { return m_layout.findAt(layer, name) != nullptr; }
    Values at(int layer, const std::string& name) const
    {
        const Parameter& p = m_layout.at(layer, name);
        return Values(m_parameters.begin() + std::ptrdiff_t(p.offset),
                      m_parameters.begin() + std::ptrdiff_t(p.offset + p.count()));
    }
    static void addTo(Values& x, const Values& y)
    {
        for (std::size_t i = 0; i < x.size(); ++i)
            x[i] += y[i];
    }
    Values norm(int layer, const std::string& name, int columns, const Values& x) const
    {
        const int rows = int(x.size()) / columns;
        if (has(layer, name + ".beta"))
            return reference::layerNormForward(rows, columns, x, at(layer, name + ".gamma"), at(layer, name + ".beta"),
                                               double(float(m_shape.normEpsilon)));
        return reference::rmsNormForward(rows, columns, double(float(m_shape.normEpsilon)), x,
                                         at(layer, name + ".gamma"));
    }
    Values linear(int layer, const std::string& name, const Values& x) const
    {
        const Parameter& weight = m_layout.at(layer, name + ".weight");
        return reference::linearForward({int(x.size()) / weight.columns, weight.columns, weight.rows}, x,
                                        at(layer, name + ".weight"),
                                        has(layer, name + ".bias") ? at(layer, name + ".bias") : Values());
    }
    /// Columns [first, first + count) of a matrix.
    static Values columns(const Values& x, int width, int first, int count)
    {
        Values result;
        for (std::size_t row = 0; row < x.size(); row += std::size_t(width))
            result.insert(result.end(), x.begin() + std::ptrdiff_t(row) + first,
                          x.begin() + std::ptrdiff_t(row) + first + count);
        return result;
    }
    Values heads(int layer, const char* name, Values x, int count) const
    {
        if (m_shape.queryKeyNorm)
            x = norm(layer, std::string(name) + "Norm", int(m_shape.headSize), x);
        std::vector<float> none;
        if (m_shape.learnedPositions || m_shape.linearBiases)
            return x;
        const bool local = m_shape.localRotaryBase > 0 && windowOf(m_shape, layer - 1) > 0;
        const Rotary rotary = local ? Rotary{.base = m_shape.localRotaryBase} : m_shape.rotary;
        return reference::rotate({frequenciesOf(rotary), int(m_shape.sequence), 0, count, int(m_shape.headSize), 0,
                                  int(m_shape.headSize), false, false, none},
                                 x);
    }
    Values attention(int layer, const Values& x) const
    {
        const int size = int(m_shape.headSize), queries = m_shape.heads * size, keys = m_shape.keyValueHeads * size;
        const Values qkv = linear(layer, "qkv", x);
        kernels::GroupedAttentionShape shape{
            int(m_shape.microbatchSize), int(m_shape.sequence), m_shape.heads, m_shape.keyValueHeads, size, size};
        shape.causal = m_shape.architecture == Architecture::Decoder && !m_shape.bidirectional;
        shape.window = int(windowOf(m_shape, layer - 1));
        shape.softCap = float(m_shape.attentionSoftCap);
        shape.biasedHeads = m_shape.linearBiases ? m_shape.heads : 0;
        shape.scale = float(1 / std::sqrt(m_shape.queryScale > 0 ? m_shape.queryScale : double(size))
                            * std::pow(m_shape.rotary.attentionFactor, 2));
        const Values context =
            reference::groupedAttentionForward(
                shape, heads(layer, "query", columns(qkv, queries + 2 * keys, 0, queries), m_shape.heads),
                heads(layer, "key", columns(qkv, queries + 2 * keys, queries, keys), m_shape.keyValueHeads),
                columns(qkv, queries + 2 * keys, queries + keys, keys),
                m_shape.attentionSinks ? at(layer, "sinks") : Values())
                .output;
        return linear(layer, "projection", context);
    }
    /// Straight from the paper's formulas, head by head (arXiv 2405.04434, equations 37 to 47).
    Values latentAttention(int layer, const Values& x) const
    {
        const int own = int(m_shape.headSize), shared = int(m_shape.rotaryHeadSize), size = own + shared,
                  valueSize = int(m_shape.valueHeadSize), heads = m_shape.heads, latent = int(m_shape.keyValueLatent);
        const int queryDown = m_shape.queryLatent > 0 ? int(m_shape.queryLatent) : heads * size;
        const Values down = linear(layer, "qkv", x);
        const int width = queryDown + latent + shared;
        Values query = columns(down, width, 0, queryDown);
        if (m_shape.queryLatent > 0)
            query = linear(layer, "queryLatent", norm(layer, "queryNorm", queryDown, query));
        const Values up = linear(layer, "keyValueLatent",
                                 norm(layer, "keyValueNorm", latent, columns(down, width, queryDown, latent)));
        const auto turned = [&](const Values& values, int count) {
            std::vector<float> none;
            return reference::rotate({frequenciesOf(m_shape.rotary), int(m_shape.sequence), 0, count,
                                      int(values.size()) / m_rows / count, int(values.size()) / m_rows / count - shared,
                                      shared, true, false, none},
                                     values);
        };
        const Values rope = turned(columns(down, width, queryDown + latent, shared), 1);
        Values key;
        for (int row = 0; row < m_rows; ++row)
            for (int head = 0; head < heads; ++head) {
                for (int i = 0; i < own; ++i)
                    key.push_back(up[std::size_t(row * heads * (own + valueSize) + head * own + i)]);
                for (int i = 0; i < shared; ++i)
                    key.push_back(rope[std::size_t(row * shared + i)]);
            }
        kernels::GroupedAttentionShape shape{
            int(m_shape.microbatchSize), int(m_shape.sequence), heads, heads, size, valueSize};
        shape.scale = float(std::pow(m_shape.rotary.attentionFactor, 2) / std::sqrt(double(size)));
        return linear(
            layer, "projection",
            reference::groupedAttentionForward(shape, turned(query, heads), key,
                                               columns(up, heads * (own + valueSize), heads * own, heads * valueSize))
                .output);
    }
    Values mlp(int layer, const Values& x) const
    {
        const int ffn = int(m_shape.ffn);
        const Values up = linear(layer, "fc1", x);
        if (!m_shape.gatedMlp)
            return linear(layer, "fc2", reference::activationForward(kindOf(m_shape.activation), up));
        return linear(layer, "fc2",
                      reference::gatedForward(kindOf(m_shape.activation), columns(up, 2 * ffn, 0, ffn),
                                              columns(up, 2 * ffn, ffn, ffn)));
    }

    /// A gated MLP of one token or several, with the given weights, since a layer may have several such MLPs.
    Values gated(const Values& x, const Values& fc1, const Values& fc2, const Values& bias1 = {},
                 const Values& bias2 = {}) const
    {
        const int ffn = int(fc2.size()) / m_hidden, rows = int(x.size()) / m_hidden;
        const Values up = reference::linearForward({rows, m_hidden, 2 * ffn}, x, fc1, bias1);
        const Values wide = reference::gatedForward(kindOf(m_shape.activation), columns(up, 2 * ffn, 0, ffn),
                                                    columns(up, 2 * ffn, ffn, ffn));
        return reference::linearForward({rows, ffn, m_hidden}, wide, fc2, bias2);
    }
    Values experts(int layer, const Values& x) const
    {
        const Values logits = linear(layer, "router", x), fc1 = at(layer, "experts.fc1.weight"),
                     fc2 = at(layer, "experts.fc2.weight");
        const Values correction = has(layer, "router.correction") ? at(layer, "router.correction") : Values();
        const auto partOf = [](const Values& all, int part, int parts) {
            const auto size = std::ptrdiff_t(all.size()) / parts;
            return Values(all.begin() + part * size, all.begin() + (part + 1) * size);
        };
        std::vector<double> copies(std::size_t(m_shape.experts)), likely(copies.size());
        Values result = has(layer, "shared.fc1.weight")
                            ? gated(x, at(layer, "shared.fc1.weight"), at(layer, "shared.fc2.weight"))
                            : Values(x.size());
        for (int row = 0; row < m_rows; ++row) {
            const Values token = partOf(x, row, m_rows);
            const reference::Routing routing =
                reference::routeToken(routerOf(m_shape), correction, partOf(logits, row, m_rows));
            Values chances = partOf(logits, row, m_rows);
            double sum = 0;
            for (double& chance : chances)
                sum += chance = std::exp(chance);
            for (std::size_t e = 0; e < copies.size(); ++e)
                likely[e] += chances[e] / sum / m_rows;
            for (const int expert : routing.choice)
                copies[std::size_t(expert)] += 1;
            const auto biasOf = [&](const char* name, std::size_t k) {
                return has(layer, name) ? partOf(at(layer, name), routing.choice[k], m_shape.experts) : Values();
            };
            for (std::size_t k = 0; k < routing.choice.size(); ++k) {
                const Values out = gated(token, partOf(fc1, routing.choice[k], m_shape.experts),
                                         partOf(fc2, routing.choice[k], m_shape.experts), biasOf("experts.fc1.bias", k),
                                         biasOf("experts.fc2.bias", k));
                for (int i = 0; i < m_hidden; ++i)
                    result[std::size_t(row * m_hidden + i)] += routing.weight[k] * out[std::size_t(i)];
            }
        }
        for (std::size_t e = 0; e < copies.size(); ++e)
            m_balance += m_shape.routerBalance * m_shape.experts * copies[e] / m_rows * likely[e];
        return result;
    }

    mutable double m_balance = 0; ///< the load-balancing term so far
    const ModelShape& m_shape;
    const ParameterLayout& m_layout;
    const Values& m_parameters;
    int m_rows, m_hidden;
};

/// One microbatch's share of the loss; `layout` is that of all layers in one stage.
inline double referenceLoss(const ModelShape& shape, const ParameterLayout& layout, const Values& parameters,
                            std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets,
                            int microbatches)
{
    return ReferenceModel(shape, layout, parameters).loss(tokens, targets, microbatches);
}

/// Memory of one stage and one microbatch, filled with a pattern that must be overwritten before it is read.
struct StageRoom {
    explicit StageRoom(const StageMaths& maths)
        : output(maths.activationElements(), NAN), inputGrad(maths.activationElements(), NAN)
    {
        const auto fill = [&](std::vector<std::byte>& buffer, BufferKind kind) {
            buffer.assign(std::size_t(maths.layout().bytes(kind)), std::byte{0xff}); // NaN as floats
        };
        fill(untilInputGrad, BufferKind::SavedUntilInputGrad);
        fill(untilWeightGrad, BufferKind::SavedUntilWeightGrad);
        fill(fromInputGrad, BufferKind::SavedFromInputGrad);
        fill(workspace, BufferKind::Workspace);
    }
    StageMemory memory() { return {untilInputGrad, untilWeightGrad, fromInputGrad, workspace}; }
    std::vector<float> loss = {0.0f};

    std::vector<std::byte> untilInputGrad, untilWeightGrad, fromInputGrad, workspace;
    std::vector<float> output, inputGrad;
};

} // namespace pipewright::test
