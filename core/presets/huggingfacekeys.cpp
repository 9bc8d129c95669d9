// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/huggingfacekeys.h"

#include "core/base/formattedtext.h"
#include "core/json/jsontext.h"
#include "core/json/objectreader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

/// Read for every type, without a default.
constexpr std::string_view commonKeys[] = {"architectures", "model_type",         "dtype", "torch_dtype", "num_labels",
                                           "id2label",      "quantization_config"};

/// Change neither sizes, nor work, nor what is trained: names, special tokens, how text is generated, what a call of
/// the library returns.
constexpr std::string_view harmlessKeys[] = {
    "_name_or_path", "name_or_path", "transformers_version", "auto_map", "tokenizer_class", "prefix",
    "task_specific_params", "finetuning_task", "label2id", "problem_type", "_attn_implementation",
    "_attn_implementation_autoset", "attn_implementation", "_experts_implementation", "experts_implementation",
    "torchscript", "use_bfloat16", "pretraining_tp", "chunk_size_feed_forward", "tf_legacy_loss",
    "reorder_and_upcast_attn",
    // special tokens
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id", "unk_token_id",
    "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens",
    "bad_words_ids",
    // what a call returns
    "use_cache", "cache_implementation", "return_dict", "return_dict_in_generate", "output_hidden_states",
    "output_attentions", "output_router_logits", "output_scores", "tie_last_hidden_states",
    // generation
    "max_length", "max_new_tokens", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
    "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "num_return_sequences", "remove_invalid_values",
    "exponential_decay_length_penalty",
    // the head of a class that is refused
    "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"};

/// Harmless with this value alone, which is what happens here; with another the key is left out, and a note says so.
struct Expected {
    std::string_view key, value; ///< as JSON
};
constexpr Expected expectedKeys[] = {
    {"initializer_range", "0.02"},
    {"attention_dropout", "0"},
    {"router_jitter_noise", "0"},
    {"is_decoder", "false"},
    {"is_encoder_decoder", "false"},
    {"tie_encoder_decoder", "false"},
    {"add_cross_attention", "false"},
    {"pruned_heads", "{}"},
    {"scale_attn_weights", "true"},
    {"partial_rotary_factor", "1"},
    {"token_classification_bias", "true"},
    {"scale_attn_by_inverse_layer_idx", "false"},
    {"cross_attention_hidden_size", "null"},
    {"classifier_dropout", "null"},
};

/// The keys by which a file tells how large its model is.
constexpr std::string_view sizeKeys[] = {"vocab_size",
                                         "hidden_size",
                                         "intermediate_size",
                                         "num_hidden_layers",
                                         "num_attention_heads",
                                         "head_dim",
                                         "num_experts",
                                         "moe_intermediate_size",
                                         "num_local_experts",
                                         "num_key_value_heads",
                                         "n_embd",
                                         "n_layer",
                                         "n_head",
                                         "n_positions",
                                         "n_shared_experts",
                                         "kv_lora_rank",
                                         "n_routed_experts",
                                         "num_experts_per_tok",
                                         "q_lora_rank",
                                         "first_k_dense_replace",
                                         "v_head_dim",
                                         "qk_nope_head_dim",
                                         "qk_rope_head_dim"};

template<class Names>
bool isOneOf(const Names& names, std::string_view name)
{
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool isExpected(std::string_view key, const Json& value)
{
    const auto found = std::find_if(std::begin(expectedKeys), std::end(expectedKeys),
                                    [key](const Expected& expected) { return expected.key == key; });
    return found != std::end(expectedKeys) && (value.is_null() || value == Json::parse(found->value));
}

/// The key's name in the type's defaults; the key itself if it is no other name of one.
std::string_view presentName(const HuggingFaceType& type, std::string_view key)
{
    const auto found = std::find_if(type.renamed.begin(), type.renamed.end(),
                                    [key](const auto& renamed) { return renamed.first == key; });
    return found == type.renamed.end() ? key : found->second;
}

std::string shortText(const Json& value)
{
    constexpr std::size_t most = 40;
    const std::string text = jsonText(value);
    return text.size() <= most ? text : text.substr(0, most) + " …";
}

void noteLeftOut(const LocatedJson& document, const HuggingFaceType& type, const std::string& key, const Json& value,
                 const Json& defaults, Diagnostics& notes)
{
    const auto members = sortedMembers(defaults);
    std::vector<std::string_view> known;
    for (const auto& member : members)
        known.push_back(member.first);
    const std::string_view near = nearestName(key, known);
    const bool other = std::any_of(std::begin(expectedKeys), std::end(expectedKeys),
                                   [&](const Expected& expected) { return expected.key == key; });
    notes.push_back({Severity::Note, document.placeOf("/" + key),
                     other ? fmt::format("\"{}\": {} is left out", key, shortText(value))
                           : fmt::format("\"{}\" is not read for a model_type \"{}\" and is left out", key, type.type),
                     near.empty() || document.lines.contains(fmt::format("/{}", near))
                         ? std::string()
                         : fmt::format("did you mean \"{}\"?", near)});
}

} // namespace

LocatedJson completedConfig(const LocatedJson& document, const HuggingFaceType& type, Diagnostics& notes)
{
    const Json defaults = Json::parse(type.defaults);
    LocatedJson result{defaults, document.source, document.lines};
    for (const auto& [key, value] : sortedMembers(document.value)) {
        const std::string name(presentName(type, key));
        if (name != key && !document.value.contains(name))
            result.lines["/" + name] = document.lineOf("/" + key);
        if (defaults.contains(name)) {
            if (name == key || !document.value.contains(name))
                result.value[name] = *value;
            else if (*value != document.value[name])
                noteLeftOut(document, type, key, *value, defaults, notes);
        } else if (isOneOf(commonKeys, key))
            result.value[key] = *value;
        else if (!isOneOf(harmlessKeys, key) && !isOneOf(type.ignored, key) && !isExpected(key, *value))
            noteLeftOut(document, type, key, *value, defaults, notes);
    }
    std::vector<std::string> taken;
    for (const auto& [key, value] : sortedMembers(defaults))
        if (isOneOf(sizeKeys, key) && !value->is_null() && result.value[key] == *value
            && !result.lines.contains("/" + key))
            taken.push_back(fmt::format("{} {}", key, jsonText(*value)));
    if (!taken.empty())
        notes.push_back(
            {Severity::Note,
             document.placeOf("/model_type"),
             fmt::format("not stated, and taken from the defaults of {}: {}", libraryOfDefaults, joined(taken, ", ")),
             {}});
    return result;
}

} // namespace pipewright
