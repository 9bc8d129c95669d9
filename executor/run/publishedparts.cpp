// SPDX-License-Identifier: GPL-3.0-or-later
// The table of names and of how tensors are split. Each kind of model has a function that finds a parameter's parts by
// its name.
#include "executor/run/publishedparts.h"

#include "core/base/diagnostic.h"
#include "core/model/transformer.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace pipewright {

namespace {

/// Collects the parts of one parameter.
class PartList {
public:
    PartList(const ModelShape& shape, const Parameter& parameter) : m_shape(shape), m_parameter(parameter)
    {
        const std::size_t slash = parameter.name.find('/');
        m_layer = parameter.name.substr(0, slash);
        m_name = parameter.name.substr(slash + 1);
    }

    std::vector<PublishedPart> parts()
    {
        switch (m_shape.architecture) {
        case Architecture::Decoder:
            if (m_shape.learnedPositions)
                gpt2();
            else if (m_shape.linearBiases)
                bloom();
            else
                llama();
            break;
        case Architecture::Encoder: bert(); break;
        case Architecture::Vision: vit(); break;
        case Architecture::Classifier:
        case Architecture::Table: break; // there are no published weights
        }
        const bool isNorm = m_name.ends_with(".gamma");
        for (PublishedPart& part : m_parts)
            part.above = isGemma() && isNorm ? 1.0f : 0.0f;
        if (m_parts.empty())
            throw Error(
                m_parameter.name, "no published layout has this parameter",
                "weights are read and written of GPT-2, BLOOM, BERT, ViT and of decoders like Llama, Qwen, Mixtral, "
                "DeepSeek, Gemma and GPT-OSS");
        return std::move(m_parts);
    }

private:
    // A bias or a norm is a column of values.
    bool isVector() const { return m_parameter.rows == 1; }
    std::int64_t rows() const { return isVector() ? m_parameter.columns : m_parameter.rows; }
    std::int64_t columns() const { return isVector() ? 1 : m_parameter.columns; }
    std::string number() const { return m_layer.substr(std::string("layer ").size()); }

    void whole(std::string name) { rowsOf(std::move(name), rows(), 0, 0, rows()); }
    /// `count` rows: from row `ourFirst` of our parameter, and from `theirFirst` of their tensor of `theirRows` rows.
    void rowsOf(std::string name, std::int64_t theirRows, std::int64_t ourFirst, std::int64_t theirFirst,
                std::int64_t count)
    {
        std::vector<std::int64_t> shape{theirRows};
        if (!isVector())
            shape.push_back(columns());
        m_parts.push_back({std::move(name),
                           std::move(shape),
                           count,
                           columns(),
                           {ourFirst * columns(), columns(), 1},
                           {theirFirst * columns(), columns(), 1}});
    }
    /// Our rows are their columns.
    void transposed(std::string name)
    {
        m_parts.push_back({std::move(name), {columns(), rows()}, rows(), columns(), {0, columns(), 1}, {0, 1, rows()}});
    }
    /// The same values, under a shape with extents of 1.
    void wholeAs(std::string name, std::vector<std::int64_t> shape)
    {
        whole(std::move(name));
        m_parts.back().shape = std::move(shape);
    }
    /// Our rows are those of several tensors, one tensor after the other.
    void split(const std::vector<std::pair<std::string, std::int64_t>>& tensors)
    {
        std::int64_t first = 0;
        for (const auto& [name, count] : tensors) {
            rowsOf(name, count, first, 0, count);
            first += count;
        }
    }

    /// If `name` is in a table of our and their names, the parameter is their whole tensor. Returns whether it is.
    template<std::size_t count>
    bool isOneOf(const std::pair<const char*, const char*> (&table)[count], const std::string& name)
    {
        for (const auto& [ours, theirs] : table)
            if (name == ours) {
                whole(theirs);
                return true;
            }
        return false;
    }

