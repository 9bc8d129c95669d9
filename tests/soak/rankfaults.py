# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults done to runs of several processes: as launchers start them, started by the program, and through PyTorch."""
import hashlib
import hmac
import json
import os
import signal
import socket
import struct
import time

from faults import design, fault, maths
from workplace import committed, require, require_kept



def start_ranks(work, random, ranks, *words):
    port = work.free_port(random)
    return [work.start("run", "design.json", "--backend", "mpi", "-o", "trace.db", "--force", *words, RANK=str(rank),
                       WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            for rank in range(ranks)]


@fault
def rank_ends(work, random):
    """One of several ranks dies, is stopped or asked to end, at any time: all end."""
    ranks = design(work, random)
    processes = start_ranks(work, random, ranks, "--steps", "400", "--deadline", "4s", *maths(random, True),
                            "--progress", "none")
    time.sleep(random.random() * random.choice([0.1, 2, 4]))
    victim = random.choice(processes)
    which = random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGSEGV, signal.SIGINT])
    before = committed(work.path("trace.db"))
    work.strike(victim, which, "sockets")
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
    require_kept(work, before, work.path("trace.db"))
    work.require_nobody_left()


@fault
def strangers(work, random):
    """Whoever reaches the port and knows no secret is neither let in nor able to hold up those who are."""
    ranks = design(work, random)
    port = work.free_port(random)
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
            work.fault("sockets")
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


HELLO = "<Iiii32s"  # of executor/mpi/rankdoor.cpp: magic, ranks, rank, rank of the listener, nonce
MESSAGE = "@IIIIqqqq"  # of executor/mpi/mesh.h: kind, link, sequence, task, bytes, time, a, b


def auth(key, text):
    """libsodium's crypto_auth: the first half of an HMAC with SHA-512."""
    return hmac.new(key, text, hashlib.sha512).digest()[:32]


def prove(liar, secret, port, own_port):
    """Proves to rank 0 that this is rank 1 of two, as executor/mpi/rankproof.cpp does."""
    key = hashlib.blake2b(b"pipewright ranks\0" + struct.pack("<ii", 2, port), key=secret.encode(), digest_size=32)
    nonce = os.urandom(32)
    liar.send(struct.pack(HELLO, 0x50577233, 2, 1, 0, nonce))
    challenge = b""
    while len(challenge) < 64:
        part = liar.recv(64 - len(challenge))
        if not part:
            raise OSError("rank 0 went away")
        challenge += part
    said = struct.pack("<ii", 1, 0) + nonce + challenge[:32]
    require(challenge[32:] == auth(key.digest(), struct.pack("<i", 1) + said), "rank 0 has not proved itself")
    liar.send(struct.pack("<i", own_port)
              + auth(key.digest(), struct.pack("<i", 2) + said + struct.pack("<i", own_port)))


@fault
def liar_among_ranks(work, random):
    """Who knows the secret takes a rank's place and sends sizes that cannot be: the run says so and ends."""
    secret = "%032x" % random.getrandbits(128)
    port = work.free_port(random)
    work.make("new", "1f1b", "--devices", "2", "--microbatches", "4", "-o", "design.json")
    run = work.start("run", "design.json", "--backend", "mpi", "--steps", "2", "-o", "trace.db", "--deadline", "3s",
                     RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                     PIPEWRIGHT_RANK_SECRET=secret)
    with socket.socket() as liar:
        while run.poll() is None:
            try:
                liar.connect(("127.0.0.1", port + 1))  # MASTER_PORT is the launcher's own
                break
            except OSError:
                time.sleep(0.02)
        try:
            prove(liar, secret, port + 1, random.choice([0, 1, port, -1]))
            if random.random() < 0.7:  # as a rank does it: who it is, and on which machine
                liar.send(struct.pack(MESSAGE, 0, 0, 0, 0, 0, 1, run.pid, 1))
            for _ in range(random.randint(1, 20)):
                size = random.choice([-1, 0, 1, 48, 1 << 20, 1 << 30, (1 << 30) + 1, 1 << 62, -(1 << 63)])
                numbers = [random.choice([0, 1, -1, 2**63 - 1, -(2**63), random.getrandbits(40)]) for _ in range(3)]
                liar.send(struct.pack(MESSAGE, random.randrange(18), random.choice([0, 1, 7, 2**32 - 1]),
                                      random.randrange(4), random.choice([0, 1, 2**32 - 1]), size, *numbers)
                          + random.randbytes(random.choice([0, 0, min(max(size, 0), 4096)])))
                work.fault("sockets")
        except OSError:
            pass  # it was thrown out
        if random.random() < 0.5:
            liar.close()
        outcome = work.finish(run, within=40)
    require(outcome.code in (1, 2) and outcome.err.strip(), f"with a liar for rank 1: {outcome}")
    work.require_nobody_left()


