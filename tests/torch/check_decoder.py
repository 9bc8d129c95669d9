#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares decoders that `pipewright run --dump` trained with those of the `transformers` package.

    check_decoder.py DUMP.safetensors…

The package builds the model from a configuration of its own words, and takes the dump's parameters in the layout that
published weights have. What is compared, and how nearly, says trained_alike.py.
"""

import json
import sys

import torch

from trained_alike import check_files, tensors_of

if not torch.cuda.is_available():  # the package asks NVIDIA's library even then, and that may be a stand-in (environment.sh)
    torch.cuda.is_current_stream_capturing = lambda: False


def rotary(shape):
    given = shape.get("rotary", {})
    scaling = given.get("scaling", "none")
    parameters = {"rope_type": "default", "rope_theta": float(given.get("base", 10000))}
    if scaling == "linear":
        parameters.update(rope_type="linear", factor=given["factor"])
    elif scaling == "llama3":
        parameters.update(rope_type="llama3", factor=given["factor"], low_freq_factor=given.get("low", 1),
                          high_freq_factor=given.get("high", 4),
                          original_max_position_embeddings=given["original"])
    elif scaling == "yarn":
        parameters.update(rope_type="yarn", factor=given["factor"], beta_slow=given.get("low", 1),
                          beta_fast=given.get("high", 4), original_max_position_embeddings=given["original"],
                          attention_factor=given.get("attention_factor", 1))
    return parameters


def configuration(shape):
    """The package's class and configuration for a model file's fields."""
    import transformers

    if is_gpt2(shape):
        return transformers.GPT2LMHeadModel, transformers.GPT2Config(
            vocab_size=shape["vocabulary"], n_embd=shape["hidden"], n_layer=shape["layers"], n_head=shape["heads"],
            n_inner=shape["ffn"], n_positions=shape["sequence"], activation_function="gelu_new",
            layer_norm_epsilon=shape.get("norm_epsilon", 1e-5), tie_word_embeddings=shape.get("tied_head", True),
            resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None, attn_implementation="eager")
    if is_bloom(shape):
        return transformers.BloomForCausalLM, transformers.BloomConfig(
            vocab_size=shape["vocabulary"], hidden_size=shape["hidden"], n_layer=shape["layers"], n_head=shape["heads"],
            layer_norm_epsilon=shape.get("norm_epsilon", 1e-5), tie_word_embeddings=shape.get("tied_head", True),
            attn_implementation="eager")
    usual = dict(
        vocab_size=shape["vocabulary"], hidden_size=shape["hidden"], num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"], num_key_value_heads=shape["key_value_heads"], head_dim=shape["head_size"],
        intermediate_size=shape["ffn"], rms_norm_eps=shape.get("norm_epsilon", 1e-5),
        max_position_embeddings=shape["sequence"], tie_word_embeddings=shape.get("tied_head", True),
        hidden_act={"silu": "silu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh",
                    "clamped_silu": "silu"}[shape.get("activation", "silu")],
        rope_parameters=rotary(shape), attn_implementation="eager")
    if shape.get("bias", True) or not shape.get("gated_mlp", False) or shape.get("learned_positions", True):
        raise SystemExit("only GPT-2, BLOOM and decoders with RMS norms, rotary positions and gated MLPs are compared here")
    window = dict(sliding_window=shape["window"]) if shape.get("window", 0) else {}
    every, listed = shape.get("full_attention_every", 0), shape.get("full_attention_layers", [])
    kinds = dict(layer_types=["full_attention" if (every and (layer + 1) % every == 0) or layer in listed
                              else "sliding_attention" for layer in range(shape["layers"])])
    if shape.get("attention_sinks", False):
        usual["intermediate_size"] = shape["expert_ffn"]
        return transformers.GptOssForCausalLM, transformers.GptOssConfig(
            **usual, **window, **kinds, num_local_experts=shape["experts"],
            num_experts_per_tok=shape["experts_per_token"], attention_bias=True, experts_implementation="eager")
    if is_gemma(shape):
        usual["hidden_activation"] = usual.pop("hidden_act")
        if shape.get("query_key_norm", False):
            local = {"rope_type": "default", "rope_theta": float(shape["local_rotary_base"])}
            usual["rope_parameters"] = {"full_attention": usual["rope_parameters"], "sliding_attention": local}
            return transformers.Gemma3ForCausalLM, transformers.Gemma3TextConfig(
                **usual, **window, **kinds, query_pre_attn_scalar=shape["query_scale"])
        return transformers.Gemma2ForCausalLM, transformers.Gemma2Config(
            **usual, **window, **kinds, query_pre_attn_scalar=shape["query_scale"],
            attn_logit_softcapping=float(shape["attention_soft_cap"]),
            final_logit_softcapping=float(shape["logits_soft_cap"]))
    if shape.get("experts", 0):
        usual.update(num_experts_per_tok=shape["experts_per_token"], output_router_logits=False,
                     experts_implementation="eager")
        if shape.get("key_value_latent", 0):
            usual.pop("head_dim")
            return transformers.DeepseekV3ForCausalLM, transformers.DeepseekV3Config(
                **usual, n_routed_experts=shape["experts"], n_shared_experts=shape.get("shared_experts", 0),
                moe_intermediate_size=shape["expert_ffn"], first_k_dense_replace=shape.get("dense_layers", 0),
                q_lora_rank=shape.get("query_latent", 0) or None, kv_lora_rank=shape["key_value_latent"],
                qk_nope_head_dim=shape["head_size"], qk_rope_head_dim=shape["rotary_head_size"],
                v_head_dim=shape["value_head_size"], norm_topk_prob=shape.get("router_normalised", True),
                routed_scaling_factor=shape.get("router_scale", 1.0), n_group=shape.get("router_groups", 1),
                topk_group=shape.get("router_groups_per_token", 1))
        if shape.get("query_key_norm", False):
            return transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig(
                **usual, num_experts=shape["experts"], moe_intermediate_size=shape["expert_ffn"],
                norm_topk_prob=shape.get("router_normalised", True), decoder_sparse_step=1, mlp_only_layers=[])
        usual["intermediate_size"] = shape["expert_ffn"]
        return transformers.MixtralForCausalLM, transformers.MixtralConfig(
            **usual, num_local_experts=shape["experts"], sliding_window=None)
    if shape.get("query_key_norm", False):
        return transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**usual)
    if shape.get("query_key_value_bias", True):
        windows = dict(**window, **kinds, use_sliding_window=True) if window else {}
        return transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**usual, **windows)
    if window:
        return transformers.MistralForCausalLM, transformers.MistralConfig(**usual, **window)
    return transformers.LlamaForCausalLM, transformers.LlamaConfig(**usual)


def is_gpt2(shape):
    return shape.get("learned_positions", True) and not shape.get("gated_mlp", False)


def renamed(ours, norms, products, ends, value_of):
    """Ours under the names of GPT-2 or BLOOM: of a layer's norms and products, and of the two ends."""
    parts = {f"{our}.{kind}": f"{their}.{named}" for our, their in norms.items()
             for kind, named in (("gamma", "weight"), ("beta", "bias"))}
    parts |= {f"{our}.{kind}": f"{their}.{kind}" for our, their in products.items() for kind in ("weight", "bias")}
    ends = {**ends, "head/norm.gamma": "ln_f.weight", "head/norm.beta": "ln_f.bias"}
    theirs = {}
    for name, value in ours.items():
        layer, part = name.split("/")
        if name == "head/projection.weight":
            theirs["lm_head.weight"] = value
        elif name in ends:
            theirs["transformer." + ends[name]] = value
        else:
            theirs[f"transformer.h.{layer.removeprefix('layer ')}.{parts[part]}"] = value_of(part, value)
    return theirs