    void gpt2()
    {
        static const std::pair<const char*, const char*> ends[] = {
            {"embedding/table.weight", "transformer.wte.weight"},
            {"embedding/positions.weight", "transformer.wpe.weight"},
            {"head/norm.gamma", "transformer.ln_f.weight"},
            {"head/norm.beta", "transformer.ln_f.bias"},
            {"head/projection.weight", "lm_head.weight"}};
        if (isOneOf(ends, m_parameter.name))
            return;
        static const std::pair<const char*, const char*> blocks[] = {{"ln1.gamma", "ln_1.weight"},
                                                                     {"ln1.beta", "ln_1.bias"},
                                                                     {"qkv.weight", "attn.c_attn.weight"},
                                                                     {"qkv.bias", "attn.c_attn.bias"},
                                                                     {"projection.weight", "attn.c_proj.weight"},
                                                                     {"projection.bias", "attn.c_proj.bias"},
                                                                     {"ln2.gamma", "ln_2.weight"},
                                                                     {"ln2.beta", "ln_2.bias"},
                                                                     {"fc1.weight", "mlp.c_fc.weight"},
                                                                     {"fc1.bias", "mlp.c_fc.bias"},
                                                                     {"fc2.weight", "mlp.c_proj.weight"},
                                                                     {"fc2.bias", "mlp.c_proj.bias"}};
        const bool plain = m_shape.bias && !m_shape.gatedMlp && m_shape.experts == 0
                           && attentionCoreOf(m_shape) == AttentionCore::Plain;
        for (const auto& [ours, theirs] : blocks)
            if (plain && m_layer.starts_with("layer ") && m_name == ours) {
                const std::string name = fmt::format("transformer.h.{}.{}", number(), theirs);
                if (isVector())
                    whole(name);
                else
                    transposed(name);
            }
    }

    void bloom()
    {
        static const std::pair<const char*, const char*> ends[] = {
            {"embedding/table.weight", "transformer.word_embeddings.weight"},
            {"embedding/norm.gamma", "transformer.word_embeddings_layernorm.weight"},
            {"embedding/norm.beta", "transformer.word_embeddings_layernorm.bias"},
            {"head/norm.gamma", "transformer.ln_f.weight"},
            {"head/norm.beta", "transformer.ln_f.bias"},
            {"head/projection.weight", "lm_head.weight"}};
        const bool known = m_shape.bias && m_shape.embeddingNorm && !m_shape.gatedMlp && m_shape.experts == 0
                           && !m_shape.queryKeyNorm && !m_shape.attentionSinks
                           && m_shape.keyValueHeads == m_shape.heads;
        if (!known || isOneOf(ends, m_parameter.name) || !m_layer.starts_with("layer "))
            return;
        const std::string layer = fmt::format("transformer.h.{}.", number());
        static const std::pair<const char*, const char*> blocks[] = {
            {"ln1.gamma", "input_layernorm.weight"},
            {"ln1.beta", "input_layernorm.bias"},
            {"projection.weight", "self_attention.dense.weight"},
            {"projection.bias", "self_attention.dense.bias"},
            {"ln2.gamma", "post_attention_layernorm.weight"},
            {"ln2.beta", "post_attention_layernorm.bias"},
            {"fc1.weight", "mlp.dense_h_to_4h.weight"},
            {"fc1.bias", "mlp.dense_h_to_4h.bias"},
            {"fc2.weight", "mlp.dense_4h_to_h.weight"},
            {"fc2.bias", "mlp.dense_4h_to_h.bias"}};
        for (const auto& [ours, theirs] : blocks)
            if (m_name == ours)
                return whole(layer + theirs);
        if (!m_name.starts_with("qkv."))
            return;
        // Our rows have all heads' queries, then all keys, then all values; theirs have, head by head, the three.
        const std::string name = layer + "self_attention.query_key_value." + m_name.substr(4);
        const std::int64_t size = m_shape.headSize;
        for (std::int64_t part = 0; part < 3; ++part)
            for (std::int64_t head = 0; head < m_shape.heads; ++head)
                rowsOf(name, rows(), (part * m_shape.heads + head) * size, (3 * head + part) * size, size);
    }

