# SPDX-License-Identifier: GPL-3.0-or-later
"""Repeats the last step without a pipeline: block after block in one process, keeping every version of every stage.

Which version a block reads, and which microbatches an update takes, comes from the design. In what order ranks ran,
where copies were kept and when they were dropped plays no part here. The backward of a block differentiates the graph
of its own forward, on weights of its own.
"""

import copy

import torch

from .check import BOUNDS, COARSE
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
    inputs, targets = source.batch(job["steps"] - 1)
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
        value = None if stage == 0 else outputs.pop((stage - 1, microbatch)).detach()
        if value is not None:
            value.requires_grad_(value.dtype.is_floating_point)
        given = tuple(piece[microbatch] for piece in pieces) if stage == 0 else (value,)
        output = torch.func.functional_call(at.module, dict(zip(at.names, weights)), given)
        if stage + 1 == stages:
            output = loss(output, wanted[microbatch])
        else:
            outputs[stage, microbatch] = output
        at.graphs[microbatch] = (value, weights, output)

    def backward(stage, microbatch):
        at, block = emulated[stage], plan["B", stage, microbatch]
        value, weights, output = at.graphs.pop(microbatch)
        for weight, now in zip(weights, at.weights(block["version"], block["steps"])):
            weight.data.copy_(now)
        over = [value] if value is not None and value.requires_grad else []
        results = torch.autograd.grad(output, over + weights, allow_unused=True,
                                      grad_outputs=gradients.pop((stage, microbatch), None))
        if over:
            gradients[stage - 1, microbatch] = results[0]
        total = at.sums.setdefault(block["update"], [None] * len(weights))
        for index, gradient in enumerate(results[len(over):]):
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
    for module in runner.modules.values():
        for part in module.modules():
            if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0 and part.training:
                return {**result, "skipped": "the module draws random numbers (Dropout), in another order when emulated"}
    emulated = emulate(job, runner.source, begin, runner.device)
    worst, equal, bound, where = 0.0, True, 0.0, ""
    for stage, at in enumerate(emulated):
        for name, got, expected, before in zip(at.names, end[stage]["parameters"], at.versions[-1][0],
                                               begin[stage]["parameters"]):
            expected = expected.to("cpu")
            bound = max(bound, BOUNDS.get(got.dtype, COARSE))
            if torch.equal(got, expected):
                continue
            equal = False
            size = expected.double().norm().item()
            error = (got.double() - expected.double()).norm().item() / (size if size > 0 else 1)
            if error > worst:
                worst, where = error, f"stage {stage}, {name}"
    return {**result, "bit_equal": equal, "max_relative_error": worst, "within": bound, "worst": where}
