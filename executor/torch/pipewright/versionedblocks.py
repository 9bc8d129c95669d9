# SPDX-License-Identifier: GPL-3.0-or-later
"""The blocks of a schedule that updates weights within the step: what each one reads, computes and hands on. A rank of such a
schedule (versionedrun.py) and all its ranks in one process (localrun.py) say where values come from and go to. Which weights
a block reads is in versions.py.
"""

from .chain import as_output, as_tuple, gradients_of, leaves
from .errors import Refused


def unknown_operation(block):
    return Refused(f"{block['op']}{block['stage']}.{block['microbatch']}",
                   f"{block['op']} is none of the operations F, B and U that this package knows",
                   "the pipewright package in this Python is of another version than the program")


class VersionedBlocks:
    """Of a class with the attributes job, source, modules, batches, versions (StageVersions by stage), loss, shapes (None: any
    will do), kept and reads, and with _hand_on(backward, stage, microbatch, values), _take(backward, stage, microbatch) and
    _rows(microbatch): inputs and targets of a microbatch, and what its random numbers are drawn for: rows, and number in them."""

    def _block(self, block):
        """Runs a block. Returns the loss of its microbatch where it computed one."""
        op, stage, microbatch = block["op"], block["stage"], block["microbatch"]
        if op == "F":
            given = self._take(False, stage, microbatch) if stage > 0 else None
            message, loss = self._timed(block, lambda: self._forward(block, given))
        elif op == "B":
            given = self._take(True, stage, microbatch) if stage + 1 < self.job["stages"] else None
            message, loss = self._timed(block, lambda: self._backward(block, given))
        elif op == "U":
            message, loss = self._timed(block, lambda: self._update(block))
        else:
            raise unknown_operation(block)
        if message is not None:
            self._hand_on(*message)
        return loss

    def _timed(self, block, call):
        return call()

    def _read(self, block):
        version, steps = self.versions[block["stage"]].read(block)
        self.reads.append([block["op"], block["stage"], block["microbatch"], version, steps])

    def _forward(self, block, given):
        stage, microbatch = block["stage"], block["microbatch"]
        self._read(block)
        inputs, target, (rows, number) = self._rows(microbatch)
        values = tuple(inputs) if stage == 0 else leaves(given)
        self.source.draws(rows, stage, number)
        outputs = as_tuple(self.modules[stage](*values))
        if stage + 1 < self.job["stages"]:
            shapes = [tuple(value.shape) for value in outputs]
            if self.shapes is not None and shapes != (before := [shape for shape, _ in self.shapes[stage]]):
                raise Refused(f"F{stage}.{microbatch}",
                              f"the output has the shape {as_output(shapes)}, and before {as_output(before)}",
                              "a pipeline hands on values of one shape: pad the batch")
            self.kept[stage, microbatch] = (values, outputs)
            return (False, stage + 1, microbatch, outputs), None
        loss = self.loss(as_output(outputs), target)
        self._ended(microbatch, as_output(outputs), target)
        self.kept[stage, microbatch] = (values, (loss,))
        return None, loss.detach()

    def _ended(self, microbatch, output, target):
        """Called with the last stage's output of every microbatch."""

    def _backward(self, block, given):
        stage, microbatch = block["stage"], block["microbatch"]
        self._read(block)
        values, outputs = self.kept.pop((stage, microbatch))
        versions = self.versions[stage]
        of_values, of_weights = gradients_of(outputs, given, values if stage > 0 else (), versions.working)
        versions.add(block["update"], of_weights)
        return (True, stage - 1, microbatch, of_values) if stage > 0 else None, None

    def _update(self, block):
        stage, update = block["stage"], block["update"]
        self.versions[stage].update(update, len(self.batches[stage][update]))
        return None, None
