#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# How well the costs of one recorded schedule predict others, with blocks that really sleep on three devices of
# different pace: per recorded family the error of every family's makespan, the difference between two runs of it, and
# whether the predicted ranking is the measured one.
# Where others use the machine, sleepers wake late; "chrt -f 10" before the command keeps that out.
# With --real the devices train MODEL instead, one thread each: nothing else may run on the machine then.
import argparse
import json
import statistics
import subprocess
import sys
import tempfile

FAMILIES = ["gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "looped-bfs", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min"]
RECORDED = ["1f1b", "zb-h1", "interleaved-1f1b"]
PACE = [1.4, 1.0, 1.2]
KEYS = {"forward", "input_grad", "weight_grad", "backward", "recompute"}
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def nanoseconds(text):
    unit = text.lstrip("0123456789.")
    return float(text[: len(text) - len(unit)]) * UNITS[unit]


def gaps_of(path):
    with open(path) as stream:
        gaps = json.load(stream)["costs"].get("host_gaps", [])
    return "; ".join(", ".join(f"{key} {value}" for key, value in gap.items() if key != "origin") for gap in gaps)


def set_pace(path, forward):
    with open(path) as stream:
        design = json.load(stream)
    stages, placement = design["costs"]["stages"], design["schedule"]["placement"]
    scale = forward * 3 / sum(nanoseconds(stage["forward"]) for stage in stages)
    for stage, device in zip(stages, placement):
        for key in KEYS & stage.keys():
            stage[key] = f"{round(nanoseconds(stage[key]) * scale * PACE[device % len(PACE)])}ns"
    design["costs"]["source"] = "given"
    with open(path, "w") as stream:
        json.dump(design, stream)


def main():
    parser = argparse.ArgumentParser(description="predicts families from the costs of one recorded run")
    parser.add_argument("program", help="pipewright's path")
    parser.add_argument("--forward", type=float, default=30, help="milliseconds that a device's forwards sleep")
    parser.add_argument("--real", metavar="MODEL", help="train this model")
    parser.add_argument("--rounds", type=int, default=2,
                        help="runs of every family, in turn: their median counts, costs are taken from the median run")
    parser.add_argument("--devices", type=int, help="3 with sleeping blocks, 2 with --real")
    given = parser.parse_args()
    devices = given.devices or (2 if given.real else len(PACE))
    maths = ["--maths", "training", "--steps", "15"] if given.real else ["--maths", "timed", "--steps", "7"]
    folder = tempfile.mkdtemp()

    def call(*words):
        done = subprocess.run([given.program, *words], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def median_step(family, trace):
        result = json.loads(call("run", f"{family}.json", "--backend", "host", *maths, "--json", "-o", trace))
        return statistics.median(result["step_ns"][1:])

    for family in FAMILIES:
        file = f"{family}.json"
        call("new", family, "--devices", f"{devices}", "--microbatches", f"{2 * devices}", "--cluster", "host",
             *(["--model", given.real] if given.real else []), "-o", file)
        if not given.real:
            set_pace(f"{folder}/{file}", given.forward * 1e6)
    rounds = [{f: median_step(f, f"{f} {turn}.db") for f in FAMILIES} for turn in range(given.rounds)]
    measured = {f: statistics.median(turn[f] for turn in rounds) for f in FAMILIES}
    apart = {f: max(turn[f] for turn in rounds) - min(turn[f] for turn in rounds) for f in FAMILIES}

    for recorded in RECORDED:
        # The median run, not one that other work on the machine delayed.
        usual = sorted(range(given.rounds), key=lambda turn: rounds[turn][recorded])[given.rounds // 2]
        trace = f"{recorded} {usual}.db"
        predicted = {f: json.loads(call("predict", f, "--costs-from", trace, "--json"))["makespan_ns"]
                     for f in FAMILIES}
        pairs = [(a, b) for a in FAMILIES for b in FAMILIES if measured[a] < 0.99 * measured[b]]
        clear = [(a, b) for a, b in pairs if max(turn[a] for turn in rounds) < min(turn[b] for turn in rounds)]
        right, clearly = (sum(predicted[a] < predicted[b] for a, b in some) for some in (pairs, clear))
        print(f"recorded {recorded}: {right} of {len(pairs)} pairs more than 1 % apart in order,"
              f" {clearly} of the {len(clear)} that no round of either contradicts")
        call("calibrate", f"{recorded}.json", trace, "-o", "known.json", "--force")
        print(f"  gaps of the host: {gaps_of(f'{folder}/known.json')}")
        for family in FAMILIES:
            print(f"  {family:18} measured {measured[family] / 1e6:8.1f} ms"
                  f"  error {100 * (predicted[family] / measured[family] - 1):+6.2f} %"
                  f"  rounds apart {100 * apart[family] / measured[family]:6.2f} %")


main()