def published_gpt2(ours):
    """The names of published GPT-2; its matrices lie the other way round."""
    return renamed(
        ours, {"ln1": "ln_1", "ln2": "ln_2"},
        {"qkv": "attn.c_attn", "projection": "attn.c_proj", "fc1": "mlp.c_fc", "fc2": "mlp.c_proj"},
        {"embedding/table.weight": "wte.weight", "embedding/positions.weight": "wpe.weight"},
        lambda part, value: value.T.contiguous() if value.dim() == 2 else value)


def is_bloom(shape):
    return shape.get("linear_biases", False)


def published_bloom(shape, ours):
    """The names of published BLOOM; its queries, keys and values are side by side for each head."""
    def by_head(part, value):
        if not part.startswith("qkv."):
            return value
        return value.reshape(3, shape["heads"], shape["head_size"], -1).transpose(0, 1).reshape(value.shape)

    return renamed(
        ours, {"ln1": "input_layernorm", "ln2": "post_attention_layernorm"},
        {"qkv": "self_attention.query_key_value", "projection": "self_attention.dense", "fc1": "mlp.dense_h_to_4h",
         "fc2": "mlp.dense_4h_to_h"},
        {"embedding/table.weight": "word_embeddings.weight", "embedding/norm.gamma": "word_embeddings_layernorm.weight",
         "embedding/norm.beta": "word_embeddings_layernorm.bias"}, by_head)


