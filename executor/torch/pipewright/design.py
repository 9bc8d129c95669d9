# SPDX-License-Identifier: GPL-3.0-or-later
"""Designs as Python objects: read, made, edited, predicted, searched and opened.

Everything that is computed is computed by the program: the one told by `use_program`, else by $PIPEWRIGHT, else the one
that came in the same wheel, else the one on the path. A design is the program's own file; what this module does not know
of is kept as it stands. Keywords are options of the command of the same name (`options.py`).

    import pipewright as pw

    design = pw.new("zb-h1", devices=4, microbatches=8, model="model.json")
    design.order[0].insert(3, design.order[0].pop(4))      # blocks are texts: operation, stage, dot, microbatch
    print(design.predict().makespan_ns)
    design.families().to_pandas()

    own = pw.schedule(lambda device: [f"F{device}.{m}" for m in range(8)] + [f"B{device}.{m}" for m in range(8)],
                      devices=4, forward="12ms")
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

from .calls import Fault, as_python, call, program, temporary
from .errors import Refused
from .results import Comparison, Prediction, Table, comparison_of, prediction_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import options as of


class Design:
    """A design file. `json` is its content, to be read and changed; `order`, `placement` and `costs` are parts of it.
    `found` is the search's information on its result, such as "best_ns", "bound_ns" and "proved"; None for other
    designs."""

    def __init__(self, content: Dict[str, Any]):
        self.json = content
        self.found: Optional[Dict[str, Any]] = None

    @classmethod
    def read(cls, path: str) -> "Design":
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
        except (OSError, ValueError, RecursionError) as error:
            raise Refused(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
        if not isinstance(content, dict) or "pipewright" not in content:
            raise Refused(path, "this is not a Pipewright design", 'a design begins with { "pipewright": 2 }')
        return cls(content)

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

    def check(self, **given: Unpack[of.Check]) -> List[str]:
        """What is wrong with it, with the place and the remedy; empty when it can run. check(for_="torch"): also what this
        backend cannot run."""
        with self.file() as path:
            found = call("check", path, given=given, finding=True)["diagnostics"]
        # The file was temporary, so its name and line say nothing.
        places = [each["where"].removeprefix(path).lstrip(":0123456789 ") for each in found]
        return [as_python("check", ": ".join(filter(None, (place, each["what"]))) + (f" ({each['hint']})" if each.get("hint") else ""))
                for place, each in zip(places, found)]

    def predict(self, **given: Unpack[of.Predict]) -> Prediction:
        """Time, idle time and memory of a step. The keywords are options of `pipewright predict`, such as spread="5%"."""
        with self.file() as path:
            return prediction_of(call("predict", path, given=given))

    def families(self, **given: Unpack[of.Predict]) -> Table:
        """All published families with this design's costs, the fastest first: a row for each."""
        with self.file() as path:
            return call("predict", path, "--families", given=given)["families"]

    def search(self, **given: Unpack[of.Search]) -> "Design":
        """A better order within the memory (memory_limit="1x" where none is given), after ten seconds at most
        (time_limit="10s"); the design itself when there is none."""
        with self.file() as path:
            better = path + ".better.json"
            said = call("search", path, "-o", better, given={"memory_limit": "1x", "time_limit": "10s", **given})
            result = Design.read(better)
            result.found = {name: value for name, value in said.items() if name != "design"}  # a temporary file
            return result

    def compare(self, trace: str, **given: Unpack[of.Compare]) -> Comparison:
        """The prediction against a recording."""
        with self.file() as path:
            return comparison_of(call("compare", path, trace, given=given, finding=True))

    def calibrate(self, trace: str, **given: Unpack[of.Calibrate]) -> "Design":
        """This design with the costs that were measured. busy_machine=True: also of a run whose devices waited for
        processor cores, which is refused otherwise."""
        with self.file() as path:
            measured = path + ".measured.json"
            call("calibrate", path, trace, "-o", measured, given=given)
            return Design.read(measured)

    def run(self, trace: str, **given: Unpack[of.Run]) -> Dict[str, Any]:
        """Executes it and records into `trace`: run("a.db", module="model.py:build"). Through PyTorch and five steps
        where the keywords say nothing else."""
        with self.file() as path:
            return call("run", path, "-o", trace, given={"backend": "torch", "steps": 5, **given}, finding=True)

    def export(self, to: str, path: str, **given: Unpack[of.Export]) -> Dict[str, Any]:  # type: ignore[misc]  # `to` twice
        """Writes it into the file in another tool's format, such as "pytorch-csv", "megatron-args" or "perfetto"."""
        with self.file() as design:
            return call("export", design, "-o", path, given={"to": to, **given})

    def render(self, path: str, **given: Unpack[of.Render]) -> Dict[str, Any]:
        """Draws its timeline into a file, .svg, .pdf, .png or an animated .html: render("a.svg", trace="a.db")."""
        with self.file() as design:
            said = call("render", design, "-o", path, given=given)
            return {name: value for name, value in said.items() if name not in ("design", "designs")}  # a temporary file

    def svg(self, **given: Unpack[of.Render]) -> str:
        """A picture of the predicted timeline, as text."""
        with tempfile.TemporaryDirectory() as folder:
            picture = os.path.join(folder, "a.svg")
            self.render(picture, **given)
            with open(picture, encoding="utf-8") as file:
                return file.read()

    def _repr_mimebundle_(self, **_: Any) -> Dict[str, str]:
        """What a notebook shows: a picture, and of a design that cannot run its text with the reason."""
        try:
            return {"image/svg+xml": self.svg()}
        except Fault as fault:
            first, *others = str(fault).splitlines()
            more = f" (and {len(others)} more; check() lists them)" if others else ""
            return {"text/plain": f"{self!r}\nno picture: {first}{more}"}

    def open(self) -> "subprocess.Popen[bytes]":
        """Opens it in the designer, as a file that stays until the computer's temporary files are cleared. Refuses when the
        designer ends at once: the program of a wheel has none, and it needs a screen."""
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8", delete=False) as file:
            json.dump(self.json, file)
        with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
            process = subprocess.Popen([program(), file.name], stderr=errors)
            try:
                if process.wait(timeout=2) != 0:
                    errors.seek(0)
                    os.remove(file.name)
                    raise Fault(errors.read().strip() or f"{program()} ended with code {process.returncode}")
            except subprocess.TimeoutExpired:  # it is open
                pass
        return process

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
        temporary.add(self._path)
        self._design.write(self._path)
        return self._path

    def __exit__(self, *_: Any) -> None:
        temporary.discard(self._path)
        self._folder.cleanup()


