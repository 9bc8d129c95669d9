# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank of a schedule that updates weights within the step. PyTorch's schedule runtime does not support this, so the
rank goes through its own list of blocks, in order. Every value and gradient has its own message tag, so a rank waits
only for what its next block needs. What a block does is in versionedblocks.py; the result is compared with an emulation
without a pipeline (emulation.py).
"""

import gc
import time

from .chain import as_tuple
from .errors import Refused
from .runner import Runner
from .shared import refuse_updates_amid_the_step
from .versionedblocks import VersionedBlocks
from .versions import StageVersions, mean_errors


class VersionedRunner(VersionedBlocks, Runner):
    def prepare(self):
        job = self.job
        self.order = job["versions"]["order"][self.rank]
        self.batches = job["versions"]["batches"]
        self.build(split=False)
        refuse_updates_amid_the_step(self.source.tied, job["module"], f"the rule {job['versions']['rule']}")
        self.versions, self.errors = {}, []
        for stage, module in self.modules.items():
            self.versions[stage] = StageVersions(stage, module, self.source, self.order, job["versions"]["optimizer"],
                                                 job["module"] or "--synthetic-stages")
        self.loss = self.source.loss()
        self._find_shapes()

    def _find_shapes(self):
        """Finds the shapes and types of every stage's outputs for one microbatch, by passing the first one through."""
        torch, job = self.torch, self.job
        inputs, _ = self.source.batch(0)
        self.shapes = []
        for stage in range(job["stages"]):
            owner = job["device_of_stage"][stage]
            what = [None]
            if owner == self.rank:
                module = self.modules[stage]
                buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
                random = torch.get_rng_state()
                given = [piece.chunk(job["microbatches"])[0].to(self.device) for piece in inputs] if stage == 0 \
                    else [torch.zeros(shape, dtype=kind, device=self.device) for shape, kind in self.shapes[-1]]
                with torch.no_grad():
                    values = as_tuple(module(*given))
                    for name, buffer in module.named_buffers():
                        buffer.copy_(buffers[name])
                torch.set_rng_state(random)
                odd = [type(value).__name__ for value in values if not isinstance(value, torch.Tensor)]
                what[0] = odd[0] if odd else [(tuple(value.shape), value.dtype) for value in values]
            self.dist.broadcast_object_list(what, src=owner, group=self.talk)
            if isinstance(what[0], str):
                raise Refused(f"F{stage}.0", f"the stage returns a {what[0]}", "stages hand on tensors")
            self.shapes.append(what[0])

    def _tag(self, backward, stage, microbatch, number):
        """Of the `number`th value of a message."""
        most = max(len(shapes) for shapes in self.shapes)
        return 1 + ((stage * 2 + backward) * self.job["microbatches"] + microbatch) * most + number

    def _hand_on(self, backward, stage, microbatch, values):
        """Passes values on to the block of `stage` that needs them."""
        to = self.job["device_of_stage"][stage]
        if to == self.rank:
            self.local[backward, stage, microbatch] = values
            return
        for number, value in enumerate(values):
            if value is None:  # the gradient of a value that has none
                continue
            value = value.detach().to("cpu").contiguous()
            work = self.dist.isend(value, dst=to, group=self.talk, tag=self._tag(backward, stage, microbatch, number))
            self.sent.append((work, value))

    def _take(self, backward, stage, microbatch):
        """The values, or their gradients, which only floating-point numbers have."""
        source = self.job["device_of_stage"][stage + (1 if backward else -1)]
        if source == self.rank:
            return self.local.pop((backward, stage, microbatch))
        begin, values = self.recorder.border(), []
        for number, (shape, kind) in enumerate(self.shapes[stage if backward else stage - 1]):
            if backward and not kind.is_floating_point:
                values.append(None)
                continue
            value = self.torch.empty(shape, dtype=kind)
            self.dist.recv(value, src=source, group=self.talk, tag=self._tag(backward, stage, microbatch, number))
            values.append(value.to(self.device))
        self.recorder.wait("B" if backward else "F", stage, microbatch, begin)
        return tuple(values)

    def _step(self, number):
        inputs, targets = self.source.batch(number)
        count = self.job["microbatches"]
        self.pieces = [value.to(self.device).chunk(count) for value in inputs]
        self.targets = targets.to(self.device).chunk(count)
        self.local, self.sent, self.kept, losses = {}, [], {}, []
        self.step_rows = number
        for versions in self.versions.values():
            versions.begin_step()
        self.reads = []
        self.dist.barrier(group=self.talk)
        begin = time.monotonic_ns()
        self.recorder.begin_step()
        for block in self.order:
            self.recorder.at = f"{block['op']}{block['stage']}.{block['microbatch']}"
            if (loss := self._block(block)) is not None:
                losses.append(loss)
        for work, _ in self.sent:
            work.wait()
        return begin, losses

    def _timed(self, block, call):
        op, stage = block["op"], block["stage"]
        begin, started, pace = self.recorder.border(), time.monotonic_ns(), self.source.pace(op, stage)
        result = call()
        if pace is not None:
            self.stages_of.sleep_until(started + pace)
        self.recorder.block(op, stage, block["microbatch"], begin)
        return result

    def _rows(self, microbatch):
        return [piece[microbatch] for piece in self.pieces], self.targets[microbatch], (self.step_rows, microbatch)

    def run(self):
        job, recorder = self.job, self.recorder
        gc.collect()
        gc.freeze()
        for step in range(job["steps"]):
            self.step = step
            last = step + 1 == job["steps"]
            before = self._state() if last and job["check_gradients"] else None
            recorder.on = True
            begin, losses = self._step(step)
            recorder.on = False
            end = time.monotonic_ns()
            mean = float(sum(losses) / len(losses)) if losses else None
            recorder.end_step(step, begin, end, mean)
        self._say_copies()
        if job["check_gradients"]:
            self._compare(before)
        if any(block.get("steps") for order in job["versions"]["order"] for block in order) and not job["synthetic"]:
            self._say_prediction_errors()
        self.stream.line(done=True)

    def _say_prediction_errors(self):
        """Runs one more step that is not timed, since watching keeps and compares weights. Predictions for a version
        after the end of this step are not judged."""
        self.stream.line(at="a step that is not recorded, to see how far predicted weights are off")
        for versions in self.versions.values():
            versions.watch = self.errors
        self._step(self.job["steps"])
        gathered = [None] * self.ranks if self.rank == 0 else None
        self.dist.gather_object(self.errors, gathered, group=self.talk, dst=0)
        if self.rank == 0:
            rows = mean_errors([row for part in gathered for row in part], self.job["stages"])
            text = ", ".join(f"stage {stage} {off:.2e} ({stale:.2e})" for stage, (off, stale) in enumerate(rows)
                             if off is not None)
            if text:
                self.stream.line(note="weights that were predicted are off by, root mean square and without prediction in "
                                      f"brackets: {text}")

    def _state(self):
        """The state at the start of the last step, by stage."""
        return {stage: {"parameters": [p.detach().to("cpu", copy=True) for p in versions.newest],
                        "buffers": {name: value.to("cpu", copy=True) for name, value in versions.module.named_buffers()},
                        "optimizer": to_cpu(self.torch, versions.optimizer.state_dict()) if versions.optimizer else None,
                        "gradients": [None if (g := versions.gradients.get(p)) is None else g.to("cpu", copy=True)
                                      for p in versions.newest]}
                for stage, versions in self.versions.items()}

    def _say_copies(self):
        gathered = [None] * self.ranks if self.rank == 0 else None
        mine = {stage: versions.most_copies for stage, versions in self.versions.items()}
        self.dist.gather_object(mine, gathered, group=self.talk, dst=0)
        if self.rank == 0:
            self.copies = {stage: count for part in gathered for stage, count in part.items()}
            self.stream.line(note="copies of a stage's weights kept at once, predicted ones among them, from stage 0 on: "
                                  + " ".join(str(self.copies[stage]) for stage in sorted(self.copies)))

    def _compare(self, before):
        from . import emulation

        self.stream.line(at="comparing the weights with those of a sequential emulation")
        gathered = [None] * self.ranks if self.rank == 0 else None
        self.dist.gather_object((before, self._state(), self.reads), gathered, group=self.talk, dst=0)
        if self.rank == 0:
            self.stream.line(gradients=emulation.against_emulation(self, gathered))


def to_cpu(torch, value):
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {key: to_cpu(torch, each) for key, each in value.items()}
    return [to_cpu(torch, each) for each in value] if isinstance(value, list) else value
