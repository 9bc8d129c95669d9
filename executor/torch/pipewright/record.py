# SPDX-License-Identifier: GPL-3.0-or-later
"""Records what ran and when, as lines of JSON for the program.

On CPUs times are time.monotonic_ns(); on GPUs every border is a device event, read at the end of the step. All times
that leave this process are on rank 0's clock.
"""

import json
import math
import os
import threading
import time

REPORT_EVERY = 1  # seconds between reports within a step


def reportable(value):
    """JSON has no word for NaN and infinities: they are the texts "nan", "inf" and "-inf"."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: reportable(each) for key, each in value.items()}
    return [reportable(each) for each in value] if isinstance(value, (list, tuple)) else value


class Stream:
    """Lines to a file, or to the pipe of the process that started this one (`fd:3`)."""

    def __init__(self, place, rank):
        if place.startswith("fd:"):
            self._file = os.fdopen(int(place[3:]), "w", encoding="utf-8")
        else:
            os.makedirs(place, exist_ok=True)
            self._file = open(os.path.join(place, f"rank{rank}.jsonl"), "w", encoding="utf-8")
        self._lock = threading.Lock()

    def line(self, **content):
        with self._lock:
            self._file.write(json.dumps(reportable(content), allow_nan=False) + "\n")
            self._file.flush()


def waited_for_core():
    """Nanoseconds that this thread was ready to run while others had the processor's cores; None where the kernel does
    not count them."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None


class Clock:
    """The host's clock. `memory`, if any, knows how much is allocated."""

    def __init__(self, memory=None):
        self._memory = memory

    def begin_step(self):
        pass

    def now(self):
        return time.monotonic_ns()

    def read(self, mark):
        return mark

    def allocated(self, block):
        return self._memory.after(block) if self._memory is not None else None

    def peak(self):
        return self._memory.peak() if self._memory is not None else None


class DeviceClock:
    """A GPU's clock: marks are events on the current stream."""

    def __init__(self, torch, device):
        self._cuda, self._device = torch.cuda, device

    def begin_step(self):
        self._cuda.synchronize(self._device)
        self._base, self._base_ns = self.now(), time.monotonic_ns()

    def now(self):
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def read(self, mark):
        mark.synchronize()
        return self._base_ns + round(self._base.elapsed_time(mark) * 1e6)

    def allocated(self, block):
        return self._cuda.memory_allocated(self._device)

    def peak(self):
        return self._cuda.max_memory_allocated(self._device)


class Recorder:
    """Blocks, waits and memory of this rank, step by step."""

    def __init__(self, stream, clock, offset_ns):
        self._stream, self._clock, self._offset = stream, clock, offset_ns
        self.on = False
        self.at = ""
        self.within = None  # the block that is running
        self._forget()
        self._waited = None  # for a core, before the step

    def _forget(self):
        self._blocks, self._waits, self._memory, self._exchanges, self._collectives, self._running = [], [], [], [], [], []

    def report(self):
        """From now on regularly reports where this rank is, if that has changed; a rank that hangs reports nothing."""
        threading.Thread(target=self._report, daemon=True).start()

    def _report(self):
        told = self.at
        while True:
            time.sleep(REPORT_EVERY)
            if self.at != told:
                told = self.at
                self._stream.line(at=told)

    def begin_step(self):
        self._waited = waited_for_core()
        self._clock.begin_step()
        self._memory_now(self._clock.now(), None)

    def border(self):
        return self._clock.now()

    def block(self, op, stage, microbatch, begin):
        end = self._clock.now()
        self.at = f"the wait after {op}{stage}.{microbatch}"
        if self.on:
            self._blocks.append([op, stage, microbatch, begin, end])
            self._memory_now(end, (op, stage, microbatch))

    def extend_last(self):
        """Extends the last block to now: the loss belongs to its forward."""
        if self.on and self._blocks:
            self._blocks[-1][4] = self._clock.now()

    def wait(self, what, stage, microbatch, begin):
        if self.on:
            self._waits.append([what, stage, microbatch, begin, self._clock.now()])

    def exchange_begins(self, name):
        """Begins an exchange between ranks that is no transfer, in or between blocks."""
        return (name, self.within, self._clock.now()) if self.on else None

    def exchange_ends(self, begun, size):
        """From any thread; `begun` is what exchange_begins() returned."""
        if begun is not None:
            name, within, begin = begun
            self._exchanges.append([name, size, *(within or [None, 0, 0]), begin, self._clock.now()])

    def collective_begins(self, kind, stage, size):
        """Begins a task of the design that joins copies of a stage: kind is gather or sum."""
        if not self.on:
            return None
        self._collectives.append([kind, stage, size, self._clock.now(), None])
        return self._collectives[-1]

    def collective_ends(self, begun, *works):
        """When all works are done; now, if there are none."""
        if begun is None:
            return
        def ends(_=None):
            begun[4] = self._clock.now()
        for work in works:
            self._running.append(work.get_future().then(ends))
        if not works:
            ends()

    def _memory_now(self, mark, block):
        allocated = self._clock.allocated(block) if self.on else None
        if allocated is not None:
            self._memory.append([mark, allocated])

    def flush(self, step):
        """Sends what was recorded so far; also for a step that failed."""
        read = lambda mark: self._clock.read(mark) + self._offset
        timed = lambda rows: [[*row[:3], read(row[3]), read(row[4])] for row in rows]
        if self._blocks or self._waits or self._exchanges or self._collectives:
            self._stream.line(step=step, blocks=timed(self._blocks), waits=timed(self._waits),
                              exchanges=[[*row[:5], read(row[5]), read(row[6])] for row in self._exchanges],
                              collectives=[[*row[:3], read(row[3]), read(row[4])] for row in self._collectives if row[4]],
                              memory=[[read(mark), size] for mark, size in self._memory])
        self._forget()

    def end_step(self, step, begin, end, loss):
        for future in self._running:  # its end may be noted a moment after those who wait for it go on
            future.wait()
        waited = waited_for_core()
        busy = None if waited is None or self._waited is None else waited - self._waited
        self.flush(step)
        self._stream.line(step=step, start=begin + self._offset, end=end + self._offset, loss=loss, core_wait=busy)


def clock_offset(torch, dist, group, rank, ranks, exchanges=16):
    """The offset to add to this rank's clock to get rank 0's, and its uncertainty. Processes of one boot share the
    clock."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = None
    boots = [None] * ranks
    dist.all_gather_object(boots, boot, group=group)
    result = (0, 0)
    for other in range(1, ranks):  # one at a time, since all talk to rank 0
        if boots[other] is not None and boots[other] == boots[0]:
            continue
        value = torch.zeros(1, dtype=torch.int64)
        best = None
        for _ in range(exchanges):
            if rank == 0:
                dist.recv(value, src=other, group=group)
                value[0] = time.monotonic_ns()
                dist.send(value, dst=other, group=group)
            elif rank == other:
                sent = time.monotonic_ns()
                dist.send(value, dst=0, group=group)
                dist.recv(value, src=0, group=group)
                back = time.monotonic_ns()
                if best is None or back - sent < best[1]:
                    best = (value.item() - (sent + back) // 2, back - sent)
        if rank == other:
            result = (best[0], best[1] // 2)
    return result
