#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares encoders and vision transformers that `pipewright run --dump` trained with those of `transformers`.

    check_encoder.py DUMP.safetensors…

As check_decoder.py: the package's model takes the dump's parameters before the last step, and its loss and gradients of
the dump's batches, in double precision, must be those of the run within what fp32 sums allow.
"""

import json
import math
import sys

import torch

from check_decoder import BOUND, tensors_of
from check_dump import error, read_safetensors


def bert_names(shape, pooler):
    """From our names to theirs; what is one matrix here is several there."""
    first = "" if pooler else "bert."
    names = {"embedding/table.weight": [first + "embeddings.word_embeddings.weight"],
             "embedding/positions.weight": [first + "embeddings.position_embeddings.weight"],
             "embedding/segments.weight": [first + "embeddings.token_type_embeddings.weight"],
             "embedding/norm.gamma": [first + "embeddings.LayerNorm.weight"],
             "embedding/norm.beta": [first + "embeddings.LayerNorm.bias"],
             "head/pooler.weight": ["pooler.dense.weight"], "head/pooler.bias": ["pooler.dense.bias"],
             "head/transform.weight": ["cls.predictions.transform.dense.weight"],
             "head/transform.bias": ["cls.predictions.transform.dense.bias"],
             "head/norm.gamma": ["cls.predictions.transform.LayerNorm.weight"],
             "head/norm.beta": ["cls.predictions.transform.LayerNorm.bias"],
             "head/projection.weight": ["cls.predictions.decoder.weight"],
             "head/projection.bias": ["cls.predictions.decoder.bias"]}
    for layer in range(shape["layers"]):
        at = f"{first}encoder.layer.{layer}."
        for kind, theirs in (("weight", "weight"), ("bias", "bias")):
            ours = f"layer {layer}/"
            names[f"{ours}qkv.{kind}"] = [f"{at}attention.self.{which}.{theirs}" for which in ("query", "key", "value")]
            names[f"{ours}projection.{kind}"] = [f"{at}attention.output.dense.{theirs}"]
            names[f"{ours}fc1.{kind}"] = [f"{at}intermediate.dense.{theirs}"]
            names[f"{ours}fc2.{kind}"] = [f"{at}output.dense.{theirs}"]
        for norm, theirs in (("ln1", "attention.output.LayerNorm"), ("ln2", "output.LayerNorm")):
            names[f"layer {layer}/{norm}.gamma"] = [f"{at}{theirs}.weight"]
            names[f"layer {layer}/{norm}.beta"] = [f"{at}{theirs}.bias"]
    return names


def vit_names(shape):
    names = {"embedding/patches.weight": ["vit.embeddings.patch_embeddings.projection.weight"],
             "embedding/patches.bias": ["vit.embeddings.patch_embeddings.projection.bias"],
             "embedding/classToken": ["vit.embeddings.cls_token"],
             "embedding/positions.weight": ["vit.embeddings.position_embeddings"],
             "head/norm.gamma": ["vit.layernorm.weight"], "head/norm.beta": ["vit.layernorm.bias"],
             "head/projection.weight": ["classifier.weight"], "head/projection.bias": ["classifier.bias"]}
    for layer in range(shape["layers"]):
        ours, at = f"layer {layer}/", f"vit.layers.{layer}."
        for kind in ("weight", "bias"):
            names[f"{ours}qkv.{kind}"] = [f"{at}attention.{which}_proj.{kind}" for which in "qkv"]
            names[f"{ours}projection.{kind}"] = [f"{at}attention.o_proj.{kind}"]
            names[f"{ours}fc1.{kind}"] = [f"{at}mlp.fc1.{kind}"]
            names[f"{ours}fc2.{kind}"] = [f"{at}mlp.fc2.{kind}"]
        for norm, theirs in (("ln1", "layernorm_before"), ("ln2", "layernorm_after")):
            names[f"{ours}{norm}.gamma"] = [f"{at}{theirs}.weight"]
            names[f"{ours}{norm}.beta"] = [f"{at}{theirs}.bias"]
    return names


class Vision:
    def __init__(self, shape):
        import transformers

        self.grid = math.isqrt(shape["sequence"] - 1)
        self.side = math.isqrt(shape["patch_elements"] // 3)
        self.names = vit_names(shape)
        self.model = transformers.ViTForImageClassification(transformers.ViTConfig(
            hidden_size=shape["hidden"], num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"],
            intermediate_size=shape["ffn"], hidden_act="gelu", layer_norm_eps=shape.get("norm_epsilon", 1e-5),
            hidden_dropout_prob=0, attention_probs_dropout_prob=0, image_size=self.grid * self.side,
            patch_size=self.side, num_channels=3, num_labels=shape["vocabulary"], attn_implementation="eager")).double()

    def scores(self, inputs):
        # Patch by patch, pixel by pixel, the colours of each: into colours x height x width.
        pixels = (inputs.double() / 127.5 - 1).float().double()
        pictures = pixels.reshape(-1, self.grid, self.grid, self.side, self.side, 3).permute(0, 5, 1, 3, 2, 4)
        return self.model(pictures.reshape(-1, 3, self.grid * self.side, self.grid * self.side)).logits

    def theirs(self, name, value, wanted):
        if name == "embedding/patches.weight":
            return value.reshape(-1, self.side, self.side, 3).permute(0, 3, 1, 2)
        return value.reshape(wanted.shape)


class Encoder:
    def __init__(self, shape):
        import transformers

        self.length = shape["sequence"]
        self.pooler = not shape.get("tied_head", True)
        self.names = bert_names(shape, self.pooler)
        kind = transformers.BertModel if self.pooler else transformers.BertForMaskedLM
        self.model = kind(transformers.BertConfig(
            vocab_size=shape["vocabulary"], hidden_size=shape["hidden"], num_hidden_layers=shape["layers"],
            num_attention_heads=shape["heads"], intermediate_size=shape["ffn"], hidden_act="gelu",
            layer_norm_eps=shape.get("norm_epsilon", 1e-5), hidden_dropout_prob=0, attention_probs_dropout_prob=0,
            max_position_embeddings=shape["sequence"], type_vocab_size=2, pad_token_id=None,
            attn_implementation="eager")).double()

    def scores(self, inputs):
        tokens = inputs.reshape(-1, self.length)
        segments = (torch.arange(self.length) >= self.length - self.length // 2).long().expand(tokens.shape)
        result = self.model(tokens, token_type_ids=segments)
        return result.pooler_output if self.pooler else result.logits.flatten(0, 1)

    def theirs(self, name, value, wanted):
        return value.reshape(wanted.shape)


def check(path):
    metadata, tensors = read_safetensors(path)
    shape = json.loads(metadata["model"])
    peer = {"vision": Vision, "encoder": Encoder}[shape["architecture"]](shape)
    wanted = dict(peer.model.named_parameters(remove_duplicate=False))
    filled = set()

    def parts(name, value):
        names = peer.names[name]
        return zip(names, value.chunk(len(names)))

    with torch.no_grad():
        for name, value in tensors_of(tensors, "parameters.last/").items():
            for their, rows in parts(name, value):
                wanted[their].copy_(peer.theirs(name, rows, wanted[their]))
                filled.add(their)
    left = {name for name in wanted if name not in filled} - {"cls.predictions.bias"}  # which is decoder.bias
    if left:
        raise SystemExit(f"tensors of one side only: {sorted(left)}")

    step = tensors["losses"].shape[0] - 1
    inputs, targets = tensors["inputs"][step].long(), tensors["targets"][step].long()
    loss, probabilities = 0, []
    for given, classes in zip(inputs, targets):
        scores = peer.scores(given)
        probabilities.append(scores.detach().softmax(-1))
        loss = loss + torch.nn.functional.cross_entropy(scores, classes, ignore_index=-1) / len(inputs)
    loss.backward()

    worst, where = max((abs(tensors["losses"][step].item() - loss.item()) / loss.item(), "loss"),
                       (error(tensors["probabilities"].flatten(), torch.cat(probabilities).flatten()), "probabilities"))
    for name, gradient in tensors_of(tensors, "gradients/").items():
        for their, rows in parts(name, gradient):
            off = error(peer.theirs(name, rows, wanted[their]), wanted[their].grad)
            if ".key.bias" in their or ".k_proj.bias" in their:
                # It adds the same to all of a query's scores and has no gradient but what rounding leaves.
                off = error(peer.theirs(name, rows, wanted[their]) + 1, wanted[their].grad + 1)
            if off > worst:
                worst, where = off, their
    print(f"tests/torch: {type(peer.model).__name__} by {metadata['family']}: {len(wanted)} tensors, at most "
          f"{worst:.1e} off ({where})")
    return worst < BOUND


if __name__ == "__main__":
    results = [check(path) for path in sys.argv[1:]]
    sys.exit(0 if results and all(results) else 1)
