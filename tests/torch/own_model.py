#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A person's own model from its file to a compared run, by the program's own commands; needs PyTorch with gloo.

    own_model.py [--python PYTHON] [--families A,B…] [--timing] [--short] PIPEWRIGHT

A transformer of eight layers (transformer.py) is profiled; from the profile six families are made and predicted; each runs
on four ranks through PyTorch, its gradients are the whole module's, and its trace is laid over the design, explained and
calibrated. Then every way in which a run can go wrong ends clearly. With --timing also: stages that sleep for the design's
times take the predicted makespan within 3 %, and of the real layers errors are printed beside the noise; that is for a
machine without other load, so it decides nothing without the option. With --short one family runs, a rank is killed, and a
run is cancelled.
Exits 77 and says why when the interpreter has no PyTorch.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

FAMILIES = ["1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "looped-bfs", "zb-v"]
HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "transformer.py")


class Pipewright:
    def __init__(self, program, python, folder):
        self.program, self.python, self.folder = program, python, folder

    def start(self, *words):
        return subprocess.Popen([self.program, *words], cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, code=0):
        process = self.start(*words)
        output, errors = process.communicate(timeout=600)
        assert process.returncode == code, f"pipewright {' '.join(words)}: code {process.returncode}, not {code}: {output}{errors}"
        return output, errors

    def json(self, *words):
        return json.loads(self.run(*words, "--json")[0])

    def count(self, trace, of):
        """How many rows there are FROM …."""
        return self.json("query", trace, "SELECT count(*) FROM " + of)["rows"][0][0]

    def torch(self, design, trace, *words, module="build"):
        what = ["--module", f"{MODEL}:{module}"] if module else ["--synthetic-stages"]
        return ["run", design, "--backend", "torch", *what, "--python", self.python, "-o", trace, "--force", *words]


