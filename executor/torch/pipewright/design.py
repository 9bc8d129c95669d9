# SPDX-License-Identifier: GPL-3.0-or-later
"""Designs as Python objects: read, made, edited, predicted, searched and opened.

Everything that is computed is computed by the program, which is found on the path, in $PIPEWRIGHT, or told by
`use_program`. A design is the program's own file; what this module does not know of is kept as it stands.

    import pipewright as pw

    design = pw.new("zb-h1", devices=4, microbatches=8, model="model.json")
    design.order[0].insert(3, design.order[0].pop(4))      # blocks are texts: operation, stage, dot, microbatch
    print(design.predict().makespan_ns)

    own = pw.schedule(lambda device: [f"F{device}.{m}" for m in range(8)] + [f"B{device}.{m}" for m in range(8)],
                      devices=4, forward="12ms")
"""

import copy
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from .errors import Refused

_program: Optional[str] = None
_temporary: Set[str] = set()  # designs that are files for the length of a call


def use_program(path: str) -> None:
    """Names the program `pipewright`, for all that follows."""
    global _program
    _program = path


def program() -> str:
    """The program: as told, else $PIPEWRIGHT, else the one on the path."""
    found = _program or os.environ.get("PIPEWRIGHT") or shutil.which("pipewright")
    if not found:
        raise Refused("pipewright", "the program is not on the path", "tell use_program(), or set PIPEWRIGHT")
    return found


class Fault(Exception):
    """What the program refused; the text is its diagnostics."""


def plain_errors(text: str) -> str:
    """The program's messages without the names of files that exist only for this call."""
    for path in _temporary:
        text = re.sub(re.escape(path) + r"(:\d+)?: ", "", text)
    return text


def call(*words: Any, finding: bool = False) -> Dict[str, Any]:
    """Runs a command with --json and returns its object. With `finding`, exit code 1 is a valid answer too."""
    result = subprocess.run([program(), *map(str, words), "--json"], capture_output=True, text=True)
    failed = result.returncode != 0 and not (finding and result.returncode == 1 and result.stdout)
    errors: List[str] = []
    for line in plain_errors(result.stderr).splitlines():
        said = re.search(r"(?:^|: )(error|warning|note): ", line)
        if said and failed:
            errors.append(line)
        elif said and said[1] != "error":  # a finding's errors are in the object
            warnings.warn(line, stacklevel=3)
        elif not said and line.strip():  # for example the output of a module
            print(line, file=sys.stderr)
    if failed:
        raise Fault("\n".join(errors) or f"{program()} ended with code {result.returncode}")
    return json.loads(result.stdout)


def options(given: Dict[str, Any]) -> List[str]:
    """Python's keywords as the command line's options: layers_per_stage=[3, 2] is --layers-per-stage 3,2."""
    words: List[str] = []
    for name, value in given.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    return words


class Table(List[Dict[str, Any]]):
    """Rows of a table, each a dictionary: `pandas.DataFrame(table)` takes it, a notebook shows it, print() too."""

    def columns(self) -> List[str]:
        return list(dict.fromkeys(name for row in self for name in row))

    def _cells(self) -> List[List[str]]:
        text = lambda value: "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
        return [self.columns(), *([text(row.get(name)) for name in self.columns()] for row in self)]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in cells)

    def _repr_html_(self) -> str:
        head, *rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._cells()]
        return f"<table><thead><tr>{head}</tr></thead>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


class Prediction(NamedTuple):
    """What `predict` says of a design; `devices` has a row for each, `all` is the whole object."""

    makespan_ns: int
    bubble: Dict[str, float]
    peak_bytes: List[int]
    busy_ns: List[int]
    critical_path: List[str]
    devices: Table
    all: Dict[str, Any]


class Comparison(NamedTuple):
    """A prediction beside a recording. Errors are those of the prediction, relative to the measurement; bytes are None
    where nothing was measured. `blocks` says how many were matched and how far they are off; `all` is the whole
    object."""

    predicted_ns: int
    measured_ns: int
    error: float
    devices: Table
    blocks: Dict[str, Any]
    all: Dict[str, Any]


