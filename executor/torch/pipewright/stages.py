# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages that the design places on this rank: of the user's layers, or stand-ins that take the design's times."""

import time

import torch

from .errors import Refused
from .usermodule import UserModule, partition


class Source:
    """The source of stages, batches and losses. `notes` are for the user."""

    def __init__(self, job):
        self.job, self.notes = job, []
        self.module = UserModule(job["module"])
        self._counts = None

    def _partition(self, layers):
        counts, note = partition(len(layers), self.job["stages"], self.job["layers_per_stage"],
                                 self.job["partition_of_module"], self.job["module"])
        if note and self._counts is None:
            self.notes.append(note)
        self._counts = counts
        return counts

    def stages(self, wanted):
        """{stage: nn.Module}"""
        seed, count = self.job["seed"], self.job["stages"]
        if self.module.by_stage:
            return {stage: self.module.stage(stage, count, seed) for stage in wanted}
        layers = self.module.layers(seed)
        counts = self._partition(layers)
        starts = [sum(counts[:stage]) for stage in range(count)]
        return {stage: torch.nn.Sequential(*layers[starts[stage] : starts[stage] + counts[stage]]) for stage in wanted}

    def batch(self, step):
        inputs, targets = self.module.batch(step, self.job["seed"])
        for value in (*inputs, targets):
            if value.shape[0] % self.job["microbatches"]:
                raise Refused(f"{self.module.file}:batch",
                              f"{value.shape[0]} rows cannot be cut into {self.job['microbatches']} equal microbatches",
                              "return a multiple, so that all microbatches have one shape")
        return inputs, targets

    def loss(self):
        return self.module.loss()

    def optimizer(self, parameters):
        return self.module.optimizer(parameters)

    def replicate(self, module, mesh):
        return self.module.replicate(module, mesh)

    def pace(self, op, stage):
        return None


class StandIn(torch.nn.Module):
    """A differentiable module with an output of the design's size."""

    def __init__(self, elements):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(elements))

    def forward(self, value):
        return value.mean(dim=1, keepdim=True) + self.weight


class SyntheticSource:
    """Stages that take the times of the design's costs."""

    def __init__(self, job):
        self.job, self.notes = job, []
        self._times = job["synthetic"]

    def stages(self, wanted):
        return {stage: StandIn(max(1, self._times[stage]["output"] // 4)) for stage in wanted}

    def batch(self, step):
        rows = torch.ones(self.job["microbatches"], 1)
        return (rows,), rows

    def loss(self):
        return lambda output, target: (output.mean(dim=1, keepdim=True) - target).square().mean()

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=1e-3)

    def pace(self, op, stage):
        return self._times[stage][op]


def sleep_until(moment):
    """Sleeps until a time on the host's clock. It spins for the last moment, since threads wake up late."""
    left = moment - time.monotonic_ns()
    if left > 300_000:
        time.sleep((left - 200_000) / 1e9)
    while time.monotonic_ns() < moment:
        pass


def source_of(job):
    return SyntheticSource(job) if job["synthetic"] else Source(job)