def is_gemma(shape):
    return shape.get("embedding_scale", 1) != 1


def latent_parts(shape):
    """How latent attention's tensors are cut: ours has all heads' keys before all heads' values."""
    own, rope, size = shape["head_size"], shape.get("rotary_head_size", 0), shape.get("value_head_size", 0)
    heads, latent, query = shape["heads"], shape.get("key_value_latent", 0), shape.get("query_latent", 0)

    def keys_and_values(value):
        keys, values = value.split([heads * own, heads * size])
        return torch.cat([keys.reshape(heads, own, -1), values.reshape(heads, size, -1)], 1).flatten(0, 1)

    first = "q_a_proj.weight" if query else "q_proj.weight"
    width = query or heads * (own + rope)
    return {
        "qkv.weight": lambda v: zip([first, "kv_a_proj_with_mqa.weight"], v.split([width, latent + rope])),
        "queryNorm.gamma": lambda v: [("q_a_layernorm.weight", v)],
        "queryLatent.weight": lambda v: [("q_b_proj.weight", v)],
        "keyValueNorm.gamma": lambda v: [("kv_a_layernorm.weight", v)],
        "keyValueLatent.weight": lambda v: [("kv_b_proj.weight", keys_and_values(v))],
    }


def published(shape, ours, above=0):
    """Our tensors under the names, and cut as, published files have them; Gemma's norms are `above` less than ours."""
    if is_gpt2(shape):
        return published_gpt2(ours)
    if is_bloom(shape):
        return published_bloom(shape, ours)
    size, width = shape["head_size"], shape["ffn"]
    heads = [shape["heads"] * size, shape["key_value_heads"] * size, shape["key_value_heads"] * size]
    theirs = {}
    latent = latent_parts(shape)
    oss = shape.get("attention_sinks", False)
    both = shape.get("post_norm", False)

    def interleaved(value):  # GPT-OSS: gate and factor of an expert take turns
        gate, factor = value.reshape(shape["experts"], 2, shape["expert_ffn"], -1).unbind(1)
        return torch.stack([gate, factor], 2).flatten(1, 2)

    for name, value in ours.items():
        layer, part = name.split("/")
        if is_gemma(shape) and part.endswith(".gamma"):
            value = value - above
        if layer == "embedding":
            theirs["model.embed_tokens.weight"] = value
            continue
        if layer == "head":
            theirs[{"norm.gamma": "model.norm.weight", "projection.weight": "lm_head.weight"}[part]] = value
            continue
        at = f"model.layers.{layer.removeprefix('layer ')}."
        if shape.get("key_value_latent", 0) and part in latent:
            theirs.update({at + "self_attn." + their: rows for their, rows in latent[part](value)})
        elif part.startswith("qkv."):
            for which, rows in zip("qkv", value.split(heads)):
                theirs[f"{at}self_attn.{which}_proj.{part[4:]}"] = rows
        elif part == "fc1.weight":
            theirs[at + "mlp.gate_proj.weight"], theirs[at + "mlp.up_proj.weight"] = value.split(width)
        elif part == "shared.fc1.weight":
            theirs[at + "mlp.shared_experts.gate_proj.weight"], theirs[at + "mlp.shared_experts.up_proj.weight"] = \
                value.chunk(2)
        elif part == "router.correction":
            continue  # a buffer there, and no gradient changes it
        elif oss and part == "experts.fc1.weight":  # rows of ours are columns there
            theirs[at + "mlp.experts.gate_up_proj"] = interleaved(value).transpose(1, 2)
        elif oss and part == "experts.fc1.bias":
            theirs[at + "mlp.experts.gate_up_proj_bias"] = interleaved(value)[:, :, 0]
        elif oss and part == "experts.fc2.weight":
            theirs[at + "mlp.experts.down_proj"] = value.reshape(shape["experts"], shape["hidden"], -1).transpose(1, 2)
        elif oss and part == "experts.fc2.bias":
            theirs[at + "mlp.experts.down_proj_bias"] = value
        elif oss and part.startswith("router."):
            theirs[f"{at}mlp.{part}"] = value
        elif part == "experts.fc1.weight":  # gate and up of every expert in one tensor
            theirs[at + "mlp.experts.gate_up_proj"] = value.reshape(shape["experts"], -1, shape["hidden"])
        elif part == "experts.fc2.weight":
            theirs[at + "mlp.experts.down_proj"] = value.reshape(shape["experts"], shape["hidden"], -1)
        else:
            theirs[at + {"ln1.gamma": "input_layernorm.weight",
                         "ln2.gamma": "pre_feedforward_layernorm.weight" if both else "post_attention_layernorm.weight",
                         "attentionNorm.gamma": "post_attention_layernorm.weight",
                         "mlpNorm.gamma": "post_feedforward_layernorm.weight",
                         "sinks": "self_attn.sinks", "projection.bias": "self_attn.o_proj.bias",
                         "queryNorm.gamma": "self_attn.q_norm.weight", "keyNorm.gamma": "self_attn.k_norm.weight",
                         "projection.weight": "self_attn.o_proj.weight", "fc2.weight": "mlp.down_proj.weight",
                         "router.weight": "mlp.gate.weight",
                         "shared.fc2.weight": "mlp.shared_experts.down_proj.weight"}[part]] = value
    return theirs


