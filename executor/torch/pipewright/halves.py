# SPDX-License-Identifier: GPL-3.0-or-later
"""A backward in two halves, as PyTorch's pipelining splits it: first the gradients of the inputs (I), then those of the
weights (W). Two kinds of stages are not split by it, and run whole here:

  - No input needs a gradient, as after frozen layers. PyTorch would leave the weight gradients out; W does it all, as
    W of the first stage does.
  - The module's graph does not allow it (look.py finds out): reentrant checkpoints, or weights whose gradients do not
    meet the way from output to input. I does it all, since the stage before waits for it, and W has nothing to do.
"""

import torch
from torch.distributed.pipelining import _backward


def halves(roots, gradients, inputs, parameters):
    """Two functions, to be called in order: the input gradient, whose result the second one takes, and the weight
    gradient. `gradients`: those of `roots`; both only where a gradient is needed."""
    if not any(value.requires_grad for value in inputs if isinstance(value, torch.Tensor)):
        return (lambda: None), (lambda _: torch.autograd.backward(roots, gradients) if roots else None)
    return (lambda: _backward.stage_backward_input(without_views(roots), gradients, list(inputs), iter(parameters))[1],
            lambda groups: _backward.stage_backward_weight(iter(parameters), groups))


def full(roots, gradients):
    """The backward in one."""
    if roots:
        torch.autograd.backward(roots, gradients)


def without_views(roots):
    """PyTorch detaches the roots of an input gradient in place, which views do not allow."""
    return tuple(root.clone() if isinstance(root, torch.Tensor) and root._is_view() else root for root in roots)


class _Done:
    """In the place of what I leaves for W: nothing is left to do."""


class _Postponed:
    """In the place of what I leaves for W: the arguments of the backward."""

    def __init__(self, given):
        self.given = given


def run_whole_where_needed(stage, unsplittable):
    """Makes a PipelineStage run the backwards whole that cannot be split. `unsplittable`: by its module's graph."""
    original = stage.backward_maybe_with_nosync

    def whole(given, last_backward):
        roots = given["stage_output"]
        if given["output_grads"] is None and isinstance(roots, tuple):  # the loss, which I puts into a tuple
            given = {**given, "stage_output": roots[0]}
        return original("full", given, last_backward=last_backward)

    def backward(kind, given, last_backward=False):
        if kind == "input" and not any(value.requires_grad for value in given["input_values"]
                                       if isinstance(value, torch.Tensor)):
            return tuple(None for _ in given["input_values"]), _Postponed(dict(given))
        if kind == "input" and unsplittable:
            return whole(given, last_backward)[0], _Done()
        if kind == "weight" and isinstance(given["param_groups"], _Postponed):
            return whole(given["param_groups"].given, last_backward)
        if kind == "weight" and isinstance(given["param_groups"], _Done):
            return (), None
        if kind == "input":
            given = {**given, "stage_output": without_views(given["stage_output"])}
        return original(kind, given, last_backward=last_backward)

    stage.backward_maybe_with_nosync = backward
    if unsplittable and hasattr(stage, "_compute_input_grads"):
        stage._compute_input_grads = input_gradients


def input_gradients(outputs, inputs, given=None):
    """What the first step asks of a stage, whose gradients' shapes it wants to know, by a backward in one."""
    torch.autograd.backward(outputs, given)
    return tuple(value.grad if isinstance(value, torch.Tensor) else None for value in inputs)
