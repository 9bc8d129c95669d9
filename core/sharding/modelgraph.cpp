// SPDX-License-Identifier: GPL-3.0-or-later
// Appends one layer after another to a TensorGraph. O(layers).
#include "core/sharding/modelgraph.h"

#include "core/workload/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright::sharding {

namespace {

class TransformerGraph {
public:
    TransformerGraph(const ModelShape& shape, const StateBytesPerParameter& state, int segments,
                     std::vector<LayerSkip> skips = {})
        : m_shape(shape), m_segments(segments), m_skips(std::move(skips))
    {
        m_graph.name = shape.name;
        m_graph.bytesPerElement = bytesOf(shape.dataType);
        m_graph.stateBytesPerParameter = state.parameter + state.gradient + state.optimizer;
    }

    TensorGraph build() { return build({0, m_shape.layers, true, true}); }

    TensorGraph build(const LayerRange& range)
    {
        const bool classifier = m_shape.architecture == Architecture::Classifier;
        const Shape tokens =
            classifier ? Shape{m_shape.microbatchSize} : Shape{m_shape.microbatchSize, m_shape.sequence};
        int table = -1, x = -1;
        if (range.embedding && classifier) {
            const int input =
                m_graph.addInput("tokens", {m_shape.microbatchSize, m_shape.inputs() / m_shape.microbatchSize});
            table = m_graph.addParameter(embeddingName, {m_shape.features, m_shape.hidden});
            x = m_graph.add("embedding", "feature_bag", {input, table});
        } else if (range.embedding) {
            const int input = m_graph.addInput("tokens", tokens);
            table = m_graph.addParameter(embeddingName, {m_shape.vocabulary, m_shape.hidden});
            x = m_graph.add("embedding", "embedding", {input, table});
            if (m_shape.embeddingScale != 1)
                x = m_graph.add("scaled", "scale", {x}, {{"factor", m_shape.embeddingScale}});
            if (m_shape.learnedPositions)
                x = m_graph.add("positions", "positions",
                                {x, m_graph.addParameter("positions.table", {m_shape.sequence, m_shape.hidden})});
        } else {
            Shape rows = tokens;
            rows.push_back(m_shape.hidden);
            x = m_graph.addReceived("received", std::move(rows));
        }
        for (int layer = range.first; layer < range.first + range.count; ++layer) {
            m_segment = static_cast<int>(std::int64_t(layer) * m_segments / m_shape.layers);
            x = withSkips(layer, x);
            m_prefix = fmt::format("{}.", layer);
            if (!classifier)
                x = apply("add1", "add", {x, behind("attention_norm", attention(norm("norm1", x), layer))});
            const int normed = norm("norm2", x);
            const bool sparse = m_shape.experts > 0 && layer >= m_shape.denseLayers;
            const int made = sparse ? experts(normed) : mlp("mlp", normed, m_shape.ffn, m_shape.gatedMlp);
            x = apply("add2", "add", {x, behind("mlp_norm", made)});
        }
        if (!range.head) {
            m_prefix.clear();
            apply("hand_over", "hand_over", {x});
            return std::move(m_graph);
        }
        x = withSkips(range.first + range.count, x);
        m_prefix = "final.";
        x = norm("norm", x);
        if (m_shape.architecture == Architecture::Encoder) {
            apply("loss", "sum", {x});
            return std::move(m_graph);
        }
        const int head = m_shape.tiedHead && table >= 0 && !classifier // else a separate copy
                             ? table
                             : m_graph.addParameter(headName, {m_shape.vocabulary, m_shape.hidden}, m_segment);
        int logits = apply("logits", "linear", {x, head});
        if (m_shape.logitsSoftCap > 0)
            logits = apply("capped", "soft_cap", {logits}, {{"cap", m_shape.logitsSoftCap}});
        apply("loss", "cross_entropy", {logits, m_graph.addInput("targets", tokens, m_segment)});
        return std::move(m_graph);
    }

private:
    static constexpr double usualEpsilon = 1e-5;

    /// The input of a layer with its skip connections added; kept for later layers.
    int withSkips(int layer, int x)
    {
        if (m_skips.empty())
            return x;
        m_prefix = "skips.";
        m_streams.push_back(x);
        for (std::size_t i = 0; i < m_skips.size(); ++i)
            if (m_skips[i].before == layer)
                x = apply(std::to_string(i).c_str(), "add",
                          {x, m_streams.at(static_cast<std::size_t>(m_skips[i].behind))});
        return x;
    }

