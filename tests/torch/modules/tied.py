# SPDX-License-Identifier: GPL-3.0-or-later
"""A decoder whose head is its embedding's matrix, with dropout (DROP) and a mask in a buffer."""

import os

import torch
from torch import nn

WORDS, WIDTH, LENGTH, ROWS = 60, 16, 8, 8
DROP = float(os.environ.get("DROP", 0))


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.drop = nn.Embedding(WORDS, WIDTH), nn.Dropout(DROP)

    def forward(self, text):
        return self.drop(self.words(text))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.norm, self.drop = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Dropout(DROP)
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH)))

    def forward(self, value):
        return value + self.drop(torch.tanh(self.mix(self.mask @ self.norm(value))))


class Head(nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.out = nn.Linear(WIDTH, WORDS, bias=False)
        self.out.weight = embedding.words.weight

    def forward(self, value):
        return self.out(value)


def build():
    embedding = Embedding()
    return [embedding, Block(), Block(), Head(embedding)]


def batch(step):
    text = torch.randint(0, WORDS, (ROWS, LENGTH + 1))
    return text[:, :-1], text[:, 1:]


def loss(output, target):
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())
