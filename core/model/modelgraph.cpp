// SPDX-License-Identifier: GPL-3.0-or-later
// Layers one after another, with what all parts need: products, norms, dropout. O(operations).
#include "core/model/modelgraph.h"

#include "core/model/modelbuilder.h"
#include "core/model/transformer.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

ModelBuilder::ModelBuilder(const ModelShape& shape, const StateBytesPerParameter& state, int segments,
                           std::vector<LayerSkip> skips)
    : m_shape(shape), m_segments(segments), m_skips(std::move(skips))
{
    m_graph.name = shape.name;
    m_graph.bytesPerElement = bytesOf(shape.dataType);
    m_graph.products = shape.products;
    m_graph.keepsNarrow = shape.products != ProductType::Own && shape.framework.narrowInputs;
    m_graph.stateBytesPerParameter = state.parameter + state.gradient + state.optimizer;
}

Shape ModelBuilder::rows() const
{
    if (isClassifier())
        return {m_shape.microbatchSize};
    return {m_shape.microbatchSize, m_shape.sequence / m_shape.sequencePieces};
}

int ModelBuilder::received()
{
    Shape shape = rows();
    shape.push_back(m_shape.hidden);
    const int x = m_graph.addReceived("received", std::move(shape));
    m_graph.describe(x, {}, true);
    return x;
}

TensorGraph ModelBuilder::buildAttention()
{
    apply("hand_over", "hand_over", {attention(norm("norm1", "ln1", received()), 0)}, {}, Width::Own);
    return std::move(m_graph);
}

TensorGraph ModelBuilder::build(const LayerRange& range)
{
    int x = range.embedding ? embedding() : received();
    for (int index = range.first; index < range.first + range.count; ++index) {
        m_segment = static_cast<int>(std::int64_t(index) * m_segments / m_shape.layers);
        x = withSkips(index, x);
        m_prefix = fmt::format("{}.", index);
        m_inLayer = true;
        x = layer(index, x);
        m_inLayer = false;
    }
    if (range.head) {
        x = withSkips(range.first + range.count, x);
        m_prefix = "final.";
        head(x);
    } else {
        m_prefix.clear();
        apply("hand_over", "hand_over", {x}, {}, Width::Own);
    }
    return std::move(m_graph);
}

// Norms stand before attention and MLP, in encoders behind the sum with what flows past them (BERT).
int ModelBuilder::layer(int index, int x)
{
    const auto mixed = [&](int from) { return dropout("attention_dropout", "projection", attention(from, index)); };
    const auto made = [&](int from) {
        return dropout("mlp_dropout", "mlp",
                       hasExperts(m_shape, index)
                           ? experts(from)
                           : mlp({"mlp", "fc1", "mlp", "fc2"}, from, m_shape.ffn, m_shape.gatedMlp, m_shape.bias));
    };
    const auto sum = [&](const char* name, int with) { return apply(name, "add", {x, with}, {}, Width::Model); };
    const auto behind = [&](const char* name, const char* part, int of) {
        return m_shape.postNorm ? norm(name, part, of) : of;
    };
    if (isEncoder()) {
        x = norm("norm1", "ln1", sum("add1", behind("attention_norm", "attentionNorm", mixed(x))));
        return norm("norm2", "ln2", sum("add2", behind("mlp_norm", "mlpNorm", made(x))));
    }
    if (!isClassifier())
        x = sum("add1", behind("attention_norm", "attentionNorm", mixed(norm("norm1", "ln1", x))));
    return sum("add2", behind("mlp_norm", "mlpNorm", made(norm("norm2", "ln2", x))));
}

// The input of a layer with its skip connections added; kept for later layers.
int ModelBuilder::withSkips(int layer, int x)
{
    if (m_skips.empty())
        return x;
    m_prefix = "skips.";
    m_streams.push_back(x);
    for (std::size_t i = 0; i < m_skips.size(); ++i)
        if (m_skips[i].before == layer)
            x = apply(std::to_string(i), "add", {x, m_streams.at(static_cast<std::size_t>(m_skips[i].behind))}, {},
                      Width::Model);
    return x;
}

