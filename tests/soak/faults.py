# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault is a function of a workplace and a random source; it raises Broken, and tells the workplace what it
struck. Its name is what --only takes. Here are those of runs of one process."""
import os
import signal
import time

from workplace import committed, require, require_answer, require_kept

FAULTS = {}
VIRTUAL = ["--maths", "timed", "--clock", "virtual"]  # steps that take next to none of the machine's time


def fault(function):
    FAULTS[function.__name__.replace("_", "-")] = function
    return function


def design(work, random, devices=None):
    family = random.choice(["1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "pipedream-2bw"])
    devices = devices or random.choice([2, 3, 4])
    if work.small:
        family, devices = "1f1b", 2
    work.make("new", family, "--devices", str(devices), "--microbatches", str(2 * devices), "-o", "design.json")
    return devices


def maths(random, ranks=False):
    """Training, or the design's times: logical ones, which several processes cannot have in common."""
    return random.choice([["--maths", "training"], ["--maths", "timed"] if ranks else VIRTUAL])


def check_trace(work, outcome, path="trace.db", finished=False):
    """Committed steps are whole, and what is unfinished says so."""
    if not os.path.exists(work.path(path)):
        require(not finished, f"no trace, though {outcome}")
        return
    require_kept(work, None, work.path(path))
    told = work.run("explain", path)
    require_answer(told, "of an unfinished trace: ")
    if finished:
        require(told.code == 0, f"of a finished trace: {told}")


@fault
def kill_run(work, random):
    """What was committed when a run is killed is there afterwards, and the next run takes its place."""
    design(work, random)
    if random.random() < 0.5:
        work.make("run", "design.json", "--backend", "host", "--steps", "1", "-o", "trace.db")
    for _ in range(4):
        old = os.path.exists(work.path("trace.db"))
        run = work.start("run", "design.json", "--backend", "host", *maths(random), "--steps", "400", "--force", "-o",
                         "trace.db", "--progress", "none")
        time.sleep(random.random() * random.choice([0.1, 1, 3]))
        before = committed(work.path("trace.db"))
        work.strike(run, signal.SIGKILL, "host")
        outcome = work.finish(run)
        require_kept(work, before, work.path("trace.db"))
        check_trace(work, outcome, finished=outcome.code == 0)
        require(not old or os.path.exists(work.path("trace.db")), "the old trace is gone")
    again = work.run("run", "design.json", "--backend", "host", "--steps", "1", "--force", "-o", "trace.db")
    require(again.code == 0, f"after a kill {again}")
    work.require_no_temporaries()


@fault
def signal_run(work, random):
    design(work, random)
    which = random.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
    run = work.start("run", "design.json", "--backend", "host", *maths(random), "--steps", "400", "-o", "trace.db",
                     "--progress", "none")
    time.sleep(random.random() * 2)
    before = committed(work.path("trace.db"))
    sent = work.strike(run, which, "host")
    outcome = work.finish(run, within=15)
    require_kept(work, before, work.path("trace.db"))
    whole = committed(work.path("trace.db")) if outcome.code == 0 else None
    require(not sent or outcome.code != 0 or (whole and len(whole[1]) == 400), f"{which.name}: {outcome}")
    if outcome.code in (1, 2):
        require(outcome.err.strip(), f"{which.name} ended it in silence")
    check_trace(work, outcome)


@fault
def stop_run(work, random):
    """A process that was stopped for a while, as by a debugger or a laptop's lid, goes on."""
    design(work, random)
    run = work.start("run", "design.json", "--backend", "host", *maths(random), "--steps", "3", "-o", "trace.db",
                     "--deadline", "20s")
    for _ in range(random.randint(1, 4)):
        time.sleep(random.random() * 0.3)
        work.strike(run, signal.SIGSTOP, "host")
        time.sleep(random.random() * 0.5)
        run.send_signal(signal.SIGCONT)
    outcome = work.finish(run)
    require(outcome.code == 0, f"stopped and continued: {outcome}")
    check_trace(work, outcome, finished=True)


@fault
def injected(work, random):
    devices = design(work, random)
    kind = random.choice(["dies", "stalls", "throws", "out-of-memory", "link-stalls", "slows"])
    where = f"{kind}:{random.randrange(devices)}:{random.randrange(2)}:{random.randrange(8)}"
    where += ":50ms" if kind == "slows" else ""
    work.fault("host")
    outcome = work.run("run", "design.json", "--backend", "host", "--steps", "3", "--deadline", "2s", "--inject", where,
                       "-o", "trace.db", within=40)
    require_answer(outcome, f"{where}: ")
    if kind == "slows":
        require(outcome.code == 0, f"{where}: {outcome}")
    check_trace(work, outcome, finished=outcome.code == 0)
