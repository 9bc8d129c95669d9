# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the gradients of the last step with the same module run as a whole, one microbatch after the other."""

import torch

from .chain import as_output, as_tuple
from .compare import bound_of, relative_error, same
from .errors import lacks_memory


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
    if apart := copies_that_differ(source.tied, parameters):
        return failure(f"{apart} are one parameter, and differ before the last step")
    for stage, module in enumerate(modules):
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(parameters[stage][name])
    copies, loss = job["replicas"], source.loss()
    count = job["microbatches"] * copies
    for copy in range(copies):
        rows = (job["steps"] - 1) * copies + copy
        inputs, targets = source.batch(rows)
        pieces = [value.to(runner.device).chunk(job["microbatches"]) for value in inputs]
        wanted = targets.to(runner.device).chunk(job["microbatches"])
        for microbatch in range(job["microbatches"]):
            runner.stream.line(at=f"the whole module, microbatch {microbatch}")
            values = tuple(piece[microbatch] for piece in pieces)
            for stage, module in enumerate(modules):
                source.draws(rows, stage, microbatch)
                values = as_tuple(module(*values))
            loss(as_output(values), wanted[microbatch]).backward()
    worst, where, equal, bound = 0.0, "", True, 0.0
    for stage, module in enumerate(modules):
        for name, parameter in module.named_parameters():
            got = gradients[stage][name]
            expected = None if parameter.grad is None else (parameter.grad / count).to("cpu")
            if all(value is None or not value.any() for value in (got, expected)):
                continue  # gradients stay allocated, so an unused one is zero
            if got is None or expected is None:
                return failure(f"stage {stage}, {name}: a gradient on one side only")
            bound = max(bound, bound_of(parameter.dtype))
            equal = equal and same(got, expected)
            if (error := relative_error(got, expected)) > worst:
                worst, where = error, f"stage {stage}, {name}"
    return {"bit_equal": equal, "max_relative_error": worst, "within": bound, "worst": where}


def failure(worst):
    return {"bit_equal": False, "max_relative_error": 1.0, "within": 0.0, "worst": worst}


def copies_that_differ(tied, parameters):
    """The names of one parameter whose copies on several stages are not the same numbers any more; None if there is
    none."""
    for one in tied:
        copies = [parameters[stage][name] for stage, name in sorted(one.names.items())]
        if not all(same(copies[0], copy) for copy in copies[1:]):
            return one.text()
    return None