    int apply(const char* name, std::string_view operation, std::vector<int> operands, Attributes attributes = {})
    {
        return m_graph.add(m_prefix + name, operation, std::move(operands), std::move(attributes), m_segment);
    }
    int parameter(const std::string& name, Shape shape)
    {
        return m_graph.addParameter(m_prefix + name, std::move(shape), m_segment);
    }

    Attributes epsilon() const
    {
        return m_shape.normEpsilon == usualEpsilon ? Attributes() : Attributes{{"epsilon", m_shape.normEpsilon}};
    }

    int norm(const std::string& name, int x)
    {
        const int gain = parameter(name + ".gain", {m_shape.hidden});
        if (!m_shape.bias)
            return apply(name.c_str(), "rms_norm", {x, gain}, epsilon());
        return apply(name.c_str(), "layer_norm", {x, gain, parameter(name + ".bias", {m_shape.hidden})}, epsilon());
    }

    /// The norm after attention or MLP, in models that have one.
    int behind(const std::string& name, int x) { return m_shape.postNorm ? norm(name, x) : x; }

    /// The norm of queries or keys.
    int headNorm(const std::string& name, int x, int heads)
    {
        if (!m_shape.queryKeyNorm)
            return x;
        Attributes attributes = epsilon();
        attributes["heads"] = heads;
        return apply(name.c_str(), "head_norm", {x, parameter(name + ".gain", {m_shape.headSize})},
                     std::move(attributes));
    }

    int linear(const std::string& name, int x, std::int64_t inputs, std::int64_t outputs, bool bias)
    {
        std::vector<int> operands{x, parameter(name + ".weight", {outputs, inputs})};
        if (bias)
            operands.push_back(parameter(name + ".bias", {outputs}));
        return apply(name.c_str(), "linear", std::move(operands));
    }

