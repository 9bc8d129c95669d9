#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two copies of a pipeline of two that share out its states (ZeRO 0 to 3), on four gloo ranks; needs PyTorch 2.15.

    shared_states.py [--python PYTHON] [--short] PIPEWRIGHT

The transformer of transformer.py is profiled. From the profile designs with two copies are made, which run through `run
--backend torch`: gradients are those of the whole module over the rows of both copies, the trace has a record for every
gather and sum of the design, and what ranks hold is what was predicted. Then PyTorch alone judges a design of level 3: a
program without Pipewright's package wraps the stages in fully_shard and runs the exported schedule. By PyTorch's memory
tracker it holds what was predicted within 3 %, kind by kind, and its gradients, explicitly summed and divided, are the whole
module's within 1e-6. With --short only level 3 runs, without the judge.
Exits 77 and says why when the interpreter has no PyTorch.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import transformer
from own_model import HERE, Pipewright, has_torch, profile

MICROBATCHES, COPIES, DEVICES = 8, 2, 2
WITHIN = 0.03


def design(pipewright, name, family, level, *words):
    pipewright.run("new", family, "--devices", str(DEVICES), "--microbatches", str(MICROBATCHES), "--model", "model.json",
                   "--data-parallel", str(COPIES), "--zero", str(level), *words, "-o", name + ".json", "--force")
    return name + ".json"


def close(what, got, expected, besides=0):
    """`besides`: bytes that may come on top."""
    assert (1 - WITHIN) * expected <= got <= (1 + WITHIN) * (expected + besides), \
        f"{what}: {got} bytes, and {expected} were predicted, with {besides} besides at most"


def runs(pipewright, family, level, *words, always=lambda stages: 0, at_times=lambda stages: 0):
    """`always`, `at_times`: bytes of a device beside the predicted ones, of its stages' costs."""
    name = f"{family}-{level}"
    file, trace = design(pipewright, name, family, level, *words), name + ".db"
    report = pipewright.json(*pipewright.torch(file, trace, "--steps", "3"))
    check = report["gradient_check"]
    assert report["copies"] == COPIES and check["reference"] == "whole-module", report
    assert check["max_relative_error"] <= 1e-6, check
    joining = "kind IN ('gather', 'reduce_gradients')"
    planned = pipewright.count(trace, f"TASKS WHERE {joining}")
    for step in range(3):
        seen = pipewright.count(trace, f"RECORDS JOIN TASKS USING (taskId) WHERE {joining} AND step = {step} AND end > start")
        assert seen == planned > 0, f"{name}: {seen} of {planned} gathers and sums are recorded in step {step}"
    # A gather comes before the blocks that read it, and a sum behind those that it sums.
    early = pipewright.count(trace, "RECORDS g JOIN TASKS t USING (taskId) JOIN RECORDS b ON b.step = g.step JOIN TASKS u ON "
                             "u.taskId = b.taskId WHERE t.kind = 'gather' AND t.op <> 'U' AND u.kind = 'compute' AND "
                             "t.op = u.op AND t.stage = u.stage AND t.microbatch = u.microbatch AND g.end > b.end")
    late = pipewright.count(trace, "RECORDS g JOIN TASKS t USING (taskId) JOIN RECORDS b ON b.step = g.step JOIN TASKS u ON "
                            "u.taskId = b.taskId WHERE t.kind = 'reduce_gradients' AND u.kind = 'compute' AND "
                            "t.stage = u.stage AND g.start < b.end")
    assert early == late == 0, f"{name}: {early} gathers end behind their reader, {late} sums begin before a block's end"
    stages = costs_of(pipewright, file)
    for device, (got, predicted) in enumerate(zip(report["peak_bytes"], report["predicted_peak_bytes"])):
        held = stages[device::DEVICES]
        close(f"{name}, device {device}", got, predicted + always(held), at_times(held))
    print(f"{family} at level {level}: gradients differ by {check['max_relative_error']:.1g}, {planned} gathers and sums are "
          f"recorded, peaks {report['peak_bytes']} of {report['predicted_peak_bytes']}")


