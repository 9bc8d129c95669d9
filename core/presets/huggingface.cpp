// SPDX-License-Identifier: GPL-3.0-or-later
// A table of architectures gives the keys that each reads and the value of a missing key; one pass over the file then
// fills the shape, and every key that changes the maths but has no formula here is a fault. The defaults are those of
// the transformers library's configuration classes.
#include "core/presets/huggingface.h"

#include "core/base/formattedtext.h"
#include "core/json/locatedjson.h"
#include "core/json/objectreader.h"
#include "core/workload/transformer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace pipewright {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t anyNumber = std::int64_t(1) << 53; // checkShape() knows the real limits
constexpr std::int64_t usualSequence = 4096;              // configurations state only the longest

/// What an architecture always has, and the default of a key that its configuration leaves out.
struct ArchitectureFacts {
    std::string_view type;
    bool tied = false; ///< usual tie_word_embeddings
    bool queryKeyValueBias = false, queryKeyNorm = false, postNorm = false;
    bool experts = false;
    std::string_view expertCount = "num_local_experts", expertWidth = "intermediate_size";
};

constexpr std::array<ArchitectureFacts, 12> knownArchitectures{{
    {.type = "llama"},
    {.type = "mistral"},
    {.type = "qwen2", .queryKeyValueBias = true},
    {.type = "qwen3", .queryKeyNorm = true},
    {.type = "qwen3_moe",
     .queryKeyNorm = true,
     .experts = true,
     .expertCount = "num_experts",
     .expertWidth = "moe_intermediate_size"},
    {.type = "mixtral", .experts = true},
    {.type = "gemma", .tied = true},
    {.type = "gemma2", .tied = true, .postNorm = true},
    {.type = "gemma3_text", .tied = true, .queryKeyNorm = true, .postNorm = true},
    {.type = "gpt_oss", .experts = true},
    {.type = "deepseek_v3", .experts = true, .expertCount = "n_routed_experts", .expertWidth = "moe_intermediate_size"},
    {.type = "gpt2", .tied = true},
}};

constexpr std::array<std::string_view, 6> neededByDecoders{"hidden_size",         "num_hidden_layers",
                                                           "num_attention_heads", "intermediate_size",
                                                           "vocab_size",          "num_key_value_heads"};

class ConfigReader {
public:
    ConfigReader(const LocatedJson& document, const std::string& name)
        : m_json(document.value), m_reader(document, document.value, "", m_faults)
    {
        m_file.shape.name = name;
    }

    ModelFile read()
    {
        std::string type;
        m_reader.read("model_type", type, Presence::Required);
        raise();
        const auto* facts = std::find_if(knownArchitectures.begin(), knownArchitectures.end(),
                                         [&](const ArchitectureFacts& known) { return known.type == type; });
        if (facts == knownArchitectures.end())
            refuseUnknown(type);
        m_type = facts->type;
        if (m_type == "gpt2")
            readGpt2();
        else
            readDecoder(*facts);
        readPrecision();
        raise();
        if (Diagnostics wrong = checkShape(m_file.shape); !wrong.empty()) {
            for (Diagnostic& each : wrong)
                each.where = fmt::format("{}: {}", m_reader.document().source, each.where);
            throw Error(std::move(wrong));
        }
        m_file.source = fmt::format("{}, {}sequences of {}, {} per microbatch, attention recomputed", m_type,
                                    m_file.shape.dataType == DataType::Bf16 ? "2-byte numbers, " : "fp32, ",
                                    m_file.shape.sequence, m_file.shape.microbatchSize);
        return std::move(m_file);
    }

private:
    bool has(std::string_view key) const
    {
        const auto found = m_json.find(std::string(key));
        return found != m_json.end() && !found->is_null();
    }
    void raise()
    {
        if (!m_faults.empty())
            throw Error(std::move(m_faults));
    }
    void number(std::string_view key, std::int64_t& field, std::int64_t low = 1)
    {
        m_reader.read(key, field, low, anyNumber, Presence::Required);
    }
    void number(std::string_view key, int& field, std::int64_t low = 1)
    {
        m_reader.read(key, field, low, 1 << 30, Presence::Required);
    }
    bool flag(std::string_view key, bool usual)
    {
        if (has(key))
            m_reader.read(key, usual);
        return usual;
    }
    void refuseIf(bool wrong, std::string_view key, std::string what)
    {
        if (wrong)
            m_reader.fault(key, fmt::format("{}: {}", key, what),
                           "measure the model's layers with `profile --torch`, or write a table of layers");
    }
    void note(std::string_view key, std::string what)
    {
        m_file.notes.push_back(
            {Severity::Note, m_reader.document().placeOf(fmt::format("/{}", key)), std::move(what), {}});
    }

