#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Weight policies on modules that are not ours (digits.py): run over ranks and compared with the sequential emulation, in
one process, and against each other by `experiment`; needs PyTorch with gloo, and scikit-learn for its digits.

    weight_policies.py [--python PYTHON] [--table [--steps N] [--seeds K]] PIPEWRIGHT

With --table it trains for as long as it takes to tell policies apart and prints what stands in
resources/experiments/weight-policies-pytorch.md. Exits 77 and says why when the interpreter lacks something.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = os.path.join(HERE, "digits.py")
# Family, its options, and the optimizer that its predictions follow.
POLICIES = [("async-1f1b", "", "sgd"), ("pipedream", "", "sgd"), ("pipedream", "--vertical-sync", "sgd"),
            ("pipedream-2bw", "--accumulate 3", "sgd"), ("spectrain", "", "sgd"), ("spectrain", "--spectrain 2", "sgd"),
            ("xpipe", "--accumulate 3", "adam"), ("pipeoptim", "", "sgd"), ("pipeoptim", "", "adam"),
            ("pipeoptim", "", "adamw"), ("pipeoptim", "", "rmsprop"), ("cdp-v1", "", "sgd"), ("cdp-v2", "", "sgd")]


class Pipewright:
    def __init__(self, program, python, folder):
        self.program, self.python, self.folder = program, python, folder

    def run(self, words, code=0, **environment):
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, timeout=900,
                              env={**os.environ, **environment})
        assert done.returncode == code, f"pipewright {' '.join(words)}: {done.returncode}, not {code}: {done.stdout}{done.stderr}"
        self.notes = done.stderr
        return done.stdout if code == 0 else done.stderr

    def make(self, name, family, devices, microbatches, options, optimizer):
        follows = [] if family == "1f1b" else ["--optimizer", optimizer]  # that updates once
        self.run(["new", family, "--devices", str(devices), "--microbatches", str(microbatches), "--forward", "2ms",
                  "--name", name, *options.split(), *follows, "-o", name + ".json", "--force"])
        return name + ".json"


def over_ranks(program, policies, model, devices, microbatches, extra=""):
    for family, options, optimizer in policies:
        name = f"{family}{options.replace(' ', '')}-{optimizer}-{model}"
        design = program.make(name, family, devices, microbatches, f"{options} {extra}", optimizer)
        result = json.loads(program.run(
            ["run", design, "--backend", "torch", "--module", f"{MODULE}:{model}", "--python", program.python, "--steps", "2",
             "-o", name + ".db", "--json", "--force"], DIGITS_OPTIMIZER=optimizer))
        check = result["gradient_check"]
        assert check["reference"] == "sequential-lagged", check
        predicts = family in ("spectrain", "xpipe", "pipeoptim")
        assert predicts == ("weights that were predicted are off by" in program.notes), (name, program.notes)
        assert check["max_relative_error"] <= check["within"], (name, check)
        print(f"tests/torch: {name} over {result['devices']} ranks: "
              f"{'the bits' if check['bit_equal'] else 'at most %.1e off' % check['max_relative_error']} of the emulation",
              flush=True)


def refusals(program):
    design = program.make("refused", "pipeoptim", 2, 4, "", "adam")
    words = ["run", design, "--backend", "torch", "--module", f"{MODULE}:lstm", "--python", program.python,
             "--steps", "1", "-o", "no.db"]
    said = program.run(words, code=2, DIGITS_OPTIMIZER="sgd")
    assert "the optimizer is SGD, and the design's weight policy follows Adam" in said, said


UNKNOWN_OPERATION = """
import json, sys
from pipewright import errors, localrun

job = sys.argv[1]
with open(job) as file:
    content = json.load(file)
content["versions"]["order"][0][-1]["op"] = "X"
with open(job, "w") as file:
    json.dump(content, file)
try:
    localrun.merged(content["versions"]["order"], content["stages"])
except errors.Refused as error:
    print(error.what)
"""


def unknown_operations_are_refused(program):
    """By a rank and in one process: what the package does not know is no update."""
    design = program.make("unknown", "cdp-v2", 1, 6, "--layout single --workers 3", "sgd")
    program.run(["run", design, "--backend", "torch", "--module", f"{MODULE}:lstm", "--python", program.python, "--steps", "1",
                 "-o", "unknown.db", "--print-command"])
    environment = {**os.environ, "PYTHONPATH": os.path.join(HERE, "..", "..", "executor", "torch"), "RANK": "0", "WORLD_SIZE": "1",
                   "DIGITS_OPTIMIZER": "sgd"}
    job, records = "unknown.db.job.json", "unknown.db.ranks"
    said = subprocess.run([program.python, "-c", UNKNOWN_OPERATION, job], cwd=program.folder, capture_output=True, text=True,
                          env=environment).stdout
    assert "X is none of the operations F, B and U" in said, said
    done = subprocess.run([program.python, "-m", "pipewright.run", job, "--record", records, "--meet",
                           os.path.join(program.folder, "meet")], cwd=program.folder, env=environment, capture_output=True)
    with open(os.path.join(program.folder, records, "rank0.jsonl"), encoding="utf-8") as file:
        said = file.read()
    assert done.returncode == 1 and "X is none of the operations F, B and U" in said, (done, said)
    print("tests/torch: an operation that the package does not know is refused", flush=True)