def nothing_is_left(since):
    """No rank of this test's runs; they are known by the file that they were given."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read()
            except OSError:
                continue
            if b"pipewright.run" in words and since in words:
                return False
    return True


def profile(pipewright, microbatches):
    report = pipewright.json("profile", "--torch", f"{MODEL}:build", "--microbatches", str(microbatches), "--seconds", "0.05",
                             "--python", pipewright.python, "-o", "model.json", "--force")
    names = [layer["layer"] for layer in report["layers"]]
    assert names == ["Embedding", *[f"Layer {i}" for i in range(8)], "Head"], names
    saved = {layer["saved_bytes"] for layer in report["layers"][2:9]}
    assert len(saved) == 1, f"equal layers keep {saved}"
    assert all(layer["forward_ns"] > 0 and layer["weight_grad_ns"] > 0 for layer in report["layers"])
    # 64 x 64 x 12 of matrices, 9 x 64 of their biases, two norms: 4 bytes each.
    assert report["layers"][3]["parameter_bytes"] == 4 * (12 * 64 * 64 + 9 * 64 + 4 * 64), report["layers"][3]
    pipewright.run("search", design(pipewright, "1f1b"), "--memory-limit", "1x", "--time-limit", "1s", "-o", "better.json", "--force")
    pipewright.run("predict", design(pipewright, "1f1b"), "--families")


def design(pipewright, family, *words):
    pipewright.run("new", family, "--devices", "4", "--microbatches", "8", *(words or ["--model", "model.json"]), "-o",
                   family + ".json", "--force")
    return family + ".json"


def run_family(pipewright, family):
    """Measured and predicted makespans in ms, and how much steps differ."""
    file, trace = design(pipewright, family), family + ".db"
    predicted = pipewright.json("predict", file)["makespan_ns"]
    report = pipewright.json(*pipewright.torch(file, trace, "--steps", "4", "--ranks", "4"))
    check = report["gradient_check"]
    assert check["reference"] == "whole-module" and check["max_relative_error"] <= check["within"], check
    assert report["steps"] == 4 and all(loss is not None and 1 < loss < 9 for loss in report["loss"]), report
    compared = pipewright.json("compare", file, trace)
    assert compared["blocks"]["unmatched"] == 0, compared
    assert all(device["peak_bytes"]["measured"] > 0 for device in compared["per_device"]), compared
    assert pipewright.count(trace, "MEMORY") > 0
    pipewright.run("explain", trace)
    pipewright.run("calibrate", file, trace, "--busy-machine", "-o", family + "-measured.json", "--force")
    again = pipewright.json("compare", family + "-measured.json", trace)
    assert pipewright.count(trace, "RECORDS JOIN TASKS USING (taskId) WHERE kind = 'transfer'") > 0
    steps = report["step_ns"][1:]
    return {"measured": statistics.median(steps) / 1e6, "profile": predicted / 1e6,
            "calibrated": again["makespan"]["predicted_ns"] / 1e6,
            "noise": (max(steps) - min(steps)) / statistics.median(steps)}


def copies(pipewright):
    """Two copies of a pipeline of two, joined by DistributedDataParallel or sharded: one more thing that PyTorch does."""
    for family, how in (("1f1b", "summed"), ("zb-h1", "sharded")):
        file = f"{family}-copies.json"
        pipewright.run("new", family, "--devices", "2", "--microbatches", "4", "--model", "model.json", "-o", file, "--force")
        os.environ["OWN_MODEL_COPIES"] = how
        report = pipewright.json(*pipewright.torch(file, "copies.db", "--steps", "2", "--replicas", "2", "--ranks", "4"))
        check = report["gradient_check"]
        assert check["max_relative_error"] <= check["within"], (how, check)
        seen = json.loads(pipewright.run("query", "copies.db", "SELECT DISTINCT s.value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN "
                                         "StringIds s ON s.id = demangledName", "--json")[0])["rows"]
        assert any("over replicas" in row[0] for row in seen), seen
    os.environ["OWN_MODEL_COPIES"] = "summed"
    errors = pipewright.run(*pipewright.torch("zb-h1-copies.json", "copies.db", "--steps", "1", "--replicas", "2"), code=2)[1]
    assert "backwards in two halves" in errors, errors


def operators(pipewright):
    """PyTorch's profiler runs along: blocks unfold into the operators of their layers."""
    file = design(pipewright, "zb-h1")
    report = pipewright.json(*pipewright.torch(file, "operators.db", "--steps", "3", "--record", "kernels"))
    assert report["step_with_recorder_ns"] > 0 and report["step_without_recorder_ns"] > 0, report
    for kernels in (pipewright.json("explain", "operators.db")["kernels"],
                    pipewright.json("compare", file, "operators.db")["block_times"]):
        # F, I and W of 8 microbatches on 4 ranks, and an update of each. An I of stage 0 has next to nothing to do.
        assert kernels["of"] == "operators" and kernels["blocks"] + kernels["blocks_without_kernels"] == 4 * (8 * 3 + 1), kernels
        assert kernels["blocks_without_kernels"] <= 8 and kernels["launch_bound_ns"] is None, kernels
        counts = {group["group"]: group["kernels"] for group in kernels["groups"]}
        assert counts["product"] > 0 and counts["norm"] > 0, counts
        times = {group["group"]: group["time_ns"] for group in kernels["groups"]}
        assert times.get("other", 0) < 0.02 * sum(times.values()), times  # the rules know PyTorch's operators
    within = "SLICES JOIN RECORDS USING (step, taskId)"
    outside = within + " WHERE SLICES.start < RECORDS.start - 1000000 OR SLICES.end > RECORDS.end + 1000000"
    assert pipewright.count("operators.db", within) > 0 and pipewright.count("operators.db", outside) == 0
    pipewright.run("calibrate", file, "operators.db", "--busy-machine", "-o", "operators.json", "--force")


def fails(pipewright, file, module, *parts, code=2, steps=3, deadline="30s"):
    errors = pipewright.run(*pipewright.torch(file, "failed.db", "--steps", str(steps), "--deadline", deadline, module=module),
                            code=code)[1]
    for part in parts:
        assert part in errors, f"{module}: {part!r} is not in {errors!r}"


def a_killed_rank(pipewright, file):
    fails(pipewright, file, "build_dying", "was killed by signal 9")
    assert pipewright.count("failed.db", "STEPS") > 0  # what was recorded stays


def a_cancelled_run(pipewright, file):
    """Ctrl-C."""
    process = pipewright.start(*pipewright.torch(file, "cancelled.db", "--steps", "100000", "--progress", "json"))
    process.stderr.readline()  # a step is done
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1 and "was cancelled after" in errors, errors
    deadline = time.monotonic() + 60
    while not nothing_is_left(b"pipewright-torch-") and time.monotonic() < deadline:
        time.sleep(0.1)


