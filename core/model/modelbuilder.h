// SPDX-License-Identifier: GPL-3.0-or-later
// Appends a model's layers to a graph, part by part: attention (modelattention.cpp), MLPs and experts (modelmlps.cpp),
// the two ends (modelends.cpp). Every function takes the tensor that its part reads and returns the one that it makes.
// O(operations).
#pragma once

#include "core/model/modelgraph.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

class ModelBuilder {
public:
    ModelBuilder(const ModelShape& shape, const StateBytesPerParameter& state, int segments,
                 std::vector<LayerSkip> skips = {});

    TensorGraph build(const LayerRange& range);
    TensorGraph buildAttention();

private:
    using Start = LayerParameter::Start;
    /// Whether a product's result has the model's width, or is a part that tensor-parallel members share out.
    enum class Width { Own, Model };
    struct Product {
        std::string name; ///< of the node
        std::string part; ///< Node::part
        std::int64_t inputs = 0, outputs = 0;
        bool bias = false;
        Width width = Width::Own;
        Start start = Start::Normal;
        bool wide = false; ///< in the model's type where other products of a layer are narrower
    };

    int received();
    int layer(int index, int x);
    int withSkips(int layer, int x);

    int apply(std::string_view name, std::string_view operation, std::vector<int> operands, std::string part,
              Width width, Attributes attributes = {});
    int parameter(const std::string& name, Shape shape, std::string part, Start start = Start::Normal);
    int linear(const Product& product, int x);
    int narrowed(int product); ///< says so where the model's products are
    int norm(const std::string& name, const char* part, int x, Width width = Width::Model);
    Attributes epsilon() const;
    int dropout(const char* name, const char* part, int x);
    std::string_view activation() const;

    int attention(int x, int index);
    int groupedCore(int x, int index);
    int latentCore(int x, int index);
    int core(std::string_view operation, std::vector<int> operands, int index, std::int64_t querySize);
    int headNorm(const char* name, const char* part, int x, int heads);
    Attributes attentionOf(int index, std::int64_t querySize) const;

    struct MlpNames {
        std::string nodes, up, activation, down; ///< of the nodes; the others are parts
    };
    int mlp(const MlpNames& names, int x, std::int64_t width, bool gated, bool bias);
    int gated(const std::string& name, const std::string& part, int gate, int factor);
    int experts(int x);

    int embedding();
    int tokenEmbedding();
    int pictureEmbedding();
    int featureEmbedding();
    void head(int x);
    void ownHead(int x);
    void taskHead(int x);
    int pooler(int x);
    void loss(int logits);

    bool isClassifier() const { return m_shape.architecture == Architecture::Classifier; }
    bool isEncoder() const { return m_shape.architecture == Architecture::Encoder; }
    bool isVision() const { return m_shape.architecture == Architecture::Vision; }
    /// The leading dimensions of the values between layers.
    Shape rows() const;

    const ModelShape& m_shape;
    int m_segments, m_segment = 0;
    bool m_inLayer = false; ///< not in the ends
    std::string m_prefix;
    std::vector<LayerSkip> m_skips;
    std::vector<int> m_streams; ///< the input of every layer, with skip connections only
    int m_table = -1;           ///< of the tokens, where this range has it
    TensorGraph m_graph;
};

} // namespace pipewright
