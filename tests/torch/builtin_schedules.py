#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes schedules as PyTorch itself writes them; needs PyTorch but no processes.

    builtin_schedules.py builtin FOLDER NAME:RANKS:STAGES_PER_RANK:MICROBATCHES…
    builtin_schedules.py lower PREFIX…

`builtin` makes schedules by the names that get_schedule_class() knows and writes FOLDER/NAME-STAGES_PER_RANK.only.csv
and .comms.csv. 1F1B and GPipe have one stage per rank and no form with communication, and PyTorch only describes
them: its description counts the forwards of 1F1B's last rank from 1, which is put right here. `lower` loads
PREFIX.only.csv and writes what PyTorch would execute to PREFIX.lowered.csv.
"""

import csv
import re
import sys

import torch
from torch.distributed.pipelining import schedules


class Stage:
    """What the constructors of schedules ask of a stage."""

    def __init__(self, index, ranks, stages):
        self.stage_index, self.group_size, self.num_stages = index, ranks, stages
        self.group_rank = 0
        self.is_first, self.is_last = index == 0, index == stages - 1
        self.submod = torch.nn.Identity()
        self.has_backward = True


def write(order, file):
    with open(file, "w", newline="", encoding="ascii") as lines:
        csv.writer(lines).writerows(order[rank] for rank in sorted(order))


def dump(schedule, file, format):
    try:
        schedule._dump_csv(file, format=format)
    except TypeError:  # before 2.10 it knows only one form
        write(schedule.pipeline_order if format == "compute_only" else schedule.pipeline_order_with_comms, file)


def builtin(folder, description):
    name, *numbers = description.split(":")
    ranks, per_rank, microbatches = map(int, numbers)
    prefix = f"{folder}/{name}-{per_rank}"
    stages = [Stage(index * ranks, ranks, ranks * per_rank) for index in range(per_rank)]
    kind = schedules.get_schedule_class(name)
    single = issubclass(kind, schedules.PipelineScheduleSingle)
    schedule = kind(stages[0] if single else stages, microbatches, loss_fn=lambda output, target: output)
    if single:
        order = schedule._get_pipeline_order()
        last = [action for action in order[ranks - 1] if action and action.is_compute_op]
        if last[0].microbatch_index == 1:
            order[ranks - 1] = [a._replace(microbatch_index=a.microbatch_index - 1) if a.computation_type == schedules.F else a for a in last]
        write(order, prefix + ".only.csv")
    else:
        dump(schedule, prefix + ".only.csv", "compute_only")
        if isinstance(schedule, schedules._PipelineScheduleRuntime):  # all of them since 2.10
            dump(schedule, prefix + ".comms.csv", "compute_comms")


def lower(prefix):
    only = prefix + ".only.csv"
    with open(only, newline="", encoding="ascii") as lines:
        rows = list(csv.reader(lines))
    forwards = re.findall(r"(\d+)F(\d+)", ",".join(",".join(row) for row in rows))
    stages = 1 + max(int(stage) for stage, _ in forwards)
    microbatches = 1 + max(int(microbatch) for _, microbatch in forwards)
    mine = [Stage(index, len(rows), stages) for index in range(stages) if any(f"{index}F0" in row for row in rows[:1])]
    schedule = schedules._PipelineScheduleRuntime(mine, microbatches, loss_fn=lambda output, target: output)
    schedule._load_csv(only, format="compute_only")
    dump(schedule, prefix + ".lowered.csv", "compute_comms")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "builtin":
        for description in arguments[1:]:
            builtin(arguments[0], description)
    else:
        for prefix in arguments:
            lower(prefix)