def everything_that_goes_wrong(pipewright):
    file = design(pipewright, "1f1b", "--forward", "1ms")
    fails(pipewright, file, "build_changing", "the output has the shape", "pad the batch")
    a_killed_rank(pipewright, file)
    fails(pipewright, file, "build_hungry", "not enough memory")
    fails(pipewright, file, "build_network", "not a list of layers")
    fails(pipewright, file, "build_hanging", "deadline: error: nothing was heard for 15 s", "rank 3 at F3.", deadline="15s")
    fails(pipewright, file, "no_such_function", "has no function no_such_function")
    fails(pipewright, design(pipewright, "pipedream", "--forward", "1ms"), "build", "weight policy follows SGD")
    wrong = design(pipewright, "gpipe", "--model", "llama-3-8b")
    fails(pipewright, wrong, "build", "returns 10 layers, and the design's model has 34")
    a_cancelled_run(pipewright, file)
    # By stages, and by the person's own launcher.
    report = pipewright.json(*pipewright.torch(file, "stages.db", "--steps", "2", module="build_stage"))
    assert report["gradient_check"]["max_relative_error"] <= report["gradient_check"]["within"], report
    said = pipewright.run(*pipewright.torch(file, "own.db", "--steps", "2", "--print-command"))[0]
    assert "torchrun --nproc-per-node 4 -m pipewright.run own.db.job.json --record own.db.ranks" in said, said
    line = said.splitlines()[0].replace("torchrun", f"{pipewright.python} -m torch.distributed.run")
    environment = {"GLOO_SOCKET_IFNAME": "lo", **os.environ}
    subprocess.run(line, shell=True, cwd=pipewright.folder, check=True, timeout=600, env=environment, capture_output=True)
    report = pipewright.json("run", file, "--backend", "torch", "--steps", "2", "--collect", "own.db.ranks", "-o", "own.db")
    assert report["steps"] == 2 and report["gradient_check"]["max_relative_error"] <= report["gradient_check"]["within"], report


def synthetic(pipewright, families, timing):
    """Sleeping stages: their blocks take the design's times, so the makespan is the predicted one."""
    failed = 0
    for family in families:
        times = ["240ms", "288ms", "192ms"] if timing else ["8ms", "8ms", "8ms"]
        file = design(pipewright, family, "--forward", times[0], "--input-grad", times[1], "--weight-grad", times[2], "--saved", "1KiB")
        report = pipewright.json(*pipewright.torch(file, "synthetic.db", "--steps", "4", module=None))
        assert report["maths"] == "synthetic" and "skipped" in report["gradient_check"], report
        predicted = pipewright.json("predict", file)["makespan_ns"]
        measured = statistics.median(report["step_ns"][1:])
        error = predicted / measured - 1
        assert measured > 0.999 * predicted, f"{family}: {measured} ns is less than its blocks take, {predicted}"
        if timing:
            print(f"sleeping {family}: predicted {predicted / 1e6:.1f} ms, measured {measured / 1e6:.1f} ms, {error:+.1%}")
            failed += abs(error) > 0.03
    return failed


def has_torch(python):
    """Whether that interpreter can run pipelines; says so where it cannot."""
    try:
        found = subprocess.run([python, "-c", "import torch.distributed as d; assert d.is_gloo_available(); "
                                "from torch.distributed.pipelining import schedules as s; assert hasattr(s, 'REDUCE_GRAD')"],
                               capture_output=True, text=True)
    except OSError as error:
        found = error
    if getattr(found, "returncode", 1) != 0:
        print(f"skipped: {python} has no PyTorch 2.10 or later with gloo (pip install torch, or set PYTHON)")
    return getattr(found, "returncode", 1) == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("PYTHON", "python3"))
    parser.add_argument("--families", default=",".join(FAMILIES), type=lambda text: text.split(","))
    parser.add_argument("--timing", action="store_true", help="let times decide")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("pipewright")
    options = parser.parse_args()
    if options.short:
        options.families = options.families[:1]
    if not has_torch(options.python):
        return 77
    with tempfile.TemporaryDirectory() as folder:
        pipewright = Pipewright(os.path.abspath(options.pipewright), options.python, folder)
        profile(pipewright, 8)
        measured = {}
        for family in options.families:
            measured[family] = run_family(pipewright, family)
            print(f"{family}: gradients are the whole module's; " + ", ".join(
                f"{name} {value:.1%}" if name == "noise" else f"{name} {value:.1f} ms" for name, value in measured[family].items()))
        if options.short:
            file = design(pipewright, "1f1b", "--forward", "1ms")
            a_killed_rank(pipewright, file)
            a_cancelled_run(pipewright, file)
            print("a killed rank and a cancelled run end clearly, and nothing is left running")
            return 0
        operators(pipewright)
        print("blocks unfold into the operators that PyTorch's profiler saw")
        copies(pipewright)
        print("two copies have the gradients of the whole module over the rows of both")
        everything_that_goes_wrong(pipewright)
        print("every fault ends clearly, and nothing is left running")
        failed = synthetic(pipewright, options.families if options.timing else options.families[:1], options.timing)
    print(f"{len(measured)} families of an own model ran through PyTorch" + (f"; {failed} off by more than 3 %" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
