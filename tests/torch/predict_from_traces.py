#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicts six schedules from one recorded PyTorch run, and compares with what PyTorch then takes.

    predict_from_traces.py [options] PIPEWRIGHT FOLDER

Four processes train a model whose layers sleep (sleeping_layers.py). 1F1B and GPipe are recorded by torch.profiler as
it is: run by PyTorch's runtime, which names its blocks, and as the stock schedules, which do not. From each recording
alone `pipewright import`, `calibrate`, `new --costs-from` and `predict` say how long a step of every schedule takes.
Exits 1 when a prediction is off by more than the tolerance and by more than the steps differ among themselves, or when
two schedules whose measured medians lie more than 1 % apart are predicted in the other order.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys

import sleeping_layers

FAMILIES = ["1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "looped-bfs", "zb-v"]
RECORDED = {"1f1b": "1f1b", "gpipe": "gpipe", "Schedule1F1B": "1f1b", "ScheduleGPipe": "gpipe"}


class Pipewright:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words):
        result = subprocess.run([self.program, *words], capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"pipewright {' '.join(words)}: {result.stderr}")
        return result.stdout

    def design(self, family, options):
        """With round costs in the model's ratio of forward, input and weight gradient, which a recording replaces."""
        file = self.path(family + ".json")
        times = [f"{each * options.layers / options.ranks:g}ms" for each in map(float, options.times.split(","))]
        self.run("new", family, "--devices", str(options.ranks), "--microbatches", str(options.microbatches),
                 "--forward", times[0], "--input-grad", times[1], "--weight-grad", times[2], "--saved", "1KiB",
                 "-o", file, "--force")
        return file

    def schedule(self, family, options):
        file = self.path(family + ".csv")
        self.run("export", self.design(family, options), "--to", options.format, "-o", file, "--force")
        return file

    def predictions(self, recorded, options):
        """Of every family in ms, by the costs of one recording."""
        trace, costs, design = (self.path(recorded + end) for end in (".db", "-costs.json", "-design.json"))
        self.run("import", os.path.join(options.record, recorded), "-o", trace, "--force")
        self.run("calibrate", self.path(RECORDED[recorded] + ".json"), trace, "-o", costs, "--force")
        result = {}
        for family in FAMILIES:
            self.run("new", family, "--costs-from", costs, "-o", design, "--force")
            result[family] = json.loads(self.run("predict", design, "--json"))["makespan_ns"] / 1e6
        return result


def measure(options, schedules, record):
    asked = argparse.Namespace(**vars(options))
    asked.times = [float(part) / 1000 for part in options.times.split(",")]
    asked.schedules, asked.record = schedules, record
    return {name: [step / 1e6 for step in steps] for name, steps in sleeping_layers.measure(asked).items()}


def kendall(measured, predicted):
    """Pairs more than 1 % apart in the order they were measured in, and all such pairs."""
    pairs = itertools.combinations(FAMILIES, 2)
    pairs = [(a, b) for a, b in pairs if abs(measured[a] / measured[b] - 1) > 0.01]
    return sum((measured[a] < measured[b]) == (predicted[a] < predicted[b]) for a, b in pairs), len(pairs)


def main():
    parser = sleeping_layers.argument_parser(__doc__)
    parser.add_argument("--format", default="pytorch-comms-csv", help="of schedules for the installed PyTorch")
    parser.add_argument("--tolerance", type=float, default=0.03)
    parser.add_argument("pipewright")
    parser.add_argument("folder")
    options = parser.parse_args()
    options.record = os.path.join(options.folder, "recorded")
    pipewright = Pipewright(options.pipewright, options.folder)

    files = {family: pipewright.schedule(family, options) for family in FAMILIES}
    recordings = [(name, files.get(name, name)) for name in RECORDED]
    recorded = measure(options, recordings, options.record)
    runs = measure(options, list(files.items()), None)
    measured = {family: statistics.median(steps) for family, steps in runs.items()}
    # Half the distance from the fastest to the slowest step, as a share: what a prediction cannot be held to.
    noise = {family: (max(steps) - min(steps)) / 2 / measured[family] for family, steps in runs.items()}
    predicted = {name: pipewright.predictions(name, options) for name in RECORDED}

    failed = False
    print(f"| schedule | PyTorch, ms (fastest to slowest) | {' | '.join('from ' + name for name in RECORDED)} |")
    print(f"| --- | --- |{' --- |' * len(RECORDED)}")
    for family in FAMILIES:
        cells = []
        for name in RECORDED:
            error = predicted[name][family] / measured[family] - 1
            outside = abs(error) > options.tolerance
            failed = failed or (outside and abs(error) > noise[family])
            cells.append(f"{predicted[name][family]:.0f} ({100 * error:+.1f} %){' !' if outside else ''}")
        steps = runs[family]
        print(f"| {family} | {measured[family]:.0f} ({min(steps):.0f} to {max(steps):.0f}) | {' | '.join(cells)} |")
    for name in RECORDED:
        right, pairs = kendall(measured, predicted[name])
        failed = failed or right < pairs
        took = statistics.median(recorded[name])
        print(f"{name}: recorded at {took:.0f} ms a step; {right} of {pairs} pairs in order")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
