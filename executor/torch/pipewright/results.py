# SPDX-License-Identifier: GPL-3.0-or-later
"""What the program's answers become: tables, which pandas takes, and the numbers that are asked for most beside the
whole object, `all`. A notebook shows each as a line and a table."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Tuple

from .errors import Refused

if TYPE_CHECKING:
    import pandas


class Table(List[Dict[str, Any]]):
    """Rows of a table, each a dictionary. A notebook shows it, print() too, and to_pandas() makes a DataFrame of it; there
    a dictionary within a row has a column for each of its values: idle_ns.transfer."""

    def _flat(self) -> List[Dict[str, Any]]:
        def values_of(row: Dict[str, Any], before: str = "") -> Iterator[Tuple[str, Any]]:
            for name, value in row.items():
                if isinstance(value, dict):
                    yield from values_of(value, f"{before}{name}.")
                else:
                    yield before + name, value

        return [dict(values_of(row)) for row in self]

    def columns(self) -> List[str]:
        return list(dict.fromkeys(name for row in self._flat() for name in row))

    def to_pandas(self) -> "pandas.DataFrame":
        """Whole numbers stay whole numbers where a row has none: pandas by itself would make fractions of nanoseconds."""
        try:
            import pandas
        except ImportError as error:
            raise Refused("to_pandas()", f"pandas cannot be imported: {error}", "pip install pandas") from None
        rows, columns = self._flat(), self.columns()
        frame = pandas.DataFrame(rows, columns=columns)
        for name in columns:
            cells = [row.get(name) for row in rows]
            kinds = {type(cell) for cell in cells}
            for kind, nullable in ((int, "Int64"), (bool, "boolean")):
                if kinds == {kind, type(None)}:
                    frame[name] = pandas.Series(cells, dtype=nullable)
        return frame

    def _cells(self) -> List[List[str]]:
        def text(value: Any) -> str:
            if isinstance(value, list):
                return ", ".join(map(text, value))
            return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

        return [self.columns(), *([text(row.get(name)) for name in self.columns()] for row in self._flat())]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in cells)

    def _repr_html_(self) -> str:
        head, *rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._cells()]
        return f"<table><thead><tr>{head}</tr></thead>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:,.4g} ms"


def _size(count: int) -> str:
    return f"{count / 2**30:.4g} GiB" if count >= 2**30 else f"{count / 2**20:.4g} MiB"


def _shown(line: str, table: Table) -> str:
    return f"<p>{html.escape(line)}</p>{table._repr_html_()}"


class Prediction(NamedTuple):
    """What `predict` says of a design; `devices` has a row for each, `all` is the whole object."""

    makespan_ns: int
    bubble: Dict[str, float]
    peak_bytes: List[int]
    busy_ns: List[int]
    critical_path: List[str]
    devices: Table
    all: Dict[str, Any]

    def __repr__(self) -> str:
        return (f"<Prediction: {_ms(self.makespan_ns)} a step, idle {self.bubble['rate_makespan']:.1%}, "
                f"at most {_size(max(self.peak_bytes))} a device>")

    def _repr_html_(self) -> str:
        return _shown(repr(self)[1:-1], self.devices)


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

    def __repr__(self) -> str:
        return f"<Comparison: {_ms(self.predicted_ns)} predicted, {_ms(self.measured_ns)} measured: {self.error:+.1%}>"

    def _repr_html_(self) -> str:
        return _shown(repr(self)[1:-1], self.devices)


def with_tables(value: Any) -> Any:
    """An answer of the program in which each list of objects is a Table."""
    if isinstance(value, dict):
        return {name: with_tables(each) for name, each in value.items()}
    if isinstance(value, list):
        rows = bool(value) and all(isinstance(each, dict) for each in value)
        return (Table if rows else list)(map(with_tables, value))
    return value


def prediction_of(said: Dict[str, Any]) -> Prediction:
    return Prediction(said["makespan_ns"], said["bubble"], [each["peak_bytes"] for each in said["per_device"]],
                      [each["busy_ns"] for each in said["per_device"]], [each["block"] for each in said["critical_path"]],
                      said["per_device"], said)


def comparison_of(said: Dict[str, Any]) -> Comparison:
    devices = Table({"device": each["device"], "busy_error": each["busy_error"],
                     **{f"peak_bytes_{name}": value for name, value in each["peak_bytes"].items()}}
                    for each in said["per_device"])
    return Comparison(said["makespan"]["predicted_ns"], said["makespan"]["measured_ns"], said["makespan"]["error"],
                      devices, said["blocks"], said)

