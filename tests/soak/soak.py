# SPDX-License-Identifier: GPL-3.0-or-later
"""Round after round of faults; see ../soak.sh."""
import argparse
import collections
import os
import random
import shutil
import sys
import time
import traceback

from faults import FAULTS
from workplace import Broken, Workplace

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program_of(given):
    built = [os.path.join(ROOT, "build", kind, "bin", "pipewright") for kind in ("release", "dev")]
    for path in [given] if given else built:
        if os.access(path, os.X_OK):
            return os.path.abspath(path)
    sys.exit("no program: build it, or name it with --program")


def one_round(program, number, only, keep, patience):
    """None, or what broke."""
    names = only or sorted(FAULTS)
    # Every fault comes once before any comes again; all that a round does follows from its number.
    name = names[number % len(names)]
    work = Workplace(program, f"{name}-{number}", patience)
    try:
        FAULTS[name](work, random.Random(f"{name} {number}"))
        work.require_nobody_left()
        return name, None
    except Exception as broken:  # a fault of this suite is one too
        place = os.path.join(keep, f"{name}-{number}")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(keep, exist_ok=True)
        shutil.copytree(work.folder, place, symlinks=True, ignore_dangling_symlinks=True)
        with open(os.path.join(place, "what-was-said.txt"), "w", encoding="utf-8") as file:
            file.write(f"{broken!r}\n\n" + "\n".join(work.said) + "\n")
        what = str(broken) if isinstance(broken, Broken) else "".join(traceback.format_exception(broken))
        return name, f"{what}\n  kept in {place}"
    finally:
        work.close()


def main():
    parser = argparse.ArgumentParser(prog="tests/soak.sh", description="Faults, kills and lies, for as long as asked")
    parser.add_argument("minutes", type=float, nargs="?", default=None)
    parser.add_argument("--seed", type=int, default=None, help="number of the first round (by the clock)")
    parser.add_argument("--round", type=int, default=None, help="this round alone")
    parser.add_argument("--only", action="append", choices=sorted(FAULTS), help="these faults alone")
    parser.add_argument("--program", default=None, help="the built program")
    parser.add_argument("--keep", default=os.path.join(ROOT, "build", "soak"), help="where failures are kept")
    parser.add_argument("--patience", type=float, default=90, help="seconds that anything may take")
    parser.add_argument("--list", action="store_true", help="names of the faults")
    given = parser.parse_args()
    if given.list:
        print("\n".join(f"{name}: {(FAULTS[name].__doc__ or '').strip()}" for name in sorted(FAULTS)))
        return 0
    if given.minutes is None and given.round is None:
        parser.error("say for how many minutes")
    program = program_of(given.program)
    by_clock = int(time.time()) % 10**6
    first = next(number for number in (given.round, given.seed, by_clock) if number is not None)
    print(f"{program}, from round {first}", flush=True)
    until = time.monotonic() + 60 * (given.minutes or 0)
    number, done, failed = first, collections.Counter(), 0
    while True:
        name, broken = one_round(program, number, given.only, given.keep, given.patience)
        done[name] += 1
        if broken:
            failed += 1
            print(f"FAILED tests/soak.sh --only {name} --round {number}: {broken}", flush=True)
        number += 1
        if given.round is not None or time.monotonic() >= until:
            break
    print(", ".join(f"{count} {name}" for name, count in sorted(done.items())))
    print(f"{sum(done.values())} rounds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
