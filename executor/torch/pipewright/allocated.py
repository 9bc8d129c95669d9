# SPDX-License-Identifier: GPL-3.0-or-later
"""What PyTorch's allocators have given out: on GPUs they count, on CPUs they tell every allocation to PyTorch's profiler.

The profiler slows a step down. So a step that is not timed is watched; as all steps of a schedule allocate alike, what was
seen at a block's end holds for that block in the others.
"""

import contextlib
import os
from typing import NamedTuple

# The profiler's own messages, about GPUs that it does not find among others, are no part of a run. Read at its first use.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

PREFIX = "pipewright "


class Stretch(NamedTuple):
    """Bytes allocated when it began, the most amid it, and when it ended. Of a host: over those of the first stretch."""

    before: int
    peak: int
    after: int


class HostMeter:
    """Stretches of one thread's work and what was allocated in them, of whatever runs in `with meter:`."""

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
    """The same of a GPU, whose allocator counts."""

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
    """Of a rank on a CPU: what the blocks of its step leave allocated."""

    def __init__(self, torch):
        self._torch, self._meter = torch, HostMeter(torch)
        self._after, self._last, self._peak, self._kept, self._known = {}, 0, 0, 0, False

    @contextlib.contextmanager
    def watching(self):
        """Around the step that is watched."""
        with self._meter:
            yield
        seen, self._peak = self._meter.read()
        self._after = {name: stretch.after for name, stretch in seen.items()}
        self._last = list(self._after.values())[-1] if seen else 0
        self._known = True

    def block(self, op, stage, microbatch):
        """Around a block; does something in the step that is watched."""
        return self._meter.stretch(f"{op}{stage}.{microbatch}") if self._meter.on else contextlib.nullcontext()

    def begin(self):
        """From here on is counted: the step has its rows, and no block has begun."""
        if self._meter.on:
            with self._meter.stretch("begin"):
                pass

    def count(self, modules, optimizers):
        """What stays from step to step: parameters, their gradients, buffers, and what optimizers keep."""
        kept = [value for optimizer in optimizers for state in optimizer.state.values() for value in state.values()]
        for module in modules:
            kept += [*module.buffers(), *module.parameters(), *(parameter.grad for parameter in module.parameters())]
        storages = [tensor.untyped_storage() for tensor in kept if isinstance(tensor, self._torch.Tensor)]
        self._kept = sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    def after(self, block):
        """Bytes allocated at the end of a block, or of an update; without one, at the step's beginning. None where nothing
        was watched."""
        if not self._known:
            return None
        return self._kept + (self._after.get("{}{}.{}".format(*block), self._last) if block else 0)

    def peak(self):
        return self._kept + self._peak if self._known else None
