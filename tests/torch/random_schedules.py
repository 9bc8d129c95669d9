#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes schedules that no family would make, as a person may edit them: FOLDER/random-N.only.csv.

    random_schedules.py FOLDER COUNT

Stages lie on any ranks, as many as there happen to be; every rank takes any block that is ready next, with full and
split backwards as they come. Only the last stage's forwards keep the order of the microbatches, as PyTorch needs it.
"""

import random
import sys


def schedule(draw):
    ranks = draw.choice((2, 2, 3, 4))
    stages = ranks + draw.randrange(ranks + 2)
    microbatches = draw.randrange(1, 7)
    rank_of = list(range(ranks)) + [draw.randrange(ranks) for _ in range(stages - ranks)]
    draw.shuffle(rank_of)
    split = {(s, m) for s in range(stages) for m in range(microbatches) if draw.random() < 0.5}
    ready = {("F", 0, m) for m in range(microbatches)}
    rows = [[] for _ in range(ranks)]
    losses = 0
    while ready:
        possible = sorted(b for b in ready if b[:2] != ("F", stages - 1) or b[2] == losses)
        op, stage, microbatch = block = draw.choice(possible)
        ready.remove(block)
        rows[rank_of[stage]].append(f"{stage}{op}{microbatch}")
        if op == "F" and stage + 1 < stages:
            ready.add(("F", stage + 1, microbatch))
            continue
        if op == "F":
            losses += 1
            before = stage
        elif op == "W":
            continue
        else:
            before = stage - 1
        if op == "I":
            ready.add(("W", stage, microbatch))
        if before >= 0:
            ready.add(("I" if (before, microbatch) in split else "B", before, microbatch))
    return rows


if __name__ == "__main__":
    for number in range(int(sys.argv[2])):
        with open(f"{sys.argv[1]}/random-{number}.only.csv", "w", encoding="ascii") as file:
            file.writelines(",".join(row) + "\n" for row in schedule(random.Random(number)))
