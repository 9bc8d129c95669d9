# SPDX-License-Identifier: GPL-3.0-or-later
"""resources/examples/megatron_nvtx.py names what runs, on a stand-in for the two functions of Megatron that it wraps.

    tests/torch/megatron_ranges.py PATCH
"""

import contextlib
import importlib.util
import sys
import types


class Output:
    pass


def module(name, **content):
    made = types.ModuleType(name)
    made.__dict__.update(content)
    sys.modules[name] = made
    return made


opened = []


@contextlib.contextmanager
def named_range(name):
    opened.append(name)
    yield
    opened.append("end " + name)


def stand_in(rank, ranks, virtual_rank):
    def forward_step(forward_step_func, data_iterator, model, num_microbatches, config, collect_non_loss_data=False,
                     current_microbatch=None, vp_stage=None):
        opened.append("forward")
        output = Output()
        return ([output] if model == "listed" else output), 7

    def backward_step(input_tensor, output_tensor, output_tensor_grad, config):
        opened.append("backward")
        return "gradient"

    schedules = module("megatron.core.pipeline_parallel.schedules", forward_step=forward_step,
                       backward_step=backward_step)
    state = module("megatron.core.parallel_state", get_pipeline_model_parallel_rank=lambda: rank,
                   get_pipeline_model_parallel_world_size=lambda: ranks,
                   get_virtual_pipeline_model_parallel_rank=lambda: virtual_rank)
    module("megatron")
    module("megatron.core", parallel_state=state)
    module("megatron.core.pipeline_parallel", schedules=schedules)
    module("torch", cuda=types.SimpleNamespace(nvtx=types.SimpleNamespace(range=named_range)))
    return schedules


def load(path):
    spec = importlib.util.spec_from_file_location("megatron_nvtx", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def names(steps):
    opened.clear()
    outputs = {}
    for step in steps:
        schedules, kind, microbatch, more = step
        if kind == "F":
            outputs[microbatch, more.get("vp_stage")], seven = schedules.forward_step(
                None, None, more.get("model"), 4, None, current_microbatch=microbatch, **{
                    key: value for key, value in more.items() if key != "model"})
            assert seven == 7
        else:
            assert schedules.backward_step(None, outputs[microbatch, more.get("vp_stage")], None, None) == "gradient"
    assert len(opened) == 3 * len(steps)
    for i in range(0, len(opened), 3):  # what ran lies inside its range
        assert opened[i + 1] in ("forward", "backward") and opened[i + 2] == "end " + opened[i], opened
    return opened[::3]


def check(found, expected):
    assert found == expected, f"{found}, and not {expected}"


patch = sys.argv[1]
plain = stand_in(1, 2, None)
load(patch)
check(names([(plain, "F", 0, {}), (plain, "F", 1, {"model": "listed"}), (plain, "B", 0, {}), (plain, "B", 1, {})]),
      ["F1.0", "F1.1", "B1.0", "B1.1"])

# Chunks: the stage counts round by round; backwards of the last chunk come first, and name what they are of.
interleaved = stand_in(1, 2, None)
load(patch)
check(names([(interleaved, "F", 0, {"vp_stage": 0}), (interleaved, "F", 0, {"vp_stage": 1}),
             (interleaved, "B", 0, {"vp_stage": 1}), (interleaved, "B", 0, {"vp_stage": 0})]),
      ["F1.0", "F3.0", "B3.0", "B1.0"])

# Releases whose forward_step is not told the chunk keep it in parallel_state.
older = stand_in(0, 2, 1)
load(patch)
check(names([(older, "F", 3, {}), (older, "B", 3, {})]), ["F2.3", "B2.3"])
print("ranges are named")
