# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault is a function of a workplace and a random source; it raises Broken. Its name is what --only takes."""
import gzip
import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import time

from workplace import Broken, require, require_answer, steps_of

FAULTS = {}
VIRTUAL = ["--maths", "timed", "--clock", "virtual"]  # steps that take next to none of the machine's time


def fault(function):
    FAULTS[function.__name__.replace("_", "-")] = function
    return function


def design(work, random, devices=None):
    family = random.choice(["1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "pipedream-2bw"])
    devices = devices or random.choice([2, 3, 4])
    work.make("new", family, "--devices", str(devices), "--microbatches", str(2 * devices), "-o", "design.json")
    return devices


def maths(random, ranks=False):
    """Training, or the design's times: logical ones, which several processes cannot have in common."""
    return random.choice([["--maths", "training"], ["--maths", "timed"] if ranks else VIRTUAL])


def last_reported(text):
    steps = [0]
    for line in text.splitlines():
        try:
            steps.append(json.loads(line).get("step", 0))
        except (ValueError, AttributeError):
            pass
    return max(steps)


def check_trace(work, outcome, path="trace.db", finished=False):
    """Committed steps are whole, and what is unfinished says so."""
    if not os.path.exists(work.path(path)):
        require(not finished, f"no trace, though {outcome}")
        return
    steps = steps_of(work.path(path))
    require(steps == sorted(set(steps)), f"steps {steps}")
    told = work.run("explain", path)
    require_answer(told, "of an unfinished trace: ")
    if finished:
        require(told.code == 0, f"of a finished trace: {told}")


@fault
def kill_run(work, random):
    design(work, random)
    old = random.random() < 0.5
    if old:
        work.make("run", "design.json", "--backend", "host", "--steps", "1", "-o", "trace.db")
    steps = 40
    run = work.start("run", "design.json", "--backend", "host", *maths(random), "--steps", str(steps), "--force", "-o",
                     "trace.db", "--progress", "json")
    time.sleep(random.random() * random.choice([0.1, 1, 3]))
    run.kill()
    outcome = work.finish(run)
    check_trace(work, outcome, finished=outcome.code == 0)
    if old:
        require(os.path.exists(work.path("trace.db")), "the old trace is gone")
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
    sent = run.poll() is None
    run.send_signal(which)
    outcome = work.finish(run, within=15)
    require(not sent or outcome.code != 0 or len(steps_of(work.path("trace.db"))) == 400, f"{which.name}: {outcome}")
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
        run.send_signal(signal.SIGSTOP)
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
    outcome = work.run("run", "design.json", "--backend", "host", "--steps", "3", "--deadline", "2s", "--inject", where,
                       "-o", "trace.db", within=40)
    require_answer(outcome, f"{where}: ")
    if kind == "slows":
        require(outcome.code == 0, f"{where}: {outcome}")
    check_trace(work, outcome, finished=outcome.code == 0)


def commands(work, random):
    """A command that writes `result`, and what tells whether it is whole."""
    design(work, random)
    work.make("run", "design.json", "--backend", "host", *VIRTUAL, "--steps", "3", "-o", "trace.db")
    large = str(random.choice([64, 1024, 8192]))
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
    process.kill()
    outcome = work.finish(process)
    with open(work.path(result), "rb") as file:
        there = file.read()
    timed = words[0] in ("search", "experiment", "calibrate") or result.endswith(".html")
    require(there == old or there == new or (timed and outcome.code in (0, -9) and there[-1:] in (b"\n", b">", b"}")),
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
    outcome = work.run(*words, limits=given, **options)
    told = f"{kind} {list(given.values())}: "
    # What the loader of programs itself cannot do has codes of its own; OpenBLAS, which starts its threads before main,
    # says that it cannot and interrupts the process.
    starved = outcome.code in (127, -signal.SIGSEGV, -signal.SIGKILL, -signal.SIGINT) and kind in ("memory", "stack", "files") and (
        outcome.seconds < 0.5)
    if not starved:
        require(outcome.code in (0, 1, 2), told + str(outcome))
        require(outcome.code == 0 or outcome.err.strip() or "err" in options, told + f"{outcome} in silence")
        require("out" not in options or outcome.code != 0, told + "lost its output and gave 0")
    work.require_nobody_left()


def free_port(random):
    """And the one behind it. Below those that the system gives to whoever connects: such a one, connected to itself,
    would hold the port."""
    while True:
        port = random.randrange(12_000, 30_000)
        try:
            for each in (port, port + 1):
                with socket.socket() as taken:
                    taken.bind(("127.0.0.1", each))
            return port
        except OSError:
            pass


def start_ranks(work, random, ranks, *words):
    port = free_port(random)
    return [work.start("run", "design.json", "--backend", "mpi", "-o", "trace.db", "--force", *words, RANK=str(rank),
                       WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            for rank in range(ranks)]


@fault
def rank_ends(work, random):
    """One of several ranks dies, is stopped or asked to end, at any time: all end."""
    ranks = design(work, random)
    processes = start_ranks(work, random, ranks, "--steps", "400", "--deadline", "4s", *maths(random, True), "--progress",
                            "none")
    time.sleep(random.random() * random.choice([0.1, 2, 4]))
    victim = random.choice(processes)
    which = random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGSEGV, signal.SIGINT])
    victim.send_signal(which)
    outcomes = []
    for process in processes:
        if process is not victim:
            outcomes.append(work.finish(process, within=40))
    if which == signal.SIGSTOP:
        victim.kill()
    last = work.finish(victim)
    for outcome in outcomes:
        require(outcome.code >= 0, f"{which.name} to another rank: {outcome}")
        require(outcome.code == 0 or any(o.err.strip() for o in [*outcomes, last]), f"{which.name}: all were silent")
    if os.path.exists(work.path("trace.db")):
        steps_of(work.path("trace.db"))
    work.require_nobody_left()


@fault
def strangers(work, random):
    """Whoever reaches the port and knows no secret is neither let in nor able to hold up those who are."""
    ranks = design(work, random)
    port = free_port(random)
    environment = dict(WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    words = ["run", "design.json", "--backend", "mpi", "--steps", "2", "-o", "trace.db", "--force", "--deadline", "20s"]
    processes = [work.start(*words, RANK="0", **environment)]
    guests, until = [], time.monotonic() + 2
    for _ in range(random.randint(1, 40)):
        guest = socket.socket()
        guest.settimeout(0.5)
        while time.monotonic() < until:
            try:
                guest.connect(("127.0.0.1", port + random.choice([0, 0, 0, 1])))
                break
            except OSError:
                time.sleep(0.02)
        try:
            guest.send(random.choice([b"", b"GET / HTTP/1.0\r\n\r\n", b"\0" * 200, b"\xff" * 4096,
                                      random.randbytes(1 + random.randrange(400))]))
            if random.random() < 0.3:
                guest.close()
        except OSError:
            pass
        guests.append(guest)
    processes += [work.start(*words, RANK=str(rank), **environment) for rank in range(1, ranks)]
    outcomes = [work.finish(process, within=60) for process in processes]
    for guest in guests:
        guest.close()
    for outcome in outcomes:
        require(outcome.code == 0, f"with {len(guests)} strangers at the port: {outcome}")
    work.require_nobody_left()


def has_mpi(work):
    return json.loads(work.make("devices", "--json").out)["mpi"]["available"]


@fault
def launcher_ends(work, random):
    """The program's own launcher over MPI, or one of its ranks, gets a signal at any time."""
    design(work, random)
    if not has_mpi(work):
        return
    run = work.start("run", "design.json", "--backend", "mpi", "--steps", "300", "--deadline", "5s", "-o", "trace.db",
                     "--progress", "none", *maths(random, True))
    time.sleep(random.random() * random.choice([0.3, 3, 6]))
    which = random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
    others = [pid for pid in work.left_over() if pid != run.pid]
    victim = random.choice(others) if others and random.random() < 0.6 else run.pid
    try:
        os.kill(victim, which)
    except ProcessLookupError:
        pass
    outcome = work.finish(run, within=60)
    if victim != run.pid:
        require(outcome.code >= 0, f"{which.name} to one of its processes: {outcome}")
        require(outcome.code == 0 or outcome.err.strip(), f"{which.name} to one of its processes: ended in silence")
    work.require_nobody_left(within=25)
    if os.path.exists(work.path("trace.db")):
        steps_of(work.path("trace.db"))


def mutated(random, content):
    """The same with some of its bytes changed, moved, doubled or gone."""
    content = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 8, 64])):
        if not content:
            break
        at = random.randrange(len(content))
        length = min(len(content) - at, random.choice([1, 2, 8, 64, 4096]))
        kind = random.randrange(6)
        if kind == 0:
            content[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            del content[at:at + length]
        elif kind == 2:
            content[at:at] = content[at:at + length]
        elif kind == 3:
            content[at:at + length] = random.randbytes(length)
        elif kind == 4:
            other = random.randrange(len(content))
            content[at:at + length] = content[other:other + length]
        else:
            content[at:at + length] = random.choice([b"-1", b"1e308", b"9223372036854775807", b"null", b"\0",
                                                     b"\x1b[2J"])
    return bytes(content)


def inputs(work, random):
    """A right input, and the commands that read it."""
    design(work, random, devices=2)
    kind = random.choice(["design", "trace", "chrome", "gzip", "csv", "table", "model", "views"])
    if kind == "design":
        return "design.json", [["predict", "IT"], ["check", "IT", "--for", "host"],
                               ["render", "IT", "-o", "out.svg", "--force"],
                               ["export", "IT", "--to", "chrome", "-o", "out", "--force"],
                               ["run", "IT", "--backend", "host", *VIRTUAL, "--steps", "1", "-o", "out.db", "--force",
                                "--deadline", "5s"]]
    if kind in ("trace", "views"):
        work.make("run", "design.json", "--backend", "host", *VIRTUAL, "--steps", "3", "-o", "trace.db")
        if kind == "views":
            with sqlite3.connect(work.path("trace.db")) as database:
                table = random.choice(["RECORDS", "STEPS", "TASKS", "META", "MEMORY", "DEVICES"])
                columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
                database.execute(f"ALTER TABLE {table} RENAME TO MINE")
                endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                database.execute(f"CREATE VIEW {table} AS {endless} SELECT "
                                 f"{', '.join('i AS ' + column for column in columns)} FROM n")
            database.close()
        return "trace.db", [["explain", "IT"], ["compare", "design.json", "IT"], ["query", "IT", "--schema"],
                            ["query", "IT", "SELECT count(*) FROM RECORDS"],
                            ["calibrate", "design.json", "IT", "-o", "out.json", "--force"],
                            ["export", "IT", "--to", "html", "-o", "out", "--force"]]
    if kind in ("chrome", "gzip"):
        work.make("export", "design.json", "--to", "chrome", "-o", "chrome.json")
        name = "chrome.json"
        if kind == "gzip":
            name = "chrome.json.gz"
            with open(work.path("chrome.json"), "rb") as plain, gzip.open(work.path(name), "wb") as packed:
                shutil.copyfileobj(plain, packed)
        return name, [["import", "IT", "-o", "out.db", "--force"]]
    if kind == "csv":
        work.make("new", "1f1b", "--devices", "2", "--microbatches", "4", "-o", "plain.json")
        written = random.choice(["pytorch-csv", "pytorch-comms-csv"])
        work.make("export", "plain.json", "--to", written, "-o", "order.csv")
        return "order.csv", [["import", "IT", "-o", "out.json", "--force"]]
    if kind == "table":
        with open(work.path("layers.csv"), "w", encoding="utf-8") as file:
            file.write("layer,forward,input_grad,weight_grad,saved,parameters,output\n")
            for layer in range(6):
                file.write(f"layer {layer},1ms,2ms,1ms,1MiB,1000,64KiB\n")
        return "layers.csv", [["predict", "1f1b", "--devices", "2", "--microbatches", "4", "--model", "./IT"]]
    with open(work.path("config.json"), "w", encoding="utf-8") as file:
        json.dump({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "num_hidden_layers": 4, "vocab_size": 256, "max_position_embeddings": 128,
                   "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu"}, file)
    return "config.json", [["predict", "1f1b", "--devices", "2", "--microbatches", "4", "--model", "./IT"]]


@fault
def damaged_file(work, random):
    """A hostile file costs a bounded time and memory; the smallest damage that shows a failure is kept."""
    name, candidates = inputs(work, random)
    with open(work.path(name), "rb") as file:
        right = file.read()
    bad = mutated(random, right)
    words = random.choice(candidates)

    def try_with(content):
        damaged = "damaged-" + name
        with open(work.path(damaged), "wb") as file:
            file.write(content)
        for ending in ("-wal", "-shm"):
            if os.path.exists(work.path(damaged + ending)):
                os.unlink(work.path(damaged + ending))
        outcome = work.run(*[word.replace("IT", damaged) for word in words], within=30,
                           limits={resource.RLIMIT_AS: 6 << 30})
        require_answer(outcome)
        require(all(character.isprintable() or character in "\n\t" for character in outcome.out + outcome.err),
                "an escape code reached the terminal")

    try:
        try_with(bad)
    except Broken as broken:
        raise Broken(f"{broken} (smallest: {minimised(bad, right, try_with)} bytes differ or are gone)") from broken


def minimised(bad, right, try_with, tries=40):
    """Puts as many stretches right again as the failure survives; leaves the smallest damage in the folder."""
    if len(bad) == len(right):
        wrong = [i for i in range(len(bad)) if bad[i] != right[i]]
        width = len(wrong)
        while width >= 1 and tries > 0:
            for at in range(0, len(wrong), width):
                candidate = bytearray(bad)
                for i in wrong[at:at + width]:
                    candidate[i] = right[i]
                tries -= 1
                try:
                    try_with(bytes(candidate))
                except Broken:
                    bad = bytes(candidate)
                    wrong = wrong[:at] + wrong[at + width:]
                    break
                if tries <= 0:
                    break
            else:
                width //= 2
        try:
            try_with(bad)
        except Broken:
            pass
        return len(wrong)
    return abs(len(bad) - len(right))
