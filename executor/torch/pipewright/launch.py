# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `pipewright` of a wheel, which becomes the program that the wheel brought."""

import os
import sys


def bundled():
    """The program that came with this package in a wheel; None where the package came alone."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "installed", "bin", "pipewright")
    return path if os.access(path, os.X_OK) else None


def main():
    path = bundled()
    if path is None:
        sys.exit("error: this package came without the program, so there is nothing to start (install pipewright's wheel)")
    os.execv(path, [path, *sys.argv[1:]])
