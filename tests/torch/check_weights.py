#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights go from `pipewright run` to `transformers` and back.

    check_weights.py PIPEWRIGHT NAME…

NAME.json is a design that was run to NAME.safetensors (--dump) and NAME.weights.safetensors (--save-weights). The package
loads the weights as it loads published ones, with nothing missing and nothing left over; every tensor must have the values
of the dump's last parameters. What the package saves then begins a run, whose first parameters must be these again.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import torch

import check_decoder
import check_encoder
from check_decoder import tensors_of
from check_dump import read_safetensors


def decoder(metadata, tensors):
    peer = check_decoder.Peer(metadata, tensors)
    return peer.model_class, peer.model.config, peer.theirs("parameters.after/", above=1)


def encoder(metadata, tensors):
    shape = json.loads(metadata["model"])
    peer = {"vision": check_encoder.Vision, "encoder": check_encoder.Encoder}[shape["architecture"]](shape)
    wanted = dict(peer.model.named_parameters(remove_duplicate=False))
    values = {}
    for name, value in tensors_of(tensors, "parameters.after/").items():
        names = peer.names[name]
        for their, rows in zip(names, value.chunk(len(names))):
            values[their] = peer.theirs(name, rows, wanted[their])
    return type(peer.model), peer.model.config, values


def check(pipewright, name):
    metadata, tensors = read_safetensors(name + ".safetensors")
    architecture = json.loads(metadata["model"]).get("architecture", "decoder")
    kind, config, wanted = (decoder if architecture == "decoder" else encoder)(metadata, tensors)
    with tempfile.TemporaryDirectory() as folder:
        there, back = os.path.join(folder, "there"), os.path.join(folder, "back")
        config.save_pretrained(there)
        shutil.copy(name + ".weights.safetensors", os.path.join(there, "model.safetensors"))
        model, said = kind.from_pretrained(there, dtype=torch.float32, output_loading_info=True)
        wrong = {what: sorted(said[what]) for what in ("missing_keys", "unexpected_keys", "mismatched_keys") if said[what]}
        loaded = dict(model.named_parameters(remove_duplicate=False))
        wrong.update({"values": [each for each in wanted if not torch.equal(loaded[each], wanted[each].float())]}
                     if set(wanted) <= set(loaded) else {"names": sorted(set(wanted) - set(loaded))})
        model.save_pretrained(back)
        again = os.path.join(folder, "again.safetensors")
        ran = subprocess.run([pipewright, "run", name + ".json", "--backend", "host", "--steps", "1", "--maths", "training", "--weights", back,
                              "--dump", again, "-o", os.path.join(folder, "again.db")], capture_output=True, text=True)
        if ran.returncode:
            raise SystemExit(f"tests/torch: {kind.__name__}'s weights begin no run: {ran.stderr}")
        first, after = (tensors_of(read, prefix) for read, prefix in
                        ((read_safetensors(again)[1], "parameters.first/"), (tensors, "parameters.after/")))
        differing = [each for each in after if not torch.equal(first[each], after[each])]
    wrong = {what: names for what, names in wrong.items() if names}
    if differing:
        wrong["back"] = differing
    print(f"tests/torch: weights of {kind.__name__}, there and back: {wrong or f'{len(wanted)} tensors alike'}")
    return not wrong


if __name__ == "__main__":
    results = [check(sys.argv[1], name) for name in sys.argv[2:]]
    sys.exit(0 if results and all(results) else 1)