    [[noreturn]] void refuseUnknown(const std::string& type)
    {
        std::vector<std::string_view> known, lacking;
        for (const ArchitectureFacts& each : knownArchitectures)
            known.push_back(each.type);
        for (const std::string_view key : neededByDecoders)
            if (!has(key))
                lacking.push_back(key);
        std::string what = fmt::format("the layers of a model_type {} are not known here", inQuotes(type));
        if (!lacking.empty())
            what += fmt::format("; of what describes a decoder it lacks {}", joined(lacking, ", "));
        throw Error(m_reader.document().placeOf("/model_type"), std::move(what),
                    has("text_config")
                        ? "the language model stands in \"text_config\": save that object as a file of its own"
                        : fmt::format("known: {}; measure others with `profile --torch`, or write a table of layers",
                                      joined(known, ", ")));
    }

    void readGpt2()
    {
        ModelShape& shape = m_file.shape; // its defaults are GPT's: biases, learned positions
        number("n_layer", shape.layers);
        number("n_embd", shape.hidden);
        number("n_head", shape.heads);
        number("vocab_size", shape.vocabulary);
        number(has("n_positions") ? "n_positions" : "n_ctx", shape.sequence);
        shape.keyValueHeads = shape.heads;
        shape.headSize = std::max<std::int64_t>(1, shape.hidden / std::max(1, shape.heads));
        shape.ffn = 4 * shape.hidden;
        if (has("n_inner"))
            number("n_inner", shape.ffn);
        shape.tiedHead = flag("tie_word_embeddings", true);
        if (has("layer_norm_epsilon"))
            m_reader.readRate("layer_norm_epsilon", shape.normEpsilon);
        readActivation("activation_function", Activation::GeluTanh);
        double dropped = 0;
        if (has("resid_pdrop"))
            m_reader.readRate("resid_pdrop", dropped);
        shape.dropout = dropped > 0;
        refuseIf(flag("add_cross_attention", false), "add_cross_attention", "no formula for a second attention");
    }

    void readDecoder(const ArchitectureFacts& facts)
    {
        ModelShape& shape = m_file.shape;
        shape.gatedMlp = true;
        shape.bias = shape.learnedPositions = false;
        number("num_hidden_layers", shape.layers);
        number("hidden_size", shape.hidden);
        number("num_attention_heads", shape.heads);
        number("vocab_size", shape.vocabulary);
        shape.keyValueHeads = shape.heads;
        if (has("num_key_value_heads") || m_type != "llama") // early Llama files: no grouped-query attention
            number("num_key_value_heads", shape.keyValueHeads);
        shape.headSize = std::max<std::int64_t>(1, shape.hidden / std::max(1, shape.heads));
        if (has("head_dim") && m_type != "deepseek_v3") // DeepSeek-V3 uses it for the rotary part
            number("head_dim", shape.headSize);
        else if (m_type.starts_with("gemma"))
            refuseIf(true, "head_dim", "is missing, and it is not hidden_size / num_attention_heads here");
        number("intermediate_size", shape.ffn);
        std::int64_t longest = usualSequence;
        if (has("max_position_embeddings"))
            number("max_position_embeddings", longest);
        shape.sequence = std::min(longest, usualSequence);
        shape.tiedHead = flag("tie_word_embeddings", facts.tied);
        shape.queryKeyNorm = facts.queryKeyNorm;
        shape.postNorm = facts.postNorm;
        const bool attentionBias = flag("attention_bias", false);
        shape.queryKeyValueBias = facts.queryKeyValueBias || attentionBias;
        shape.projectionBias = attentionBias;
        refuseIf(flag("mlp_bias", false), "mlp_bias", "no formula for biases of the MLP alone");
        if (m_type == "gpt_oss")
            shape.attentionSinks = shape.expertBias = shape.routerBias = true;
        if (facts.experts)
            readExperts(facts);
        if (m_type == "deepseek_v3")
            readLatentAttention();
        if (has("rms_norm_eps"))
            m_reader.readRate("rms_norm_eps", shape.normEpsilon);
        readActivation(has("hidden_activation") ? "hidden_activation" : "hidden_act", Activation::Silu);
        readRotary();
        readWindow();
        if (m_type.starts_with("gemma"))
            readGemma();
        if (m_type == "gpt_oss") {
            double limit = 7;
            if (has("swiglu_limit"))
                m_reader.readRate("swiglu_limit", limit);
            refuseIf(limit != 7, "swiglu_limit", "the clamped activation is built for 7");
            shape.activation = Activation::ClampedSilu;
        }
        if (has("quantization_config"))
            note("quantization_config", "the bytes are those of 2-byte numbers; quantization is left out");
    }