    void llama()
    {
        static const std::pair<const char*, const char*> ends[] = {
            {"embedding/table.weight", "model.embed_tokens.weight"},
            {"head/norm.gamma", "model.norm.weight"},
            {"head/norm.beta", "model.norm.bias"},
            {"head/projection.weight", "lm_head.weight"}};
        if (isOneOf(ends, m_parameter.name))
            return;
        if (!m_layer.starts_with("layer ") || !m_shape.gatedMlp)
            return;
        if (m_shape.attentionSinks && (m_name.starts_with("experts.") || m_name.starts_with("router.")))
            return gptOssExperts();
        const bool latent = m_shape.keyValueLatent > 0;
        const std::pair<const char*, const char*> blocks[] = {
            {"ln1.gamma", "input_layernorm.weight"},
            {"ln1.beta", "input_layernorm.bias"},
            {"queryNorm.gamma", latent ? "self_attn.q_a_layernorm.weight" : "self_attn.q_norm.weight"},
            {"keyNorm.gamma", "self_attn.k_norm.weight"},
            {"sinks", "self_attn.sinks"},
            {"keyValueNorm.gamma", "self_attn.kv_a_layernorm.weight"},
            {"queryLatent.weight", "self_attn.q_b_proj.weight"},
            {"projection.weight", "self_attn.o_proj.weight"},
            {"projection.bias", "self_attn.o_proj.bias"},
            {"ln2.gamma", m_shape.postNorm ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight"},
            {"attentionNorm.gamma", "post_attention_layernorm.weight"},
            {"mlpNorm.gamma", "post_feedforward_layernorm.weight"},
            {"ln2.beta", "post_attention_layernorm.bias"},
            {"fc2.weight", "mlp.down_proj.weight"},
            {"fc2.bias", "mlp.down_proj.bias"},
            {"router.weight", isMixtral() ? "block_sparse_moe.gate.weight" : "mlp.gate.weight"},
            {"router.correction", "mlp.gate.e_score_correction_bias"},
            {"shared.fc2.weight", "mlp.shared_experts.down_proj.weight"}};
        for (const auto& [ours, theirs] : blocks)
            if (m_name == ours)
                return whole(at(theirs));
        const std::string kind = m_name.substr(m_name.find_last_of('.') + 1); // weight or bias
        if (m_name.starts_with("qkv."))
            return latent ? latentDown() : queryKeyValue(kind);
        if (m_name == "keyValueLatent.weight")
            return latentUp();
        if (m_name.starts_with("fc1."))
            return split({{at("mlp.gate_proj." + kind), rows() / 2}, {at("mlp.up_proj." + kind), rows() / 2}});
        if (m_name == "shared.fc1.weight")
            return split({{at("mlp.shared_experts.gate_proj.weight"), rows() / 2},
                          {at("mlp.shared_experts.up_proj.weight"), rows() / 2}});
        if (m_name == "experts.fc1.weight" || m_name == "experts.fc2.weight")
            experts(m_name == "experts.fc1.weight");
    }

    /// An encoder layer of BERT and ViT, which differ only in the norms: in their places and names.
    void encoderLayer(const std::string& model, const char* firstNorm, const char* secondNorm)
    {
        if (!m_layer.starts_with("layer ") || m_shape.gatedMlp || m_shape.experts > 0
            || m_shape.keyValueHeads != m_shape.heads)
            return;
        const std::string layer = fmt::format("{}.encoder.layer.{}.", model, number());
        const std::size_t dot = m_name.find_last_of('.');
        const std::string part = m_name.substr(0, dot), kind = m_name.substr(dot + 1); // weight or bias
        const std::string ofNorm = kind == "gamma" ? "weight" : "bias";
        if (part == "qkv")
            split({{layer + "attention.self.query." + kind, rows() / 3},
                   {layer + "attention.self.key." + kind, rows() / 3},
                   {layer + "attention.self.value." + kind, rows() / 3}});
        else if (part == "projection")
            whole(layer + "attention.output.dense." + kind);
        else if (part == "fc1")
            whole(layer + "intermediate.dense." + kind);
        else if (part == "fc2")
            whole(layer + "output.dense." + kind);
        else if (part == "ln1")
            whole(layer + firstNorm + "." + ofNorm);
        else if (part == "ln2")
            whole(layer + secondNorm + "." + ofNorm);
    }

    void bert()
    {
        static const std::pair<const char*, const char*> ends[] = {
            {"embedding/table.weight", "bert.embeddings.word_embeddings.weight"},
            {"embedding/positions.weight", "bert.embeddings.position_embeddings.weight"},
            {"embedding/segments.weight", "bert.embeddings.token_type_embeddings.weight"},
            {"embedding/norm.gamma", "bert.embeddings.LayerNorm.weight"},
            {"embedding/norm.beta", "bert.embeddings.LayerNorm.bias"},
            {"head/pooler.weight", "bert.pooler.dense.weight"},
            {"head/pooler.bias", "bert.pooler.dense.bias"},
            {"head/transform.weight", "cls.predictions.transform.dense.weight"},
            {"head/transform.bias", "cls.predictions.transform.dense.bias"},
            {"head/norm.gamma", "cls.predictions.transform.LayerNorm.weight"},
            {"head/norm.beta", "cls.predictions.transform.LayerNorm.bias"},
            {"head/projection.weight", "cls.predictions.decoder.weight"},
            {"head/projection.bias", "cls.predictions.bias"}};
        if (isOneOf(ends, m_parameter.name))
            return;
        encoderLayer("bert", "attention.output.LayerNorm", "output.LayerNorm");
    }

    void vit()
    {
        static const std::pair<const char*, const char*> ends[] = {
            {"embedding/patches.bias", "vit.embeddings.patch_embeddings.projection.bias"},
            {"head/norm.gamma", "vit.layernorm.weight"},
            {"head/norm.beta", "vit.layernorm.bias"},
            {"head/projection.weight", "classifier.weight"},
            {"head/projection.bias", "classifier.bias"}};
        if (isOneOf(ends, m_parameter.name))
            return;
        if (m_parameter.name == "embedding/patches.weight")
            return patches();
        if (m_parameter.name == "embedding/classToken")
            return wholeAs("vit.embeddings.cls_token", {1, 1, m_shape.hidden});
        if (m_parameter.name == "embedding/positions.weight")
            return wholeAs("vit.embeddings.position_embeddings", {1, m_shape.sequence, m_shape.hidden});
        encoderLayer("vit", "layernorm_before", "layernorm_after");
        for (PublishedPart& part : m_parts) // ViT's names have one word more than BERT's
            if (const std::size_t self = part.name.find("attention.self."); self != part.name.npos)
                part.name.replace(self, std::string("attention.self.").size(), "attention.attention.");
    }
    /// Our rows keep a pixel's three colours together; theirs have one plane per colour.
    void patches()
    {
        constexpr std::int64_t colours = 3;
        const std::int64_t pixels = m_shape.patchElements / colours;
        const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
        if (side * side * colours != m_shape.patchElements)
            return;
        for (std::int64_t colour = 0; colour < colours; ++colour)
            m_parts.push_back({"vit.embeddings.patch_embeddings.projection.weight",
                               {m_shape.hidden, colours, side, side},
                               m_shape.hidden,
                               pixels,
                               {colour, m_shape.patchElements, colours},
                               {colour * pixels, m_shape.patchElements, 1}});
    }

    bool isGemma() const { return m_shape.embeddingScale != 1; }
    /// Mixtral's names, unless the model has something that Mixtral lacks.
    bool isMixtral() const
    {
        return !m_shape.queryKeyNorm && m_shape.keyValueLatent == 0 && m_shape.sharedExperts == 0;
    }
    std::string at(const std::string& name) const { return fmt::format("model.layers.{}.{}", number(), name); }

    void queryKeyValue(const std::string& kind)
    {
        const std::int64_t keys = m_shape.keyValueHeads * m_shape.headSize;
        split({{at("self_attn.q_proj." + kind), m_shape.heads * m_shape.headSize},
               {at("self_attn.k_proj." + kind), keys},
               {at("self_attn.v_proj." + kind), keys}});
    }
    void latentDown()
    {
        const std::int64_t others = m_shape.keyValueLatent + m_shape.rotaryHeadSize;
        split({{at(m_shape.queryLatent > 0 ? "self_attn.q_a_proj.weight" : "self_attn.q_proj.weight"), rows() - others},
               {at("self_attn.kv_a_proj_with_mqa.weight"), others}});
    }
    /// Our rows have all heads' keys, then all values; theirs have, head by head, the keys and then the values.
    void latentUp()
    {
        const std::int64_t own = m_shape.headSize, value = m_shape.valueHeadSize;
        for (std::int64_t head = 0; head < m_shape.heads; ++head)
            for (const bool isValue : {false, true})
                rowsOf(at("self_attn.kv_b_proj.weight"), rows(),
                       isValue ? m_shape.heads * own + head * value : head * own,
                       head * (own + value) + (isValue ? own : 0), isValue ? value : own);
    }
    void experts(bool first)
    {
        std::vector<std::pair<std::string, std::int64_t>> tensors;
        for (int e = 0; e < m_shape.experts; ++e) {
            const auto name = [&](const char* mixtral, const char* other) {
                return at(isMixtral() ? fmt::format("block_sparse_moe.experts.{}.{}.weight", e, mixtral)
                                      : fmt::format("mlp.experts.{}.{}_proj.weight", e, other));
            };
            if (first) {
                tensors.emplace_back(name("w1", "gate"), m_shape.expertFfn);
                tensors.emplace_back(name("w3", "up"), m_shape.expertFfn);
            } else {
                tensors.emplace_back(name("w2", "down"), m_shape.hidden);
            }
        }
        split(tensors);
    }

    /// Their tensors interleave an expert's gate and up projection, and our rows are their columns.
    void gptOssExperts()
    {
        const std::int64_t ffn = m_shape.expertFfn, hidden = m_shape.hidden, experts = m_shape.experts;
        const std::string name = at("mlp." + m_name);
        if (m_name.starts_with("router.") && m_name != "router.correction")
            return whole(name);
        for (std::int64_t e = 0; e < experts; ++e)
            for (const std::int64_t half : {0, 1}) {
                const std::string both = at("mlp.experts.gate_up_proj");
                if (m_name == "experts.fc1.weight")
                    m_parts.push_back({both,
                                       {experts, hidden, 2 * ffn},
                                       ffn,
                                       hidden,
                                       {(2 * e + half) * ffn * hidden, hidden, 1},
                                       {e * hidden * 2 * ffn + half, 2, 2 * ffn}});
                if (m_name == "experts.fc1.bias")
                    m_parts.push_back({both + "_bias",
                                       {experts, 2 * ffn},
                                       ffn,
                                       1,
                                       {(2 * e + half) * ffn, 1, 1},
                                       {e * 2 * ffn + half, 2, 1}});
            }
        const std::string down = at("mlp.experts.down_proj");
        for (std::int64_t e = 0; e < experts && m_name == "experts.fc2.weight"; ++e)
            m_parts.push_back(
                {down, {experts, ffn, hidden}, hidden, ffn, {e * hidden * ffn, ffn, 1}, {e * ffn * hidden, 1, hidden}});
        if (m_name == "experts.fc2.bias")
            wholeAs(down + "_bias", {experts, hidden});
    }

    const ModelShape& m_shape;
    const Parameter& m_parameter;
    std::string m_layer, m_name;
    std::vector<PublishedPart> m_parts;
};

} // namespace

std::vector<PublishedPart> publishedParts(const ModelShape& shape, const Parameter& parameter)
{
    return PartList(shape, parameter).parts();
}

} // namespace pipewright
