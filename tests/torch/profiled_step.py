#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the package makes of the profiler's events, with events made up here; needs no PyTorch.

    profiled_step.py

Of nested operators the working ones are kept, clocks are joined by marks, and on a GPU kernels, copies and sets go to the
block whose call launched them.
"""

import contextlib
import os
import sys
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "executor", "torch"))
from pipewright import activities  # noqa: E402


class Event:
    def __init__(self, name, start, end, thread=1, gpu=None, stream=0, correlation=0, size=-1, kind="cpu_op", is_async=False):
        self._of = name, start, end, thread, gpu, stream, correlation, size, kind, is_async

    name, start_ns, end_ns, start_thread_id = (lambda self, i=i: self._of[i] for i in range(4))
    device_resource_id, correlation_id, nbytes, activity_type, is_async = (lambda self, i=i: self._of[i] for i in range(5, 10))

    def duration_ns(self):
        return self._of[2] - self._of[1]

    def device_type(self):
        return "cpu" if self._of[4] is None else "cuda"

    def device_index(self):
        return self._of[4] or 0


class Profile:
    """In the place of torch.profiler: its clock is 1,000,000,000 ahead of the host's."""

    ProfilerActivity = types.SimpleNamespace(CPU=0, CUDA=1)

    def profile(self, activities):
        return types.SimpleNamespace(__enter__=lambda: None, __exit__=lambda *what: None)

    def record_function(self, name):
        return contextlib.nullcontext()


AHEAD = 1_000_000_000


def profile_of(kind, offset=0):
    torch = types.SimpleNamespace(profiler=Profile(), autograd=types.SimpleNamespace(DeviceType=types.SimpleNamespace(CUDA="cuda")))
    said = []
    made = activities.StepProfile(torch, types.SimpleNamespace(type=kind), types.SimpleNamespace(line=lambda **content: said.append(content)),
                                  offset)
    made._marks = [(100, 104), (200, 300)]
    made._blocks = [[1000, 2000, ["F", 0, 0]], [3000, 4000, ["B", 0, 0]]]
    return made, said


def marks():
    return [Event(activities.CLOCK, AHEAD + 102, AHEAD + 103), Event(activities.CLOCK, AHEAD + 290, AHEAD + 291)]


def working_operators():
    linear = Event("aten::linear", 0, 100)
    mm, view = Event("aten::addmm", 10, 95), Event("aten::view", 2, 8)
    copy = Event("aten::copy_", 12, 20)  # within addmm, which does the rest itself
    annotation, gelu = Event("mine", 200, 300, kind="user_annotation"), Event("aten::gelu", 210, 220)
    kept = activities.working([gelu, mm, linear, copy, annotation, view])
    assert [each.name() for each in kept] == ["aten::view", "aten::addmm", "aten::gelu"], kept


def sends_that_outlive_their_call():
    """A call to send that was held up, and sends that begin in a call and end amid later operators."""
    some = [Event("c10d::send", 0, 5), Event("gloo:send", 2, 40, is_async=True, kind="user_annotation"),
            Event("c10d::send", 30, 60), Event("gloo:send", 33, 45, is_async=True, kind="user_annotation"),
            Event("gloo:send", 34, 400, is_async=True), *(Event("aten::mm", at, at + 10) for at in range(100, 300, 10))]
    kept = [each.name() for each in activities.working(some)]
    assert kept.count("aten::mm") == 20 and "gloo:send" not in kept, kept


def operators_of_a_cpu():
    made, _ = profile_of("cpu", offset=7)
    read = made.read(marks() + [Event("aten::mm", AHEAD + 1500, AHEAD + 1600), Event("aten::mm", AHEAD + 2500, AHEAD + 2600),
                                Event("aten::add", AHEAD + 3000, AHEAD + 4600), Event("gloo:send", AHEAD + 3100, AHEAD + 3200, thread=9)])
    rows = [[read["names"][row[1]], read["blocks"][row[2]] if row[2] >= 0 else None, row[3], row[4] - row[3], row[6]]
            for row in read["activities"]]
    # The narrower mark decides; its middle is the profiler's moment.
    assert rows == [["aten::mm", ["F", 0, 0], 1507, 100, 0], ["aten::mm", None, 2507, 100, 0],
                    ["aten::add", ["B", 0, 0], 3007, 1600, 0], ["gloo:send", None, 3107, 100, 9]], rows
    assert {row[0] for row in read["activities"]} == {"operator"}


def kernels_of_a_gpu():
    made, _ = profile_of("cuda")
    read = made.read(marks() + [
        Event("cudaLaunchKernel", AHEAD + 1100, AHEAD + 1110, correlation=5),
        Event("gemm", AHEAD + 2500, AHEAD + 2900, gpu=1, stream=7, correlation=5),
        Event("cuLaunchKernelEx", AHEAD + 3100, AHEAD + 3110, thread=4, correlation=6),
        Event("layer_norm", AHEAD + 3200, AHEAD + 3300, gpu=1, stream=7, correlation=6),
        Event("cudaMemcpyAsync", AHEAD + 2100, AHEAD + 2110, correlation=8),
        Event("Memcpy HtoD", AHEAD + 2200, AHEAD + 2300, gpu=1, stream=9, correlation=8, size=64),
        Event("cudaDeviceSynchronize", AHEAD + 3900, AHEAD + 3990, correlation=9),
        Event("mine", AHEAD + 2500, AHEAD + 3300, gpu=1, kind="gpu_user_annotation"),
        Event("aten::mm", AHEAD + 1090, AHEAD + 1120, correlation=5)])
    rows = {(row[0], read["names"][row[1]]): row for row in read["activities"]}
    block = lambda row: read["blocks"][row[2]] if row[2] >= 0 else None
    assert set(rows) == {("kernel", "gemm"), ("kernel", "layer_norm"), ("copy", "Memcpy HtoD"), ("call", "cudaLaunchKernel"),
                         ("call", "cuLaunchKernelEx"), ("call", "cudaMemcpyAsync")}, rows
    gemm = rows["kernel", "gemm"]
    assert block(gemm) == ["F", 0, 0] and gemm[3:] == [2500, 2900, 1, 7, 5, -1], gemm  # launched there, though it ran later
    assert block(rows["kernel", "layer_norm"]) == ["B", 0, 0]
    assert block(rows["copy", "Memcpy HtoD"]) is None and rows["copy", "Memcpy HtoD"][8] == 64
    assert rows["call", "cuLaunchKernelEx"][6] == 4


def what_it_costs():
    made, said = profile_of("cpu")
    made.step_took(100, profiled=True)
    made.cost()
    assert said == []  # nothing to compare with
    for time, profiled in ((90, False), (80, False), (120, True), (140, True)):
        made.step_took(time, profiled)
    made.cost()
    assert said == [{"step_with_profiler": 120, "step_without_profiler": 85}], said


if __name__ == "__main__":
    working_operators()
    sends_that_outlive_their_call()
    operators_of_a_cpu()
    kernels_of_a_gpu()
    what_it_costs()
    print("tests/torch: what the profiler sees goes to the blocks that it is of")
