# SPDX-License-Identifier: GPL-3.0-or-later
"""What PyTorch's profiler saw in a step, each activity with its block: on a GPU kernels, copies and the calls that
launched them, on a CPU the operators.

Activities are assigned to blocks by the host's clock: an operator belongs to the block in which it began, a kernel to
the block that launched it. The profiler has a clock of its own; marks at both ends of a step, each made between two
readings of the host's clock, relate the two.
"""

import bisect
import statistics
import time

from .allocated import PREFIX

CLOCK, MARKS = PREFIX + "clock", 8
CALLS = ("cuda", "cuLaunch", "cuMem", "hip")


def working(events):
    """From nested operators, those that do the work: the outermost ones whose nested operators take less than half of
    their time. User ranges and communication ranges are left out: the latter end at any time and do not nest."""
    kept, parents = [], []  # open ones: [event, begin, end, time of nested operators, kept nested ones]

    def close(until):
        while parents and parents[-1][2] <= until:
            event, begin, end, inner, within = parents.pop()
            own = [event] if end > begin and 2 * inner < end - begin else within
            (parents[-1][4] if parents else kept).extend(own)
            if parents:
                parents[-1][3] += end - begin

    nested = (event for event in events if not is_annotation(event) and not event.is_async())
    for event in sorted(nested, key=lambda each: (each.start_ns(), -each.duration_ns())):
        begin = event.start_ns()
        close(begin)
        parents.append([event, begin, begin + event.duration_ns(), 0, []])
    close(float("inf"))
    return kept


def kind_of(event):
    kind = getattr(event, "activity_type", None)  # missing in PyTorch 2.14
    return str(kind()) if kind is not None else ""


def is_annotation(event):
    """Whether this is a range of the user's and not an operator."""
    return "annotation" in kind_of(event).lower()


class StepProfile:
    """Profiles one step after the other and sends the activities to `stream`, on rank 0's clock."""

    def __init__(self, torch, device, stream, offset):
        self._torch, self._device, self._stream, self._offset = torch, device, stream, offset
        self._blocks, self._marks = [], []
        self._with, self._without = [], []
        self.begin()
        self._profile.__exit__(None, None, None)  # the first profiler takes seconds to start

    def begin(self):
        activities = [self._torch.profiler.ProfilerActivity.CPU]
        if self._device.type == "cuda":
            activities.append(self._torch.profiler.ProfilerActivity.CUDA)
        self._profile = self._torch.profiler.profile(activities=activities)
        self._profile.__enter__()
        self._blocks, self._marks = [], []
        self._mark()

    def _mark(self):
        for _ in range(MARKS):
            before = time.monotonic_ns()
            with self._torch.profiler.record_function(CLOCK):
                after = time.monotonic_ns()
            self._marks.append((before, after))

    def block_begins(self, op, stage, microbatch):
        self._blocks.append([time.monotonic_ns(), 0, [op, stage, microbatch]])

    def block_ends(self):
        """May be called again, to include work that still belongs to the last block."""
        if self._blocks:
            self._blocks[-1][1] = time.monotonic_ns()

    def step_took(self, nanoseconds, profiled):
        (self._with if profiled else self._without).append(nanoseconds)

    def end(self, step):
        """Stops the profiler and reports what it saw in the step."""
        self._mark()
        self._profile.__exit__(None, None, None)
        events = self._profile.profiler.kineto_results.events()
        del self._profile
        content = self.read(events)
        if content["activities"]:
            self._stream.line(step=step, **content)

    def cost(self):
        """Reports how long a step took with the profiler and without it."""
        if self._with and self._without:
            self._stream.line(step_with_profiler=round(statistics.median(self._with)),
                              step_without_profiler=round(statistics.median(self._without)))

    def read(self, events):
        """{"names", "blocks", "activities"}: rows of kind, name, block (-1: none), begin, end, GPU, stream or thread,
        correlation and bytes; names and blocks by number."""
        marks = sorted((event for event in events if event.name() == CLOCK), key=lambda event: event.start_ns())
        # Each mark gives the clocks' difference within its two readings: the closest pair is the most exact.
        pairs = [(after - before, event.start_ns() - before) for event, (before, after) in zip(marks, self._marks)]
        if not pairs:
            return {"names": [], "blocks": [], "activities": []}
        width, shift = min(pairs)
        shift -= width // 2
        self._begins = [begin for begin, _, _ in self._blocks]
        names, rows = {}, []

        def add(kind, event, block, place=-1, lane=-1, correlation=0, size=-1):
            begin = event.start_ns() - shift + self._offset
            rows.append([kind, names.setdefault(event.name(), len(names)), block, begin, begin + event.duration_ns(),
                         place, lane, correlation, size])

        if self._device.type == "cuda":
            self._gpu_rows(events, shift, add)
        else:
            main = marks[0].start_thread_id()
            by_thread = {}
            for event in events:
                if event.name() != CLOCK:
                    by_thread.setdefault(event.start_thread_id(), []).append(event)
            for thread, some in by_thread.items():
                for event in working(some):
                    add("operator", event, self._block_at(event.start_ns() - shift) if thread == main else -1,
                        lane=0 if thread == main else thread)
        return {"names": list(names), "blocks": [block for _, _, block in self._blocks], "activities": rows}

    def _gpu_rows(self, events, shift, add):
        on_gpu, calls = [], {}
        for event in events:
            if event.device_type() == self._torch.autograd.DeviceType.CUDA:
                if not is_annotation(event) and event.name() != CLOCK and event.duration_ns() > 0:
                    on_gpu.append(event)
            elif event.name().startswith(CALLS) and event.correlation_id():
                calls.setdefault(event.correlation_id(), event)
        for event in on_gpu:
            call = calls.get(event.correlation_id())
            block = self._block_at(call.start_ns() - shift) if call is not None else -1
            kind = "copy" if event.name().startswith("Memcpy") else "set" if event.name().startswith("Memset") else "kernel"
            add(kind, event, block, event.device_index(), event.device_resource_id(), event.correlation_id(),
                event.nbytes() if kind != "kernel" else -1)
        wanted = {event.correlation_id() for event in on_gpu}
        for number, call in calls.items():
            if number in wanted:
                add("call", call, self._block_at(call.start_ns() - shift), lane=call.start_thread_id(), correlation=number)

    def _block_at(self, moment):
        at = bisect.bisect_right(self._begins, moment) - 1
        return at if at >= 0 and moment <= self._blocks[at][1] else -1
