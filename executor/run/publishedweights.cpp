// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/publishedweights.h"

#include "core/base/diagnostic.h"
#include "core/workload/transformer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace pipewright {

namespace {

/// The parts of one parameter, as they are found.
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
        if (m_shape.learnedPositions)
            gpt2();
        else
            llama();
        const bool isNorm = m_name.ends_with(".gamma");
        for (PublishedPart& part : m_parts)
            part.above = isGemma() && isNorm ? 1.0f : 0.0f;
        if (m_parts.empty())
            throw Error(
                m_parameter.name, "no published layout has this parameter",
                "weights are read and written of GPT-2 and of decoders like Llama, Qwen, Mixtral, DeepSeek and Gemma");
        return std::move(m_parts);
    }

private:
    std::int64_t rows() const { return m_parameter.rows == 1 ? m_parameter.columns : m_parameter.rows; }
    bool isVector() const { return m_parameter.rows == 1; }
    std::string number() const { return m_layer.substr(std::string("layer ").size()); }

    void whole(std::string name, bool transposed = false)
    {
        m_parts.push_back({std::move(name), 0, 0, rows(), rows(), transposed, isVector()});
    }
    /// Our rows, one tensor after the other.
    void split(const std::vector<std::pair<std::string, std::int64_t>>& tensors)
    {
        std::int64_t first = 0;
        for (const auto& [name, count] : tensors) {
            m_parts.push_back({name, first, 0, count, count, false, isVector()});
            first += count;
        }
    }

    void gpt2()
    {
        static const std::pair<const char*, const char*> ends[] = {{"embedding/table.weight", "wte.weight"},
                                                                   {"embedding/positions.weight", "wpe.weight"},
                                                                   {"head/norm.gamma", "ln_f.weight"},
                                                                   {"head/norm.beta", "ln_f.bias"},
                                                                   {"head/projection.weight", "lm_head.weight"}};
        for (const auto& [ours, theirs] : ends)
            if (m_parameter.name == ours)
                whole(std::string(theirs).starts_with("lm_head") ? theirs : fmt::format("transformer.{}", theirs));
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
            if (plain && m_layer.starts_with("layer ") && m_name == ours)
                whole(fmt::format("transformer.h.{}.{}", number(), theirs), !isVector());
    }

    void llama()
    {
        static const std::pair<const char*, const char*> ends[] = {
            {"embedding/table.weight", "model.embed_tokens.weight"},
            {"head/norm.gamma", "model.norm.weight"},
            {"head/norm.beta", "model.norm.bias"},
            {"head/projection.weight", "lm_head.weight"}};
        for (const auto& [ours, theirs] : ends)
            if (m_parameter.name == ours)
                return whole(theirs);
        if (!m_layer.starts_with("layer ") || !m_shape.gatedMlp)
            return;
        const bool latent = m_shape.keyValueLatent > 0;
        const std::pair<const char*, const char*> blocks[] = {
            {"ln1.gamma", "input_layernorm.weight"},
            {"ln1.beta", "input_layernorm.bias"},
            {"queryNorm.gamma", latent ? "self_attn.q_a_layernorm.weight" : "self_attn.q_norm.weight"},
            {"keyNorm.gamma", "self_attn.k_norm.weight"},
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

    bool isGemma() const { return m_shape.embeddingScale != 1; }
    /// Mixtral's names, unless the model has what Mixtral has not.
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
    /// Ours has all heads' keys before all values, theirs a head's values behind its keys.
    void latentUp()
    {
        const std::int64_t own = m_shape.headSize, value = m_shape.valueHeadSize;
        for (std::int64_t head = 0; head < m_shape.heads; ++head)
            for (const bool isValue : {false, true})
                m_parts.push_back(
                    {at("self_attn.kv_b_proj.weight"), isValue ? m_shape.heads * own + head * value : head * own,
                     head * (own + value) + (isValue ? own : 0), isValue ? value : own, rows(), false, false});
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

    const ModelShape& m_shape;
    const Parameter& m_parameter;
    std::string m_layer, m_name;
    std::vector<PublishedPart> m_parts;
};

std::vector<std::int64_t> theirShape(const PublishedPart& part, const Parameter& parameter)
{
    if (part.isVector)
        return {part.theirRows};
    return part.transposed ? std::vector<std::int64_t>{parameter.columns, part.theirRows}
                           : std::vector<std::int64_t>{part.theirRows, parameter.columns};
}

/// Copies one part from their values into ours, or back.
template<class Ours, class Theirs, class Move>
void forEachValue(const PublishedPart& part, const Parameter& parameter, Ours ours, Theirs theirs, Move move)
{
    const auto columns = static_cast<std::size_t>(part.isVector ? 1 : parameter.columns);
    for (std::size_t row = 0; row < static_cast<std::size_t>(part.rows); ++row)
        for (std::size_t column = 0; column < columns; ++column) {
            const std::size_t their = row + static_cast<std::size_t>(part.theirFirst);
            move(ours[(row + static_cast<std::size_t>(part.ourFirst)) * columns + column],
                 theirs[part.transposed ? column * static_cast<std::size_t>(part.theirRows) + their
                                        : their * columns + column]);
        }
}

/// Files of the bare GPT-2 leave the first word out; a tied head may be left out too.
std::string nameIn(const SafetensorsFile& file, const ModelShape& shape, const std::string& name)
{
    if (file.has(name))
        return name;
    if (name == "lm_head.weight" && shape.tiedHead)
        return nameIn(file, shape, shape.learnedPositions ? "transformer.wte.weight" : "model.embed_tokens.weight");
    const std::string bare = name.substr(name.find('.') + 1);
    return (name.starts_with("transformer.") || name.starts_with("model.")) && file.has(bare) ? bare : name;
}

} // namespace

std::vector<PublishedPart> publishedParts(const ModelShape& shape, const Parameter& parameter)
{
    if (shape.architecture != Architecture::Decoder)
        throw Error("weights", "only decoders have a published layout here", "leave the weights out");
    return PartList(shape, parameter).parts();
}

void readPublished(const SafetensorsFile& file, const ModelShape& shape, const ParameterLayout& layout,
                   std::span<float> parameters)
{
    for (const Parameter& parameter : layout.parameters()) {
        std::string held;
        std::vector<float> values;
        for (const PublishedPart& part : publishedParts(shape, parameter)) {
            const std::string name = nameIn(file, shape, part.name);
            if (const auto wanted = theirShape(part, parameter); file.shape(name) != wanted)
                throw Error(file.path(),
                            fmt::format("the tensor \"{}\" is of {}, and the model's is of {}", name,
                                        fmt::join(file.shape(name), " x "), fmt::join(wanted, " x ")),
                            "give weights of this model, or scale the model to them");
            if (name != held)
                values = file.values(held = name);
            forEachValue(part, parameter, parameter.in(parameters), std::span<const float>(values),
                         [&](float& ours, float theirs) { ours = theirs + part.above; });
        }
    }
}

std::vector<std::string> unusedTensors(const SafetensorsFile& file, const ModelShape& shape,
                                       const ParameterLayout& wholeModel)
{
    std::set<std::string> used;
    for (const Parameter& parameter : wholeModel.parameters())
        for (const PublishedPart& part : publishedParts(shape, parameter))
            used.insert(nameIn(file, shape, part.name));
    std::vector<std::string> unused;
    for (const std::string& name : file.names())
        if (!used.contains(name))
            unused.push_back(name);
    return unused;
}

void addPublished(Safetensors& file, const ModelShape& shape, const ParameterLayout& wholeModel,
                  std::span<const float> parameters)
{
    std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> tensors;
    for (const Parameter& parameter : wholeModel.parameters())
        for (const PublishedPart& part : publishedParts(shape, parameter)) {
            if (part.name == "lm_head.weight" && shape.tiedHead)
                continue;
            auto& [extents, values] = tensors[part.name];
            extents = theirShape(part, parameter);
            values.resize(static_cast<std::size_t>(part.theirRows)
                          * static_cast<std::size_t>(part.isVector ? 1 : parameter.columns));
            forEachValue(part, parameter, parameter.in(parameters), std::span<float>(values),
                         [&](float ours, float& theirs) { theirs = ours - part.above; });
        }
    for (const auto& [name, tensor] : tensors)
        file.add(name, tensor.first, std::span<const float>(tensor.second));
}

} // namespace pipewright
