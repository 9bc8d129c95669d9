# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person is told: the place, the fault and the remedy."""


class Refused(Exception):
    """Something that cannot be done as asked. `where` names the place, `hint` what would make it right."""

    def __init__(self, where, what, hint=""):
        super().__init__(f"{where}: {what}" + (f" ({hint})" if hint else ""))
        self.where, self.what, self.hint = where, what, hint
