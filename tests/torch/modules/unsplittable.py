# SPDX-License-Identifier: GPL-3.0-or-later
"""Two kinds of backwards that PyTorch cannot split: a reentrant checkpoint, and a bias that a layer makes of its weights
alone and hands on, as T5 does with its relative positions. Split, the second one's gradient would be lost in silence.
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, ROWS = 8, 8


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, value):
        return torch.tanh(checkpoint(self.mix, value, use_reentrant=True) if value.requires_grad else self.mix(value))


class Biasing(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.bias = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(WIDTH))

    def forward(self, value):
        return torch.tanh(self.mix(value)), torch.sin(self.bias).expand(len(value), WIDTH)


class Biased(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, value, bias):
        return self.mix(value + bias)


def build():
    return [nn.Linear(WIDTH, WIDTH), Checkpointed(), Biasing(), Biased()]


def batch(step):
    rows = torch.randn(ROWS, WIDTH)
    return rows, rows


def loss(output, target):
    return (output - target).square().mean()
