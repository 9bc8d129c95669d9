# SPDX-License-Identifier: GPL-3.0-or-later
"""Two inputs, words and which of them are padding, that go together through the stages; the second one has no gradient.
With dropout (DROP)."""

import os

import torch
from torch import nn

WORDS, WIDTH, LENGTH, ROWS = 50, 16, 6, 8


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)

    def forward(self, words, padding):
        return self.words(words), padding


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.drop = nn.Dropout(float(os.environ.get("DROP", 0)))

    def forward(self, value, padding):
        seen = self.attention(value, value, value, key_padding_mask=padding, need_weights=False)[0]
        return value + self.drop(seen), padding


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, value, padding):
        return self.out(value.masked_fill(padding[..., None], 0))


def build():
    return [Embedding(), Encoder(), Encoder(), Head()]


def batch(step):
    words = torch.randint(0, WORDS, (ROWS, LENGTH))
    padding = torch.arange(LENGTH)[None] >= torch.randint(LENGTH // 2, LENGTH, (ROWS, 1))
    return (words, padding), words


def loss(output, target):
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.1)