    void readGemma()
    {
        ModelShape& shape = m_file.shape;
        shape.embeddingScale = std::sqrt(static_cast<double>(shape.hidden));
        for (const auto& [key, field] : {std::pair{"query_pre_attn_scalar", &shape.queryScale},
                                         {"attn_logit_softcapping", &shape.attentionSoftCap},
                                         {"final_logit_softcapping", &shape.logitsSoftCap},
                                         {"rope_local_base_freq", &shape.localRotaryBase}})
            if (has(key) && m_type != "gemma")
                m_reader.readRate(key, *field);
    }

    void readActivation(std::string_view key, Activation usual)
    {
        m_file.shape.activation = usual;
        if (!has(key))
            return;
        m_reader.readName(key, m_file.shape.activation,
                          {{"silu", Activation::Silu},
                           {"swish", Activation::Silu},
                           {"gelu", Activation::Gelu},
                           {"gelu_new", Activation::GeluTanh},
                           {"gelu_pytorch_tanh", Activation::GeluTanh}});
    }

    /// Older files have rope_theta and rope_scaling, newer ones both in rope_parameters.
    void readRotary()
    {
        Rotary& rotary = m_file.shape.rotary;
        if (has("rope_theta"))
            m_reader.readRate("rope_theta", rotary.base);
        const std::string_view key = has("rope_parameters") ? "rope_parameters" : "rope_scaling";
        const Json* object = has(key) ? m_reader.object(key) : nullptr;
        if (object == nullptr)
            return;
        ObjectReader reader(m_reader.document(), *object, m_reader.pointerTo(key), m_faults);
        reader.readRate("rope_theta", rotary.base);
        std::string type = "default";
        reader.read(object->contains("rope_type") ? "rope_type" : "type", type);
        reader.readRate("factor", rotary.factor);
        reader.read("original_max_position_embeddings", rotary.original, 1, anyNumber);
        if (type == "linear") {
            rotary.scaling = Rotary::Scaling::Linear;
        } else if (type == "llama3") {
            rotary.scaling = Rotary::Scaling::Llama3;
            reader.readRate("low_freq_factor", rotary.low, Presence::Required);
            reader.readRate("high_freq_factor", rotary.high, Presence::Required);
        } else if (type == "yarn") {
            rotary.scaling = Rotary::Scaling::Yarn;
            rotary.high = 32;
            reader.readRate("beta_slow", rotary.low);
            reader.readRate("beta_fast", rotary.high);
            readYarnFactor(reader, *object);
            bool wholePairs = true;
            reader.read("truncate", wholePairs);
            if (!wholePairs)
                note(key, "the blend of stretched and plain frequencies begins and ends at whole pairs here, and "
                          "\"truncate\": false is left out: a model that is trained here differs in the pairs there");
        } else if (type != "default") {
            note(key, fmt::format("rotary positions are scaled by {}, which is left out: a model that is trained here "
                                  "has them unscaled",
                                  inQuotes(type)));
            rotary = {.base = rotary.base};
        }
    }

    /// The factor on the attention scores, as the library computes it (arXiv 2309.00071, section 3.4).
    void readYarnFactor(ObjectReader& reader, const Json& object)
    {
        Rotary& rotary = m_file.shape.rotary;
        const auto stretched = [&](double share) {
            return rotary.factor > 1 ? 0.1 * share * std::log(rotary.factor) + 1 : 1.0;
        };
        double share = 1, ofAll = 0;
        reader.readRate("mscale", share);
        reader.readRate("mscale_all_dim", ofAll);
        const bool both = object.contains("mscale") && object.contains("mscale_all_dim");
        rotary.attentionFactor = both ? stretched(share) / stretched(ofAll) : stretched(1);
        if (m_type == "deepseek_v3" && ofAll > 0)
            rotary.attentionFactor *= stretched(ofAll);
        reader.readRate("attention_factor", rotary.attentionFactor);
    }

