#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages whose backward recomputes layers (torch.utils.checkpoint), on two gloo ranks.

    recomputing.py [--python PYTHON] [--short] PIPEWRIGHT

First stages alone: what autograd keeps of them, and how often their layers are called. Then the transformer of
transformer.py is profiled, and designs of it run with and without recomputation: gradients are those of the whole module,
which recomputes nothing, and the memory that ranks hold is what was predicted, so what was predicted to be saved is free.
With --short one family runs. Exits 77 and says why when the interpreter has no PyTorch.
"""

import argparse
import os
import subprocess
import sys
import tempfile

from own_model import HERE, Pipewright, has_torch, profile

MICROBATCHES, DEVICES = 8, 2
WITHIN = 0.03

STAGES_ALONE = r"""
import torch
from pipewright.chain import Chain
from pipewright.stages import ranges_to_recompute

assert ranges_to_recompute(0, 4, 0, []) == []
assert ranges_to_recompute(1, 3, 4, [6]) == [(0, 1), (1, 2)]
assert ranges_to_recompute(2, 5, 0, [0, 4]) == [(1, 3), (3, 4)]

class Layer(torch.nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.product, self.drop = torch.nn.Linear(8, 8), torch.nn.Dropout(0.5)

    def forward(self, value, other):
        Layer.calls += 1
        return self.drop(torch.tanh(self.product(value))), other

def run(recomputed):
    torch.manual_seed(1)
    stage = Chain(*[Layer() for _ in range(4)])
    assert [name for name, _ in stage.named_parameters()][0] == "0.product.weight"
    stage.recomputed = recomputed
    own = {parameter.untyped_storage().data_ptr() for parameter in stage.parameters()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    value, Layer.calls = torch.randn(3, 8).requires_grad_(), 0
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output, other = stage(value, torch.arange(3))
    forward = Layer.calls
    assert torch.equal(other, torch.arange(3))
    output.sum().backward()
    gradients = [parameter.grad for parameter in stage.parameters()] + [value.grad]
    return sum(kept.values()), (forward, Layer.calls), gradients

row = 3 * 8 * 4
whole, calls, expected = run(())
assert calls == (4, 4), calls
assert whole >= 4 * 2 * row, whole  # the input of each product and what tanh made, at least
for recomputed, inputs in (([(0, 1), (1, 2), (2, 3), (3, 4)], 4), ([(0, 2), (2, 4)], 2), ([(0, 4)], 1)):
    kept, calls, gradients = run(recomputed)
    assert kept <= inputs * (row + 3 * 8) < whole, (kept, recomputed)  # nothing but the inputs of the ranges
    assert calls == (4, 8), calls
    assert all(map(torch.equal, gradients, expected)), recomputed  # the same random numbers too
kept, calls, gradients = run([(1, 2)])
assert calls == (4, 5) and whole > kept > 3 * row and all(map(torch.equal, gradients, expected))
"""


def stages_alone(python):
    done = subprocess.run([python, "-c", STAGES_ALONE], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.path.join(HERE, "..", "..", "executor", "torch")})
    assert done.returncode == 0, done.stderr
    print("stages that recompute keep the inputs of their ranges, and call each layer twice")


def runs(pipewright, family, recompute, *words):
    """The peaks of a run, which are the predicted ones."""
    name = f"{family}-{recompute.replace(':', '-')}"
    pipewright.run("new", family, "--devices", str(DEVICES), "--microbatches", str(MICROBATCHES), "--model", "model.json",
                   "--recompute", recompute, *words, "-o", name + ".json", "--force")
    report = pipewright.json(*pipewright.torch(name + ".json", name + ".db", "--steps", "2"))
    check = report["gradient_check"]
    assert check["reference"] == "whole-module" and check["max_relative_error"] <= 1e-6, check
    compared = pipewright.json("compare", name + ".json", name + ".db")
    assert compared["blocks"]["unmatched"] == 0, compared
    got, predicted = report["peak_bytes"], report["predicted_peak_bytes"]
    print(f"{family}, {recompute}: gradients differ by {check['max_relative_error']:.1g}, peaks {got} of {predicted}")
    assert all(abs(one - other) <= WITHIN * other for one, other in zip(got, predicted)), (name, got, predicted)
    return got


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--short", action="store_true")
    parser.add_argument("pipewright")
    options = parser.parse_args()
    if not has_torch(options.python):
        return 77
    stages_alone(options.python)
    with tempfile.TemporaryDirectory() as folder:
        pipewright = Pipewright(os.path.abspath(options.pipewright), options.python, folder)
        profile(pipewright, MICROBATCHES)
        kept, freed = runs(pipewright, "1f1b", "none"), runs(pipewright, "1f1b", "full")
        # Stage 0 holds two microbatches: four layers of 121 KiB each beside their inputs, less the one that is made again.
        assert kept[0] - freed[0] > 6 * 121 * 1024, (kept, freed)
        if options.short:
            return 0
        runs(pipewright, "1f1b", "every:2")
        all_kept, all_freed = runs(pipewright, "gpipe", "none"), runs(pipewright, "gpipe", "full")
        assert all(one - other > 26 * 121 * 1024 for one, other in zip(all_kept, all_freed)), (all_kept, all_freed)
        runs(pipewright, "interleaved-1f1b", "full")
        runs(pipewright, "1f1b", "full:0", "--data-parallel", "2", "--zero", "1")
        said = pipewright.run("new", "zb-h1", "--devices", "2", "--microbatches", "8", "--model", "model.json", "--recompute",
                              "full", "-o", "halves.json") and pipewright.run("check", "halves.json", "--for", "torch")[1]
        assert "I runs the whole backward" in said, said
        runs(pipewright, "zb-h1", "full")
    return 0


if __name__ == "__main__":
    sys.exit(main())
