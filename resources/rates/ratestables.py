# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of rates, as core/rates/ratesfile.h describes it, from figures that the scripts beside this one carry over."""
import json
import re

PASSES = ("TN", "NN", "NT")


def xla_table(program, mark, key):
    """What a table in XLA's program says of one kind of device, "sm_90": the text from that entry to the next one, or
    to the table's end. `mark` stands in that table and in none before it."""
    at = program.index(f'key: "{key}"'.encode(), program.rindex(b"\0", 0, program.index(mark)))
    text = program[at:program.index(b"\0", at)].decode()
    return re.split(r'key: "(?:sm_|gfx)', text)[1]


def xla_products(text, operands, tables, peak, types, **origin):
    """Row-major operands, the first by the second; nothing is added up. Four at once stand for experts."""
    for entry in re.finditer(r'b: (\d+)\s+m: (\d+)\s+n: (\d+)\s+k: (\d+)((?:\s+flops \{[^}]*\})+)', text):
        count, rows, columns, inner = map(int, entry.groups()[:4])
        share = int(re.search(f'"{re.escape(operands)}" value: (\\d+)', entry.group(5)).group(1)) / peak
        assert share < 1, entry.group(0)
        if count != 2:
            tables.add("product" if count == 1 else "grouped_product", peak, ["rows", "inner", "columns"],
                       [rows, inner, columns], share, layout=PASSES, types=types, **origin)


def rounded(value):
    return float(f"{value:.4g}")


class Tables:
    """Tables in the order in which their first shape is added; of a shape that is there twice, the first counts.

    A layout or types may be a tuple: a table that counts for each of them."""

    def __init__(self):
        self.tables = {}

    def add(self, operation, peak, dims, sizes, share, seconds=0.0, *, source, when, **kind):
        key = (operation, source, tuple(kind.items()))
        table = self.tables.setdefault(key, {"operation": operation, **kind, "peak": peak, "source": source,
                                             "when": when, "dims": dims, "shapes": {}})
        table["shapes"].setdefault(tuple(sizes), [rounded(share)] + ([rounded(seconds)] if seconds else []))

    def text(self, title, origin, checked=()):
        """Of runs by type of products: how far steps predicted by these rates were from them."""
        lines = ["{", f'"title": {json.dumps(title)},', f'"origin": {json.dumps(origin)},']
        if checked:
            lines.append('"checked": [\n' + ",\n".join(map(json.dumps, checked)) + "\n],")
        lines.append('"tables": [')
        for number, table in enumerate(self.tables.values()):
            head = ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in table.items()
                             if name != "shapes")
            shapes = [json.dumps(list(sizes) + rest) for sizes, rest in sorted(table["shapes"].items())]
            lines.append("{" + head + ',\n"shapes": [\n' + ",\n".join(shapes) + "\n]}"
                         + ("," if number + 1 < len(self.tables) else ""))
        return "\n".join(lines + ["]", "}"])
