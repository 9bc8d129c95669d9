#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the code of a notebook, cell by cell, and shows what a notebook would show of each; without Jupyter.

    notebook.py NOTEBOOK    in an empty folder of its own, with the package and the program that this Python finds
"""

import ast
import json
import os
import sys
import tempfile


def shown(value):
    """What a notebook shows: a picture or a table where the value has one, else its text."""
    if hasattr(value, "_repr_mimebundle_"):
        return next(iter(value._repr_mimebundle_().items()))
    return ("text/html", value._repr_html_()) if hasattr(value, "_repr_html_") else ("text/plain", repr(value))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    assert cells, "the notebook has no code"
    names = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, cell in enumerate(cells, 1):
            assert not cell["outputs"], f"cell {number} is kept with its output, which grows old"
            code = ast.parse("".join(cell["source"]))
            last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
            where = f"cell {number}"
            exec(compile(code, where, "exec"), names)
            if last is not None:
                way, text = shown(eval(compile(ast.Expression(last.value), where, "eval"), names))
                assert text.strip(), f"cell {number} shows nothing"
                print(f"cell {number}: {way}, {len(text)} characters: {text[:60]!r}")
        os.chdir("/")


if __name__ == "__main__":
    main()
