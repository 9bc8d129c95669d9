#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains in PyTorch, in double precision, what `pipewright run --dump` trained, and compares.

    check_dump.py DUMP.safetensors…

The model is written anew from its dimensions; of the dump come the first parameters, the batches, and which weights
every block read. Synchronous runs: the last step's gradients and loss. Runs with updates amid the step: parameters and
losses of all steps, every block with the version (and the prediction) of its weights that the schedule's rule says, so
that a stage's backward may read other weights than its forward did.
"""

import json
import math
import struct
import sys

import torch
import torch.nn.functional as functional

GRADIENT_BOUND = 1e-4  # fp32 sums against fp64, by norms of whole tensors


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__")
    types = {"F32": torch.float32, "I32": torch.int32}
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=types[entry["dtype"]]).reshape(entry["shape"])
    return metadata, tensors


class Model:
    """The layers of one GPT, by name; parameters come with every call."""

    def __init__(self, metadata):
        shape = json.loads(metadata["model"])
        self.layers, self.heads = shape["layers"], shape["heads"]
        self.sequence, self.microbatch = shape["sequence"], shape["microbatch_size"]
        self.stages = []
        names = ["embedding"] + [f"layer {i}" for i in range(self.layers)] + ["head"]
        for count in json.loads(metadata["layers_per_stage"]):
            self.stages.append(names[:count])
            names = names[count:]
        assert not names
        self.skips = json.loads(metadata["skips"])

    def stage_of(self, parameter):
        layer = parameter.split("/")[0]
        return next(s for s, layers in enumerate(self.stages) if layer in layers)

    def norm(self, p, name, x):
        return functional.layer_norm(x, x.shape[-1:], p[name + ".gamma"], p[name + ".beta"], 1e-5)

    def block(self, p, layer, x):
        batch, length, hidden = x.shape
        qkv = functional.linear(self.norm(p, layer + "/ln1", x), p[layer + "/qkv.weight"], p[layer + "/qkv.bias"])
        q, k, v = (part.reshape(batch, length, self.heads, -1).transpose(1, 2) for part in qkv.split(hidden, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(hidden // self.heads)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ v
        mixed = mixed.transpose(1, 2).reshape(batch, length, hidden)
        x = x + functional.linear(mixed, p[layer + "/projection.weight"], p[layer + "/projection.bias"])
        wide = functional.linear(self.norm(p, layer + "/ln2", x), p[layer + "/fc1.weight"], p[layer + "/fc1.bias"])
        return x + functional.linear(functional.gelu(wide, approximate="tanh"), p[layer + "/fc2.weight"],
                                     p[layer + "/fc2.bias"])

    def forward(self, p, stage, x, tokens, targets):
        """The stage's output, or the microbatch's mean loss."""
        for layer in self.stages[stage]:
            if layer == "embedding":
                x = p["embedding/table.weight"][tokens] + p["embedding/positions.weight"]
            elif layer == "head":
                logits = functional.linear(self.norm(p, "head/norm", x), p["head/projection.weight"])
                x = functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
            else:
                x = self.block(p, layer, x)
        return x


def error(ours, theirs):
    """Norm of the difference by that of the reference."""
    size = theirs.norm().item()
    return (ours.double() - theirs).norm().item() / size if size else float((ours != 0).any())


def error_of_change(after, first, value, updates):
    """Of what training changed. What fp32 cannot hold of a parameter, once per update, is no error."""
    change = (value - first).norm().item()
    rounding = 2.0**-24 * updates * value.norm().item()
    off = (after.double() - value).norm().item()
    return max(0.0, off - rounding) / change if change else float(off > rounding)


def batches(model, tensors, step, m):
    shape = (model.microbatch, model.sequence)
    return tensors["inputs"][step, m].reshape(shape).long(), tensors["targets"][step, m].reshape(shape).long()


def stage_input(model, stage, outputs, m):
    x = outputs[stage - 1, m] if stage else None
    for source, destination in model.skips:
        if destination == stage:
            x = x + outputs[source, m]
    return x


def synchronous(model, tensors, step):
    """Gradients and loss at the parameters before the last step."""
    prefix = "parameters.last/"
    p = {name[len(prefix):]: t.double().requires_grad_() for name, t in tensors.items() if name.startswith(prefix)}
    microbatches = tensors["inputs"].shape[1]
    loss = 0
    for m in range(microbatches):
        tokens, targets = batches(model, tensors, step, m)
        outputs = {}
        for stage in range(len(model.stages)):
            outputs[stage, m] = model.forward(p, stage, stage_input(model, stage, outputs, m), tokens, targets)
        loss = loss + outputs[len(model.stages) - 1, m] / microbatches
    loss.backward()
    gradients = {name: value.grad for name, value in p.items()}
    if torch.equal(p["embedding/table.weight"], p["head/projection.weight"]):  # one matrix, held twice
        tied = gradients["embedding/table.weight"] + gradients["head/projection.weight"]
        gradients["embedding/table.weight"] = gradients["head/projection.weight"] = tied
    return gradients, loss.item()


class Lagged:
    """One stage after another, each block with the version of its weights that the rule says."""

    def __init__(self, model, metadata, tensors):
        self.model, self.tensors = model, tensors
        self.blocks = json.loads(metadata["blocks"])
        self.optimizer = json.loads(metadata["optimizer"])
        if self.optimizer["name"] != "sgd":
            raise SystemExit("only sgd is written anew here")
        prefix = "parameters.first/"
        self.p = [{} for _ in model.stages]
        for name, tensor in tensors.items():
            if name.startswith(prefix):
                name = name[len(prefix):]
                self.p[model.stage_of(name)][name] = tensor.double()
        self.momentum = [{name: torch.zeros_like(value) for name, value in stage.items()} for stage in self.p]
        self.updates = [0 for _ in model.stages]

    def weights(self, versions, block):
        """A copy, predicted where the rule says so."""
        values, momentum, updates = versions[block["stage"]][block["version"]]
        ahead = self.optimizer["sgd_learning_rate"] * block["steps"] if updates else 0
        return {name: (value - ahead * momentum[name]) for name, value in values.items()}

    def step(self, step):
        model, microbatches = self.model, self.tensors["inputs"].shape[1]
        versions = [[(self.p[s], self.momentum[s], self.updates[s])] for s in range(len(model.stages))]
        sums = [{} for _ in model.stages]  # per stage and update
        outputs, gradients, kept, losses = {}, {}, {}, {}
        last = len(model.stages) - 1
        for block in self.blocks:
            s, m, op = block["stage"], block["microbatch"], block["op"]
            if op == "F":
                p = {name: value.requires_grad_() for name, value in self.weights(versions, block).items()}
                x = stage_input(model, s, outputs, m)
                x = x.detach().requires_grad_() if x is not None else None
                y = model.forward(p, s, x, *batches(model, self.tensors, step, m))
                kept[s, m] = p, x, y
                outputs[s, m] = y.detach()
                if s == last:
                    losses[m] = y.item()
            elif op == "B":
                p, x, y = kept.pop((s, m))
                with torch.no_grad():  # the saved tensors see the weights that this block reads
                    for name, value in self.weights(versions, block).items():
                        p[name].data.copy_(value)
                if s == last:
                    y = y / block["batch"]
                    y.backward()
                else:
                    outer = gradients[s + 1, m]
                    for source, destination in model.skips:
                        if source == s:
                            outer = outer + gradients[destination, m]
                    y.backward(outer)
                gradients[s, m] = x.grad if x is not None else None
                total = sums[s].setdefault(block["update"], {name: 0 for name in p})
                for name, value in p.items():
                    total[name] = total[name] + value.grad
            elif op == "U":
                values, momentum, updates = versions[s][-1]
                total = sums[s].pop(block["update"])
                momentum = {n: self.optimizer["momentum"] * momentum[n] + total[n] for n in values}
                values = {n: values[n] - self.optimizer["sgd_learning_rate"] * momentum[n] for n in values}
                versions[s].append((values, momentum, updates + 1))
            else:
                raise SystemExit(f"no {op} is known amid updates")
        for s, all_versions in enumerate(versions):
            self.p[s], self.momentum[s], self.updates[s] = all_versions[-1]
        return sum(losses.values()) / microbatches


def check(path):
    metadata, tensors = read_safetensors(path)
    model = Model(metadata)
    steps = tensors["losses"].shape[0]
    worst = 0.0
    if any(name.startswith("gradients/") for name in tensors):
        gradients, loss = synchronous(model, tensors, steps - 1)
        for name, value in gradients.items():
            worst = max(worst, error(tensors["gradients/" + name], value))
        worst = max(worst, abs(tensors["losses"][-1].item() - loss) / loss)
    else:
        lagged = Lagged(model, metadata, tensors)
        for step in range(steps):
            loss = lagged.step(step)
            worst = max(worst, abs(tensors["losses"][step].item() - loss) / loss)
        for stage, updates in zip(lagged.p, lagged.updates):
            for name, value in stage.items():
                first = tensors["parameters.first/" + name].double()
                worst = max(worst, error_of_change(tensors["parameters.after/" + name], first, value, updates))
    print(f"tests/torch: {metadata['family']}: {worst:.1e} from PyTorch in double precision")
    return worst < GRADIENT_BOUND


if __name__ == "__main__":
    results = [check(path) for path in sys.argv[1:]]
    sys.exit(0 if results and all(results) else 1)