    void readWindow()
    {
        ModelShape& shape = m_file.shape;
        if (!has("sliding_window") || !flag("use_sliding_window", true))
            return;
        number("sliding_window", shape.window);
        if (m_type == "gpt_oss" || m_type == "gemma2")
            shape.fullAttentionEvery = 2;
        if (m_type == "gemma3_text") {
            shape.fullAttentionEvery = 6;
            if (has("sliding_window_pattern"))
                number("sliding_window_pattern", shape.fullAttentionEvery);
        }
        note("sliding_window",
             "times and work of attention are those of whole sequences; the window is kept where the model trains");
    }

    void readRouter()
    {
        ModelShape& shape = m_file.shape;
        shape.routerNormalised = flag("norm_topk_prob", m_type != "qwen3_moe");
        if (has("router_aux_loss_coef"))
            m_reader.readRate("router_aux_loss_coef", shape.routerBalance);
        if (m_type != "deepseek_v3")
            return;
        shape.routerScore = RouterScore::Sigmoid;
        if (has("routed_scaling_factor"))
            m_reader.readRate("routed_scaling_factor", shape.routerScale);
        if (has("n_group"))
            number("n_group", shape.routerGroups);
        if (has("topk_group"))
            number("topk_group", shape.routerGroupsPerToken);
    }

    void readExperts(const ArchitectureFacts& facts)
    {
        readRouter();
        ModelShape& shape = m_file.shape;
        number(facts.expertCount, shape.experts);
        number("num_experts_per_tok", shape.expertsPerToken);
        number(facts.expertWidth, shape.expertFfn);
        if (has("decoder_sparse_step")) {
            int every = 1;
            number("decoder_sparse_step", every);
            refuseIf(every != 1, "decoder_sparse_step", "layers with and without experts take turns");
        }
        if (has("moe_layer_freq")) {
            int every = 1;
            number("moe_layer_freq", every);
            refuseIf(every != 1, "moe_layer_freq", "layers with and without experts take turns");
        }
        if (has("mlp_only_layers"))
            refuseIf(!m_json["mlp_only_layers"].empty(), "mlp_only_layers", "some layers have no experts");
    }

    void readLatentAttention()
    {
        ModelShape& shape = m_file.shape;
        number("n_shared_experts", shape.sharedExperts, 0);
        number("first_k_dense_replace", shape.denseLayers, 0);
        if (has("q_lora_rank"))
            number("q_lora_rank", shape.queryLatent);
        number("kv_lora_rank", shape.keyValueLatent);
        number("qk_nope_head_dim", shape.headSize);
        number("qk_rope_head_dim", shape.rotaryHeadSize);
        number("v_head_dim", shape.valueHeadSize);
        shape.routerBias = true;
        shape.queryKeyValueBias = shape.projectionBias = false;
        refuseIf(flag("attention_bias", false), "attention_bias", "no formula for biases of latent attention");
        int more = 0;
        if (has("num_nextn_predict_layers"))
            number("num_nextn_predict_layers", more, 0);
        if (more > 0)
            note("num_nextn_predict_layers",
                 fmt::format("{} extra prediction layer{} left out", more, more == 1 ? " is" : "s are"));
    }

    void readPrecision()
    {
        ModelShape& shape = m_file.shape;
        shape.attention = AttentionMemory::Recomputed;
        shape.microbatchSize = 1;
        shape.dataType = DataType::Fp32;
        const std::string_view key = has("dtype") ? "dtype" : "torch_dtype";
        if (!has(key)) { // the library's own default
            note("", "no dtype is given: numbers of 4 bytes, as PyTorch makes them");
            return;
        }
        m_reader.readName(key, shape.dataType,
                          {{"float32", DataType::Fp32}, {"bfloat16", DataType::Bf16}, {"float16", DataType::Bf16}});
    }

    const Json& m_json;
    Diagnostics m_faults;
    ObjectReader m_reader;
    ModelFile m_file;
    std::string_view m_type;
};

} // namespace

bool isHuggingFaceConfig(const Json& value)
{
    return value.is_object() && (value.contains("model_type") || value.contains("architectures"));
}

ModelFile readHuggingFaceConfig(const LocatedJson& document, const std::string& name)
{
    return ConfigReader(document, name).read();
}

} // namespace pipewright
