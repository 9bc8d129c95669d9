# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the soak see who is left over? A process in a session of its own, without an environment, whose parent ended."""
import sys

from workplace import Orphaned, Workplace, adopt_orphans


def main():
    adopt_orphans()
    work = Workplace("/bin/sh", "check", patience=20)
    try:
        work.require_nobody_left()
        work.make("-c", "exec setsid env -i sleep 100 <&- >&- 2>&- &")
        try:
            work.require_nobody_left(within=1)
        except Orphaned as seen:
            if "sleep 100" not in str(seen):
                return f"somebody else was seen: {seen}"
        else:
            return "an orphan was not seen"
    finally:
        work.close()
    work.require_nobody_left(within=1)  # it was ended
    return 0


if __name__ == "__main__":
    sys.exit(main())
