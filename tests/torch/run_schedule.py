#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs schedule files on torch.distributed.pipelining, as they stand, with CPU processes and Gloo.

    run_schedule.py [--timeout SECONDS] [--fsdp] FORMAT=FILE…     FORMAT: compute_only or compute_comms

Every file's pipeline has a small network of its own for each stage, whose gradients and losses after one step,
and after a second one, must be those of a plain run of one microbatch after the other in this process. Files
with the same number of ranks share their processes. Exits 1 with the rank and the file when a number differs,
PyTorch refuses the file, or nothing has happened for SECONDS (a hang); the files behind that one, of the same
number of ranks, are then not run and counted as such.
"""

import argparse
import collections
import csv
import datetime
import logging
import os
import re
import socket
import sys
import time
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining import schedules as torch_schedules

WIDTH, ROWS = 6, 3  # of a stage's matrices; rows of a microbatch
TOLERANCE = 1e-11  # of float64 sums in another order
# Before there were REDUCE_GRAD cells (2.10), gradients of split backwards were left undivided.
SCALES = hasattr(torch_schedules, "REDUCE_GRAD")

Job = collections.namedtuple("Job", "file format stages rank_of microbatches")


def job_of(argument):
    format, _, file = argument.partition("=")
    if format not in ("compute_only", "compute_comms") or not file:
        raise SystemExit(f"{argument}: expected compute_only=FILE or compute_comms=FILE")
    rank_of, microbatches, ranks = {}, 0, 0
    with open(file, newline="", encoding="ascii") as lines:
        for rank, row in enumerate(csv.reader(lines)):
            ranks = rank + 1
            for stage, microbatch in re.findall(r"(\d+)F(\d+)", ",".join(row)):
                rank_of[int(stage)] = rank
                microbatches = max(microbatches, int(microbatch) + 1)
    return ranks, Job(file, format, len(rank_of), rank_of, microbatches)


def network(stage):
    """The layers of a stage: the same numbers in every process."""
    generator = torch.Generator().manual_seed(1000 + stage)
    layers = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, WIDTH))
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return layers


def batch_of(job):
    generator = torch.Generator().manual_seed(7)
    shape = (job.microbatches * ROWS, WIDTH)
    return (torch.randn(shape, generator=generator) for _ in range(2))


def loss_of(output, target):
    return torch.nn.functional.mse_loss(output, target)


def plain_run(job):
    """Losses per microbatch and gradients per stage, of the mean of the losses."""
    layers = [network(stage) for stage in range(job.stages)]
    inputs, targets = batch_of(job)
    losses = []
    for value, target in zip(inputs.chunk(job.microbatches), targets.chunk(job.microbatches)):
        for stage in layers:
            value = stage(value)
        losses.append(loss_of(value, target))
    (sum(losses) / job.microbatches).backward()
    return [loss.item() for loss in losses], [[p.grad for p in stage.parameters()] for stage in layers]


def differs(what, got, expected):
    got = got.full_tensor() if hasattr(got, "full_tensor") else got
    error = (got - expected).abs().max().item()
    if not error <= TOLERANCE * max(1.0, expected.abs().max().item()):
        raise AssertionError(f"{what} differs by {error:g}")


def run_job(job, reference, rank, fsdp):
    device = torch.device("cpu")
    mesh = None
    if fsdp:
        from torch.distributed.fsdp import fully_shard

        # Every rank shards its parameters with itself alone: what is tested are the calls, not the sharding.
        groups = [dist.new_group([r]) for r in range(dist.get_world_size())]
        mesh = dist.device_mesh.DeviceMesh.from_group(groups[rank], "cpu")
    mine = sorted(stage for stage, owner in job.rank_of.items() if owner == rank)
    layers = {stage: network(stage) for stage in mine}
    if fsdp:
        for stage in mine:
            fully_shard(layers[stage], mesh=mesh, reshard_after_forward=False)
    stages = [PipelineStage(layers[stage], stage, job.stages, device) for stage in mine]
    for stage in stages:
        # Older versions open NCCL's connections here, and Gloo has none from a rank to itself.
        stage._get_init_p2p_neighbors_ops = lambda: []
    part = 1 if SCALES else 1 / job.microbatches
    schedule = torch_schedules._PipelineScheduleRuntime(
        stages, job.microbatches, loss_fn=lambda output, target: loss_of(output, target) * part, scale_grads=SCALES
    )
    schedule._load_csv(job.file, format=job.format)
    inputs, targets = batch_of(job)
    expected_losses, expected_gradients = reference
    for _ in range(2):
        losses = []
        schedule.step(*([inputs] if 0 in mine else []), target=targets if job.stages - 1 in mine else None, losses=losses)
        for stage in mine:
            for name_and_parameter, expected in zip(layers[stage].named_parameters(), expected_gradients[stage]):
                name, parameter = name_and_parameter
                if parameter.grad is None:
                    raise AssertionError(f"stage {stage} has no gradient of {name}")
                differs(f"the gradient of stage {stage}, {name},", parameter.grad, expected)
                parameter.grad = None
        if job.stages - 1 in mine:
            if len(losses) != job.microbatches:
                raise AssertionError(f"{len(losses)} losses for {job.microbatches} microbatches")
            differs("the loss", torch.stack([loss.detach() / part for loss in losses]), torch.tensor(expected_losses))


def worker(rank, ranks, port, jobs, references, fsdp, timeout, reports):
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    try:
        dist.init_process_group("gloo", rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=timeout))
        for number, job in enumerate(jobs):
            run_job(job, references[number], rank, fsdp)
            dist.barrier()
            reports.put((rank, number, None))
    except BaseException:
        reports.put((rank, -1, traceback.format_exc()))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_jobs(ranks, jobs, fsdp, timeout):
    """How many jobs ended well; says what went wrong with the next one."""
    references = [plain_run(job) for job in jobs]
    context = torch.multiprocessing.get_context("fork")
    reports = context.SimpleQueue()
    arguments = (ranks, free_port(), jobs, references, fsdp, timeout, reports)
    processes = [context.Process(target=worker, args=(rank, *arguments), daemon=True) for rank in range(ranks)]
    for process in processes:
        process.start()
    ended = [0] * ranks  # jobs per rank
    fault = None
    deadline = time.monotonic() + timeout
    while min(ended) < len(jobs) and fault is None:
        if not reports.empty():
            rank, number, failure = reports.get()
            if failure:
                fault = f"rank {rank}: {failure}"
            else:
                ended[rank] = number + 1
                deadline = time.monotonic() + timeout
        elif time.monotonic() > deadline:
            fault = f"hangs: nothing for {timeout} s, ranks {[r for r in range(ranks) if ended[r] == min(ended)]} have not ended"
        elif all(not process.is_alive() for process in processes) and reports.empty():
            fault = "all processes are gone"
        else:
            time.sleep(0.005)
    for process in processes:
        process.kill()
        process.join()
    if fault is not None:
        job = jobs[min(ended)]
        print(f"FAILED {job.format} {job.file} ({job.stages} stages, {ranks} ranks, {job.microbatches} microbatches): {fault}", file=sys.stderr)
    return min(ended)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--fsdp", action="store_true", help="shard the parameters of every stage (with its own rank alone)")
    parser.add_argument("jobs", nargs="+")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)  # of the buffers that older versions receive into, too
    by_ranks = collections.defaultdict(list)
    for argument in options.jobs:
        ranks, job = job_of(argument)
        by_ranks[ranks].append(job)
    good = 0
    for ranks, jobs in sorted(by_ranks.items()):
        good += run_jobs(ranks, jobs, options.fsdp, options.timeout)
    failed = good < len(options.jobs)
    print(f"{good} of {len(options.jobs)} schedules ran on PyTorch {torch.__version__} with the gradients of a plain run"
          f"{' (sharded)' if options.fsdp else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
