# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of the pipeline that the design counts. What they share out (ZeRO) decides what joins the copies of a stage.

    0  nothing: its gradients are summed behind its last backward
    1  the optimizer's state: besides, each copy updates some of the parameters and sends them to the others
    2  gradients too: fully_shard, and parameters are gathered after the update
    3  parameters too: fully_shard, and PyTorch's runtime gathers and frees them where the order says

Sums are sums, and the mean over all microbatches is taken afterwards. Every gather and sum is recorded with its stage; the
program knows by their order which task of the design each one is.
"""

import time

from .errors import Refused
from .replicas import Replicas


class CountedCopies(Replicas):
    wrapped = False

    def __init__(self, torch, dist, job, *place):
        super().__init__(torch, dist, job, *place)
        self.level, self.divisor = job["zero"], self.count
        self.frees_gradients = self.level >= 2  # in the step a share lies in the whole sum
        self._sums = []

    def join(self, source, modules, recorder):
        self._recorder, self._modules = recorder, modules
        if self.level >= 2:
            for stage, module in modules.items():
                self._shard(stage, module)
        return modules

    def _shard(self, stage, module):
        from torch.distributed.fsdp import fully_shard

        fully_shard(module, mesh=self.mesh, reshard_after_forward=False)
        if not hasattr(module, "finalize_backward"):
            raise Refused("torch", f"version {self._torch.__version__} sums gradients of sharded stages at a time of its own",
                          "use PyTorch 2.15 or later, or a design with --zero 1")
        # An average of PyTorch's own is another operation, which gloo lacks and whose factor depends on the type.
        module.set_gradient_divide_factor(1)
        module.set_force_sum_reduction_for_comms(True)
        gather, scatter = recorded_collectives(self._recorder, stage, self._settle)
        module.set_custom_all_gather(gather)
        module.set_custom_reduce_scatter(scatter)

    def _settle(self, work):
        """gloo's threads let go of a buffer a moment after the wait for it, and PyTorch's profiler does not see what they
        free: while memory is watched, this thread is the last to hold it."""
        if self.watched:
            if work is not None:
                work.wait()
            time.sleep(0.02)

    def watch(self, stage):
        """`stage`: the PipelineStage. Where gradients stay whole, REDUCE_GRAD sums them."""
        if self.level < 2:
            stage.perform_reduce_grad = lambda _: self._sum(stage.stage_index)

    def _sum(self, stage):
        gradients = []
        for parameter in self._modules[stage].parameters():
            if not parameter.requires_grad:
                continue
            if parameter.grad is None:  # here, and perhaps not in the other copies
                parameter.grad = self._torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        begun = self._recorder.collective_begins("sum", stage, sum(each.nbytes for each in gradients))
        works = [self._dist.all_reduce(each, group=self.mesh.get_group(), async_op=True) for each in gradients]
        self._recorder.collective_ends(begun, *works)
        self._sums += works

    def finish_sums(self):
        for work in self._sums:
            work.wait()
        self._sums = []

    def optimizer(self, source, parameters):
        return SharedUpdate(self._dist, parameters, source.optimizer, self.mesh, self.number) if self.level == 1 \
            else source.optimizer(parameters)

    def updated(self, stage, optimizer):
        """After a stage's update: the others get what this copy has updated."""
        if self.level == 1:
            begun = self._recorder.collective_begins("gather", stage, optimizer.nbytes)
            optimizer.gather()
            self._recorder.collective_ends(begun)
        elif self.level == 2:
            self._modules[stage].zero_grad()  # of the shards, which the gathered parameters hide
            self._modules[stage].unshard()


class SharedUpdate:
    """An optimizer of which each copy has a part: whole parameters, the largest first to the copy with the least. (PyTorch's
    ZeroRedundancyOptimizer takes a class and one group of parameters; this takes the user's function.)"""

    def __init__(self, dist, parameters, make, mesh, number):
        self._dist, self._group = dist, mesh.get_group()
        held, self._owners = [0] * mesh.size(), []
        for parameter in sorted(parameters, key=lambda each: -each.numel()):
            owner = held.index(min(held))
            held[owner] += parameter.nbytes
            self._owners.append((parameter, owner))
        mine = [parameter for parameter, owner in self._owners if owner == number]
        self._own = make(mine) if mine else None
        self.nbytes = sum(held)

    @property
    def state(self):
        return self._own.state if self._own else {}

    def step(self):
        if self._own:
            self._own.step()

    def gather(self):
        for work in [self._dist.broadcast(parameter.detach(), group_src=owner, group=self._group, async_op=True)
                     for parameter, owner in self._owners]:
            work.wait()


def recorded_collectives(recorder, stage, settle):
    """The gather and the reduce-scatter of a stage that fully_shard made, as PyTorch runs them. `settle`: to be called
    with each, or with None where it is done."""
    from torch.distributed.fsdp._fully_shard import _fsdp_collectives as defaults

    class Gather(defaults.DefaultAllGather):
        def __call__(self, output_tensor, *arguments, **named):
            begun = recorder.collective_begins("gather", stage, output_tensor.nbytes)
            work = super().__call__(output_tensor, *arguments, **named)
            recorder.collective_ends(begun, *([work] if work else []))
            settle(work)
            return work

    class Scatter(defaults.DefaultReduceScatter):
        def __call__(self, output_tensor, input_tensor, *arguments, **named):
            begun = recorder.collective_begins("sum", stage, input_tensor.nbytes)
            work = super().__call__(output_tensor, input_tensor, *arguments, **named)
            recorder.collective_ends(begun, *([work] if work else []))
            settle(work)
            return work

    return Gather(), Scatter()
