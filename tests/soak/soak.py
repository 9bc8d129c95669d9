# SPDX-License-Identifier: GPL-3.0-or-later
"""Round after round of faults; see ../soak.sh."""
import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import sys
import time
import traceback

import commandfaults  # noqa: F401  the faults of these register themselves
import filefaults  # noqa: F401
import rankfaults  # noqa: F401
from faults import FAULTS
from workplace import Broken, Hung, Lost, Orphaned, Workplace, adopt_orphans

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BACKENDS = ("host", "mpi", "sockets", "torch", "command")


def program_of(given):
    built = [os.path.join(ROOT, "build", kind, "bin", "pipewright") for kind in ("release", "dev")]
    for path in [given] if given else built:
        if os.access(path, os.X_OK):
            return os.path.abspath(path)
    sys.exit("no program: build it, or name it with --program")


def attempt(given, name, number, keep=None, small=False):
    """Figures of the round, and what broke or None; then its files are kept in `keep`."""
    work = Workplace(given.program, f"{name}-{number}", given.patience, given.python, small)
    try:
        FAULTS[name](work, random.Random(f"{name} {number}"))
        work.require_nobody_left()
        return work.figures, None
    except Exception as broken:  # a fault of this suite is one too
        work.figures["hangs"] += isinstance(broken, Hung)
        work.figures["orphans"] += isinstance(broken, Orphaned)
        work.figures["lost steps"] += broken.steps if isinstance(broken, Lost) else 0
        if keep:
            shutil.rmtree(keep, ignore_errors=True)
            os.makedirs(os.path.dirname(keep), exist_ok=True)
            shutil.copytree(work.folder, keep, symlinks=True, ignore_dangling_symlinks=True)
            with open(os.path.join(keep, "what-was-said.txt"), "w", encoding="utf-8") as file:
                file.write(f"{broken!r}\n\n" + "\n".join(work.said) + "\n")
        what = str(broken) if isinstance(broken, Broken) else "".join(traceback.format_exception(broken))
        return work.figures, what
    finally:
        work.close()


def one_round(given, number):
    """Its fault's name, its figures, and what broke or None."""
    names = given.only or sorted(FAULTS)
    # Every fault comes once before any comes again; all that a round does follows from its number.
    name = names[number % len(names)]
    keep = os.path.join(given.keep, f"{name}-{number}")
    figures, broken = attempt(given, name, number, keep)
    if not broken:
        return name, figures, None
    _, again = attempt(given, name, number)
    _, small = attempt(given, name, number, keep + "-small", small=True)
    return name, figures, (f"{broken}\n  kept in {keep}; repeated it {'fails' if again else 'holds'}, with the "
                           f"smallest designs it {'fails too: ' + keep + '-small' if small else 'holds'}")


def rounds(given, first):
    """Yields what one_round gives, with the number, until the time is over."""
    until = time.monotonic() + 60 * (given.minutes or 0)
    if given.round is not None or given.jobs == 1:
        number = first
        while True:
            yield number, one_round(given, number)
            number += 1
            if given.round is not None or time.monotonic() >= until:
                return
    with concurrent.futures.ProcessPoolExecutor(given.jobs, initializer=adopt_orphans) as pool:
        number, running = first, {}
        while running or time.monotonic() < until:
            while len(running) < given.jobs and time.monotonic() < until:
                running[pool.submit(one_round, given, number)] = number
                number += 1
            for done in concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED).done:
                yield running.pop(done), done.result()


def summary(done, figures, failed):
    by_backend = ", ".join(f"{figures[f'faults {backend}']} {backend}" for backend in BACKENDS)
    return "\n".join([
        ", ".join(f"{count} {name}" for name, count in sorted(done.items())),
        f"faults: {by_backend}; {sum(figures[f'faults {backend}'] for backend in BACKENDS)} in all",
        f"hangs: {figures['hangs']}, orphans: {figures['orphans']}",
        f"kills: {figures['kills']}, steps that were seen committed before one: {figures['committed steps']}, "
        f"lost: {figures['lost steps']}",
        f"{sum(done.values())} rounds, {failed} failed"])


def main():
    parser = argparse.ArgumentParser(prog="tests/soak.sh", description="Faults, kills and lies, for as long as asked")
    parser.add_argument("minutes", type=float, nargs="?", default=None)
    parser.add_argument("--seed", type=int, default=None, help="number of the first round (by the clock)")
    parser.add_argument("--round", type=int, default=None, help="this round alone")
    parser.add_argument("--jobs", type=int, default=1, help="rounds at a time (1)")
    parser.add_argument("--only", action="append", choices=sorted(FAULTS), help="these faults alone")
    parser.add_argument("--program", default=None, help="the built program")
    parser.add_argument("--python", default="python3", help="which has PyTorch, for runs on torch")
    parser.add_argument("--keep", default=os.path.join(ROOT, "build", "soak"), help="where failures are kept")
    parser.add_argument("--patience", type=float, default=90, help="seconds that anything may take")
    parser.add_argument("--list", action="store_true", help="names of the faults")
    given = parser.parse_args()
    if given.list:
        print("\n".join(f"{name}: {(FAULTS[name].__doc__ or '').strip()}" for name in sorted(FAULTS)))
        return 0
    if given.minutes is None and given.round is None:
        parser.error("say for how many minutes")
    given.program = program_of(given.program)
    by_clock = int(time.time()) % 10**6
    first = next(number for number in (given.round, given.seed, by_clock) if number is not None)
    print(f"{given.program}, from round {first}", flush=True)
    adopt_orphans()
    done, figures, failed, said = collections.Counter(), collections.Counter(), 0, time.time()
    try:
        for number, (name, counted, broken) in rounds(given, first):
            done[name] += 1
            figures.update(counted)
            if broken:
                failed += 1
                print(f"FAILED tests/soak.sh --only {name} --round {number}: {broken}", flush=True)
            if time.time() - said > 600:  # who ends it early still has figures
                said = time.time()
                print(summary(done, figures, failed), flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    print(summary(done, figures, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
