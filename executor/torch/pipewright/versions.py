# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of a stage's weights, and weights predicted from them, for schedules that update amid the step.

Version v of a stage has had v updates of this step. A block reads a version as it is, or predicted s updates on:

    SGD        w - s lr v                       v the momentum (SpecTrain, arXiv 1809.02839)
    Adam, AdamW  w - s lr m^ / (sqrt(v^) + eps)   both moments corrected, without decay (XPipe, arXiv 1911.04610; PipeOptim,
    RMSprop    w - s lr g / (sqrt(q) + eps)     g the last gradient, q its mean square     arXiv 2312.00839)

Before a stage's first update there is no direction, and the weights stay. `stages.py` builds the modules; what they compute
with is set before every block, so that a backward may read other weights than its forward did.
"""

import torch

from .errors import Refused
from .shared import parameter_of

KINDS = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop"}


def check_optimizer(optimizer, wanted, place):
    """The module's optimizer must be the one that the design's weight policy assumes for prediction."""
    if wanted is None:  # without prediction any optimizer will do
        return
    name = type(optimizer).__name__
    if name != KINDS[wanted]:
        raise Refused(place, f"the optimizer is {name}, and the design's weight policy follows {KINDS[wanted]}",
                      f"return a torch.optim.{KINDS[wanted]}, or make the design with --optimizer")
    for group in optimizer.param_groups:
        odd = [key for key in ("nesterov", "amsgrad", "centered", "maximize") if group.get(key)]
        if name == "RMSprop" and group.get("momentum"):
            odd.append("momentum")
        if odd:
            raise Refused(place, f"the optimizer's {odd[0]} has no published prediction", "leave it out")


def predicted(optimizer, gradients, steps):
    """The optimizer's parameters `steps` updates later. `gradients`: those of the last update."""
    result = []
    for group in optimizer.param_groups:
        rate = float(group["lr"]) * steps
        for parameter in group["params"]:
            state, value = optimizer.state.get(parameter, {}), parameter.detach().clone()
            result.append(value)
            if not state and gradients.get(parameter) is None:
                continue
            name = type(optimizer).__name__
            if name == "SGD":
                momentum = state.get("momentum_buffer")
                value.sub_(momentum if momentum is not None else gradients[parameter], alpha=rate)
            elif name == "RMSprop":
                value.addcdiv_(gradients[parameter], state["square_avg"].sqrt().add_(group["eps"]), value=-rate)
            else:
                step = float(state["step"])
                first, second = (1 - beta**step for beta in group["betas"])
                value.addcdiv_(state["exp_avg"] / first, (state["exp_avg_sq"] / second).sqrt_().add_(group["eps"]), value=-rate)
    return result


class Copy:
    """Weights that a block may read, with their version and prediction."""

    def __init__(self, version, steps, tensors):
        self.version, self.steps, self.tensors = version, steps, tensors


