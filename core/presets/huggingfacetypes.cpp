// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/huggingfacetypes.h"

#include <algorithm>
#include <array>

namespace pipewright {

namespace {

using KeyName = std::string_view;
using Renamed = std::pair<KeyName, KeyName>;

constexpr std::array<Renamed, 1> countLocalExperts{{{"num_experts", "num_local_experts"}}};
constexpr std::array<Renamed, 1> countExperts{{{"num_local_experts", "num_experts"}}};
constexpr std::array<Renamed, 2> deepseekNames{
    {{"num_local_experts", "n_routed_experts"}, {"num_mtp_layers", "num_nextn_predict_layers"}}};
constexpr std::array<Renamed, 5> gpt2Names{{{"hidden_size", "n_embd"},
                                            {"max_position_embeddings", "n_positions"},
                                            {"n_ctx", "n_positions"},
                                            {"num_attention_heads", "n_head"},
                                            {"num_hidden_layers", "n_layer"}}};
constexpr std::array<Renamed, 3> bloomNames{
    {{"n_embed", "hidden_size"}, {"num_attention_heads", "n_head"}, {"num_hidden_layers", "n_layer"}}};

constexpr std::array<KeyName, 1> otherActivation{"hidden_activation"};
constexpr std::array<KeyName, 1> olderActivation{"hidden_act"};
constexpr std::array<KeyName, 2> gemma3Ignores{"hidden_act", "_sliding_window_pattern"};
// Every head has keys and values of its own; its sizes are stated part by part.
constexpr std::array<KeyName, 4> deepseekIgnores{"ep_size", "num_key_value_heads", "head_dim", "qk_head_dim"};
constexpr std::array<KeyName, 1> qwen3MoeIgnores{"max_window_layers"};
// As the first trainer of these models had them.
constexpr std::array<KeyName, 8> bloomIgnores{
    "seq_length",    "attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi",
    "skip_bias_add", "skip_bias_add_qkv",         "slow_but_exact"};
constexpr std::array<KeyName, 2> gptOssIgnores{"initial_context_length", "experts_per_token"};

constexpr std::array<HuggingFaceType, 14> types{{
    {.type = "llama", .bareClass = "LlamaModel", .defaults = R"({
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": null, "head_dim": null, "hidden_act": "silu",
        "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "tie_word_embeddings": false,
        "rope_theta": 10000, "rope_scaling": null, "rope_parameters": null, "attention_bias": false,
        "mlp_bias": false})"},
    {.type = "mistral", .bareClass = "MistralModel", .defaults = R"({
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": null, "hidden_act": "silu",
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "tie_word_embeddings": false,
        "rope_theta": 10000, "rope_scaling": null, "rope_parameters": null, "sliding_window": 4096})"},
    {.type = "qwen2",
     .bareClass = "Qwen2Model",
     .defaults = R"({
        "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": null, "hidden_act": "silu",
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "tie_word_embeddings": false,
        "rope_theta": 10000, "rope_scaling": null, "rope_parameters": null, "use_sliding_window": false,
        "sliding_window": 4096, "max_window_layers": 28, "layer_types": null})",
     .queryKeyValueBias = true},
    {.type = "qwen3",
     .bareClass = "Qwen3Model",
     .defaults = R"({
        "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "hidden_act": "silu",
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "tie_word_embeddings": false,
        "rope_theta": 10000, "rope_scaling": null, "rope_parameters": null, "attention_bias": false,
        "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, "layer_types": null})",
     .queryKeyNorm = true},
    {.type = "qwen3_moe",
     .bareClass = "Qwen3MoeModel",
     .defaults = R"({
        "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": null, "hidden_act": "silu",
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "tie_word_embeddings": false,
        "rope_theta": 10000, "rope_scaling": null, "rope_parameters": null, "attention_bias": false,
        "use_sliding_window": false, "sliding_window": 4096, "moe_intermediate_size": 768,
        "num_experts_per_tok": 8, "num_experts": 128, "norm_topk_prob": false, "router_aux_loss_coef": 0.001,
        "decoder_sparse_step": 1, "mlp_only_layers": []})",
     .renamed = countExperts,
     .ignored = qwen3MoeIgnores,
     .queryKeyNorm = true,
     .expertCount = "num_experts",
     .expertWidth = "moe_intermediate_size"},
    {.type = "mixtral",
     .bareClass = "MixtralModel",
     .defaults = R"({
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": null, "hidden_act": "silu",
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
        "rope_theta": 1000000, "rope_scaling": null, "rope_parameters": null, "sliding_window": null,
        "num_experts_per_tok": 2, "num_local_experts": 8, "router_aux_loss_coef": 0.001})",
     .renamed = countLocalExperts,
     .expertCount = "num_local_experts",
     .expertWidth = "intermediate_size"},
    {.type = "gemma",
     .bareClass = "GemmaModel",
     .defaults = R"({
        "vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256,
        "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 8192, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": true, "rope_theta": 10000, "rope_scaling": null, "rope_parameters": null,
        "attention_bias": false, "use_bidirectional_attention": null})",
     .ignored = otherActivation},
    {.type = "gemma2",
     .bareClass = "Gemma2Model",
     .defaults = R"({
        "vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 8192, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": true, "rope_theta": 10000, "rope_scaling": null, "rope_parameters": null,
        "attention_bias": false, "query_pre_attn_scalar": 256, "sliding_window": 4096, "layer_types": null,
        "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0, "use_bidirectional_attention": null})",
     .ignored = olderActivation,
     .postNorm = true,
     .fullAttentionEvery = 2},
    {.type = "gemma3_text",
     .bareClass = "Gemma3TextModel",
     .defaults = R"({
        "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": true, "rope_theta": 1000000, "rope_local_base_freq": 10000, "rope_scaling": null,
        "rope_parameters": null, "attention_bias": false, "query_pre_attn_scalar": 256, "sliding_window": 4096,
        "sliding_window_pattern": 6, "layer_types": null, "final_logit_softcapping": null,
        "attn_logit_softcapping": null, "use_bidirectional_attention": false})",
     .ignored = gemma3Ignores,
     .queryKeyNorm = true,
     .postNorm = true,
     .fullAttentionEvery = 6},
    {.type = "gpt_oss",
     .bareClass = "GptOssModel",
     .defaults = R"({
        "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "hidden_act": "silu",
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
        "rope_theta": 150000, "rope_scaling": null, "rope_parameters": {"rope_type": "yarn", "factor": 32.0,
        "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false, "original_max_position_embeddings": 4096},
        "attention_bias": true, "sliding_window": 128, "layer_types": null, "num_local_experts": 128,
        "num_experts_per_tok": 4, "router_aux_loss_coef": 0.001, "swiglu_alpha": 1.702, "swiglu_limit": 7.0})",
     .renamed = countLocalExperts,
     .ignored = gptOssIgnores,
     .expertCount = "num_local_experts",
     .expertWidth = "intermediate_size",
     .fullAttentionEvery = 2},
    {.type = "deepseek_v3",
     .bareClass = "DeepseekV3Model",
     .defaults = R"({
        "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
        "num_attention_heads": 128, "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": false, "rope_theta": 10000, "rope_scaling": null, "rope_parameters": null,
        "rope_interleave": true, "attention_bias": false, "moe_intermediate_size": 2048, "n_shared_experts": 1,
        "n_routed_experts": 256, "num_experts_per_tok": 8, "routed_scaling_factor": 2.5, "norm_topk_prob": true,
        "n_group": 8, "topk_group": 4, "first_k_dense_replace": 3, "moe_layer_freq": 1, "kv_lora_rank": 512,
        "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
        "num_nextn_predict_layers": 1, "topk_method": "noaux_tc", "scoring_func": "sigmoid"})",
     .renamed = deepseekNames,
     .ignored = deepseekIgnores,
     .expertCount = "n_routed_experts",
     .expertWidth = "moe_intermediate_size"},
    {.type = "gpt2",
     .bareClass = "GPT2Model",
     .defaults = R"({
        "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": null,
        "activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1,
        "layer_norm_epsilon": 1e-5, "add_cross_attention": false, "tie_word_embeddings": true})",
     .renamed = gpt2Names},
    {.type = "bloom",
     .bareClass = "BloomModel",
     .defaults = R"({
        "vocab_size": 250880, "hidden_size": 64, "n_layer": 2, "n_head": 8, "layer_norm_epsilon": 1e-5,
        "apply_residual_connection_post_layernorm": false, "hidden_dropout": 0.0, "attention_dropout": 0.0,
        "tie_word_embeddings": true})",
     .renamed = bloomNames,
     .ignored = bloomIgnores},
    {.type = "bert", .bareClass = "BertModel", .defaults = R"({
        "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "tie_word_embeddings": true})"},
}};

} // namespace

std::span<const HuggingFaceType> huggingFaceTypes()
{
    return types;
}

const HuggingFaceType* findHuggingFaceType(std::string_view type)
{
    const auto found =
        std::find_if(types.begin(), types.end(), [&](const HuggingFaceType& known) { return known.type == type; });
    return found == types.end() ? nullptr : &*found;
}

} // namespace pipewright
