# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages that the design places on this rank: of the user's layers, or stand-ins that take the design's times."""

import hashlib
import time

import torch

from .chain import Chain, with_values_to_send
from .errors import Refused
from .shared import tied_over_stages
from .usermodule import UserModule, partition


class Source:
    """The source of stages, batches and losses. `notes` are for the user; `tied`: parameters that several stages hold,
    once stages were made of layers."""

    def __init__(self, job):
        self.job, self.notes, self.tied = job, [], []
        self.module = UserModule(job["module"])
        self.counts = None

    def _partition(self, layers):
        counts, note = partition(len(layers), self.job["stages"], self.job["layers_per_stage"],
                                 self.job["partition_of_module"], self.job["module"])
        if note and self.counts is None:
            self.notes.append(note)
        self.counts = counts
        return counts

    def layers(self):
        """All layers, made anew; None where the file builds stages."""
        return None if self.module.by_stage else self.module.layers(self.job["seed"])

    def stages(self, wanted, layers=None):
        """{stage: nn.Module}, of these layers or of new ones."""
        seed, count = self.job["seed"], self.job["stages"]
        if self.module.by_stage:
            made = {stage: self.module.stage(stage, count, seed) for stage in wanted}
        else:
            layers = layers or self.layers()
            counts = self._partition(layers)
            self.tied = tied_over_stages(layers, counts)
            starts = [sum(counts[:stage]) for stage in range(count)]
            made = {stage: Chain(*layers[starts[stage] : starts[stage] + counts[stage]]) for stage in wanted}
        return {stage: with_values_to_send(module, stage + 1 == count) for stage, module in made.items()}

    def recompute(self, stages):
        """Lets the backwards of {stage: Chain} make layers again as the design says. Returns the stages that do."""
        design = self.job["recompute"]
        if not design:
            return set()
        if self.module.by_stage:
            raise Refused("schedule.recompute", f"{self.module.file} builds stages, and what their layers are is not known here",
                          "write build() that returns the list of layers, or make the design with --recompute none and use "
                          "torch.utils.checkpoint within your stages")
        for stage, module in stages.items():
            module.recomputed = ranges_to_recompute(design["layers_together"][stage], len(module), sum(self.counts[:stage]),
                                                    design["kept_layers"])
        return {stage for stage, module in stages.items() if module.recomputed}

    def parts(self, layers):
        """What a look goes through, one after the other: the layers, or the stages, each made when it is its turn."""
        count = self.job["stages"]
        return layers or (self.module.stage(stage, count, self.job["seed"]) for stage in range(count))

    def unsplittable_stages(self, found):
        """The stages whose backward runs whole, of what a look found."""
        starts = range(self.job["stages"]) if self.module.by_stage else [sum(self.counts[:s]) for s in range(len(self.counts))]
        return {max(stage for stage, start in enumerate(starts) if start <= number) for number in found.unsplittable}

    def draws(self, rows, stage, microbatch):
        """Begins the random numbers of a forward: those of this stage and microbatch, in whatever order and on whatever
        rank it runs. `rows`: what batch() got."""
        text = f"{self.job['seed']} {rows} {stage} {microbatch}".encode("ascii")
        torch.manual_seed(int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big"))

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


def ranges_to_recompute(together, count, start, kept):
    """The ranges of a stage's `count` layers that are recomputed, `together` at a time (0: none). `start`: the model's number
    of the first one; `kept`: layers, by that number, whose activations stay."""
    ranges = []
    for number in range(count if together else 0):
        if start + number in kept:
            continue
        if ranges and ranges[-1][1] == number and number - ranges[-1][0] < together:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    return ranges


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
        self.job, self.notes, self.tied = job, [], []
        self._times = job["synthetic"]

    def layers(self):
        return None

    def draws(self, rows, stage, microbatch):
        pass

    def recompute(self, stages):
        return set()  # the times of the design have it

    def stages(self, wanted, layers=None):
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
