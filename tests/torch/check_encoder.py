#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares encoders and vision transformers that `pipewright run --dump` trained with those of `transformers`.

    check_encoder.py DUMP.safetensors…

The package's model takes the dump's parameters under its names. What is compared, and how nearly, says
trained_alike.py.
"""

import json
import math
import sys

import torch

from trained_alike import check_files, tensors_of


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
        pictures = pictures.reshape(-1, 3, self.grid * self.side, self.grid * self.side)
        return self.model(pictures.to(self.model.dtype)).logits

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


class Peer:
    """As check_decoder.Peer."""

    def __init__(self, metadata, tensors):
        self.shape, self.tensors = json.loads(metadata["model"]), tensors
        self.family = metadata["family"]
        self.of = {"vision": Vision, "encoder": Encoder}[self.shape["architecture"]](self.shape)
        self.model = self.of.model
        self.model.eval()
        self.name = type(self.model).__name__
        self.parameters = dict(self.model.named_parameters(remove_duplicate=False))
        # The same parameter as decoder.bias, which has another name of ours.
        self.parameters.pop("cls.predictions.bias", None)
        # It adds the same to all of a query's scores.
        self.idle = {name for name in self.parameters if ".key.bias" in name or ".k_proj.bias" in name}

    def theirs(self, prefix, above=0):
        result = {}
        for name, value in tensors_of(self.tensors, prefix).items():
            names = self.of.names[name]
            for their, rows in zip(names, value.chunk(len(names))):
                result[their] = self.of.theirs(name, rows, self.parameters[their])
        return result

    def fill(self, prefix, rounded=False):
        weights = self.theirs(prefix)
        if set(weights) != set(self.parameters):
            raise SystemExit(f"tensors of one side only: {sorted(set(weights) ^ set(self.parameters))}")
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(weights[name].bfloat16() if rounded else weights[name])

    def losses(self, step):
        inputs, targets = self.tensors["inputs"][step].long(), self.tensors["targets"][step].long()
        loss = sum(torch.nn.functional.cross_entropy(self.of.scores(given).double(), classes, ignore_index=-1)
                   for given, classes in zip(inputs, targets))
        return loss / len(inputs), 0

    def probabilities(self, step):
        return torch.cat([self.of.scores(given).double().softmax(-1) for given in self.tensors["inputs"][step].long()])

    def matrices(self):
        ours = tensors_of(self.tensors, "parameters.first/")
        return {their for name, value in ours.items() if value.dim() > 1 for their in self.of.names[name]}

    def between_steps(self):
        pass


if __name__ == "__main__":
    sys.exit(0 if check_files(Peer, sys.argv[1:]) else 1)
