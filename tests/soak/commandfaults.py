# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults done to any command: killed amid its work, no room, little memory, limits of its own."""
import json
import os
import resource
import signal
import subprocess
import time

from faults import VIRTUAL, design, fault
from workplace import Broken, require, require_answer, require_kept, steps_of


CHAIN = {"pipewright": 1, "bytes_per_element": 1, "cluster": {
    "devices": [{"name": "fast", "peak_flops": 2, "efficiency": 1}, {"name": "slow", "peak_flops": 1, "efficiency": 1}],
    "collectives": {each: {"bandwidth": 1} for each in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")},
    "grouped_collectives": False}}
MODULE = """import torch
def build():
    return [torch.nn.Linear(8, 8) for _ in range(4)]
def batch(step):
    return torch.ones(4, 8), torch.ones(4, 8)
def loss(output, target):
    return ((output - target) ** 2).mean()
"""


def commands(work, random):
    """A command that writes `result`, and what tells whether it is whole."""
    devices = design(work, random)
    work.make("run", "design.json", "--backend", "host", *VIRTUAL, "--steps", "3", "-o", "trace.db")
    large = "64" if work.small else str(random.choice([64, 1024, 8192]))
    name = random.choice(["import", "import", "shard", "profile", "devices", "other", "other", "other", "other"])
    if name == "import":
        if random.random() < 0.5:
            work.make("new", "1f1b", "--devices", "8", "--microbatches", large, "-o", "large.json")
            work.make("export", "large.json", "--to", "chrome", "-o", "chrome.json")
            return ["import", "chrome.json", "-o", "result.db"], "result.db"
        work.make("new", "1f1b", "--devices", str(devices), "--microbatches", large, "-o", "large.json")
        work.make("export", "large.json", "--to", "pytorch-csv", "-o", "order.csv")
        return ["import", "order.csv", "-o", "result.json"], "result.json"
    if name == "shard":
        with open(work.path("chain.json"), "w", encoding="utf-8") as file:
            widths = [4] + [8 * random.randint(1, 4) for _ in range(random.randint(1, 6))] + [4]
            json.dump({**CHAIN, "mlp": {"batch": 6, "widths": widths}}, file)
        return ["shard", "chain.json", "--time-limit", "2s", "-o", "result.json"], "result.json"
    if name == "profile":  # says what is missing where there is no PyTorch
        with open(work.path("own.py"), "w", encoding="utf-8") as file:
            file.write(MODULE)
        return ["profile", "--torch", "own.py:build", "--seconds", "0.01", "--device", "host", "--python", work.python,
                "-o", "result.json"], "result.json"
    if name == "devices":
        return ["devices", "--measure", "--devices", "2", "--python", work.python, "-o", "result.json"], "result.json"
    return random.choice([
        (["new", "1f1b", "--devices", "8", "--microbatches", large, "-o", "result.json"], "result.json"),
        (["calibrate", "design.json", "trace.db", "-o", "result.json"], "result.json"),
        (["search", "design.json", "--time-limit", "1s", "-o", "result.json"], "result.json"),
        (["export", "design.json", "--to", random.choice(["chrome", "perfetto", "blocks-csv", "jaxpp", "pytorch-csv"]),
          "-o", "result.out"], "result.out"),
        (["export", "trace.db", "--to", "html", "-o", "result.html"], "result.html"),
        (["render", "design.json", "-o", "result.svg"], "result.svg"),
        (["experiment", "design.json", "--steps", "20", "-o", "result.csv"], "result.csv"),
    ])


@fault
def kill_command(work, random):
    """An old result is only replaced by a finished new one."""
    words, result = commands(work, random)
    whole = work.run(*words)
    if whole.code != 0:
        require_answer(whole)
        return  # some family that the format refuses
    with open(work.path(result), "rb") as file:
        new = file.read()
    old = b"what was there before\n"
    with open(work.path(result), "wb") as file:
        file.write(old)
    process = work.start(*words, "--force")
    time.sleep(random.random() * min(2.0, 1.2 * whole.seconds))
    work.strike(process, signal.SIGKILL, "command")
    outcome = work.finish(process)
    with open(work.path(result), "rb") as file:
        there = file.read()
    # What is measured or dated differs from run to run; then it has to be whole, as far as its end tells.
    timed = words[0] in ("search", "experiment", "calibrate", "profile", "devices", "import", "shard") or (
        result.endswith(".html"))
    whole_again = there[:15] == b"SQLite format 3" or there[-1:] in (b"\n", b">", b"}")
    require(there == old or there == new or (timed and outcome.code in (0, -9) and whole_again),
            f"{' '.join(words)}: {len(there)} bytes, neither the old {len(old)} nor the new {len(new)}")
    require(work.run(*words, "--force").code == 0, f"{' '.join(words)} after it was killed")
    work.require_no_temporaries()


@fault
def full_disk(work, random):
    """No room for all of a file: by its own limit, or on a small disk where one can be mounted."""
    words, result = commands(work, random)
    if random.random() < 0.5:
        words, result = ["run", "design.json", "--backend", "host", "--steps", "20", "-o", "result.db"], "result.db"
    limits, disk = {}, work.path("disk")
    os.mkdir(disk)
    kilobytes = random.choice([0, 4, 16, 64, 256])
    mounted = random.random() < 0.5 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={max(4, kilobytes)}k", "soak", disk], capture_output=True,
        check=False).returncode == 0
    try:
        if mounted:
            words = [os.path.join("disk", word) if word == result else word for word in words]
            result = os.path.join("disk", result)
        else:
            limits = {resource.RLIMIT_FSIZE: kilobytes << 10}
        work.fault("host" if words[0] == "run" else "command")
        outcome = work.run(*words, limits=limits)
        require_answer(outcome, f"{kilobytes} KiB of room: ")
        path = work.path(result)
        if outcome.code == 0:
            require(os.path.getsize(path) > 0, f"{kilobytes} KiB of room: success, and {result} is empty")
        elif os.path.exists(path) and result.endswith(".db"):
            steps_of(path)
        elif os.path.exists(path):
            raise Broken(f"{kilobytes} KiB of room: {outcome}, and a part of {result} is there")
    finally:
        if mounted:
            subprocess.run(["umount", "-l", disk], check=False)


