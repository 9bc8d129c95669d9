#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Kills, stops, starves and lies to the built program for as long as asked, over every command and backend, and asks
# after each fault that it ended in time and with the right code, left no process and no temporary file behind, and lost
# nothing that it had committed. Each round prints nothing unless it fails; a failure says the seed that repeats it,
# whether it does, and whether the smallest designs fail too; its files are kept. The end says how many faults of which
# backend there were, and how many kills, hangs, orphans and lost steps.
#   tests/soak.sh MINUTES [--jobs N] [--seed N] [--only FAULT] [--program FILE] [--python FILE] [--keep FOLDER]
#   tests/soak.sh --list               the faults by name
#   tests/soak.sh --round N            this round alone, as a failure said
set -euo pipefail
exec python3 -B "$(dirname "${BASH_SOURCE[0]}")/soak/soak.py" "$@"
