# SPDX-License-Identifier: GPL-3.0-or-later
"""Its loss is NaN from the second step on: the optimizer makes it so, with weights that are NaN."""

import torch
from torch import nn


def build():
    return [nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)]


def batch(step):
    rows = torch.randn(8, 8)
    return rows, rows


def loss(output, target):
    return (output - target).square().mean()


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=float("nan"))
