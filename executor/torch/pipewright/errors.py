# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors for the user: the place, the fault and the remedy."""

import sys


def lacks_memory(error):
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "allocate memory" in str(error)


def no_torch(error):
    """The error for a failed `import torch`."""
    short = "failed to map segment" in str(error)
    return Refused("torch", f"cannot be imported by {sys.executable}: {error}",
                   "there is not enough memory for it" if short else "install PyTorch, or name another interpreter with --python")


class Refused(Exception):
    """Something that cannot be done as asked. `where` names the place, `hint` what would make it right."""

    def __init__(self, where, what, hint=""):
        super().__init__(f"{where}: {what}" + (f" ({hint})" if hint else ""))
        self.where, self.what, self.hint = where, what, hint

    def _render_traceback_(self):  # what a notebook shows: no frames of this package
        return [f"{type(self).__name__}: {self}"]
