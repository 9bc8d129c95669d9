#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks what is exported beside schedule files; needs neither PyTorch nor JaxPP.

    check_exports.py PREFIX…

For each PREFIX.only.csv (PyTorch computations): PREFIX.py must be a JaxPP schedule class that lists the same tasks
in the same order, on stand-ins for the few names of JaxPP that it uses; PREFIX.toml (torchtitan) and PREFIX.yaml
(Automodel) must be read by a parser of their language and name the same ranks, stages and microbatches.
"""

import ast
import csv
import dataclasses
import enum
import re
import sys
import types

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = None
try:
    import yaml
except ImportError:
    yaml = None


def stand_in():
    """jaxpp.schedules as far as a schedule class sees it: a task has no default latency but its own maker."""
    module = types.ModuleType("jaxpp.schedules")

    class TaskType(enum.Enum):
        FWD, BWD, BWD_I, BWD_W = range(1, 5)

    @dataclasses.dataclass(frozen=True)
    class Task:
        stage_id: int
        mubatch_idx: int
        fwd_or_bwd: TaskType
        latency: int = dataclasses.field(hash=False, compare=False)

        @classmethod
        def make(cls, stage_id, mubatch_idx, fwd_or_bwd, latency=None):
            return cls(stage_id, mubatch_idx, fwd_or_bwd, latency or (2 if fwd_or_bwd is TaskType.BWD else 1))

    class FusedTask(tuple):
        """Tasks that are one unit."""

    @dataclasses.dataclass(eq=True, frozen=True)
    class BaseSchedule:
        num_stages: int
        is_partial_bwd: bool = dataclasses.field(default=False, init=False)

        def get_mpmd_idx(self, stage_id):
            raise NotImplementedError

        def tasks(self, n_mubatches):
            raise NotImplementedError

    module.TaskType, module.Task, module.FusedTask, module.BaseSchedule = TaskType, Task, FusedTask, BaseSchedule
    package = types.ModuleType("jaxpp")
    package.schedules = module
    sys.modules.update({"jaxpp": package, "jaxpp.schedules": module})
    return module


def rows_of(file):
    with open(file, newline="", encoding="ascii") as lines:
        return [
            [(int(stage), op, int(microbatch)) for stage, op, microbatch in re.findall(r"(\d+)([FBIW])(\d+)", ",".join(row))]
            for row in csv.reader(lines)
        ]


def as_jaxpp(row, split):
    """JaxPP splits every backward or none, and keeps both halves of stage 0 next to each other."""
    for stage, op, microbatch in row:
        if split and op == "B" or stage == 0 and op == "W":
            yield stage, "I", microbatch
            yield stage, "W", microbatch
        elif not (stage == 0 and op == "I"):
            yield stage, op, microbatch


def check_jaxpp(file, rows, jaxpp):
    with open(file, encoding="utf-8") as source:
        text = source.read()
    ast.parse(text, file)
    module = types.ModuleType("exported")
    exec(compile(text, file, "exec"), module.__dict__)
    (kind,) = [value for value in vars(module).values()
               if isinstance(value, type) and issubclass(value, jaxpp.BaseSchedule) and value is not jaxpp.BaseSchedule]
    schedule = kind()
    hash(schedule)  # JaxPP keeps schedules in the parameters of a primitive
    split = any(op == "I" for row in rows for _, op, _ in row)
    assert schedule.is_partial_bwd == split, "is_partial_bwd"
    stages = {stage: rank for rank, row in enumerate(rows) for stage, _, _ in row}
    microbatches = 1 + max(microbatch for row in rows for _, _, microbatch in row)
    assert schedule.num_stages == len(stages), "num_stages"
    assert all(schedule.get_mpmd_idx(stage) == rank for stage, rank in stages.items()), "get_mpmd_idx"
    names = {"F": "FWD", "B": "BWD", "I": "BWD_I", "W": "BWD_W"}
    units = [[unit if isinstance(unit, tuple) else (unit,) for unit in units] for units in schedule.tasks(microbatches)]
    listed = [
        [(task.stage_id, task.fwd_or_bwd.name, task.mubatch_idx) for unit in units_of for task in unit]
        for units_of in units
    ]
    expected = [[(stage, names[op], microbatch) for stage, op, microbatch in as_jaxpp(row, split)] for row in rows]
    assert listed == expected, "the tasks differ from the schedule"
    try:
        schedule.tasks(microbatches + 1)
    except ValueError:
        return
    raise AssertionError("another number of microbatches is accepted")


def check_numbers(rows, ranks, batch, size, csv_name, modules, expected_csv):
    microbatches = 1 + max(microbatch for row in rows for _, _, microbatch in row)
    stages = 1 + max(stage for row in rows for stage, _, _ in row)
    assert ranks == len(rows), "number of ranks"
    assert batch == microbatches * size, "batch size"
    assert csv_name == expected_csv, "name of the schedule file"
    assert len(modules) == stages and all(isinstance(name, str) for stage in modules for name in stage), "modules"
    names = [name for stage in modules for name in stage]
    assert names and len(names) == len(set(names)), "a module stands in two stages"


def check_toml(file, rows, expected_csv):
    with open(file, "rb") as source:
        config = tomllib.load(source)
    part = config["parallelism"]
    assert part["pipeline_parallel_schedule"] == "PipelineScheduleMulti"
    check_numbers(rows, part["pipeline_parallel_degree"], config["training"]["local_batch_size"], part["pipeline_parallel_microbatch_size"],
                  part["pipeline_parallel_schedule_csv"], part["module_fqns_per_model_part"], expected_csv)


def check_yaml(file, rows, expected_csv):
    with open(file, encoding="utf-8") as source:
        config = yaml.safe_load(source)
    part = config["autopipeline"]
    assert part["pp_schedule"] == "PipelineScheduleMulti"
    check_numbers(rows, config["distributed"]["pp_size"], part["pp_batch_size"], part["pp_microbatch_size"], part["pp_schedule_csv"],
                  part["module_fqns_per_model_part"], expected_csv)


def main(prefixes):
    jaxpp = stand_in()
    failed = 0
    for prefix in prefixes:
        rows = rows_of(prefix + ".only.csv")
        checks = [(check_jaxpp, ".py", jaxpp)]
        if tomllib:
            checks.append((check_toml, ".toml", "schedule name.csv"))
        if yaml:
            checks.append((check_yaml, ".yaml", "schedule name.csv"))
        for check, ending, argument in checks:
            try:
                check(prefix + ending, rows, argument)
            except Exception as error:
                failed += 1
                print(f"FAILED {prefix}{ending}: {type(error).__name__}: {error}", file=sys.stderr)
    print(f"{len(prefixes)} schedules as JaxPP class{', torchtitan' if tomllib else ''}{', Automodel' if yaml else ''}: {failed} faults"
          + ("" if yaml else " (no yaml module: the Automodel fragments are not parsed)"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
