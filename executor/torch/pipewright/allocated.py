# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory that PyTorch's allocators have given out. On GPUs the allocator counts; on CPUs it reports every allocation to
PyTorch's profiler.

The profiler slows a step down, so one step that is not timed is watched. All steps of a schedule allocate alike, so the
value seen at a block's end holds for that block in the other steps.
"""

import contextlib
import os
from typing import NamedTuple

from .replicas import local

# Hides the profiler's own messages, such as those about missing GPUs. It reads this at its first use.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

PREFIX = "pipewright "


class Stretch(NamedTuple):
    """Bytes allocated at its begin, at its peak, and at its end. On a host relative to the begin of the first
    stretch."""

    before: int
    peak: int
    after: int


class HostMeter:
    """Measures named stretches of one thread's work within `with meter:`, and what was allocated in them."""

    def __init__(self, torch):
        self._torch, self.on = torch, False

    def __enter__(self):
        self._profile = self._torch.profiler.profile(activities=[self._torch.profiler.ProfilerActivity.CPU],
                                                     profile_memory=True)
        self._profile.__enter__()
        self.on = True
        return self

    def __exit__(self, *what):
        self.on = False
        self._profile.__exit__(*what)

    def stretch(self, name):
        return self._torch.profiler.record_function(PREFIX + name)

    def read(self):
        """{name: Stretch}, in order, and the most that was allocated since the first one began."""
        events = self._profile.profiler.kineto_results.events()
        del self._profile
        changes = sorted(((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"),
                         key=lambda change: change[0])
        ours = sorted(((event.start_ns(), event.end_ns(), event.name()[len(PREFIX):]) for event in events
                       if event.name().startswith(PREFIX)))
        begin, now, most, at, result = ours[0][0] if ours else 0, 0, 0, 0, {}
        while at < len(changes) and changes[at][0] < begin:
            at += 1

        def until(moment):
            nonlocal at, now, most
            peak = now
            while at < len(changes) and changes[at][0] <= moment:
                now += changes[at][1]
                peak = max(peak, now)
                at += 1
            most = max(most, peak)
            return peak

        for start, end, name in ours:
            until(start)
            before = now
            peak = until(end)
            result[name] = Stretch(before, peak, now)
        until(float("inf"))
        return result, most


class DeviceMeter:
    """The same for a GPU, whose allocator counts."""

    def __init__(self, torch):
        self._cuda, self._seen = torch.cuda, {}

    def __enter__(self):
        return self

    def __exit__(self, *what):
        pass

    @contextlib.contextmanager
    def stretch(self, name):
        self._cuda.reset_peak_memory_stats()
        before = self._cuda.memory_allocated()
        yield
        self._seen[name] = Stretch(before, self._cuda.max_memory_allocated(), self._cuda.memory_allocated())

    def read(self):
        return self._seen, max((stretch.peak for stretch in self._seen.values()), default=0)


class StepMemory:
    """For a rank on a CPU: how much is allocated after each block of its step."""

    def __init__(self, torch):
        self._torch, self._meter = torch, HostMeter(torch)
        self._after, self._last, self._peak, self._kept, self._known = {}, 0, 0, 0, False

    @contextlib.contextmanager
    def watching(self):
        """To be put around the step that is watched."""
        with self._meter:
            yield
        seen, self._peak = self._meter.read()
        self._after = {name: stretch.after for name, stretch in seen.items()}
        self._last = list(self._after.values())[-1] if seen else 0
        self._known = True

    def block(self, op, stage, microbatch):
        """To be put around every block; has an effect only in the watched step."""
        return self._meter.stretch(f"{op}{stage}.{microbatch}") if self._meter.on else contextlib.nullcontext()

    def begin(self):
        """Counting starts here: the step has its rows, and no block has begun."""
        if self._meter.on:
            with self._meter.stretch("begin"):
                pass

    def count(self, parameters, modules, optimizers):
        """Counts what stays from step to step: parameters (of what copies share out, this one's shares), their gradients,
        buffers, and the optimizers' state."""
        kept = [value for optimizer in optimizers for state in optimizer.state.values() for value in state.values()]
        kept += [*parameters, *(parameter.grad for parameter in parameters)]
        kept += [buffer for module in modules for buffer in module.buffers()]
        storages = [local(tensor).untyped_storage() for tensor in kept if isinstance(tensor, self._torch.Tensor)]
        self._kept = sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    def after(self, block):
        """Bytes allocated at the end of a block or an update; with None, at the step's beginning. None if no step was
        watched."""
        if not self._known:
            return None
        return self._kept + (self._after.get("{}{}.{}".format(*block), self._last) if block else 0)

    def peak(self):
        return self._kept + self._peak if self._known else None