class Design:
    """A design file. `json` is its content, to be read and changed; `order`, `placement` and `costs` are parts of it.
    `found` is the search's information on its result, such as "best_ns", "bound_ns" and "proved"; None for other
    designs."""

    def __init__(self, content: Dict[str, Any]):
        self.json = content
        self.found: Optional[Dict[str, Any]] = None

    @classmethod
    def read(cls, path: str) -> "Design":
        with open(path, encoding="utf-8") as file:
            return cls(json.load(file))

    def write(self, path: str) -> None:
        """Replaces the file whole, or not at all."""
        folder = os.path.dirname(os.path.abspath(path))
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, delete=False) as file:
            json.dump(self.json, file, indent=2, ensure_ascii=False)
        os.replace(file.name, path)

    def copy(self) -> "Design":
        return Design(copy.deepcopy(self.json))

    @property
    def name(self) -> str:
        return self.json.get("name", "")

    @property
    def order(self) -> List[List[str]]:
        """Per device its blocks in order, such as "F0.3"."""
        return self.json["schedule"]["order"]

    @order.setter
    def order(self, lists: Sequence[Sequence[str]]) -> None:
        self.json["schedule"]["order"] = [list(blocks) for blocks in lists]

    @property
    def placement(self) -> List[int]:
        """Per stage its device."""
        return self.json["schedule"]["placement"]

    @property
    def costs(self) -> Dict[str, Any]:
        return self.json["costs"]

    def check(self) -> List[str]:
        """What is wrong with it, with the place and the remedy; empty when it can run."""
        with self.file() as path:
            found = call("check", path, finding=True)["diagnostics"]
        # The file was temporary, so its name and line say nothing.
        return [each["where"].removeprefix(path).lstrip(":0123456789 ") + f": {each['what']}"
                + (f" ({each['hint']})" if each.get("hint") else "") for each in found]

    def predict(self, **given: Any) -> Prediction:
        """Time, idle time and memory of a step. The keywords are options of `pipewright predict`, such as spread="5%"."""
        with self.file() as path:
            said = call("predict", path, *options(given))
        return Prediction(said["makespan_ns"], said["bubble"], [each["peak_bytes"] for each in said["per_device"]],
                          [each["busy_ns"] for each in said["per_device"]],
                          [each["block"] for each in said["critical_path"]], Table(said["per_device"]), said)

    def families(self, **given: Any) -> Table:
        """All published families with this design's costs, the fastest first: a row for each."""
        with self.file() as path:
            return Table(call("predict", path, "--families", *options(given))["families"])

    def search(self, memory_limit: str = "1x", time_limit: str = "10s", **given: Any) -> "Design":
        """A better order within the memory; the design itself when there is none."""
        with self.file() as path:
            better = path + ".better.json"
            limits = {"memory_limit": memory_limit, "time_limit": time_limit, **given}
            said = call("search", path, "-o", better, *options(limits))
            result = Design.read(better)
            result.found = said
            return result

    def compare(self, trace: str) -> Comparison:
        """The prediction against a recording."""
        with self.file() as path:
            said = call("compare", path, trace, finding=True)
        devices = Table({"device": each["device"], "busy_error": each["busy_error"],
                         **{f"peak_bytes_{name}": value for name, value in each["peak_bytes"].items()}}
                        for each in said["per_device"])
        return Comparison(said["makespan"]["predicted_ns"], said["makespan"]["measured_ns"], said["makespan"]["error"],
                          devices, said["blocks"], said)

    def calibrate(self, trace: str, busy_machine: bool = False) -> "Design":
        """This design with the costs that were measured. `busy_machine`: also of a run whose devices waited for
        processor cores, which is refused otherwise."""
        with self.file() as path:
            measured = path + ".measured.json"
            call("calibrate", path, trace, "-o", measured, *options({"busy_machine": busy_machine}))
            return Design.read(measured)

    def run(self, trace: str, backend: str = "torch", steps: int = 5, **given: Any) -> Dict[str, Any]:
        """Executes it and records into `trace`: run("a.db", module="model.py:build")."""
        with self.file() as path:
            return call("run", path, "--backend", backend, "--steps", steps, "-o", trace, *options(given), finding=True)

    def svg(self) -> str:
        """A picture of the predicted timeline."""
        with self.file() as path:
            picture = path + ".svg"
            result = subprocess.run([program(), "render", path, "-o", picture], capture_output=True, text=True)
            if result.returncode != 0:
                raise Fault(plain_errors(result.stderr).strip())
            with open(picture, encoding="utf-8") as file:
                return file.read()

    def _repr_svg_(self) -> str:  # what a notebook shows
        return self.svg()

    def open(self) -> "subprocess.Popen[bytes]":
        """Opens it in the designer, as a file that stays until the computer's temporary files are cleared."""
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8", delete=False) as file:
            json.dump(self.json, file)
        return subprocess.Popen([program(), file.name])

    def file(self) -> "_AsFile":
        """Yields the path of a temporary file with the design, which exists until the `with` ends."""
        return _AsFile(self)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Design) and self.json == other.json

    def __repr__(self) -> str:
        return f"<Design {self.name!r}: {sum(map(len, self.order))} blocks on {len(self.order)} devices>"


