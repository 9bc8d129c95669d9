# SPDX-License-Identifier: GPL-3.0-or-later
"""Frozen layers with trained adapters between a frozen embedding and a frozen head."""

import torch
from torch import nn

WORDS, WIDTH, RANK, LENGTH, ROWS = 40, 16, 2, 6, 8


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.down, self.up = nn.Linear(WIDTH, RANK, bias=False), nn.Linear(RANK, WIDTH, bias=False)

    def forward(self, value):
        return value + torch.tanh(self.base(value) + self.up(self.down(value)))


def build():
    return [nn.Embedding(WORDS, WIDTH).requires_grad_(False), Adapted(), Adapted(), nn.Linear(WIDTH, WORDS).requires_grad_(False)]


def batch(step):
    text = torch.randint(0, WORDS, (ROWS, LENGTH))
    return text, text


def loss(output, target):
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())
