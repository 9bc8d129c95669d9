#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The first minute in a real window: tst_firstwalk's walk, whose mouse and keys xdotool moves and presses here, and which
# reads the words on screen from the window itself. Exits 77, "skipped", where a tool is missing.
#   tests/gui/designer/realwalk.sh GUI_TESTS [FOLDER FOR SCREENSHOTS]
set -euo pipefail
tests=$1 pictures=${2:-}
source "$(dirname "${BASH_SOURCE[0]}")/realscreen.sh"
openScreen 1280 800
export PIPEWRIGHT_REAL_WINDOW=1 PIPEWRIGHT_PICTURES=$pictures
"$tests" tst_firstwalk aPersonDesignsRunsAndReadsWithinAMinute || fail "the walk, see above"