class _AsFile:
    def __init__(self, design: Design):
        self._design = design

    def __enter__(self) -> str:
        self._folder = tempfile.TemporaryDirectory()
        self._path = os.path.join(self._folder.name, "design.json")
        _temporary.add(self._path)
        self._design.write(self._path)
        return self._path

    def __exit__(self, *_: Any) -> None:
        _temporary.discard(self._path)
        self._folder.cleanup()


def read(path: str) -> Design:
    """The design of a file."""
    return Design.read(path)


def new(family: str, **given: Any) -> Design:
    """A design of a published family. The keywords are the options of `pipewright new`: devices, microbatches, model, …"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "design.json")
        call("new", family, "-o", path, *options(given))
        return Design.read(path)


def schedule(blocks_of: Callable[[int], Sequence[str]], devices: int, name: str = "own", **given: Any) -> Design:
    """A design whose order a function gives: device -> its blocks, such as ["F0.0", "F0.1", "B0.0", "B0.1"]. A stage is
    on the device that runs its forwards. Further keywords are those of new() for the costs of blocks, such as
    forward="12ms" or model="model.json"; `check()` says whether the order can run."""
    order = [list(blocks_of(device)) for device in range(devices)]
    device_of: Dict[int, int] = {}
    microbatches = 0
    letters = set()
    for device, blocks in enumerate(order):
        for block in blocks:
            for one in block.split("&"):
                stage, _, microbatch = one[1:].partition(".")
                if not (one[:1] in tuple("FBIWRU") and stage.isdigit() and microbatch.isdigit()):
                    raise Refused(f"device {device}", f"{block!r} is not a block", 'write operation, stage, dot, microbatch: "F0.3"')
                letters.add(one[0])
                if one[0] == "F":
                    if device_of.setdefault(int(stage), device) != device:
                        raise Refused(f"device {device}, {block}", f"stage {stage} is on device {device_of[int(stage)]} already")
                    microbatches = max(microbatches, int(microbatch) + 1)
    if sorted(device_of) != list(range(len(device_of))) or not device_of:
        raise Refused("schedule", f"the forwards are of stages {sorted(device_of)}", "number stages from 0, each with forwards")
    stages = len(device_of)
    if stages % devices:
        raise Refused("schedule", f"{stages} stages on {devices} devices", "give every device as many stages")
    chunks = stages // devices
    base = new("gpipe" if chunks == 1 else "looped-bfs", devices=devices, microbatches=microbatches,
               **({} if chunks == 1 else {"chunks": chunks}), name=name, **given)
    design = base.copy()
    part = design.json["schedule"]
    part.update(family="", placement=[device_of[stage] for stage in range(stages)], order=order,
                backward="split" if letters & {"I", "W"} else "full")
    return design