int ModelBuilder::apply(std::string_view name, std::string_view operation, std::vector<int> operands, std::string part,
                        Width width, Attributes attributes)
{
    const int made =
        m_graph.add(m_prefix + std::string(name), operation, std::move(operands), std::move(attributes), m_segment);
    m_graph.describe(made, std::move(part), width == Width::Model);
    return made;
}

int ModelBuilder::parameter(const std::string& name, Shape shape, std::string part, Start start)
{
    const int made = m_graph.addParameter(m_prefix + name, std::move(shape), m_segment);
    m_graph.describeParameter(made, std::move(part), start);
    return made;
}

int ModelBuilder::linear(const Product& product, int x)
{
    std::vector<int> operands{x, parameter(product.name + ".weight", {product.outputs, product.inputs},
                                           product.part + ".weight", product.start)};
    if (product.bias)
        operands.push_back(parameter(product.name + ".bias", {product.outputs}, product.part + ".bias", Start::Zero));
    const int made = apply(product.name, "linear", std::move(operands), product.part, product.width);
    return product.wide ? made : narrowed(made);
}

int ModelBuilder::narrowed(int product)
{
    if (m_inLayer && m_shape.products != ProductType::Own)
        m_graph.describeNarrow(product);
    return product;
}

Attributes ModelBuilder::epsilon() const
{
    constexpr double usual = 1e-5;
    return m_shape.normEpsilon == usual ? Attributes() : Attributes{{"epsilon", m_shape.normEpsilon}};
}

int ModelBuilder::norm(const std::string& name, const char* part, int x, Width width)
{
    const std::int64_t values = m_graph.node(x).shape.back();
    std::vector<int> operands{x, parameter(name + ".gain", {values}, std::string(part) + ".gamma", Start::One)};
    if (m_shape.bias)
        operands.push_back(parameter(name + ".bias", {values}, std::string(part) + ".beta", Start::Zero));
    return apply(name, m_shape.bias ? "layer_norm" : "rms_norm", std::move(operands), part, width, epsilon());
}

int ModelBuilder::dropout(const char* name, const char* part, int x)
{
    return m_shape.dropout ? apply(name, "dropout", {x}, part, Width::Model) : x;
}

std::string_view ModelBuilder::activation() const
{
    switch (m_shape.activation) {
    case Activation::GeluTanh: return "gelu";
    case Activation::Gelu: return "gelu_erf";
    case Activation::Silu: return "silu";
    case Activation::ClampedSilu: return "clamped_silu";
    }
    return "silu";
}

namespace {

void requireGraph(const ModelShape& shape)
{
    if (shape.architecture == Architecture::Table)
        throw Error("model.architecture", "a table of layers has no tensor graph",
                    "write the graph out under \"graph\"");
}

} // namespace

TensorGraph transformerGraph(const ModelShape& shape, const StateBytesPerParameter& state, int segments,
                             const std::vector<LayerSkip>& skips)
{
    requireGraph(shape);
    if (shape.sequencePieces > 1)
        throw Error("model.sequence_pieces", "the graph of a whole model is that of whole sequences", "use 1");
    if (segments < 1 || segments > std::min(shape.layers, maxSegments))
        throw Error("segments", fmt::format("{} segments", segments),
                    fmt::format("between 1 and {}", std::min(shape.layers, maxSegments)));
    return ModelBuilder(shape, state, segments, skips).build({0, shape.layers, true, true});
}

TensorGraph attentionGraph(const ModelShape& shape)
{
    requireGraph(shape);
    return ModelBuilder(shape, {}, 1).buildAttention();
}

TensorGraph stageGraph(const ModelShape& shape, const StateBytesPerParameter& state, const LayerRange& range,
                       const std::vector<LayerSkip>& skips)
{
    requireGraph(shape);
    return ModelBuilder(shape, state, 1, skips).build(range);
}

} // namespace pipewright