    Attributes attentionOf(int layer) const
    {
        Attributes of{{"heads", double(m_shape.heads)}, {"key_value_heads", double(m_shape.keyValueHeads)}};
        const auto window = static_cast<double>(windowOf(m_shape, layer));
        double scale =
            1 / std::sqrt(m_shape.queryScale > 0 ? m_shape.queryScale : static_cast<double>(m_shape.headSize));
        if (!m_shape.learnedPositions) {
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
        if (scale != 1 / std::sqrt(static_cast<double>(m_shape.headSize)))
            of["scale"] = scale;
        if (window > 0)
            of["window"] = window;
        if (m_shape.attentionSoftCap > 0)
            of["soft_cap"] = m_shape.attentionSoftCap;
        return of;
    }

    int attention(int x, int layer)
    {
        const std::int64_t width = m_shape.heads * m_shape.headSize, narrow = m_shape.keyValueHeads * m_shape.headSize;
        const bool bias = m_shape.bias || m_shape.queryKeyValueBias;
        const int query = headNorm("query_norm", linear("query", x, m_shape.hidden, width, bias), m_shape.heads);
        const int key = headNorm("key_norm", linear("key", x, m_shape.hidden, narrow, bias), m_shape.keyValueHeads);
        const int value = linear("value", x, m_shape.hidden, narrow, bias);
        const int mixed = apply("attention", "attention", {query, key, value}, attentionOf(layer));
        return linear("projection", mixed, width, m_shape.hidden, m_shape.bias || m_shape.projectionBias);
    }

    int activated(const std::string& name, int x)
    {
        const std::string_view operation = operationOf(m_shape.activation);
        return apply((name + "." + std::string(operation)).c_str(), operation, {x});
    }
    static std::string_view operationOf(Activation activation)
    {
        switch (activation) {
        case Activation::GeluTanh: return "gelu";
        case Activation::Gelu: return "gelu_erf";
        case Activation::Silu:
        case Activation::ClampedSilu: break; // clamped: costs as much
        }
        return "silu";
    }

    int mlp(const std::string& name, int x, std::int64_t width, bool gated)
    {
        int inner = linear(name + ".up", x, m_shape.hidden, width, m_shape.bias);
        if (gated) {
            const int gate = activated(name, linear(name + ".gate", x, m_shape.hidden, width, m_shape.bias));
            inner = apply((name + ".product").c_str(), "multiply", {gate, inner});
        } else {
            inner = activated(name, inner);
        }
        return linear(name + ".down", inner, width, m_shape.hidden, m_shape.bias);
    }

    int experts(int x)
    {
        const std::int64_t e = m_shape.experts, f = m_shape.expertFfn, h = m_shape.hidden;
        const std::int64_t slots = std::max<std::int64_t>(1, (m_shape.sequence * m_shape.expertsPerToken + e - 1) / e);
        const int weights = apply("route", "route", {linear("router", x, h, e, false)},
                                  {{"top_k", double(m_shape.expertsPerToken)}, {"capacity", double(slots)}});
        const int sent = apply("dispatch", "dispatch", {weights, x});
        const int up = apply("experts.up", "expert_linear", {sent, parameter("experts.up.weight", {e, f, h})});
        const int gate = apply("experts.gate", "expert_linear", {sent, parameter("experts.gate.weight", {e, f, h})});
        const int inner = apply("experts.product", "multiply", {apply("experts.silu", "silu", {gate}), up});
        const int down = apply("experts.down", "expert_linear", {inner, parameter("experts.down.weight", {e, h, f})});
        const int combined = apply("combine", "combine", {weights, down});
        if (m_shape.sharedExperts == 0)
            return combined;
        return apply("add.shared", "add", {combined, mlp("shared", x, f * m_shape.sharedExperts, true)});
    }

    const ModelShape& m_shape;
    int m_segments, m_segment = 0;
    std::string m_prefix;
    std::vector<LayerSkip> m_skips;
    std::vector<int> m_streams; ///< the input of every layer, with skip connections only
    TensorGraph m_graph;
};

} // namespace

TensorGraph mlpGraph(const MlpShape& shape)
{
    if (shape.widths.size() < 2)
        throw Error("mlp.widths", fmt::format("{} widths", shape.widths.size()),
                    "give the width of the input and of every layer: [4, 8, 4]");
    TensorGraph graph;
    graph.name = "mlp";
    int x = graph.addInput("x", {shape.batch, shape.widths.front()});
    for (std::size_t i = 1; i < shape.widths.size(); ++i) {
        std::vector<int> operands{x, graph.addParameter(fmt::format("w{}", i), {shape.widths[i], shape.widths[i - 1]})};
        if (shape.bias)
            operands.push_back(graph.addParameter(fmt::format("b{}", i), {shape.widths[i]}));
        x = graph.add(fmt::format("y{}", i), "linear", std::move(operands));
        if (!shape.activation.empty() && i + 1 < shape.widths.size())
            x = graph.add(fmt::format("a{}", i), shape.activation, {x});
    }
    graph.add("loss", "sum", {x});
    return graph;
}

namespace {

void requireGraph(const ModelShape& shape)
{
    if (shape.architecture == Architecture::Vision)
        throw Error("model.architecture", "pictures have no tensor graph yet", "write the graph out under \"graph\"");
    if (shape.architecture == Architecture::Table)
        throw Error("model.architecture", "a table of layers has no tensor graph",
                    "write the graph out under \"graph\"");
    if (shape.attentionSinks || shape.expertBias)
        throw Error("model", "attention sinks and biases of experts have no tensor graph yet",
                    "write the graph out under \"graph\"");
    if (shape.keyValueLatent > 0)
        throw Error("model.key_value_latent", "latent attention has no tensor graph yet",
                    "write the graph out under \"graph\"");
    if (shape.head != Head::Own)
        throw Error("model.head", "heads of labels and rewards, and models without a head, have no tensor graph yet",
                    "write the graph out under \"graph\"");
    if (shape.sequencePieces > 1)
        throw Error("model.sequence_pieces", "sequences in pieces have no tensor graph", "use whole sequences");
}

} // namespace

TensorGraph transformerGraph(const ModelShape& shape, const StateBytesPerParameter& state, int segments,
                             const std::vector<LayerSkip>& skips)
{
    requireGraph(shape);
    if (segments < 1 || segments > std::min(shape.layers, maxSegments))
        throw Error("segments", fmt::format("{} segments", segments),
                    fmt::format("between 1 and {}", std::min(shape.layers, maxSegments)));
    return TransformerGraph(shape, state, segments, skips).build();
}

TensorGraph stageGraph(const ModelShape& shape, const StateBytesPerParameter& state, const LayerRange& range)
{
    requireGraph(shape);
    return TransformerGraph(shape, state, 1).build(range);
}

} // namespace pipewright::sharding
