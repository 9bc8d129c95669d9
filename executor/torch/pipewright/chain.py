# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers one after the other, the way a pipeline hands values on: a tuple of values is as many arguments of the next
layer. Stages, the whole module of the gradient check and the profile all call layers so.
"""

import functools

import torch
from torch.utils.checkpoint import checkpoint


def as_tuple(output):
    """What a layer returns as a tuple of values."""
    return tuple(output) if isinstance(output, (tuple, list)) else (output,)


def as_output(values):
    """The inverse: a tuple of one value is that value."""
    return values[0] if len(values) == 1 else values


def through(layers, *values):
    """Values through some layers."""
    for layer in layers:
        values = as_tuple(layer(*values))
    return values


class Chain(torch.nn.Sequential):
    """A stage of the user's layers. Its parameters have the names that nn.Sequential gives them.

    `recomputed`: ranges of layers (first, behind the last), ascending. Of each only the input is kept, and the backward
    makes the range again before it goes through it, with the random numbers of the forward."""

    recomputed = ()

    def forward(self, *values):
        layers, at = list(self), 0
        for first, end in self.recomputed:
            values = through(layers[at:first], *values)
            values = checkpoint(functools.partial(through, layers[first:end]), *values, use_reentrant=False)
            at = end
        return as_output(through(layers[at:], *values))


def with_values_to_send(module, last):
    """A stage that hands on, and hands back as gradients, tensors that can be sent: stored without gaps. `last`: it hands
    nothing on."""

    def before(_, values):
        for value in values:
            if isinstance(value, torch.Tensor) and value.requires_grad:
                value.register_hook(torch.Tensor.contiguous)

    def after(_, __, output):
        return as_output(tuple(value.contiguous() if isinstance(value, torch.Tensor) else value for value in as_tuple(output)))

    module.register_forward_pre_hook(before)
    if not last:
        module.register_forward_hook(after)
    return module


def fresh(values):
    """Values as a stage receives them: without their history, and with a gradient where they had one."""
    return tuple(value.detach().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value
                 for value in values)


def leaves(values):
    """Values of the stage before: without their history, and every floating-point one with a gradient to hand back."""
    return tuple(value.detach().requires_grad_(value.dtype.is_floating_point) for value in values)


def gradients_of(outputs, given, values, weights):
    """The gradients of values and weights. `given`: those of the outputs, None of a loss. A value that had no part in the
    outputs has zeros, and one that is no floating-point number None, as every rank expects."""
    roots = [(output, gradient) for output, gradient in zip(outputs, given or [None] * len(outputs)) if output.requires_grad]
    wanted = [value for value in values if value.requires_grad]
    over = wanted + list(weights)
    found = torch.autograd.grad([root for root, _ in roots], over, grad_outputs=[gradient for _, gradient in roots],
                                allow_unused=True) if roots and over else [None] * len(over)
    handed = iter(found)
    of_values = tuple((torch.zeros_like(value) if (one := next(handed)) is None else one) if value.requires_grad else None
                      for value in values)
    return of_values, list(handed)
