# SPDX-License-Identifier: GPL-3.0-or-later
"""All ranks of a design with updates within the step in one process, for experiments."""

import hashlib
import time

import torch

from .chain import as_output, as_tuple
from .errors import Refused
from .stages import source_of
from .versionedblocks import VersionedBlocks, unknown_operation
from .versions import KINDS, StageVersions, Ties, mean_errors


def merged(orders, stages):
    """One list of all devices' blocks in which every block comes after the blocks that it needs."""
    next_of, done, result = [0] * len(orders), set(), []
    while any(at < len(order) for at, order in zip(next_of, orders)):
        moved = False
        for device, order in enumerate(orders):
            if next_of[device] == len(order):
                continue
            block = order[next_of[device]]
            op, stage, microbatch = block["op"], block["stage"], block["microbatch"]
            known = {"F": ("F", stage - 1, microbatch) if stage > 0 else None,
                     "B": ("B", stage + 1, microbatch) if stage + 1 < stages else ("F", stage, microbatch),
                     "U": None}
            if op not in known:
                raise unknown_operation(block)
            needs = known[op]
            if needs is None or needs in done:
                result.append(block)
                done.add((op, stage, microbatch))
                next_of[device] += 1
                moved = True
        if not moved:
            raise Refused("schedule", "no device can go on", "this is a fault of the program")
    return result


def plain(stages, updates, batch):
    """Sequential training with updates of `batch` microbatches, as lists like those of a design. It is the reference,
    and equals a schedule with one update after each step."""
    order, batches = [], [[] for _ in range(stages)]
    for update in range(updates):
        microbatches = range(update * batch, (update + 1) * batch)
        block = lambda op, stage, microbatch: {"op": op, "stage": stage, "microbatch": microbatch, "version": update,
                                               "steps": 0, "update": update}
        for microbatch in microbatches:
            order += [block("F", stage, microbatch) for stage in range(stages)]
            order += [block("B", stage, microbatch) for stage in reversed(range(stages))]
        order += [block("U", stage, microbatches[-1]) for stage in range(stages)]
        for stage in range(stages):
            batches[stage].append(list(microbatches))
    return {"order": [order], "batches": batches}


def classifies(output, targets):
    return isinstance(output, torch.Tensor) and output.dim() == 2 and targets.dim() == 1 and not targets.dtype.is_floating_point


def share_right(output, targets):
    return float((output.argmax(dim=1) == targets).double().mean())


class LocalRunner(VersionedBlocks):
    """All ranks of a design in one process."""

    def __init__(self, job, tell):
        self.job, self.tell = job, tell
        self.source = source_of(job)
        self.batches = job["versions"]["batches"]
        self.order = merged(job["versions"]["order"], job["stages"])
        self.modules = self.source.stages(range(job["stages"]))  # without recomputation, which changes no value
        self.ties = Ties(self.source.tied)
        self.errors, self.loss = [], self.source.loss()
        self.versions = {stage: StageVersions(stage, module, self.source, self.order, job["versions"]["optimizer"],
                                              job["module"]) for stage, module in self.modules.items()}
        for versions in self.versions.values():
            versions.watch = self.errors
        self.update_of = {microbatch: update for update, batch in enumerate(self.batches[-1]) for microbatch in batch}

    def _hand_on(self, backward, stage, microbatch, value):
        self.local[backward, stage, microbatch] = value

    def _take(self, backward, stage, microbatch):
        return self.local.pop((backward, stage, microbatch))

    def _rows(self, microbatch):
        """Its part of the rows of its update."""
        update = self.update_of[microbatch]
        if update not in self.rows:
            while len(self.rows) > 8:  # an update's rows depend on its number only, so they can be drawn again
                del self.rows[next(iter(self.rows))]
            self.rows[update] = self.source.module.batch(update, self.job["seed"])
        inputs, targets = self.rows[update]
        batch = self.batches[-1][update]
        self.row_count = targets.shape[0]
        if targets.shape[0] % len(batch):
            raise Refused(f"{self.source.module.file}:batch", f"{targets.shape[0]} rows cannot be cut into {len(batch)} "
                          "equal microbatches", "return a multiple")
        at = batch.index(microbatch)
        return [value.chunk(len(batch))[at] for value in inputs], targets.chunk(len(batch))[at], (update, at)

    def _update(self, block):
        self.ties.sum(self.versions, block["update"])
        return super()._update(block)

    def train(self):
        self.local, self.kept, self.reads, self.rows = {}, {}, [], {}
        self.shapes = None
        self.losses = [[] for _ in self.batches[-1]]
        self.right = [[] for _ in self.batches[-1]]
        for block in self.order:
            loss = self._block(block)
            if loss is not None:
                update = self.update_of[block["microbatch"]]
                self.losses[update].append(float(loss))
                if len(self.losses[update]) == len(self.batches[-1][update]):
                    self.tell(update, sum(self.losses[update]) / len(self.losses[update]))
        return [sum(values) / len(values) for values in self.losses]

    def _ended(self, microbatch, output, target):
        if classifies(output, target):
            self.right[self.update_of[microbatch]].append(share_right(output, target))

    def held_back(self):
        """Loss and accuracy of the final weights; nothing if the file has no held-back rows."""
        function = getattr(self.source.module._module, "held_back", None)
        if not callable(function):
            return None, None
        inputs, targets = function()
        values = as_tuple(inputs)
        with torch.no_grad():
            for stage in range(self.job["stages"]):
                versions = self.versions[stage]
                for parameter, newest in zip(versions.working, versions.newest):
                    parameter.data.copy_(newest)
                self.modules[stage].eval()
                values = as_tuple(self.modules[stage](*values))
            output = as_output(values)
            loss = float(self.loss(output, targets))
        return loss, share_right(output, targets) if classifies(output, targets) else None

    def optimizer_name(self):
        """Of the file's optimizer: as designs call it, or its class."""
        kinds = {type(versions.optimizer).__name__ for versions in self.versions.values() if versions.optimizer is not None}
        known = {kind: name for name, kind in KINDS.items()}
        return ", ".join(sorted(known.get(kind, kind) for kind in kinds)) or "none"

    def report(self):
        """The report from which the program makes a row of its table."""
        begin = time.monotonic_ns()
        losses, stages = self.train(), self.job["stages"]
        planned = {(b["op"], b["stage"], b["microbatch"]): (b["version"], b["steps"]) for b in self.order if b["op"] != "U"}
        agree = {(op, stage, microbatch): (version, steps) for op, stage, microbatch, version, steps in self.reads} == planned
        seconds = (time.monotonic_ns() - begin) / 1e9
        loss, accuracy = self.held_back()
        errors = mean_errors(self.errors, stages)
        mean = lambda values: sum(values) / len(values) if values else None
        digest = hashlib.sha256()
        for stage in range(stages):
            for parameter in self.versions[stage].newest:
                digest.update(parameter.detach().flatten().view(torch.uint8).numpy().tobytes())
        size = [sum(p.numel() * p.element_size() for p in self.versions[stage].newest) for stage in range(stages)]
        accuracies = [mean(each) for each in self.right] if any(self.right) else []
        return {"losses": losses, "accuracies": accuracies, "held_back_loss": loss, "held_back_accuracy": accuracy,
                "reads_agree": agree, "copies": [self.versions[stage].most_copies for stage in range(stages)], "weight_bytes": size,
                "prediction_rmse": [off for off, _ in errors], "unpredicted_rmse": [stale for _, stale in errors],
                "optimizer": self.optimizer_name(), "rows": self.row_count, "seconds": seconds, "bits": digest.hexdigest()}
