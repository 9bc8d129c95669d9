# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of the pipeline, joined by the user's own replicate(module, mesh): DistributedDataParallel, fully_shard.

Rank r is device r % devices of copy r // devices. Every copy runs the design on rows of its own. The collectives
between a device's copies are recorded, with the block in which each began.
"""

import functools
import re

from .errors import Refused

COLLECTIVES = ("all_reduce", "all_gather_into_tensor", "all_gather_single", "reduce_scatter_tensor",
               "reduce_scatter_single", "broadcast")


class OneCopy:
    """A pipeline without copies: what others do with theirs, done with none."""

    count, number, pipeline = 1, 0, None
    divisor = 1  # of gradients, once they are summed over the copies
    wrapped = False  # by a function of the user's, which decides what is held and when
    frees_gradients = False  # after the update
    watched = False  # in the step whose memory is

    def join(self, source, modules, recorder):
        return modules

    def watch(self, stage):
        """`stage`: a PipelineStage of this rank."""

    def finish_sums(self):
        """Waits until the gradients of this rank are summed over the copies."""

    def optimizer(self, source, parameters):
        return source.optimizer(parameters)

    def updated(self, stage, optimizer):
        """After a stage's update."""


class Replicas(OneCopy):
    wrapped = frees_gradients = True

    def __init__(self, torch, dist, job, rank, device, backend, timeout):
        """Called by all ranks at once, since all ranks must make all groups."""
        from torch.distributed.device_mesh import DeviceMesh

        self._torch, self._dist = torch, dist
        devices, self.count = job["ranks"], job["replicas"]
        self._split = any(re.search(r"\dW\d", order) for order in job["orders"].values())
        self.device, self.number = rank % devices, rank // devices
        self.pipeline = None
        for copy in range(self.count):
            group = dist.new_group(list(range(copy * devices, (copy + 1) * devices)), backend=backend, timeout=timeout)
            if copy == self.number:
                self.pipeline = group
        for index in range(devices):
            group = dist.new_group([copy * devices + index for copy in range(self.count)], backend=backend, timeout=timeout)
            if index == self.device:
                self.mesh = DeviceMesh.from_group(group, device.type)

    def join(self, source, modules, recorder):
        """The stages as the user wraps them; their collectives are recorded."""
        self._watch(recorder)
        return {stage: self._joined(source.replicate(module, self.mesh), recorder) for stage, module in modules.items()}

    def _joined(self, module, recorder):
        torch = self._torch
        if not isinstance(module, torch.nn.Module):
            raise Refused("replicate", f"returns a {type(module).__name__}",
                          "return the module that DistributedDataParallel or fully_shard makes")
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            if self._split:
                raise Refused("replicate", "DistributedDataParallel sums no gradients of backwards in two halves",
                              "use fully_shard, or a family with full backwards, such as 1f1b")
            from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

            def hook(group, bucket):
                seen = recorder.exchange_begins("all_reduce over replicas")
                future = allreduce_hook(group, bucket)
                size = bucket.buffer().nbytes
                return future.then(lambda done: (recorder.exchange_ends(seen, size), done.value())[1])

            module.register_comm_hook(module.process_group, hook)
            # The pipeline enables this for the last backward; a forward that only finds out shapes must not sum gradients.
            module.require_backward_grad_sync = False
        return module

    def _watch(self, recorder):
        """Records the calls of torch.distributed's functions; those of DistributedDataParallel are recorded by its
        hook."""
        ours = self.mesh.get_group()
        for name in COLLECTIVES:
            original = getattr(self._dist, name, None)
            if original is None:
                continue

            @functools.wraps(original)
            def recorded(*arguments, original=original, name=name, **named):
                if named.get("group") is not ours:
                    return original(*arguments, **named)
                seen = recorder.exchange_begins(name + " over replicas")
                work = original(*arguments, **named)
                size = max((value.nbytes for value in (*arguments, *named.values()) if isinstance(value, self._torch.Tensor)),
                           default=0)
                if work is None:
                    recorder.exchange_ends(seen, size)
                else:
                    work.get_future().then(lambda _: recorder.exchange_ends(seen, size))
                return work

            setattr(self._dist, name, recorded)


def plain_name(name):
    """The name of a parameter, without the prefix that wrappers add."""
    return name.removeprefix("module.")


def local(tensor):
    """The part of a sharded tensor that is here."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def whole(tensor):
    """A sharded tensor put together; all of its ranks must call this at once."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
