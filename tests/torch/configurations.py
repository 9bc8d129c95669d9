#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what is made of Hugging Face configurations with the models that `transformers` builds from them.

    configurations.py PIPEWRIGHT [MODEL_TYPE…]

Every class of every supported model type is counted on the meta device, which holds no values: from a configuration
without a key, from one with all of them, as the library writes one, and without each key in turn. Missing keys must mean
what they mean to the library, and no key of the library's may be unknown here.
"""

import importlib
import inspect
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

if not torch.cuda.is_available():  # as in check_decoder.py
    torch.cuda.is_current_stream_capturing = lambda: False
transformers.logging.set_verbosity_error()

# Classes whose heads are refused by name.
REFUSED = {"GPT2DoubleHeadsModel", "BertForMultipleChoice", "BertForNextSentencePrediction", "BertForPreTraining",
           "BertLMHeadModel"}

# Smaller than the defaults in every way, so that a key that is dropped changes the count.
# Heads fit the defaults too, so that each key can be left out.
SMALL = dict(vocab_size=1000, hidden_size=128, intermediate_size=160, num_hidden_layers=3, num_attention_heads=64,
             num_key_value_heads=2, max_position_embeddings=640)
OWN = {
    "llama": dict(head_dim=24, attention_bias=True, tie_word_embeddings=True),
    "mistral": dict(head_dim=24, sliding_window=77, tie_word_embeddings=True),
    "qwen2": dict(use_sliding_window=True, sliding_window=77, max_window_layers=1, tie_word_embeddings=True),
    "qwen3": dict(head_dim=24, attention_bias=True, use_sliding_window=True, sliding_window=77,
                  layer_types=["sliding_attention", "full_attention", "full_attention"]),
    "qwen3_moe": dict(num_experts=12, num_experts_per_tok=3, moe_intermediate_size=40, attention_bias=True),
    "mixtral": dict(num_local_experts=6, num_experts_per_tok=3, sliding_window=77, router_aux_loss_coef=0.5),
    "gemma": dict(head_dim=24, attention_bias=True, tie_word_embeddings=False, use_bidirectional_attention=True),
    "gemma2": dict(head_dim=24, query_pre_attn_scalar=30, final_logit_softcapping=None, attn_logit_softcapping=9.0,
                   sliding_window=77),
    "gemma3_text": dict(head_dim=24, query_pre_attn_scalar=30, use_bidirectional_attention=True, sliding_window=78,
                        rope_parameters={
                            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5e5},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}}),
    "gpt_oss": dict(head_dim=24, num_attention_heads=16, num_local_experts=6, num_experts_per_tok=3, attention_bias=False, sliding_window=77,
                    rope_parameters={"rope_type": "default", "rope_theta": 3e4}),
    "deepseek_v3": dict(num_key_value_heads=64, n_routed_experts=24, n_group=4, topk_group=2, num_experts_per_tok=4,
                        moe_intermediate_size=40, n_shared_experts=2, first_k_dense_replace=1, q_lora_rank=None,
                        kv_lora_rank=20, qk_nope_head_dim=18, qk_rope_head_dim=10, v_head_dim=14,
                        num_nextn_predict_layers=0, routed_scaling_factor=1.5),
    "gpt2": dict(n_inner=160, tie_word_embeddings=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "bert": dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
}


class Program:
    def __init__(self, pipewright, folder):
        self.pipewright, self.folder = pipewright, pathlib.Path(folder)

    def read(self, config):
        """The model and the number of parameters that the program makes of a configuration, and what it says."""
        file, design = self.folder / "config.json", self.folder / "design.json"
        file.write_text(json.dumps(config, indent=1))
        done = subprocess.run([self.pipewright, "new", "gpipe", "--devices", "1", "--microbatches", "1", "--model", file,
                               "--cluster", "h200-node", "-o", design, "--force"], capture_output=True, text=True)
        if done.returncode != 0:
            return None, 0, done.stderr
        made = json.loads(design.read_text())
        model = {key: value for key, value in made["model"].items() if key != "source"}
        held = sum(size(stage["parameters"]) for stage in made["costs"]["stages"])
        held //= {"fp32": 4, "bf16": 2}[model["data_type"]]
        # A tied head's copy, by its fp32 gradient.
        once = sum(size(shared["bytes"]) for shared in made.get("dataflow", {}).get("shared", [])) // 4
        return model, held - once, done.stderr

    def types(self):
        said = self.read({"model_type": "none"})[2]
        return said[said.index("known: ") + len("known: "):said.index(";", said.index("known: "))].split(", ")


def size(text):
    """Bytes of "12KiB"."""
    for unit, bytes_ in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)):
        if text.endswith(unit):
            return round(float(text[:-len(unit)]) * bytes_)
    raise SystemExit(f"{text!r} is no size")


def classes_of(config_class):
    module = importlib.import_module(config_class.__module__.replace("configuration_", "modeling_"))
    return [model for name, model in inspect.getmembers(module, inspect.isclass)
            if issubclass(model, transformers.PreTrainedModel) and model.__module__ == module.__name__
            and getattr(model, "config_class", None) is config_class and not name.endswith("PreTrainedModel")]


def parameters(model_class, config):
    with torch.device("meta"):
        model = model_class(config)
    # Which experts are chosen is corrected by a buffer, which is trained too.
    corrections = sum(buffer.numel() for name, buffer in model.named_buffers() if "e_score_correction_bias" in name)
    return sum(parameter.numel() for parameter in model.parameters()) + corrections


def small(kind, config_class):
    """A configuration that differs from the defaults in whatever counts."""
    known = set(config_class().to_dict()) | set(getattr(config_class, "attribute_map", {}))
    keys = {key: value for key, value in (SMALL | OWN[kind]).items() if key in known or key in OWN[kind]}
    return config_class(**keys)


class Check:
    def __init__(self, program):
        self.program, self.failed, self.compared = program, 0, 0

    def fail(self, what):
        print(f"FAILED {what}", file=sys.stderr)
        self.failed += 1

    def same(self, what, model_class, config, given):
        """Whether the program's model of `given` has the parameters that the library's of `config` has."""
        model, count, said = self.program.read(given | {"architectures": [model_class.__name__]})
        self.compared += 1
        if model_class.__name__ in REFUSED:
            if model is not None or model_class.__name__ not in said:
                self.fail(f"{what}: {model_class.__name__} is not refused by its name: {said}")
            return None
        if model is None:
            self.fail(f"{what}, {model_class.__name__}: refused: {said}")
            return None
        if re.search(r'note: "\w+"(: .*is left out| is not read)', said):
            self.fail(f"{what}, {model_class.__name__}: a key of the library's is not known: {said}")
        if count != parameters(model_class, config):
            self.fail(f"{what}, {model_class.__name__}: {count:,} parameters, {parameters(model_class, config):,} right")
        return model

    def kind(self, kind):
        config_class = CONFIG_MAPPING[kind]
        default, changed = config_class(), small(kind, config_class)
        plain = json.loads(changed.to_json_string(use_diff=False))
        first = None
        for model_class in classes_of(config_class):
            sparse = self.same(f"{kind} without a key", model_class, default, {"model_type": kind})
            whole = self.same(f"{kind} by default", model_class, default,
                              json.loads(default.to_json_string(use_diff=False)))
            if sparse != whole:
                self.fail(f"{kind}, {model_class.__name__}: without keys it is another model than with the defaults: "
                          f"{sparse} {whole}")
            self.same(f"a small {kind}", model_class, changed, plain)
            self.same(f"a small {kind} as saved", model_class, changed, json.loads(changed.to_json_string(use_diff=True)))
            if model_class.__name__.endswith(("ForCausalLM", "LMHeadModel", "ForMaskedLM")) and first is None:
                first = model_class
        for key in sorted(set(plain) & set(config_class().to_dict()) - {"model_type"}):
            given = {name: value for name, value in plain.items() if name != key}
            if key not in SMALL and key not in OWN[kind] and key not in config_class.attribute_map.values():
                continue
            try:
                without = config_class(**given)
                parameters(first, without)
            except Exception:  # what is left does not fit together, for the library either
                continue
            self.same(f"a small {kind} without {key}", first, without, given)


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = Program(sys.argv[1], folder)
        check = Check(program)
        kinds = program.types()
        if set(kinds) != set(OWN):
            check.fail(f"model types of one side only: {sorted(set(kinds) ^ set(OWN))}")
        for kind in sys.argv[2:] or kinds:
            before = check.failed
            check.kind(kind)
            print(f"{kind}: {'as in' if check.failed == before else 'not as in'} transformers {transformers.__version__}")
    print(f"{check.compared} configurations compared")
    return check.failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
