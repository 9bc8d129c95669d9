#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a model whose layers sleep on torch.distributed.pipelining, and says how long the steps took.

    sleeping_layers.py [options] NAME=SCHEDULE…     a CSV file with communication, Schedule1F1B or ScheduleGPipe

A process per rank, joined by Gloo. Every layer sleeps in its forward, in the gradient of its input and in that of its
weight, so a step takes much the same on a loaded machine, and the same where the system grants real-time priority.
What torch does beside (autograd, queues, transfers) is real.
Prints a JSON object with the length of every step by NAME: from the first rank's start to the last rank's end, behind
a barrier. `--record FOLDER` also records the steps with torch.profiler as it is, to FOLDER/NAME/rank0.json and on.
"""

import argparse
import csv
import datetime
import json
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

WIDTH, ROWS = 16, 2  # of what stages hand on; rows of a microbatch


class Sleep(torch.autograd.Function):
    """Hands its input on; sleeps in both directions."""

    @staticmethod
    def forward(context, value, forward, backward):
        context.seconds = backward
        time.sleep(forward)
        return value.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep(context.seconds)
        return gradient, None, None


class Layer(torch.nn.Module):
    """Sums its input and its weight, so that either gradient can be had without the other."""

    def __init__(self, times, first):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(WIDTH))
        # As with a real embedding, the first layer's input needs a gradient though no stage waits for it.
        self.embedding = torch.nn.Parameter(torch.zeros(WIDTH)) if first else None
        self.times = times

    def forward(self, value):
        forward, input_gradient, weight_gradient = self.times
        if self.embedding is not None:
            value = value + self.embedding
        return Sleep.apply(value, forward, input_gradient) + Sleep.apply(self.weight, 0, weight_gradient)


def stages_of(schedule, ranks):
    """The rank of every stage."""
    if schedule.startswith("Schedule"):
        return {rank: rank for rank in range(ranks)}
    rank_of = {}
    with open(schedule, newline="", encoding="ascii") as lines:
        for rank, row in enumerate(csv.reader(lines)):
            for stage in re.findall(r"(\d+)F\d+", ",".join(row)):
                rank_of[int(stage)] = rank
    return rank_of


def loss_of(output, target):
    return torch.nn.functional.mse_loss(output, target)


def run(name, schedule, options, rank):
    rank_of = stages_of(schedule, options.ranks)
    stages, device = len(rank_of), torch.device("cpu")
    each = options.layers // stages
    if each * stages != options.layers:
        raise ValueError(f"{options.layers} layers are not even over {stages} stages")
    mine = []
    for stage in sorted(stage for stage, owner in rank_of.items() if owner == rank):
        layers = [Layer(options.times, stage == 0 and index == 0) for index in range(each)]
        mine.append(PipelineStage(torch.nn.Sequential(*layers), stage, stages, device))
        mine[-1]._get_init_p2p_neighbors_ops = lambda: []  # Gloo connects by itself
    if schedule.startswith("Schedule"):
        pipeline = getattr(torch_schedules, schedule)(mine[0], options.microbatches, loss_fn=loss_of)
    else:
        pipeline = torch_schedules._PipelineScheduleRuntime(mine, options.microbatches, loss_fn=loss_of)
        pipeline._load_csv(schedule, format="compute_comms")
    batch = torch.ones(options.microbatches * ROWS, WIDTH)

    def step():
        dist.barrier()
        begin = time.monotonic_ns()
        pipeline.step(*([batch] if rank_of[0] == rank else []), target=batch if rank_of[stages - 1] == rank else None)
        return begin, time.monotonic_ns()

    step()  # PyTorch asks for shapes and connects in the first one
    if options.record is None:
        return [step() for _ in range(options.steps)]
    folder = os.path.join(options.record, name)
    os.makedirs(folder, exist_ok=True)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=options.steps),
        on_trace_ready=lambda profile: profile.export_chrome_trace(os.path.join(folder, f"rank{rank}.json")),
    ) as profile:
        times = []
        for _ in range(options.steps + 1):
            times.append(step())
            profile.step()
    return times[1:]


def take_priority():
    """Where the system allows it, a process that wakes runs at once, whatever else is running. Sleepers hardly run."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return True
    except (AttributeError, OSError):
        return False


def worker(rank, port, options, reports):
    take_priority()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    try:
        dist.init_process_group("gloo", rank=rank, world_size=options.ranks, timeout=datetime.timedelta(seconds=60))
        for name, schedule in options.schedules:
            reports.put((rank, name, run(name, schedule, options, rank)))
            dist.barrier()
    except BaseException:
        reports.put((rank, None, traceback.format_exc()))


def measure(options):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = torch.multiprocessing.get_context("fork")
    reports = context.Queue()
    processes = []
    for rank in range(options.ranks):
        processes.append(context.Process(target=worker, args=(rank, port, options, reports), daemon=True))
    for process in processes:
        process.start()
    times = {name: {} for name, _ in options.schedules}
    for _ in range(options.ranks * len(options.schedules)):
        rank, name, result = reports.get(timeout=600)
        if name is None:
            raise SystemExit(f"rank {rank}: {result}")
        times[name][rank] = result
    for process in processes:
        process.join(timeout=60)
    return {
        name: [max(end for _, end in step) - min(begin for begin, _ in step) for step in zip(*of_rank.values())]
        for name, of_rank in times.items()
    }


def argument_parser(description):
    """The options that say what is trained; scripts that use this module add their own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--times", default="30,36,24", help="ms of a layer: forward, input and weight gradient")
    return parser


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--record", metavar="FOLDER")
    parser.add_argument("schedules", nargs="+", metavar="NAME=SCHEDULE")
    options = parser.parse_args()
    options.times = [float(part) / 1000 for part in options.times.split(",")]
    options.schedules = [tuple(argument.split("=", 1)) for argument in options.schedules]
    json.dump(measure(options), sys.stdout)
    print()


if __name__ == "__main__":
    main()
