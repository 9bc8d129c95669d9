# SPDX-License-Identifier: GPL-3.0-or-later
"""rotary.py's decoder with layers that sleep for their time, so that steps take much the same on a machine with other load."""

import os
import time

import torch
from torch import nn

from rotary import LAYERS, VOCABULARY, WIDTH, batch, loss  # noqa: F401

NAPS = 0.04, 0.048, 0.032  # seconds of a layer: forward, input gradient, weight gradient

try:  # where the system allows it, who wakes runs at once, and so do threads that are made later, as those of transfers
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except (AttributeError, OSError):
    pass


class Nap(torch.autograd.Function):
    """Hands its input on, and sleeps in both directions."""

    @staticmethod
    def forward(context, value, forward, backward):
        context.seconds = backward
        time.sleep(forward)
        return value.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep(context.seconds)
        return gradient, None, None


class Sleeper(nn.Module):
    """Sums its input and its weight, so that either gradient can be had without the other."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, value):
        forward, input_gradient, weight_gradient = NAPS
        return Nap.apply(value, forward, input_gradient) + Nap.apply(self.weight, 0.0, weight_gradient)


def build():
    return [nn.Embedding(VOCABULARY, WIDTH), *[Sleeper() for _ in range(LAYERS)], nn.Linear(WIDTH, VOCABULARY, bias=False)]
