# SPDX-License-Identifier: GPL-3.0-or-later
"""A small transformer as a person would write it: eight layers, an embedding and a head. Nothing of it knows Pipewright."""

import os
import time

import torch
from torch import nn

WIDTH, HEADS, VOCABULARY, LENGTH, ROWS = 64, 4, 97, 16, 16


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)

    def forward(self, tokens):
        return self.tokens(tokens) + self.positions


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, value):
        seen = self.norm1(value)
        value = value + self.attention(seen, seen, seen, need_weights=False)[0]
        return value + self.mlp(self.norm2(value))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.words = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, value):
        return self.words(self.norm(value))


def build():
    return [Embedding(), *[Layer() for _ in range(8)], Head()]


def build_stage(stage, stages):
    """The same by stages."""
    layers = [Layer() for _ in range(8 // stages)]
    return nn.Sequential(*([Embedding()] if stage == 0 else []), *layers, *([Head()] if stage == stages - 1 else []))


def batch(step):
    text = torch.randint(0, VOCABULARY, (ROWS, LENGTH + 1))
    return text[:, :-1], text[:, 1:]


def loss(output, target):
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


# What goes wrong, for the tests of it.


def replicate(module, mesh):
    if os.environ.get("OWN_MODEL_COPIES") == "sharded":
        from torch.distributed.fsdp import fully_shard

        return fully_shard(module, mesh=mesh, reshard_after_forward=False) or module
    return nn.parallel.DistributedDataParallel(module, process_group=mesh.get_group())


class Changing(nn.Module):
    """Cuts its output, now and then."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, value):
        self.calls += 1
        return value[:, :-1] if self.calls % 20 == 0 else value


def build_changing():
    return [Embedding(), *[Layer() for _ in range(4)], Changing(), *[Layer() for _ in range(4)], Head()]


class Dying(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, value):
        self.calls += 1
        if self.calls == 30:
            os.kill(os.getpid(), 9)
        return value


def build_dying():
    return [Embedding(), *[Layer() for _ in range(8)], Dying(), Head()]


class Hanging(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, value):
        self.calls += 1
        if self.calls == 12:  # amid a recorded step
            time.sleep(10_000)
        return value


def build_hanging():
    return [Embedding(), *[Layer() for _ in range(8)], Hanging(), Head()]


class Hungry(nn.Module):
    def forward(self, value):
        return value + torch.zeros(1 << 60).sum()


def build_hungry():
    return [Embedding(), *[Layer() for _ in range(8)], Hungry(), Head()]


def build_network():
    return nn.Transformer(d_model=8, nhead=2)