@fault
def limits(work, random):
    """Little memory, few descriptors, few threads, no place for what is said."""
    words, _ = commands(work, random)
    if random.random() < 0.6:
        words = ["run", "design.json", "--backend", random.choice(["host", "host", "mpi"]), "--steps", "2", "-o",
                 "result.db", "--deadline", "5s"]
    kind = random.choice(["memory", "files", "stack", "silent"])
    given, options = {}, {}
    if kind == "memory":
        given = {resource.RLIMIT_AS: random.randrange(120, 1500) << 20}
    elif kind == "files":
        given = {resource.RLIMIT_NOFILE: random.randrange(3, 40)}
    elif kind == "stack":
        given = {resource.RLIMIT_STACK: random.choice([64, 256, 1024]) << 10}
    else:
        options = {random.choice(["out", "err"]): open("/dev/full", "wb")}
    work.fault(words[words.index("--backend") + 1] if words[0] == "run" else "command")
    outcome = work.run(*words, limits=given, **options)
    told = f"{kind} {list(given.values())}: "
    # What the loader of programs itself cannot do has codes of its own. On a stack of 64 KiB the libraries of MPI may
    # end at any time.
    tiny = given.get(resource.RLIMIT_STACK, 1 << 20) <= 64 << 10
    starved = outcome.code in (127, -signal.SIGSEGV, -signal.SIGKILL) and (
        tiny or (kind in ("memory", "stack", "files") and outcome.seconds < 0.5))
    if not starved:
        require(outcome.code in (0, 1, 2), told + str(outcome))
        require(outcome.code == 0 or outcome.err.strip() or "err" in options, told + f"{outcome} in silence")
        require("out" not in options or outcome.code != 0, told + "lost its output and gave 0")
    work.require_nobody_left()


