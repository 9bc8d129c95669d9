# SPDX-License-Identifier: GPL-3.0-or-later
"""Names the blocks of Megatron-LM's pipeline in a recording: `import megatron_nvtx` before training begins.

Every forward_step and backward_step of megatron.core's schedules becomes a range F<stage>.<microbatch> or
B<stage>.<microbatch>. `pipewright import` knows such ranges; of Megatron's own (--nvtx-ranges) it cannot tell which
microbatch they belong to. Not covered: schedules that combine a forward and a backward
(--overlap-moe-expert-parallel-comm), and iterations that only evaluate, which should not be recorded.
"""

import inspect

import torch
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import schedules

named_range = torch.cuda.nvtx.range  # for PyTorch's profiler: torch.profiler.record_function

_forward_step, _backward_step = schedules.forward_step, schedules.backward_step
_parameters = inspect.signature(_forward_step)
_block_of_output = {}  # by the identity of what a forward gave, until its backward


def _identity(output):
    return id(output[0] if isinstance(output, list) else output)


def forward_step(*args, **options):
    given = _parameters.bind(*args, **options).arguments
    chunk = given.get("vp_stage")
    if chunk is None:
        chunk = parallel_state.get_virtual_pipeline_model_parallel_rank() or 0
    stage = (chunk * parallel_state.get_pipeline_model_parallel_world_size()
             + parallel_state.get_pipeline_model_parallel_rank())
    block = f"{stage}.{given['current_microbatch']}"
    with named_range("F" + block):
        result = _forward_step(*args, **options)
    _block_of_output[_identity(result[0] if isinstance(result, tuple) else result)] = block
    return result


def backward_step(input_tensor, output_tensor, *args, **options):
    with named_range("B" + _block_of_output.pop(_identity(output_tensor))):
        return _backward_step(input_tensor, output_tensor, *args, **options)


schedules.forward_step, schedules.backward_step = forward_step, backward_step
