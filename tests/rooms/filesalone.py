#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets the compiler read files by themselves, without making code, so that an include that is missing shows: a room is
compiled as one unit, in which a file may live on what another one includes.

  filesalone.py BUILD [COMMIT | all]

Of the rooms and the program those files whose code changed since COMMIT, 10 commits ago when it is not given, those that
include one of these, and those that include, through others, one that has lost an include of its own; of the tests,
which are compiled together too, those that changed themselves. Work that is not committed yet counts, and comments do
not. Where there is no such commit, and with `all`, every file. BUILD was built before: the commands are those of its
units, with their compiled headers. Exits with 1 and what the compiler says when a file cannot be read."""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

root = Path(__file__).resolve().parents[2]
floors = ("app", "core", "executor", "gui", "kernels", "traces")


def git(*arguments):
    return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)


def known_commit(name):
    try:
        return git("rev-parse", "-q", "--verify", f"{name}^{{commit}}").returncode == 0
    except OSError:  # no git
        return False


def changed(since):
    """Paths from the root; None: all."""
    if since == "all" or not known_commit(since):
        return None
    names = git("diff", "--name-only", "--no-renames", since).stdout
    names += git("ls-files", "--others", "--exclude-standard").stdout
    names = [name for name in names.split("\n") if name.endswith((".h", ".cpp"))]
    return {name for name in names if code(git("show", f"{since}:{name}").stdout) != code(text(name))}


def text(name):
    return (root / name).read_text() if (root / name).exists() else ""


def code(source):
    return re.sub(r"\s+", " ", re.sub(r"//.*", "", source))


def lost(names, since):
    """Those with fewer includes than they had."""
    def includes(source):
        return set(re.findall(r"^#include .*", source, re.M))
    return {name for name in names if includes(git("show", f"{since}:{name}").stdout) - includes(text(name))}


def sources():
    """Every header and source of the rooms, and every test: what it includes of the project."""
    paths = [path for floor in floors for path in (root / floor).rglob("*") if path.suffix in (".h", ".cpp")]
    names = [str(path.relative_to(root)) for path in [*paths, *(root / "tests").rglob("tst_*.cpp")]]
    return {name: re.findall(r'^#include "([^"]+)"', text(name), re.M) for name in names}


def is_test(name):
    return name.startswith("tests/")


def reaches(name, includes, wanted, known):
    """Whether a file is one of `wanted` or includes one, directly or through others. `known`: the answers so far."""
    if name not in known:
        known[name] = name in wanted
        known[name] |= any(reaches(each, includes, wanted, known) for each in includes.get(name, ()))
    return known[name]


def commands(build):
    """Every source that was compiled: the folder and the command of it or of the unit that it is part of."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        unit = Path(entry["file"])
        words = shlex.split(entry["command"])
        if not Path(entry["directory"], words[words.index("-o") + 1]).exists():
            continue  # a program of tests that is built elsewhere: without it there is nothing of moc's
        members = [str(unit)]
        if unit.parent.name == "Unity" and unit.exists():
            members = re.findall(r'^#include "([^"]+)"', unit.read_text(), re.M)
        for member in members:
            found[member] = (entry["directory"], entry["command"], entry["file"])
    return found


def read(name, folder, command, file):
    words = shlex.split(command)
    while not re.search(r"(c\+\+|g\+\+|clang\+\+)[-0-9]*$", words[0]):
        words.pop(0)  # the compiler cache
    out = words.index("-o")
    del words[out : out + 2]
    words[words.index(file)] = str(root / name)
    return subprocess.run([*words, "-fsyntax-only"], cwd=folder, capture_output=True, text=True)


def main():
    build = Path(sys.argv[1]).resolve()
    since = sys.argv[2] if len(sys.argv) > 2 else "HEAD~10"
    includes, wanted, known = sources(), changed(since), {}
    every = sorted(name for name in includes if name.endswith(".cpp"))
    names = every
    if wanted is not None:
        gone = lost(wanted, since)
        names = [name for name in every if name in wanted or not is_test(name)
                 and (wanted.intersection(includes[name]) or reaches(name, includes, gone, known))]
    compiled = commands(build)
    left = [name for name in names if str(root / name) not in compiled]
    names = [name for name in names if str(root / name) in compiled]
    # In the order of their rooms, so that compiled headers are read from memory.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda name: read(name, *compiled[str(root / name)]), names))
    failed = [(name, result) for name, result in zip(names, results) if result.returncode != 0]
    for name, result in failed:
        print(f"{name} cannot be read by itself:\n{result.stderr}", file=sys.stderr)
    of = "every file" if wanted is None else f"of {len(every)} files those that the changes since {since} may concern"
    print(f"{len(names)} files read by themselves, {of}; {len(failed)} failed")
    if left:
        print(f"not compiled here: {' '.join(left)}")
    return 1 if failed else 0


sys.exit(main())
