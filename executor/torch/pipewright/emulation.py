# SPDX-License-Identifier: GPL-3.0-or-later
"""Repeats the last step without a pipeline: block after block in one process, keeping every version of every stage.

Which version a block reads, and which microbatches an update takes, comes from the design. In what order ranks ran,
where copies were kept and when they were dropped plays no part here. The backward of a block differentiates the graph
of its own forward, on weights of its own.
"""

import copy

import torch

from .chain import as_output, as_tuple, gradients_of, leaves
from .compare import bound_of, relative_error, same
from .versions import predicted


class EmulatedStage:
    def __init__(self, module, state, make_optimizer, device):
        self.module = module.to(device)
        names = [name for name, p in module.named_parameters() if p.requires_grad]
        self.names, self.device, self.make_optimizer = names, device, make_optimizer
        with torch.no_grad():
            for name, buffer in module.named_buffers():
                buffer.copy_(state["buffers"][name])
        self.versions = [(state["parameters"], state["optimizer"], state["gradients"])]
        self.sums, self.graphs = {}, {}

    def _optimizer(self, version):
        """A new optimizer with the state of that version, its parameters and their last gradients."""
        values, state, gradients = self.versions[version]
        parameters = [torch.nn.Parameter(value.to(self.device, copy=True)) for value in values]
        optimizer = self.make_optimizer(parameters)
        if state is not None:
            optimizer.load_state_dict(copy.deepcopy(state))
        return optimizer, parameters, {p: None if g is None else g.to(self.device) for p, g in zip(parameters, gradients)}

    def weights(self, version, steps):
        if not steps or not self.names:
            return [value.to(self.device, copy=True) for value in self.versions[version][0]]
        optimizer, _, gradients = self._optimizer(version)
        return predicted(optimizer, gradients, steps)

    def update(self, number, batch):
        assert number + 1 == len(self.versions)
        if not self.names:
            self.versions.append(self.versions[-1])
            return
        optimizer, parameters, _ = self._optimizer(number)
        for parameter, gradient in zip(parameters, self.sums.pop(number, [None] * len(parameters))):
            parameter.grad = None if gradient is None else gradient / batch
        optimizer.step()
        self.versions.append(([p.detach() for p in parameters], optimizer.state_dict(), [p.grad for p in parameters]))


def emulate(job, source, begin, device):
    """The stages after a step that starts from the states `begin`."""
    count, stages = job["microbatches"], job["stages"]
    modules = source.stages(range(stages))
    emulated = [EmulatedStage(modules[stage], begin[stage], source.optimizer, device) for stage in range(stages)]
    rows = job["steps"] - 1
    inputs, targets = source.batch(rows)
    pieces = [value.to(device).chunk(count) for value in inputs]
    wanted, loss = targets.to(device).chunk(count), source.loss()
    plan = {(block["op"], block["stage"], block["microbatch"]): block
            for order in job["versions"]["order"] for block in order if block["op"] != "U"}
    outputs, gradients, done = {}, {}, set()

    def known(op, stage, microbatch):
        return plan[op, stage, microbatch]["version"] < len(emulated[stage].versions)

    def forward(stage, microbatch):
        at, block = emulated[stage], plan["F", stage, microbatch]
        weights = [w.requires_grad_() for w in at.weights(block["version"], block["steps"])]
        values = tuple(piece[microbatch] for piece in pieces) if stage == 0 else leaves(outputs.pop((stage - 1, microbatch)))
        source.draws(rows, stage, microbatch)
        made = as_tuple(torch.func.functional_call(at.module, dict(zip(at.names, weights)), values))
        if stage + 1 == stages:
            made = (loss(as_output(made), wanted[microbatch]),)
        else:
            outputs[stage, microbatch] = made
        at.graphs[microbatch] = (values, weights, made)

    def backward(stage, microbatch):
        at, block = emulated[stage], plan["B", stage, microbatch]
        values, weights, made = at.graphs.pop(microbatch)
        for weight, now in zip(weights, at.weights(block["version"], block["steps"])):
            weight.data.copy_(now)
        of_values, of_weights = gradients_of(made, gradients.pop((stage, microbatch), None), values if stage > 0 else (), weights)
        if stage > 0:
            gradients[stage - 1, microbatch] = of_values
        total = at.sums.setdefault(block["update"], [None] * len(weights))
        for index, gradient in enumerate(of_weights):
            if gradient is not None:
                total[index] = gradient.clone() if total[index] is None else total[index] + gradient

    moved = True
    while moved:
        moved = False
        for stage in range(stages):
            for microbatch in range(count):  # in order within a stage, as its module buffers see them
                key = ("F", stage, microbatch)
                if key in done:
                    continue
                if not known(*key) or stage > 0 and ("F", stage - 1, microbatch) not in done:
                    break
                forward(stage, microbatch)
                done.add(key)
                moved = True
        for stage in reversed(range(stages)):
            for microbatch in range(count):
                key = ("B", stage, microbatch)
                if key in done:
                    continue
                ready = ("F", stage, microbatch) in done and known(*key) \
                    and (stage + 1 == stages or ("B", stage + 1, microbatch) in done)
                if ready:
                    backward(stage, microbatch)
                    done.add(key)
                    moved = True
            at = emulated[stage]
            while len(at.versions) <= len(job["versions"]["batches"][stage]):
                batch = job["versions"]["batches"][stage][len(at.versions) - 1]
                if not all(("B", stage, microbatch) in done for microbatch in batch):
                    break
                at.update(len(at.versions) - 1, len(batch))
                moved = True
    if len(done) != 2 * stages * count:
        raise RuntimeError("the emulation cannot go on: a version is never made")
    return emulated


def against_emulation(runner, gathered):
    """The contents of `gradient_check`: compares the weights after the last step, and the version that every block of
    it read."""
    job, result = runner.job, {"reference": "sequential-lagged"}
    begin, end, reads = {}, {}, []
    for before, after, read in gathered:
        begin.update(before)
        end.update(after)
        reads += read
    planned = {(block["op"], block["stage"], block["microbatch"]): (block["version"], block["steps"])
               for order in job["versions"]["order"] for block in order if block["op"] != "U"}
    for op, stage, microbatch, version, steps in reads:
        if planned.pop((op, stage, microbatch), None) != (version, steps):
            return {**result, "bit_equal": False, "max_relative_error": 1.0, "within": 0.0,
                    "worst": f"{op}{stage}.{microbatch} read version {version} predicted by {steps}"}
    if planned:
        return {**result, "bit_equal": False, "max_relative_error": 1.0, "within": 0.0,
                "worst": "{}{}.{} read nothing".format(*next(iter(planned)))}
    emulated = emulate(job, runner.source, begin, runner.device)
    worst, equal, bound, where = 0.0, True, 0.0, ""
    for stage, at in enumerate(emulated):
        for name, got, expected in zip(at.names, end[stage]["parameters"], at.versions[-1][0]):
            expected = expected.to("cpu")
            bound = max(bound, bound_of(got.dtype))
            equal = equal and same(got, expected)
            if (error := relative_error(got, expected)) > worst:
                worst, where = error, f"stage {stage}, {name}"
    return {**result, "bit_equal": equal, "max_relative_error": worst, "within": bound, "worst": where}
