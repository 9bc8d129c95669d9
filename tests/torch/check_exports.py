#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks what is exported beside schedule files; needs neither PyTorch nor JaxPP nor torchtitan.

    check_exports.py PREFIX…

For each PREFIX.only.csv (PyTorch computations): PREFIX.py must be a JaxPP schedule class that lists the same tasks
in the same order, which JaxPP then runs; by jaxpp.schedules where that can be imported, else by a stand-in for the few
names of it that a class uses. PREFIX.titan.py must set, in a configuration with the fields of the torchtitan that is
installed (read from its source: importing it takes more than it is made of here), the same ranks, stages and
microbatches; without one, with the fields that 0.3.0 has. PREFIX.yaml (Automodel) must be YAML that names the same.
"""

import ast
import csv
import dataclasses
import enum
import importlib.metadata
import importlib.util
import pathlib
import re
import sys
import types

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


def jaxpp_or_stand_in():
    """jaxpp.schedules, and what is said of it. The package's own imports need a certain JAX; its schedules do not."""
    try:
        import jaxpp.schedules

        return jaxpp.schedules, "JaxPP's own module"
    except ImportError:
        return stand_in(), "a stand-in for JaxPP"


# The fields of torchtitan 0.3.0 that matter here, for where it is not installed.
TITAN = {
    "version": "0.3.0",
    "ParallelismConfig": ["pipeline_parallel_degree", "pipeline_parallel_schedule", "pipeline_parallel_schedule_csv",
                          "pipeline_parallel_microbatch_size", "module_fqns_per_model_part",
                          "data_parallel_shard_degree", "data_parallel_replicate_degree", "fsdp_reshard_after_forward"],
    "TrainingConfig": ["local_batch_size", "seq_len"],
    "modules": {"tok_embeddings", "layers", "norm", "lm_head"},
}


def installed_titan():
    """The same facts of the torchtitan that is installed; None without one."""
    found = importlib.util.find_spec("torchtitan")
    if found is None:
        return None
    folder = pathlib.Path(found.submodule_search_locations[0])
    try:
        facts = {"version": importlib.metadata.version("torchtitan")}
    except importlib.metadata.PackageNotFoundError:
        facts = {"version": "from its source"}
    for file in (folder / "config").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name in ("ParallelismConfig", "TrainingConfig"):
                facts[node.name] = [each.target.id for each in node.body if isinstance(each, ast.AnnAssign)]
    decoder = ast.parse((folder / "models" / "common" / "decoder.py").read_text(encoding="utf-8"))
    facts["modules"] = {target.attr for node in ast.walk(decoder) if isinstance(node, ast.Assign)
                        for target in node.targets if isinstance(target, ast.Attribute)}
    return facts


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
    if hasattr(jaxpp, "preprocess_schedule_tasks"):  # what it then runs: both halves of stage 0 are one task
        run = jaxpp.preprocess_schedule_tasks(schedule.tasks(microbatches), first_stage_id=0, unpack_fused_tasks=False)
        flat = [[task for unit in row for task in (unit if isinstance(unit, tuple) else (unit,))] for row in run]
        assert [[(task.stage_id, task.fwd_or_bwd.name, task.mubatch_idx) for task in row] for row in flat] == [
            [task for task in row if not (task[0] == 0 and task[1] == "BWD_W")] for row in expected
        ], "JaxPP runs another order than is listed"
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


def check_titan(file, rows, titan):
    with open(file, encoding="utf-8") as source:
        text = source.read()
    module = types.ModuleType("exported")
    exec(compile(text, file, "exec"), module.__dict__)
    made = lambda name: dataclasses.make_dataclass(name, [(field, object, dataclasses.field(default=64)) for field in titan[name]],
                                                   slots=True)()
    config = types.SimpleNamespace(training=made("TrainingConfig"), parallelism=made("ParallelismConfig"),
                                   activation_checkpoint="its own")
    assert module.with_schedule(config) is config
    part, training = config.parallelism, config.training
    assert part.pipeline_parallel_schedule == "PipelineScheduleMulti"
    modules = getattr(part, "pipeline_parallel_module_fqns_per_model_part", None) or part.module_fqns_per_model_part
    if hasattr(part, "num_pp_microbatches"):
        batch, size = part.num_pp_microbatches, 1
        assert training.num_tokens_per_microbatch_per_dp_rank == module.SEQUENCES_PER_MICROBATCH * 64, "tokens"
    else:
        batch, size = training.local_batch_size, part.pipeline_parallel_microbatch_size
    check_numbers(rows, part.pipeline_parallel_degree, batch, size, part.pipeline_parallel_schedule_csv, modules,
                  "schedule name.csv")
    unknown = {name.split(".")[0] for stage in modules for name in stage} - titan["modules"]
    assert not unknown, f"torchtitan {titan['version']} has no modules called {unknown}"
    assert config.activation_checkpoint is None, "the schedule recomputes nothing"
    return module.WRITTEN_FOR


def check_yaml(file, rows, expected_csv):
    with open(file, encoding="utf-8") as source:
        config = yaml.safe_load(source)
    part = config["autopipeline"]
    assert part["pp_schedule"] == "PipelineScheduleMulti"
    check_numbers(rows, config["distributed"]["pp_size"], part["pp_batch_size"], part["pp_microbatch_size"], part["pp_schedule_csv"],
                  part["module_fqns_per_model_part"], expected_csv)


def main(prefixes):
    jaxpp, of_jaxpp = jaxpp_or_stand_in()
    titan = installed_titan()
    failed, stale = 0, ""
    for prefix in prefixes:
        rows = rows_of(prefix + ".only.csv")
        checks = [(check_jaxpp, ".py", jaxpp), (check_titan, ".titan.py", titan or TITAN)]
        if yaml:
            checks.append((check_yaml, ".yaml", "schedule name.csv"))
        for check, ending, argument in checks:
            try:
                if check(prefix + ending, rows, argument) not in (None, (titan or TITAN)["version"]):
                    stale = f"; torchtitan {titan['version']} is not the version that the export names, and has the fields"
            except Exception as error:
                failed += 1
                print(f"FAILED {prefix}{ending}: {type(error).__name__}: {error}", file=sys.stderr)
    of_titan = f"the fields of torchtitan {titan['version']}" if titan else "0.3.0's fields (no torchtitan is installed)"
    print(f"{len(prefixes)} schedules as JaxPP class ({of_jaxpp}), for torchtitan ({of_titan})"
          + (", Automodel" if yaml else " (no yaml module: the Automodel fragments are not parsed)") + f": {failed} faults{stale}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
