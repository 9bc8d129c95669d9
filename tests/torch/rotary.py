# SPDX-License-Identifier: GPL-3.0-or-later
"""A decoder of eight layers as one finds it in many repositories: rotary positions, root-mean-square norms, gated MLPs.
Nothing of it knows Pipewright."""

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, INNER, VOCABULARY, LENGTH, ROWS, LAYERS = 96, 6, 256, 211, 32, 32, 8


def turned(value, base=10_000.0):
    """Pairs of a head's values, turned by their position."""
    half = value.shape[-1] // 2
    speed = base ** (-torch.arange(half) / half)
    angle = torch.arange(value.shape[-2])[:, None] * speed
    one, other = value[..., :half], value[..., half:]
    return torch.cat([one * angle.cos() - other * angle.sin(), one * angle.sin() + other * angle.cos()], dim=-1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, value):
        rows, length, _ = value.shape
        parts = self.into(value).view(rows, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(turned(parts[0]), turned(parts[1]), parts[2], is_causal=True)
        return self.out(seen.transpose(1, 2).reshape(rows, length, WIDTH))


class GatedMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = nn.Linear(WIDTH, INNER, bias=False), nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, value):
        return self.down(functional.silu(self.gate(value)) * self.up(value))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention, self.mlp = Attention(), GatedMlp()

    def forward(self, value):
        value = value + self.attention(self.norm1(value))
        return value + self.mlp(self.norm2(value))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.words = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, value):
        return self.words(self.norm(value))


def build():
    return [nn.Embedding(VOCABULARY, WIDTH), *[Block() for _ in range(LAYERS)], Head()]


def batch(step):
    text = torch.randint(0, VOCABULARY, (ROWS, LENGTH + 1))
    return text[:, :-1], text[:, 1:]


def loss(output, target):
    return functional.cross_entropy(output.flatten(0, 1), target.flatten())
