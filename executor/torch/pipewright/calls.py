# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of the program `pipewright`: where it is, what it is told, and what becomes of what it says."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from typing import Any, Dict, List, Mapping, Optional, Set

from .errors import Refused
from .launch import bundled
from .options import OF_COMMAND
from .results import with_tables

_told: Optional[str] = None
temporary: Set[str] = set()  # files that exist for the length of a call, and that no message need name


def use_program(path: str) -> None:
    """Names the program `pipewright`, for all that follows."""
    global _told
    _told = path


def program() -> str:
    """The program: as told, else $PIPEWRIGHT, else the one of this package's wheel, else the one on the path."""
    found = _told or os.environ.get("PIPEWRIGHT") or bundled() or shutil.which("pipewright")
    if not found:
        raise Refused("pipewright", "the program did not come with this package and is not on the path",
                      "install a wheel that has it, tell use_program(), or set PIPEWRIGHT")
    return found


class Fault(Exception):
    """What the program refused; the text is its diagnostics, each once."""

    def _render_traceback_(self) -> List[str]:  # what a notebook shows: no frames of this package
        return [f"{type(self).__name__}: {self}"]


def words_of(command: str, given: Mapping[str, Any]) -> List[str]:
    """Keywords as options of the command: layers_per_stage=[3, 2] is --layers-per-stage 3,2. Refuses those that it does
    not have."""
    known = OF_COMMAND[command].__annotations__
    words: List[str] = []
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise Refused(name, f"is no option of `pipewright {command}`",
                          f"did you mean {near[0]}?" if near else "its help lists them: pipewright " + command + " --help")
        if value is None or value is False:
            continue
        words.append("--" + name.rstrip("_").replace("_", "-"))
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    return words


def as_python(command: str, text: str) -> str:
    """The program's messages with options named as keywords, and without files that exist only for this call."""
    for path in sorted(temporary, key=len, reverse=True):
        text = re.sub(re.escape(path) + r"(:\d+)?(: )?", "", text)

    if command == "query":
        text = text.replace("shown by --schema", "listed by tables()")

    def keyword(found: "re.Match[str]") -> str:
        name = found[1].replace("-", "_")
        return next((each for each in (name, name + "_") if each in OF_COMMAND[command].__annotations__), found[0])

    return re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])", keyword, text)


def _outside() -> int:
    """How many frames above its caller the first is that is none of this package, for warnings.warn()."""
    here = os.path.dirname(__file__)
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == here:
        level, frame = level + 1, frame.f_back
    return level


def call(command: str, *words: Any, given: Mapping[str, Any] = {}, finding: bool = False) -> Dict[str, Any]:
    """Runs a command with --json and returns its object. With `finding`, exit code 1 is a valid answer too."""
    path = program()
    try:
        result = subprocess.run([path, command, *map(str, words), *words_of(command, given), "--json"],
                                capture_output=True, text=True)
    except OSError as error:
        raise Refused(path, f"cannot be started: {error.strerror}", "tell use_program() where the program is, or set PIPEWRIGHT") from None
    failed = result.returncode != 0 and not (finding and result.returncode == 1 and result.stdout)
    errors: List[str] = []
    others: List[str] = []  # for example what a module printed
    for line in dict.fromkeys(as_python(command, result.stderr).splitlines()):
        said = re.search(r"(?:^|: )(error|warning|note): ", line)
        if said and failed:
            errors.append(line)
        elif said and said[1] != "error" and command != "check":  # a finding's errors, and all of a check's, are in the object
            warnings.warn(line, stacklevel=_outside())
        elif not said and line.strip() and line != "Run with --help for more information.":
            others.append(line)
    if failed and not errors:  # a value that an option does not take, or the program's sudden end
        errors, others = [*others, *([] if result.returncode == 2 else [f"{path} ended with code {result.returncode}"])], []
    for line in others:
        print(line, file=sys.stderr)
    if failed:
        raise Fault("\n".join(errors) or f"{path} ended with code {result.returncode}")
    answer: Dict[str, Any] = with_tables(json.loads(result.stdout))
    return answer