def read(path: str) -> Design:
    """The design of a file."""
    return Design.read(path)


def new(family: str, **given: Unpack[of.New]) -> Design:
    """A design of a published family. The keywords are the options of `pipewright new`: devices, microbatches, model, …"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "design.json")
        call("new", family, "-o", path, given=given)
        return Design.read(path)


def imported(*paths: str, **given: Unpack[of.Import]) -> Design:
    """The design of another tool's file, such as PyTorch's CSV. The keywords are the options of `pipewright import`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "design.json")
        call("import", *paths, "-o", path, given=given)
        return Design.read(path)


def plan(**given: Unpack[of.Plan]) -> Table:
    """The best ways to train: plan(model="llama-3-8b", cluster="h100-node", devices=8, batch=64). A row for each; "design"
    is it, as a Design."""
    for name in ("why", "what_if", "refine", "resume"):
        if given.get(name):
            raise Refused(f"plan({name}=…)", "is answered beside the list, which is all that this returns",
                          "ask `pipewright plan --json` on the command line")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plans")
        plans = call("plan", "-o", path, given=given)["plans"]
        for each in plans:
            each["design"] = read(os.path.join(path, os.path.basename(each["design"])))
        return plans


def explain(trace: str, **given: Unpack[of.Explain]) -> Dict[str, Any]:
    """Why a recorded step took as long as it did: where each device's time went, and what a change would do. Its lists
    are tables: explain("a.db")["causes"].to_pandas()."""
    return call("explain", trace, given=given)


def query(trace: str, sql: str, **given: Unpack[of.Query]) -> Table:
    """The rows of one SELECT statement over a recording: query("a.db", "SELECT step, end - start AS ns FROM STEPS")."""
    said = call("query", trace, sql, given=given)
    if len(set(said["columns"])) < len(said["columns"]):
        raise Refused("query()", f"two columns have one name: {', '.join(said['columns'])}", "name them: SELECT a AS b")
    return Table(dict(zip(said["columns"], row)) for row in said["rows"])


def tables(trace: str) -> Table:
    """The tables of a recording, their columns and how many rows they have."""
    return call("query", trace, "--schema")["tables"]


def schedule(  # type: ignore[misc]  # devices and name are options of new() too
        blocks_of: Callable[[int], Sequence[str]], devices: int, name: str = "own", **given: Unpack[of.New]) -> Design:
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
    if chunks > 1:
        given["chunks"] = chunks
    base = new("gpipe" if chunks == 1 else "looped-bfs", devices=devices, microbatches=microbatches, name=name, **given)
    design = base.copy()
    part = design.json["schedule"]
    part.update(family="", placement=[device_of[stage] for stage in range(stages)], order=order,
                backward="split" if letters & {"I", "W"} else "full")
    return design
