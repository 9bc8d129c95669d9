#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody's transformer all the way, each step one command: profile, partition, predict, run over four ranks, compare.

    whole_way.py [--python PYTHON] [--families A,B…] [--steps N] [--timing] [--table] PIPEWRIGHT

The model is rotary.py. Of its profile six families are designed and predicted; each runs on four processes with gloo and
is laid over its design. It fails where a gradient is not the whole module's, or a rank's peak memory is off by more than
MEMORY. Times of real layers are reported beside how much steps differ, as everything that runs on the machine is in them.
Then the same with layers that sleep (rotary_asleep.py). With --timing these decide: makespans are predicted within MAKESPAN,
or within how much steps differ where that is more, and schedules whose measured makespans lie more than 1 % apart come in the
predicted order. --table prints the tables of resources/experiments/own-model-pytorch.md. Exits 77 and says why when the
interpreter has no PyTorch.
"""

import argparse
import itertools
import os
import statistics
import sys
import tempfile

from own_model import FAMILIES, Pipewright, has_torch

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS, MICROBATCHES = 4, 8
MEMORY, MAKESPAN = 0.02, 0.03


class Way:
    """Of one of the two models: its profile, and what became of each family."""

    def __init__(self, pipewright, model, steps):
        self.pipewright, self.module, self.steps = pipewright, os.path.join(HERE, model) + ".py:build", steps
        self.model = model + ".json"
        pipewright.run("profile", "--torch", self.module, "--microbatches", str(MICROBATCHES), "--seconds", "0.2",
                       "--python", pipewright.python, "-o", self.model, "--force")

    def family(self, family):
        pipewright = self.pipewright
        design, trace = family + ".json", family + ".db"
        pipewright.run("new", family, "--devices", str(RANKS), "--microbatches", str(MICROBATCHES), "--model", self.model,
                       "-o", design, "--force")
        predicted = pipewright.json("predict", design)["makespan_ns"]
        report = pipewright.json("run", design, "--backend", "torch", "--module", self.module, "--python", pipewright.python,
                                 "--ranks", str(RANKS), "--steps", str(self.steps), "-o", trace, "--force")
        compared = pipewright.json("compare", design, trace)
        assert compared["blocks"]["unmatched"] == 0, compared
        steps = report["step_ns"][1:]
        measured = statistics.median(steps)
        return {"gradients": report["gradient_check"],
                "memory": [(device["peak_bytes"]["predicted"], device["peak_bytes"]["measured"])
                           for device in compared["per_device"]],
                "predicted": predicted / 1e6, "measured": measured / 1e6,
                "noise": (max(steps) - min(steps)) / 2 / measured}


def off(predicted, measured):
    return predicted / measured - 1


def percent(share):
    return f"{100 * share:+.1f} %"


def rows(results):
    for family, of in results.items():
        check = of["gradients"]
        yield (family, "bit-equal" if check["bit_equal"] else f"{check['max_relative_error']:.1e}",
               " ".join(percent(off(*pair)) for pair in of["memory"]), f"{of['predicted']:.1f} ms", f"{of['measured']:.1f} ms",
               percent(off(of["predicted"], of["measured"])), f"± {100 * of['noise']:.1f} %")


def print_table(what, results):
    titles = "schedule", "gradients", "memory by rank", "predicted", "measured", "error", "steps differ"
    print(f"\n{what}\n\n| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    for row in rows(results):
        print(f"| {' | '.join(row)} |")


def wrong_in_gradients(results):
    for family, of in results.items():
        check = of["gradients"]
        if not check["max_relative_error"] <= check["within"]:
            yield f"{family}: gradients are not the whole module's: {check}"


def wrong_in_memory(results):
    for family, of in results.items():
        for rank, pair in enumerate(of["memory"]):
            if abs(off(*pair)) > MEMORY:
                yield f"{family}: rank {rank} held {pair[1]} bytes, predicted {pair[0]} ({percent(off(*pair))})"


def wrong_in_times(results):
    for family, of in results.items():
        error = abs(off(of["predicted"], of["measured"]))
        if error > max(MAKESPAN, of["noise"]):
            yield f"{family}: {of['measured']:.1f} ms, predicted {of['predicted']:.1f} ms"
    for one, other in itertools.combinations(results, 2):
        apart = off(results[one]["measured"], results[other]["measured"])
        if abs(apart) > 0.01 and (apart > 0) != (results[one]["predicted"] > results[other]["predicted"]):
            yield f"{one} and {other} are predicted in the other order"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("PYTHON", "python3"))
    parser.add_argument("--families", default=",".join(FAMILIES), type=lambda text: text.split(","))
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--timing", action="store_true", help="let times of sleeping layers decide")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("pipewright")
    options = parser.parse_args()
    if not has_torch(options.python):
        return 77
    wrong = []
    for model in ("rotary", "rotary_asleep"):
        with tempfile.TemporaryDirectory() as folder:
            way = Way(Pipewright(os.path.abspath(options.pipewright), options.python, folder), model, options.steps)
            results = {family: way.family(family) for family in options.families}
        if options.table:
            print_table(model, results)
        else:
            for row in rows(results):
                print(f"{model}: " + ", ".join(row), flush=True)
        wrong += wrong_in_gradients(results)
        # Who sleeps keeps next to nothing; who works takes longer for everything that runs beside it.
        if model == "rotary":
            wrong += wrong_in_memory(results)
        elif options.timing:
            wrong += wrong_in_times(results)
    for each in wrong:
        print("FAILED " + each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
