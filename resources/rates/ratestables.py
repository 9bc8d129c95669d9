# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of rates, as core/rates/ratesfile.h describes it, from figures that the scripts beside this one carry over."""
import json


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
