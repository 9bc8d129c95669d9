# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder in which the program runs, and what every fault asks of it afterwards."""
import collections
import ctypes
import os
import pathlib
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """From now on a process whose parent has ended becomes a child of this one, so that no descendant goes unseen. By
    its environment it cannot be found for certain: that is empty in /proc amid an exec."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot adopt orphans")


def descendants():
    """Of this process: number and state of each that is there."""
    state, children = {}, collections.defaultdict(list)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        state[int(pid)] = fields[0]
        children[int(fields[1])].append(int(pid))
    found, parents = {}, [os.getpid()]
    while parents:
        for pid in children[parents.pop()]:
            found[pid] = state[pid]
            parents.append(pid)
    return found


class Broken(Exception):
    """A guarantee that did not hold."""


class Hung(Broken):
    """It did not end in its time."""


class Orphaned(Broken):
    """Processes are left over."""


class Lost(Broken):
    """Steps that were committed are gone; `steps` says how many."""

    def __init__(self, what, steps):
        super().__init__(what)
        self.steps = steps


def require(holds, what):
    if not holds:
        raise Broken(what)


class Outcome:
    def __init__(self, words, code, out, err, seconds):
        self.words, self.code, self.out, self.err, self.seconds = words, code, out, err, seconds

    def __str__(self):
        return f"`{' '.join(self.words)}` gave {self.code} after {self.seconds:.1f} s: {self.err[-600:].strip()}"


class Workplace:
    def __init__(self, program, name, patience, python="python3", small=False):
        """small: designs are the smallest, to see whether a failure needs more. python: what may have PyTorch."""
        self.program, self.patience, self.python, self.small = program, patience, python, small
        self.figures = collections.Counter()  # of this round: "kills", "faults host", "committed steps" …
        self.held = []  # ports that other rounds of this machine keep away from
        self.folder = tempfile.mkdtemp(prefix=f"soak-{name}-")
        self.before = set(descendants())  # whatever this process has beside the round's, such as a pool's helper
        self.said = []  # every outcome, for the report of a failure
        self.processes = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, **more):
        state = self.path("state")
        return {**os.environ, "XDG_STATE_HOME": state, "XDG_RUNTIME_DIR": self.folder, **more}

    def fault(self, against):
        """One fault was done to a command of this backend: host, mpi, sockets, torch, or command for all others."""
        self.figures[f"faults {against}"] += 1

    def strike(self, process, which, against):
        """A signal as a fault. True when the process was still there to get it."""
        there = process.poll() is None
        process.send_signal(which)
        self.fault(against)
        self.figures["kills"] += there and which == signal.SIGKILL
        return there

    def free_port(self, random):
        """And the one behind it. Below those that the system gives to whoever connects: such a one, connected to
        itself, would hold the port. Other rounds that run now do not get it."""
        while True:
            port = 2 * random.randrange(6_000, 15_000)
            try:
                mine = socket.socket(socket.AF_UNIX)
                mine.bind(f"\0pipewright-soak-{port}")
                for each in (port, port + 1):
                    with socket.socket() as taken:
                        taken.bind(("127.0.0.1", each))
                self.held.append(mine)
                return port
            except OSError:
                mine.close()

    def start(self, *words, limits=None, out=subprocess.PIPE, err=subprocess.PIPE, **more):
        """limits: {resource.RLIMIT_…: value} of the process alone."""
        def before():
            # A soak that nohup or a shell's background runs ignores these, and so would what it starts.
            for which in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(which, signal.SIG_DFL)
            for which, value in (limits or {}).items():
                resource.setrlimit(which, (value, value))
        process = subprocess.Popen([self.program, *words], cwd=self.folder, env=self.environment(**more),
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=before,
                                   start_new_session=True)
        process.words, process.began = list(words), time.monotonic()
        self.processes.append(process)
        return process

    def finish(self, process, within=None):
        """Its outcome; a process that does not end is Broken."""
        try:
            out, err = process.communicate(timeout=within or self.patience)
        except subprocess.TimeoutExpired:
            stacks = self.where(process.pid)
            process.kill()
            process.communicate()
            raise Hung(f"`{' '.join(process.words)}` did not end within {within or self.patience} s; {stacks}")
        text = [(part or b"").decode(errors="replace") for part in (out, err)]
        outcome = Outcome(process.words, process.returncode, *text, time.monotonic() - process.began)
        self.said.append(str(outcome))
        return outcome

    def run(self, *words, within=None, **options):
        return self.finish(self.start(*words, **options), within)

    def make(self, *words):
        """A command that must work."""
        outcome = self.run(*words)
        require(outcome.code == 0, f"without any fault, {outcome}")
        return outcome

    @staticmethod
    def where(pid):
        waits = []
        for task in os.listdir(f"/proc/{pid}/task") if os.path.exists(f"/proc/{pid}/task") else []:
            try:
                with open(f"/proc/{pid}/task/{task}/wchan") as file:
                    waits.append(file.read().strip() or "running")
            except OSError:
                pass
        return "its threads: " + ", ".join(sorted(waits))

    def left_over(self):
        """Processes of this round that still are, without those that only wait to be collected."""
        own = {process.pid for process in self.processes}
        found = []
        for pid, state in descendants().items():
            if pid in self.before:
                continue
            if state not in "ZX":
                found.append(pid)
            elif pid not in own:
                try:
                    os.waitpid(pid, os.WNOHANG)  # adopted
                except ChildProcessError:
                    pass  # another's child
        return found

    def require_nobody_left(self, within=10):
        until, looks = time.monotonic() + within, 0
        # Twice nobody: who forks and ends while the list is read is in one of them.
        while looks < 2 and time.monotonic() < until:
            left = self.left_over()
            looks = 0 if left else looks + 1
            time.sleep(0.02)
        if left:
            who = ", ".join(map(name_of, left))
            raise Orphaned(f"{len(left)} processes are left over {within} s after the end: {who}")

    def require_no_temporaries(self):
        """A later command has cleaned up behind a killed one."""
        left = [name for name in os.listdir(self.folder) if ".unfinished-" in name]
        require(not left, f"temporary files are left: {left}")

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for _ in range(100):  # who is killed may have forked just before
            left = self.left_over()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            if not left:
                break
            time.sleep(0.01)
        for mine in self.held:
            mine.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120]
    except OSError:
        return str(pid)


def require_answer(outcome, what=""):
    """It ended by itself, with one of its codes, and said why when it failed."""
    require(outcome.code in (0, 1, 2), f"{what}{outcome}")
    told = outcome.code == 0 or outcome.err.strip()
    require(told, f"{what}`{' '.join(outcome.words)}` gave {outcome.code} in silence")


def committed(path):
    """What somebody beside the run sees of its trace now: which file it is, and its steps. None: nothing readable."""
    try:
        file = os.stat(path).st_ino
        database = sqlite3.connect(f"{pathlib.Path(path).as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            return file, [row[0] for row in database.execute("SELECT step FROM STEPS ORDER BY step")]
        finally:
            database.close()
    except (OSError, sqlite3.Error):
        return None


def require_kept(work, before, path):
    """`before`, from committed(), is still there, unless another trace took its place; its steps have no gap."""
    if not os.path.exists(path):
        if before:
            raise Lost(f"{path} is gone, with {len(before[1])} steps", len(before[1]))
        return
    now = steps_of(path)
    gaps = sorted(set(range(now[-1] + 1)) - set(now)) if now else []
    if gaps:
        raise Lost(f"{path} has no steps {gaps}, though later ones", len(gaps))
    if before and os.stat(path).st_ino == before[0]:
        work.figures["committed steps"] += len(before[1])
        if gone := sorted(set(before[1]) - set(now)):
            raise Lost(f"{path}: steps {gone} were committed and are gone", len(gone))


def steps_of(path):
    """The steps that a trace holds. Broken when it is no whole database, or a step's records are not all there."""
    with tempfile.TemporaryDirectory() as folder:  # reading needs room beside the file, and its disk may be full
        for ending in ("", "-wal"):
            if os.path.exists(path + ending):
                shutil.copy(path + ending, os.path.join(folder, "trace.db" + ending))
        try:
            return read_steps(os.path.join(folder, "trace.db"), path)
        except sqlite3.Error as error:
            raise Broken(f"{path} cannot be read: {error}") from error


def read_steps(copy, path):
    with sqlite3.connect(copy, timeout=5) as database:
        verdict = database.execute("PRAGMA integrity_check").fetchone()[0]
        require(verdict == "ok", f"{path} is damaged: {verdict}")
        steps = [row[0] for row in database.execute("SELECT step FROM STEPS ORDER BY step")]
        counts = dict(database.execute("SELECT step, count(*) FROM RECORDS GROUP BY step"))
    database.close()
    whole = {counts.get(step, 0) for step in steps}
    require(len(whole) <= 1, f"{path}: steps have {sorted(whole)} records")
    return steps
