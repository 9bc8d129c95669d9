#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the three packages of a build as it stands, and tries each as who gets it would.

    packages.py SOURCE BUILD [--roots] [TestCase.test…]

The packages are of BUILD's own binaries: a dev build's are slower, and laid out as a release's. With --roots each is
tried too in a clean Debian and a clean Ubuntu that mmdebstrap makes, once, in BUILD/roots. What cannot be tried is left
out, with the reason.
"""

import os
import sys
import tempfile
import unittest

import trial
from machine import Packages  # noqa: F401
from roots import CleanDebian, CleanUbuntu  # noqa: F401


def main():
    arguments = [each for each in sys.argv[1:] if each != "--roots"]
    trial.ROOTS = len(arguments) < len(sys.argv) - 1
    trial.SOURCE, trial.BUILD = map(os.path.abspath, arguments[:2])
    with tempfile.TemporaryDirectory(prefix="pipewright-packages-") as folder:
        trial.make_packages(folder)
        program = unittest.main(argv=[sys.argv[0], *arguments[2:]], verbosity=2, exit=False)
    sys.exit(not program.result.wasSuccessful())


if __name__ == "__main__":
    main()
