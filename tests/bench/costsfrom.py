#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# How well the costs of one recorded schedule predict others, with blocks that really sleep on three devices of
# different pace: per recorded family the error of every family's makespan beside what two runs of it differ by, and
# whether the order is the measured one.
# Where others use the machine, sleepers wake late; "chrt -f 10" before the command keeps that out.
# Usage: tests/bench/costsfrom.py PIPEWRIGHT [MILLISECONDS of a device's forward, 30]
import json
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


def main():
    program, forward = sys.argv[1], float(sys.argv[2] if len(sys.argv) > 2 else 30) * 1e6
    folder = tempfile.mkdtemp()

    def call(*words):
        done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def median_step(family, trace):
        result = json.loads(call("run", f"{family}.json", "--backend", "host", "--maths", "timed", "--steps", "7",
                                 "--json", "-o", trace))
        steps = sorted(result["step_ns"][1:])
        return steps[len(steps) // 2]

    measured, again = {}, {}
    for family in FAMILIES:
        file = f"{family}.json"
        call("new", family, "--devices", "3", "--microbatches", "6", "--cluster", "host", "-o", file)
        with open(f"{folder}/{file}") as stream:
            design = json.load(stream)
        stages, placement = design["costs"]["stages"], design["schedule"]["placement"]
        scale = forward * 3 / sum(nanoseconds(stage["forward"]) for stage in stages)
        for stage, device in zip(stages, placement):
            for key in KEYS & stage.keys():
                stage[key] = f"{round(nanoseconds(stage[key]) * scale * PACE[device])}ns"
        design["costs"]["source"] = "given"
        with open(f"{folder}/{file}", "w") as stream:
            json.dump(design, stream)
        measured[family] = median_step(family, f"{family}.db")
        again[family] = median_step(family, f"{family} again.db")

    for recorded in RECORDED:
        predicted = {f: json.loads(call("predict", f, "--costs-from", f"{recorded}.db", "--json"))["makespan_ns"]
                     for f in FAMILIES}
        pairs = [(a, b) for a in FAMILIES for b in FAMILIES if measured[a] < 0.99 * measured[b]]
        right = sum(predicted[a] < predicted[b] for a, b in pairs)
        print(f"recorded {recorded}: {right} of {len(pairs)} pairs more than 1 % apart in order")
        call("calibrate", f"{recorded}.json", f"{recorded}.db", "-o", "known.json", "--force")
        print(f"  gaps of the host: {gaps_of(f'{folder}/known.json')}")
        for family in FAMILIES:
            print(f"  {family:18} measured {measured[family] / 1e6:8.1f} ms"
                  f"  error {100 * (predicted[family] / measured[family] - 1):+6.2f} %"
                  f"  from run to run {100 * (again[family] / measured[family] - 1):+6.2f} %")


main()