@fault
def time_limits(work, random):
    """What has a limit of time ends near it, however large the design or endless the statement."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
    limit = random.choice(["0ms", "10ms", "1s", "3s"])
    if random.random() < 0.5:
        microbatches = 16 if work.small else random.choice([16, 256, 4096])
        work.make("new", random.choice(["1f1b", "zb-h1", "gpipe"]), "--devices", str(random.choice([4, 16, 64])),
                  "--microbatches", str(microbatches), "-o", "large.json")
        words = ["search", "large.json", "--time-limit", limit, "-o", "result.json"]
    else:
        design(work, random)
        work.make("run", "design.json", "--backend", "host", *VIRTUAL, "--steps", "3", "-o", "trace.db")
        words = ["query", "trace.db", endless + random.choice(
            ["count(*) FROM n", "max(i) FROM n", "count(*) FROM n AS a, n AS b",
             "group_concat(hex(zeroblob(9999))) FROM n", "i FROM n ORDER BY i DESC"])]
        words += ["--time-limit", limit, "--memory-limit", random.choice(["1MiB", "64MiB"])]
    work.fault("command")
    outcome = work.run(*words, within=30)
    require_answer(outcome, f"within {limit}: ")
    require(words[0] == "search" or outcome.code != 0, f"an endless statement gave a result: {outcome}")


@fault
def others_files(work, random):
    """Folders and files of others that are called like ours stay, and programs of the current folder are not run."""
    words, result = commands(work, random)
    kept = []
    for name in ("pipewright-torch-notes", f"pipewright-torch-{random.randrange(10**7)}", "pipewright-ranks-mine"):
        os.makedirs(work.path(os.path.join("tmp", name)))
        kept.append(os.path.join("tmp", name, "mine"))
    kept += [f"{result}.unfinished-{random.choice(['notes', 'abcdef', '123456', ''])}"]
    for name in kept:
        with open(work.path(name), "w", encoding="utf-8") as file:
            file.write("mine")
    for name in ("python3", "mpirun", "rm", "sh", "env", "pipewright"):
        with open(work.path(name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n: >planted-ran\n")
        os.chmod(work.path(name), 0o700)
    work.fault("command")
    path = os.environ.get("PATH", "/usr/bin:/bin")
    outcome = work.run(*words, TMPDIR=work.path("tmp"), PATH=random.choice([f":{path}", f".:{path}", f"{path}:"]))
    require_answer(outcome, "beside others' files: ")
    for name in kept:
        require(os.path.exists(work.path(name)), f"{name} is gone after {outcome}")
        os.remove(work.path(name))
    require(not os.path.exists(work.path("planted-ran")), f"a program of the current folder ran: {outcome}")


@fault
def read_while_written(work, random):
    """A trace that grows is read by others, who are killed; its run and its steps do not mind."""
    design(work, random)
    run = work.start("run", "design.json", "--backend", "host", *VIRTUAL, "--steps", "200", "-o", "trace.db",
                     "--progress", "none")
    while run.poll() is None:
        time.sleep(random.random() * 0.3)
        if not os.path.exists(work.path("trace.db")):
            continue
        words = random.choice([["explain", "trace.db"], ["query", "trace.db", "SELECT count(*) FROM RECORDS"],
                               ["query", "trace.db", "--schema"], ["compare", "design.json", "trace.db"]])
        reader = work.start(*words)
        if random.random() < 0.5:
            time.sleep(random.random() * 0.2)
            work.strike(reader, signal.SIGKILL, "command")
            work.finish(reader)
        else:
            require_answer(work.finish(reader), "of a trace that grows: ")
    outcome = work.finish(run)
    require(outcome.code == 0, f"its trace was read meanwhile: {outcome}")
    require_kept(work, None, work.path("trace.db"))
    require(len(steps_of(work.path("trace.db"))) == 200, "steps are missing though the run finished")
