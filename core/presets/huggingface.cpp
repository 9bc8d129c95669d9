// SPDX-License-Identifier: GPL-3.0-or-later
// The configuration is completed by the defaults of its type (huggingfacekeys.h); one pass over it then fills the
// shape, and every key that changes the maths but has no formula here is a fault.
#include "core/presets/huggingface.h"

#include "core/base/formattedtext.h"
#include "core/json/locatedjson.h"
#include "core/json/objectreader.h"
#include "core/model/transformer.h"
#include "core/presets/huggingfacehead.h"
#include "core/presets/huggingfacekeys.h"
#include "core/presets/huggingfacerotary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t anyNumber = std::int64_t(1) << 53; // checkShape() knows the real limits
constexpr std::int64_t usualSequence = 4096;              // configurations state only the longest
constexpr std::int64_t bloomSequence = 2048;              // that of training; linear biases have no longest

constexpr std::array<std::string_view, 6> neededByDecoders{"hidden_size",         "num_hidden_layers",
                                                           "num_attention_heads", "intermediate_size",
                                                           "vocab_size",          "num_key_value_heads"};

class ConfigReader {
public:
    ConfigReader(const LocatedJson& config, const HuggingFaceType& facts, Diagnostics notes)
        : m_json(config.value), m_facts(facts), m_type(facts.type), m_reader(config, config.value, "", m_faults)
    {
        m_file.notes = std::move(notes);
    }