def costs_of(pipewright, file):
    with open(os.path.join(pipewright.folder, file), encoding="utf-8") as text:
        return [{key: size(value) for key, value in stage.items()} for stage in json.load(text)["costs"]["stages"]]


def size(text):
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "B": 1}
    for unit, factor in units.items():
        if str(text).endswith(unit):
            return int(float(text.removesuffix(unit)) * factor)
    return 0  # a time


def tied(pipewright, level):
    """A head that is the embedding's matrix, on another rank: over three steps the gradients, and so the updates of both, are
    the whole module's."""
    module = os.path.join(HERE, "modules", "tied.py") + ":build"
    pipewright.run("profile", "--torch", module, "--microbatches", "4", "--seconds", "0.01", "--python", pipewright.python, "-o",
                   "tied-model.json", "--force")
    for family in ("1f1b", "zb-h1"):
        pipewright.run("new", family, "--devices", str(DEVICES), "--microbatches", "4", "--model", "tied-model.json",
                       "--data-parallel", str(COPIES), "--zero", str(level), "-o", "tied.json", "--force")
        check = pipewright.json("run", "tied.json", "--backend", "torch", "--module", module, "--python", pipewright.python,
                                "--steps", "3", "-o", "tied.db", "--force")["gradient_check"]
        assert check["reference"] == "whole-module" and check["max_relative_error"] <= 1e-6, (family, level, check)
        summed = pipewright.count("tied.db", "StringIds WHERE value LIKE '%all_reduce over stages%'")
        assert summed == 1, f"{family} at level {level}: the sum of the tied gradients is not recorded"
        print(f"{family} at level {level}, tied: gradients differ by {check['max_relative_error']:.1g}")


def refusals(pipewright):
    for words, family, said in ((("--reduce", "each"), "1f1b", "sums the gradients of a stage once per step"),
                                ((), "pipedream", "updated amid the step")):
        file = design(pipewright, "refused", family, 3 if words else 1, *words)
        assert said in pipewright.run("check", file, "--for", "torch", code=1)[1], said


# The judge: four processes that have PyTorch and the exported schedule, and nothing of Pipewright.


def judged_rank(rank, schedule, meet, reports):
    import torch
    import torch.distributed as dist
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.pipelining import PipelineStage, schedules

    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=COPIES * DEVICES, init_method=f"file://{meet}")
    mesh = dist.init_device_mesh("cpu", (COPIES, DEVICES), mesh_dim_names=("copies", "pipeline"))
    copy, device = divmod(rank, DEVICES)
    stages, rows = whole_module()
    module = stages[device]
    fully_shard(module, mesh=mesh["copies"], reshard_after_forward=False)
    module.set_gradient_divide_factor(1)  # a sum (pytorch#162338)
    module.set_force_sum_reduction_for_comms(True)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.0)
    stage = PipelineStage(module, device, DEVICES, torch.device("cpu"), group=mesh["pipeline"].get_group())
    stage._get_init_p2p_neighbors_ops = lambda: []
    runtime = schedules._PipelineScheduleRuntime([stage], MICROBATCHES, loss_fn=transformer.loss, scale_grads=False)
    runtime._load_csv(schedule, format="compute_comms")
    inputs, targets = rows[copy]

    def step():
        runtime.step(*([inputs] if device == 0 else []), target=targets if device == DEVICES - 1 else None, losses=[],
                     return_outputs=False)

    step()
    optimizer.step()  # its state is there from now on
    optimizer.zero_grad()
    tracker = FSDPMemTracker(module, optimizer)
    forward = stage.forward_one_chunk

    def next_forward(*arguments, **named):  # the tracker takes a second microbatch for a second step otherwise
        tracker.reset_mod_stats()
        return forward(*arguments, **named)

    stage.forward_one_chunk = next_forward
    with tracker:
        step()
    held = {when: {kind if isinstance(kind, str) else kind.value: number
                   for kind, number in tracker.get_tracker_snapshot(when)[torch.device("cpu")].items()}
            for when in ("peak", "current")}
    gradients = [p.grad.full_tensor() / (MICROBATCHES * COPIES) for p in module.parameters()]
    if copy == 0:
        reports.put((device, held, [gradient.tolist() for gradient in gradients]))
    dist.barrier()