@fault
def thief_at_the_port(work, random):
    """Who holds the port before rank 0 does learns nothing, and passes for nobody; what a rank said lets nobody in."""
    work.make("new", "1f1b", "--devices", "2", "--microbatches", "4", "-o", "design.json")
    secret = "%032x" % random.getrandbits(128)
    port = work.free_port(random)
    environment = dict(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), PIPEWRIGHT_RANK_SECRET=secret)
    words = ["run", "design.json", "--backend", "mpi", "--steps", "2", "-o", "trace.db", "--force", "--deadline", "4s"]
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", port + 1))
        thief.listen()
        thief.settimeout(30)
        rank = work.start(*words, RANK="1", **environment)
        victim, _ = thief.accept()
        victim.settimeout(5)
        heard = victim.recv(4096)
        try:
            victim.send(random.choice([b"", os.urandom(64), heard, heard[-32:] * 2, os.urandom(4096)]))
            heard += victim.recv(4096)
        except OSError:
            pass
        work.fault("sockets")
        victim.close()
    require(secret.encode() not in heard and len(heard) <= struct.calcsize(HELLO), f"it heard {len(heard)} bytes")
    outcome = work.finish(rank, within=40)
    require(outcome.code == 2 and outcome.err.strip(), f"with a thief at its port: {outcome}")
    first = work.start(*words, RANK="0", **environment)
    with socket.socket() as thief:
        while first.poll() is None:
            try:
                thief.connect(("127.0.0.1", port + 1))
                thief.send(heard)
                break
            except OSError:
                time.sleep(0.02)
        outcome = work.finish(first, within=40)
    require(outcome.code == 2 and outcome.err.strip(), f"with a thief in place of rank 1: {outcome}")
    work.require_nobody_left()


def has(work, backend):
    state = json.loads(work.make("devices", "--json", "--python", work.python).out)
    return state.get(backend, {}).get("available", False)


@fault
def launcher_ends(work, random):
    """The program that started the ranks, its own or PyTorch's, or one of them gets a signal at any time."""
    design(work, random)
    backend = random.choice(["mpi", "mpi", "torch"])
    if not has(work, backend):
        return
    words = ["--python", work.python] if backend == "torch" else ["--deadline", "5s", *maths(random, True)]
    run = work.start("run", "design.json", "--backend", backend, "--steps", "300", "-o", "trace.db",
                     "--progress", "none", *words)
    time.sleep(random.random() * random.choice([0.3, 3, 6]))
    which = random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
    others = [pid for pid in work.left_over() if pid != run.pid]
    victim = random.choice(others) if others and random.random() < 0.6 else run.pid
    before = committed(work.path("trace.db"))
    try:
        os.kill(victim, which)
        work.figures["kills"] += which == signal.SIGKILL
    except ProcessLookupError:
        pass
    work.fault(backend)
    outcome = work.finish(run, within=120)  # all its steps, where the signal came before anything heeded it
    if victim != run.pid:
        require(outcome.code >= 0, f"{which.name} to one of its processes: {outcome}")
        require(outcome.code == 0 or outcome.err.strip(), f"{which.name} to one of its processes: ended in silence")
    work.require_nobody_left(within=25)
    require_kept(work, before, work.path("trace.db"))
