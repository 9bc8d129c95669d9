# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the gradients of the last step with the same module run as a whole, one microbatch after the other."""

import torch

from .errors import lacks_memory

BOUNDS = {torch.float64: 1e-9, torch.float32: 1e-4}  # differences from another order of sums; other types are 16-bit
COARSE = 5e-2


def against_whole_module(runner, gathered):
    """The contents of `gradient_check`. `gathered` has per rank its stages' parameters before the last step and their
    gradients."""
    result = {"reference": "whole-module"}
    try:
        return {**result, **_compare(runner, gathered)}
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        return {**result, "skipped": f"the whole module does not fit: {str(error).splitlines()[0]}"}


def _compare(runner, gathered):
    job, source = runner.job, runner.source
    parameters, gradients = {}, {}
    for before, after in gathered:
        parameters.update(before)
        gradients.update(after)
    stages = source.stages(range(job["stages"]))
    modules = [stages[stage].to(runner.device) for stage in range(job["stages"])]
    for module in modules:
        for part in module.modules():
            if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0 and part.training:
                return {"skipped": "the module draws random numbers (Dropout), in another order when it is run whole"}
    for stage, module in enumerate(modules):
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(parameters[stage][name])
    copies, loss = job["replicas"], source.loss()
    count = job["microbatches"] * copies
    for copy in range(copies):
        inputs, targets = source.batch((job["steps"] - 1) * copies + copy)
        pieces = [value.to(runner.device).chunk(job["microbatches"]) for value in inputs]
        wanted = targets.to(runner.device).chunk(job["microbatches"])
        for microbatch in range(job["microbatches"]):
            runner.stream.line(at=f"the whole module, microbatch {microbatch}")
            value = tuple(piece[microbatch] for piece in pieces)
            for module in modules:
                value = module(*value) if isinstance(value, tuple) else module(value)
            loss(value, wanted[microbatch]).backward()
    worst, equal, bound = 0.0, True, 0.0
    for stage, module in enumerate(modules):
        for name, parameter in module.named_parameters():
            got = gradients[stage][name]
            expected = None if parameter.grad is None else (parameter.grad / count).to("cpu")
            if all(value is None or not value.any() for value in (got, expected)):
                continue  # gradients stay allocated, so an unused one is zero
            if got is None or expected is None:
                return {"bit_equal": False, "max_relative_error": 1.0, "within": 0.0,
                        "worst": f"stage {stage}, {name}: a gradient on one side only"}
            bound = max(bound, BOUNDS.get(parameter.dtype, COARSE))
            equal = equal and torch.equal(got, expected)
            size = expected.double().norm().item()
            difference = (got.double() - expected.double()).norm().item()
            worst = max(worst, difference / size if size > 0 else float(difference > 0))
    return {"bit_equal": equal, "max_relative_error": worst, "within": bound}