class StageVersions:
    """The weights of one stage on this rank. `order`: the rank's list of blocks, from which this takes the stage's
    own."""

    def __init__(self, stage, module, source, order, optimizer, place):
        self.stage, self.module = stage, module
        self.working = [p for p in module.parameters() if p.requires_grad]
        self.newest = [torch.nn.Parameter(p.detach().clone()) for p in self.working]
        self.optimizer = source.optimizer(self.newest) if self.newest else None
        if self.optimizer is not None:
            check_optimizer(self.optimizer, optimizer, place)
        self.order = [block for block in order if block["stage"] == stage]
        self.gradients = {}  # of the last update
        self.most_copies = 1
        self.loaded = None
        self.watch = None  # gets for each prediction (target version, steps, RMSE, RMSE without predicting)
        self.begin_step()

    def begin_step(self):
        self.version = 0
        self.older, self.predictions, self.sums, self.foretold = {}, {}, {}, []
        self.reads_left, self.predicted_left = {}, {}
        for block in self.order:
            if block["op"] == "U":
                continue
            if block["steps"]:
                maker = tuple(block["made_by"])
                self.predicted_left[maker] = self.predicted_left.get(maker, 0) + 1
            else:
                self.reads_left[block["version"]] = self.reads_left.get(block["version"], 0) + 1
        self.loaded = None

    def _newest(self):
        return Copy(self.version, 0, self.newest)

    def read(self, block):
        """Sets the module's weights to those that this block reads. Returns the version and how far it is predicted."""
        if block["steps"]:
            maker = tuple(block["made_by"])
            if maker == (block["op"], block["stage"], block["microbatch"]):
                self.predictions[maker] = Copy(self.version, block["steps"],
                                               predicted(self.optimizer, self.gradients, block["steps"])
                                               if self.optimizer else [])
                if self.watch is not None:
                    self.foretold.append((self.version + block["steps"], block["steps"], self.predictions[maker],
                                          [value.detach().clone() for value in self.newest]))
            copy, left, key, held = self.predictions.get(maker), self.predicted_left, maker, self.predictions
        elif block["version"] == self.version:
            copy, left, key, held = self._newest(), self.reads_left, block["version"], {}
        else:
            copy, left, key, held = self.older.get(block["version"]), self.reads_left, block["version"], self.older
        if copy is None:
            raise Refused(f"{block['op']}{block['stage']}.{block['microbatch']}",
                          f"reads version {block['version']}, which is not kept", "this is a fault of the program")
        self.count()
        if self.loaded is not copy and not (self.loaded and copy.tensors is self.newest
                                            and self.loaded.tensors is self.newest
                                            and self.loaded.version == copy.version):
            with torch.no_grad():  # via .data, so that autograd does not compare with the forward's version
                for parameter, value in zip(self.working, copy.tensors):
                    parameter.data.copy_(value)
            self.loaded = copy
        left[key] -= 1
        if left[key] == 0:
            held.pop(key, None)
        return copy.version, copy.steps

    def count(self):
        self.most_copies = max(self.most_copies, 1 + len(self.older) + len(self.predictions))

    def add(self, update, gradients):
        """Adds a microbatch's gradients, in the order of the working parameters, to an update's sum."""
        total = self.sums.setdefault(update, [None] * len(self.working))
        for index, gradient in enumerate(gradients):
            if gradient is not None:
                total[index] = gradient.clone() if total[index] is None else total[index].add_(gradient)

    def update(self, number, batch):
        """Makes update `number` of the step, with the mean gradient of `batch` microbatches."""
        if number != self.version:
            raise Refused(f"U{self.stage}.{number}", f"comes at version {self.version}", "this is a fault of the program")
        if self.reads_left.get(self.version, 0) > 0:
            self.older[self.version] = Copy(self.version, 0, [value.detach().clone() for value in self.newest])
        total = self.sums.pop(number, [None] * len(self.working))
        self.gradients = {}
        for parameter, gradient in zip(self.newest, total):
            parameter.grad = None if gradient is None else gradient.div_(batch)
            self.gradients[parameter] = parameter.grad
        if self.optimizer is not None:
            self.optimizer.step()
        for parameter in self.newest:
            parameter.grad = None
        self.version += 1
        self.loaded = None if self.loaded is None or self.loaded.tensors is self.newest else self.loaded
        self.count()
        if self.watch is not None:
            due = [each for each in self.foretold if each[0] == self.version]
            self.foretold = [each for each in self.foretold if each[0] > self.version]
            for target, steps, copy, before in due:
                self.watch.append([self.stage, target, steps, rmse(copy.tensors, self.newest), rmse(before, self.newest)])


class Ties:
    """Parameters that several stages of one process hold, each a copy: their gradients are summed before the first of
    the stages is updated, so that the copies stay equal."""

    def __init__(self, tied):
        self._tied, self._done = tied, set()

    def sum(self, versions, update):
        """To be called before every update of a stage, when all gradients of this update are there."""
        for one in self._tied if update not in self._done else []:
            places = []
            for stage, name in one.names.items():
                working = versions[stage].working
                sums = versions[stage].sums.setdefault(update, [None] * len(working))
                parameter = parameter_of(versions[stage].module, name)
                places.append((sums, next(index for index, each in enumerate(working) if each is parameter)))
            known = [sums[index] for sums, index in places if sums[index] is not None]
            for sums, index in places:
                sums[index] = torch.stack(known).sum(0) if known else None
        self._done.add(update)


def rmse(tensors, others):
    """Root of the mean squared difference over all elements."""
    count = sum(value.numel() for value in tensors)
    with torch.no_grad():
        total = sum((a.double() - b.double()).square().sum().item() for a, b in zip(tensors, others))
    return (total / count) ** 0.5 if count else 0.0


def mean_errors(rows, stages):
    """Per stage the mean RMSE of its predicted weights, and of the weights without prediction; (None, None) without
    predictions. `rows`: as StageVersions.watch gets them."""
    result = []
    for stage in range(stages):
        of = [row[3:] for row in rows if row[0] == stage]
        result.append(tuple(sum(column) / len(of) for column in zip(*of)) if of else (None, None))
    return result