    ModelFile read(const std::string& name)
    {
        m_file.shape.name = name;
        if (m_type == "gpt2")
            readGpt2();
        else if (m_type == "bloom")
            readBloom();
        else if (m_type == "bert")
            readBert();
        else
            readDecoder();
        readHead();
        readPrecision();
        if (has("quantization_config"))
            note("quantization_config", fmt::format("the bytes are those of {}-byte numbers; quantization is left out",
                                                    bytesOf(m_file.shape.dataType)));
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
    bool flag(std::string_view key, bool usual = false)
    {
        if (has(key))
            m_reader.read(key, usual);
        return usual;
    }
    double rate(std::string_view key)
    {
        double value = 0;
        if (has(key))
            m_reader.readRate(key, value);
        return value;
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

    /// What a class's name says of the head. Without a class it is the one that texts are trained with.
    void readHead()
    {
        ModelShape& shape = m_file.shape;
        const Json* classes = has("architectures") ? m_reader.array("architectures") : nullptr;
        if (classes == nullptr || classes->empty())
            return;
        if (classes->size() > 1)
            note("architectures", "of several classes the first one is taken");
        const std::string name = classes->front().is_string() ? classes->front().get<std::string>() : std::string();
        const bool encoder = shape.architecture == Architecture::Encoder;
        const std::optional<ClassHead> found = headOfClass(name, m_facts, encoder);
        if (!found) {
            m_reader.fault("architectures", fmt::format("the head of the class {} is not known here", inQuotes(name)),
                           fmt::format("known: {}; for another, measure the model's layers with `profile --torch`",
                                       joined(knownClasses(m_facts, encoder), ", ")));
            return;
        }
        shape.head = found->head;
        shape.tiedHead = shape.tiedHead && found->maybeTied;
        if (shape.head != Head::Own && shape.head != Head::None)
            shape.labels = found->labels > 0 ? found->labels : labels();
    }

    std::int64_t labels()
    {
        std::int64_t count = 2; // the library's default
        if (has("id2label") && m_json["id2label"].is_object())
            count = std::ssize(m_json["id2label"]);
        else if (has("num_labels"))
            number("num_labels", count);
        return count;
    }

    /// As many keys and values as queries, which share the width out evenly.
    void readEvenHeads()
    {
        ModelShape& shape = m_file.shape;
        shape.keyValueHeads = shape.heads;
        shape.headSize = std::max<std::int64_t>(1, shape.hidden / std::max(1, shape.heads));
    }

    void readGpt2()
    {
        ModelShape& shape = m_file.shape; // its defaults are GPT's: biases, learned positions
        number("n_layer", shape.layers);
        number("n_embd", shape.hidden);
        number("n_head", shape.heads);
        number("vocab_size", shape.vocabulary);
        number("n_positions", shape.sequence);
        readEvenHeads();
        shape.ffn = 4 * shape.hidden;
        if (has("n_inner"))
            number("n_inner", shape.ffn);
        shape.tiedHead = flag("tie_word_embeddings");
        m_reader.readRate("layer_norm_epsilon", shape.normEpsilon);
        readActivation("activation_function");
        readDropout({"resid_pdrop", "embd_pdrop", "attn_pdrop"});
        refuseIf(flag("add_cross_attention"), "add_cross_attention", "no formula for a second attention");
    }

    void readBloom()
    {
        ModelShape& shape = m_file.shape; // its defaults are GPT's: biases, GELU's tanh form
        shape.learnedPositions = false;
        shape.linearBiases = shape.embeddingNorm = true;
        number("n_layer", shape.layers);
        number("hidden_size", shape.hidden);
        number("n_head", shape.heads);
        number("vocab_size", shape.vocabulary);
        shape.sequence = bloomSequence;
        readEvenHeads();
        shape.ffn = 4 * shape.hidden;
        shape.tiedHead = flag("tie_word_embeddings");
        m_reader.readRate("layer_norm_epsilon", shape.normEpsilon);
        readDropout({"hidden_dropout", "attention_dropout"});
        refuseIf(flag("apply_residual_connection_post_layernorm"), "apply_residual_connection_post_layernorm",
                 "what flows past a layer is not normed here");
    }

    void readBert()
    {
        ModelShape& shape = m_file.shape; // its defaults are BERT's too: biases, learned positions
        shape.architecture = Architecture::Encoder;
        number("num_hidden_layers", shape.layers);
        number("hidden_size", shape.hidden);
        number("num_attention_heads", shape.heads);
        number("intermediate_size", shape.ffn);
        number("vocab_size", shape.vocabulary);
        number("max_position_embeddings", shape.sequence);
        readEvenHeads();
        m_reader.readRate("layer_norm_eps", shape.normEpsilon);
        readActivation("hidden_act");
        readDropout({"hidden_dropout_prob", "attention_probs_dropout_prob"});
        int segments = 2;
        number("type_vocab_size", segments);
        refuseIf(segments != 2, "type_vocab_size", "the table of segments has two rows here");
        refuseIf(!flag("tie_word_embeddings"), "tie_word_embeddings", "no formula for a head with a matrix of its own");
    }

    void readDropout(std::initializer_list<std::string_view> keys)
    {
        for (const std::string_view key : keys)
            m_file.shape.dropout = rate(key) > 0 || m_file.shape.dropout;
    }

    void readDecoder()
    {
        ModelShape& shape = m_file.shape;
        shape.gatedMlp = true;
        shape.bias = shape.learnedPositions = false;
        number("num_hidden_layers", shape.layers);
        number("hidden_size", shape.hidden);
        number("num_attention_heads", shape.heads);
        number("vocab_size", shape.vocabulary);
        shape.keyValueHeads = shape.heads;
        if (has("num_key_value_heads"))
            number("num_key_value_heads", shape.keyValueHeads);
        shape.headSize = std::max<std::int64_t>(1, shape.hidden / std::max(1, shape.heads));
        if (has("head_dim"))
            number("head_dim", shape.headSize);
        number("intermediate_size", shape.ffn);
        number("max_position_embeddings", shape.sequence);
        shape.sequence = std::min(shape.sequence, usualSequence);
        shape.tiedHead = flag("tie_word_embeddings");
        shape.queryKeyNorm = m_facts.queryKeyNorm;
        shape.postNorm = m_facts.postNorm;
        const bool attentionBias = flag("attention_bias");
        shape.queryKeyValueBias = m_facts.queryKeyValueBias || attentionBias;
        shape.projectionBias = attentionBias;
        refuseIf(flag("mlp_bias"), "mlp_bias", "no formula for biases of the MLP alone");
        if (!m_facts.expertCount.empty())
            readExperts();
        if (m_type == "deepseek_v3")
            readLatentAttention();
        m_reader.readRate("rms_norm_eps", shape.normEpsilon);
        readActivation(m_json.contains("hidden_activation") ? "hidden_activation" : "hidden_act");
        const RotaryPositions positions = readRotaryPositions(m_reader.document(), m_facts, m_faults, m_file.notes);
        shape.rotary = positions.all;
        readWindow();
        if (shape.window > 0)
            shape.localRotaryBase = positions.windowedBase;
        if (m_type.starts_with("gemma"))
            readGemma();
        if (m_type == "gpt_oss")
            readGptOss();
    }

    void readGemma()
    {
        ModelShape& shape = m_file.shape;
        shape.embeddingScale = std::sqrt(static_cast<double>(shape.hidden));
        shape.queryScale = rate("query_pre_attn_scalar");
        shape.attentionSoftCap = rate("attn_logit_softcapping");
        shape.logitsSoftCap = rate("final_logit_softcapping");
        if (m_type == "gemma" && shape.activation == Activation::Gelu) // so older files call its tanh form
            shape.activation = Activation::GeluTanh;
        shape.bidirectional = flag("use_bidirectional_attention");
        if (!shape.bidirectional)
            return;
        if (m_type == "gemma3_text" && shape.window > 0) // a window on both sides, each as wide as the library has it
            shape.window = shape.window / 2 + 1;
        note("use_bidirectional_attention",
             m_file.shape.window > 0
                 ? "tokens attend to later ones too, within windows, which is predicted and not trained "
                   "here; the work is that of whole sequences"
                 : "tokens attend to later ones too; the work is that of whole sequences");
    }

    void readGptOss()
    {
        ModelShape& shape = m_file.shape;
        shape.attentionSinks = shape.expertBias = shape.routerBias = true;
        refuseIf(rate("swiglu_limit") != 7, "swiglu_limit", "the clamped activation is built for 7");
        refuseIf(rate("swiglu_alpha") != 1.702, "swiglu_alpha", "the clamped activation is built for 1.702");
        shape.activation = Activation::ClampedSilu;
    }

    void readActivation(std::string_view key)
    {
        m_reader.readName(key, m_file.shape.activation,
                          {{"silu", Activation::Silu},
                           {"swish", Activation::Silu},
                           {"gelu", Activation::Gelu},
                           {"gelu_new", Activation::GeluTanh},
                           {"gelu_pytorch_tanh", Activation::GeluTanh}});
    }

    void readWindow()
    {
        ModelShape& shape = m_file.shape;
        const std::vector<bool> full = layersWithFullAttention();
        if (has("sliding_window") && flag("use_sliding_window", true))
            number("sliding_window", shape.window);
        if (shape.window == 0 || (!full.empty() && std::find(full.begin(), full.end(), false) == full.end())) {
            shape.window = 0;
            return;
        }
        const int every = has("sliding_window_pattern") ? m_pattern : m_facts.fullAttentionEvery;
        shape.fullAttentionEvery = full.empty() ? every : regularPattern(full);
        for (std::size_t layer = 0; shape.fullAttentionEvery == 0 && layer < full.size(); ++layer)
            if (full[layer])
                shape.fullAttentionLayers.push_back(static_cast<int>(layer));
        note("sliding_window",
             "times and work of attention are those of whole sequences; the window is kept where the model trains");
    }

    /// Of each layer, where the file says it layer by layer or from which one on windows begin; otherwise empty.
    std::vector<bool> layersWithFullAttention()
    {
        std::vector<bool> full;
        if (has("sliding_window_pattern"))
            number("sliding_window_pattern", m_pattern);
        if (has("layer_types")) {
            const Json* kinds = m_reader.array("layer_types");
            for (std::size_t i = 0; kinds && i < kinds->size(); ++i) {
                const std::string kind = (*kinds)[i].is_string() ? (*kinds)[i].get<std::string>() : std::string();
                full.push_back(kind != "sliding_attention");
                if (full.back() && kind != "full_attention")
                    refuseIf(true, "layer_types", fmt::format("no formula for layers of the kind {}", inQuotes(kind)));
            }
            if (kinds && std::ssize(full) != m_file.shape.layers)
                m_reader.fault("layer_types", fmt::format("{} kinds for {} layers", full.size(), m_file.shape.layers),
                               "give one for each layer");
        } else if (has("max_window_layers")) {
            int first = 0;
            number("max_window_layers", first, 0);
            for (int layer = 0; layer < m_file.shape.layers; ++layer)
                full.push_back(layer < first);
        }
        return full;
    }

    /// n where exactly every n-th layer is full; 0: there is no such n, or no layer is.
    static int regularPattern(const std::vector<bool>& full)
    {
        const auto every = std::find(full.begin(), full.end(), true) - full.begin() + 1;
        for (std::ptrdiff_t layer = 0; layer < std::ssize(full); ++layer)
            if (full[static_cast<std::size_t>(layer)] != ((layer + 1) % every == 0))
                return 0;
        return every > std::ssize(full) ? 0 : static_cast<int>(every);
    }

    void readRouter()
    {
        ModelShape& shape = m_file.shape;
        shape.routerNormalised = flag("norm_topk_prob", true);
        shape.routerBalance = rate("router_aux_loss_coef");
        if (m_type != "deepseek_v3")
            return;
        shape.routerScore = RouterScore::Sigmoid;
        m_reader.readRate("routed_scaling_factor", shape.routerScale);
        if (has("n_group"))
            number("n_group", shape.routerGroups);
        if (has("topk_group"))
            number("topk_group", shape.routerGroupsPerToken);
        refuseIf(has("topk_method") && m_json["topk_method"] != "noaux_tc", "topk_method",
                 "experts are chosen with a correction here, \"noaux_tc\"");
        refuseIf(has("scoring_func") && m_json["scoring_func"] != "sigmoid", "scoring_func",
                 "experts are scored by a sigmoid here");
    }

    void readExperts()
    {
        readRouter();
        ModelShape& shape = m_file.shape;
        number(m_facts.expertCount, shape.experts);
        number("num_experts_per_tok", shape.expertsPerToken);
        number(m_facts.expertWidth, shape.expertFfn);
        for (const std::string_view key : {"decoder_sparse_step", "moe_layer_freq"})
            if (int every = 1; has(key)) {
                number(key, every);
                refuseIf(every != 1, key, "layers with and without experts take turns");
            }
        if (has("mlp_only_layers"))
            refuseIf(!m_json["mlp_only_layers"].empty(), "mlp_only_layers", "some layers have no experts");
    }

    void readLatentAttention()
    {
        ModelShape& shape = m_file.shape;
        number("n_shared_experts", shape.sharedExperts, 0);
        if (has("first_k_dense_replace"))
            number("first_k_dense_replace", shape.denseLayers, 0);
        if (has("q_lora_rank"))
            number("q_lora_rank", shape.queryLatent);
        number("kv_lora_rank", shape.keyValueLatent);
        number("qk_nope_head_dim", shape.headSize);
        number("qk_rope_head_dim", shape.rotaryHeadSize);
        number("v_head_dim", shape.valueHeadSize);
        shape.routerBias = true;
        shape.queryKeyValueBias = shape.projectionBias = false;
        refuseIf(flag("attention_bias"), "attention_bias", "no formula for biases of latent attention");
        if (!flag("rope_interleave", true))
            note("rope_interleave", "pairs of rotary positions stand side by side here, and another order is left out");
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
    const HuggingFaceType& m_facts;
    std::string_view m_type;
    Diagnostics m_faults;
    ObjectReader m_reader;
    ModelFile m_file;
    int m_pattern = 0; ///< sliding_window_pattern
};

[[noreturn]] void refuseUnknown(const LocatedJson& document, const std::string& type)
{
    std::vector<std::string_view> known, lacking;
    for (const HuggingFaceType& each : huggingFaceTypes())
        known.push_back(each.type);
    for (const std::string_view key : neededByDecoders)
        if (const auto found = document.value.find(std::string(key)); found == document.value.end() || found->is_null())
            lacking.push_back(key);
    std::string what = fmt::format("the layers of a model_type {} are not known here", inQuotes(type));
    if (!lacking.empty())
        what += fmt::format("; of what describes a decoder it lacks {}", joined(lacking, ", "));
    throw Error(document.placeOf("/model_type"), std::move(what),
                document.value.contains("text_config")
                    ? "the language model stands in \"text_config\": save that object as a file of its own"
                    : fmt::format("known: {}; measure others with `profile --torch`, or write a table of layers",
                                  joined(known, ", ")));
}

} // namespace

bool isHuggingFaceConfig(const Json& value)
{
    return value.is_object() && (value.contains("model_type") || value.contains("architectures"));
}

ModelFile readHuggingFaceConfig(const LocatedJson& document, const std::string& name)
{
    Diagnostics faults, notes;
    std::string type;
    ObjectReader(document, document.value, "", faults).read("model_type", type, Presence::Required);
    if (!faults.empty())
        throw Error(std::move(faults));
    const HuggingFaceType* facts = findHuggingFaceType(type);
    if (facts == nullptr)
        refuseUnknown(document, type);
    const LocatedJson config = completedConfig(document, *facts, notes);
    return ConfigReader(config, *facts, std::move(notes)).read(name);
}

} // namespace pipewright