WRONG_READ = """
import sys
from pipewright import localrun, versions

read = versions.StageVersions.read
if sys.argv[2] == "wrong":  # B2.1 takes other weights than the design says
    def other(self, block):
        version, steps = read(self, block)
        return (version + 1, steps) if (block["op"], block["stage"], block["microbatch"]) == ("B", 2, 1) else (version, steps)
    versions.StageVersions.read = other
plan = {**localrun.plain(3, 3, 1), "optimizer": "sgd"}
job = {"stages": 3, "microbatches": 3, "module": sys.argv[1], "synthetic": None, "seed": 1, "layers_per_stage": None,
       "partition_of_module": False, "versions": plan}
sys.exit(0 if localrun.LocalRunner(job, lambda update, loss: None).report()["reads_agree"] else 3)
"""


def wrong_reads_are_seen(program):
    for what, code in (("right", 0), ("wrong", 3)):
        package = os.path.join(HERE, "..", "..", "executor", "torch")
        done = subprocess.run([program.python, "-c", WRONG_READ, f"{MODULE}:cnn", what], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": package})
        assert done.returncode == code, (what, done.returncode, done.stderr)


def experiment(program, designs, model, optimizer, steps, seeds):
    words = ["experiment", *designs, "--backend", "torch", "--module", f"{MODULE}:{model}", "--python", program.python,
             "--steps", str(steps), "--seeds", str(seeds), "--json", "--force", "-o", "curves.csv", "-o", "curves.svg",
             "--progress", "none"]
    runs = json.loads(program.run(words, DIGITS_OPTIMIZER=optimizer))["runs"]
    for run in runs:
        assert run["reads_agree"], run["design"]
    return runs


def small_experiment(program):
    designs = [program.make("flush", "1f1b", 3, 4, "", "sgd"), program.make("pipedream", "pipedream", 3, 4, "", "sgd"),
               program.make("pipeoptim", "pipeoptim", 3, 4, "", "sgd")]
    runs = experiment(program, designs, "cnn", "sgd", 12, 1)
    sequential, flush, stashed, predicted = runs
    assert flush["bit_equal_to_reference"] and not stashed["bit_equal_to_reference"], runs
    assert all(len(run["loss"]) == 12 for run in runs), runs
    assert sequential["held_back_accuracy"] is not None
    # Three copies of the first stage's weights for PipeDream, and for PipeOptim a predicted one beside its own.
    weights = [kept // copies for kept, copies in zip(stashed["weight_bytes"], (3, 2, 1))]
    assert stashed["weight_bytes"] == [3 * weights[0], 2 * weights[1], weights[2]], stashed["weight_bytes"]
    assert predicted["weight_bytes"] == [2 * weights[0], 2 * weights[1], weights[2]], predicted["weight_bytes"]
    for stage in (0, 1):
        assert predicted["prediction_rmse"][stage] > 0 and predicted["unpredicted_rmse"][stage] > 0, predicted
    assert predicted["prediction_rmse"][2] is None
    print("tests/torch: weight policies are compared on digits", flush=True)


def table(program, steps, seeds):
    for model, devices in (("lstm", 3), ("cnn", 4)):
        for optimizer in ("sgd", "adam"):
            chosen = [("flush", "1f1b", ""), ("vanilla", "async-1f1b", ""), ("PipeDream", "pipedream", ""),
                      ("2BW", "pipedream-2bw", f"--accumulate {devices}"), ("PipeOptim", "pipeoptim", "")]
            chosen += [("SpecTrain", "spectrain", "")] if optimizer == "sgd" else [("XPipe", "xpipe", f"--accumulate {devices}")]
            chosen += [("CDP-v1", "cdp-v1", ""), ("CDP-v2", "cdp-v2", "")]
            designs = [program.make(name, family, devices, 4 * devices, options, optimizer) for name, family, options in chosen]
            runs = experiment(program, designs, model, optimizer, steps, seeds)
            print(f"\n## {model}, {optimizer}\n\n| policy | final loss | validation loss | validation accuracy | weights kept | "
                  "prediction off by, by stage | unpredicted |\n| --- | --- | --- | --- | --- | --- | --- |")
            for name in dict.fromkeys(run["design"] for run in runs):
                of = [run for run in runs if run["design"] == name]
                mean = lambda key: sum(run[key] for run in of) / len(of)
                spread = lambda key: f"{mean(key):.3f} ({max(r[key] for r in of) - min(r[key] for r in of):.3f})" \
                    if all(r[key] is not None for r in of) else "diverged"
                errors = lambda key: " ".join("–" if of[0][key][s] is None else
                                              f"{sum(r[key][s] or 0 for r in of) / len(of):.1e}" for s in range(devices))
                kib = sum(of[0]["weight_bytes"]) / 1024
                print(f"| {name} | {spread('final_loss')} | {spread('held_back_loss')} | "
                      f"{100 * mean('held_back_accuracy'):.1f} % | {kib:.1f} KiB | {errors('prediction_rmse')} | "
                      f"{errors('unpredicted_rmse')} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("pipewright")
    options = parser.parse_args()
    for module in ("torch", "sklearn"):
        if subprocess.run([options.python, "-c", f"import {module}"], capture_output=True).returncode:
            print(f"tests/torch: weight policies are not run, {options.python} has no {module}")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        program = Pipewright(os.path.abspath(options.pipewright), options.python, folder)
        if options.table:
            return table(program, options.steps, options.seeds)
        over_ranks(program, POLICIES, "cnn", 3, 6)
        over_ranks(program, [("pipedream", "", "sgd"), ("xpipe", "--accumulate 3", "adam"), ("cdp-v2", "", "sgd")], "lstm", 3, 6)
        over_ranks(program, [("cdp-v2", "--layout single --workers 3", "sgd")], "lstm", 1, 6)  # all in one process
        refusals(program)
        wrong_reads_are_seen(program)
        unknown_operations_are_refused(program)
        small_experiment(program)


main()