class Peer:
    """The package's model of a dump, with the dump's parameters under their names: trained_alike.py."""

    idle = frozenset()

    def __init__(self, metadata, tensors):
        self.shape, self.tensors = json.loads(metadata["model"]), tensors
        self.family = metadata["family"]
        self.model_class, config = configuration(self.shape)
        self.model = self.model_class(config).double()
        self.model.eval()  # no dropout, and no jitter of routers
        self.name = self.model_class.__name__
        self.parameters = dict(self.model.named_parameters(remove_duplicate=False))
        self.visits = {}  # by router with a correction, of each forward of a step: copies for each expert
        if self.shape.get("router_bias_rate", 0):
            for name, module in self.model.named_modules():
                if name.endswith("mlp.gate"):
                    module.register_forward_hook(self.count)

    def theirs(self, prefix, above=0):
        return published(self.shape, tensors_of(self.tensors, prefix), above)

    def fill(self, prefix, rounded=False):
        weights, buffers = self.theirs(prefix, above=1), dict(self.model.named_buffers())
        self.visits.clear()
        if set(weights) != set(self.parameters):
            raise SystemExit(f"tensors of one side only: {sorted(set(weights) ^ set(self.parameters))}")
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(weights[name].bfloat16() if rounded else weights[name])
            for name, value in tensors_of(self.tensors, prefix).items():
                if name.endswith("router.correction"):
                    layer = name.split("/")[0].removeprefix("layer ")
                    buffers[f"model.layers.{layer}.mlp.gate.e_score_correction_bias"].copy_(value)

    def losses(self, step):
        """The mean loss of a step's microbatches, and its load-balancing term."""
        inputs, targets = self.tensors["inputs"][step].long(), self.tensors["targets"][step].long()
        balance = self.shape.get("router_balance", 0)
        loss = term = 0
        for tokens, classes in zip(inputs, targets):
            more = dict(output_router_logits=True) if balance else {}
            result = self.model(tokens.reshape(-1, self.shape["sequence"]), **more)
            logits = result.logits.double()  # a loss is made of more digits than bf16 has
            loss = loss + torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), classes) / len(inputs)
            if balance:  # the package's own, layer by layer
                from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func
                terms = [load_balancing_loss_func((of,), self.shape["experts"], self.shape["experts_per_token"])
                         for of in result.router_logits]
                term = term + balance * sum(terms) / len(terms) / len(inputs)
        return loss, term

    def probabilities(self, step):
        return torch.cat([self.model(tokens.reshape(-1, self.shape["sequence"])).logits.double().softmax(-1)
                          for tokens in self.tensors["inputs"][step].long()])

    def count(self, router, _, result):
        copies = torch.bincount(result[2].flatten(), minlength=self.shape["experts"])
        self.visits.setdefault(router, []).append(copies)

    def between_steps(self):
        """DeepSeek-V3 moves the correction of its choice towards the experts that fewer copies visit."""
        for router, copies in self.visits.items():
            counts = sum(copies).double()
            router.e_score_correction_bias += self.shape["router_bias_rate"] * torch.sign(counts.mean() - counts)
        self.visits.clear()

    def matrices(self):
        """The names whose weights decay: those of our matrices."""
        ours = {name: torch.full_like(value, float(value.dim() > 1))
                for name, value in tensors_of(self.tensors, "parameters.first/").items()}
        return {name for name, value in published(self.shape, ours).items() if value.flatten()[0] > 0.5}


if __name__ == "__main__":
    sys.exit(0 if check_files(Peer, sys.argv[1:]) else 1)