def whole_module():
    """The stages of the model that is the same everywhere, and the rows of every copy."""
    import torch

    torch.manual_seed(1)
    layers = transformer.build()
    half = len(layers) // DEVICES
    stages = [torch.nn.Sequential(*layers[:half]), torch.nn.Sequential(*layers[half:])]
    return stages, [transformer.batch(0) for _ in range(COPIES)]


def judge(pipewright):
    import torch
    import torch.multiprocessing

    file = design(pipewright, "judged", "1f1b", 3)
    pipewright.run("export", file, "--to", "pytorch-comms-csv", "-o", "judged.csv", "--force")
    place = lambda name: os.path.join(pipewright.folder, name)
    context = torch.multiprocessing.get_context("spawn")
    reports = context.SimpleQueue()
    ranks = torch.multiprocessing.spawn(judged_rank, (place("judged.csv"), place("meet"), reports), COPIES * DEVICES,
                                        join=False)
    seen = {}
    while len(seen) < DEVICES:
        if reports.empty():
            assert not ranks.join(timeout=0.1) or not reports.empty(), "the ranks ended without a report"
        else:
            device, held, gradients = reports.get()
            seen[device] = (held, gradients)
    while not ranks.join():
        pass
    stages, rows = whole_module()
    for inputs, targets in rows:
        for value, target in zip(inputs.chunk(MICROBATCHES), targets.chunk(MICROBATCHES)):
            for stage in stages:
                value = stage(value)
            (transformer.loss(value, target) / (MICROBATCHES * COPIES)).backward()
    costs, peaks = costs_of(pipewright, file), [each["peak_bytes"] for each in pipewright.json("predict", file)["per_device"]]
    worst = 0
    for device, (held, gradients) in sorted(seen.items()):
        cost = costs[device]
        for when, kind, predicted in (("peak", "Sharded Param", "parameters"), ("peak", "Unsharded Param", "gathered_parameters"),
                                      ("peak", "Unsharded Grad", "whole_gradients"), ("current", "Sharded Grad", "gradients"),
                                      ("peak", "OptState", "optimizer_state")):
            close(f"device {device}, {kind}", held[when][kind], cost[predicted])
        close(f"device {device}, all", held["peak"]["Total"], peaks[device])
        for got, parameter in zip(gradients, stages[device].parameters()):
            expected = parameter.grad
            worst = max(worst, ((torch.tensor(got) - expected).norm() / expected.norm()).item())
    assert worst <= 1e-6, worst
    print(f"PyTorch's memory tracker finds the predicted bytes within {WITHIN:.0%} (peaks "
          f"{[held['peak']['Total'] for held, _ in map(seen.get, range(DEVICES))]} of {peaks}); gradients differ by {worst:.1g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--short", action="store_true")
    parser.add_argument("pipewright")
    options = parser.parse_args()
    if not has_torch(options.python):
        return 77
    newest = subprocess.run([options.python, "-c", "from torch.distributed.fsdp import FSDPModule as F; F.finalize_backward"],
                            capture_output=True)
    if newest.returncode != 0:
        print(f"skipped: {options.python} has a PyTorch before 2.15")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        pipewright = Pipewright(os.path.abspath(options.pipewright), options.python, folder)
        profile(pipewright, MICROBATCHES)
        runs(pipewright, "1f1b", 3)
        if options.short:
            return 0
        for family in ("zb-h1", "dualpipe-v"):  # backwards in halves, and in pairs
            runs(pipewright, family, 3)
        # Gathered anew for every visit, and while it comes from one buffer to another: twice.
        runs(pipewright, "interleaved-1f1b", 3, "--reshard", "always", "--prefetch", "0",
             at_times=lambda stages: max(stage["gathered_parameters"] for stage in stages))
        # The shares of the parameters beside the whole ones.
        runs(pipewright, "1f1b", 2, always=lambda stages: sum(stage["parameters"] for stage in stages) // COPIES)
        for level in (0, 1):
            runs(pipewright, "1f1b", level)
        for level in (2, 3):
            tied(pipewright, level)
        refusals(pipewright)
        judge(pipewright)
    return 0


if __name__ == "__main__":
    sys.exit(main())
