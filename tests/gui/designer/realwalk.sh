#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The first minute in a real window: tst_firstwalk's walk, whose mouse and keys xdotool moves and presses here, and
# which reads the words on screen from the window itself. SIZE is the screen's, in its pixels; SCALE is how many of them
# are one of the window's. Exits 77, "skipped", where a tool is missing.
#   tests/gui/designer/realwalk.sh GUI_TESTS [SIZE [THEME [SCALE [FOLDER FOR SCREENSHOTS]]]]
set -euo pipefail
tests=$1 size=${2:-1280x800} theme=${3:-light} scale=${4:-1} pictures=${5:-}
source "$(dirname "${BASH_SOURCE[0]}")/realscreen.sh"
openScreen "${size%x*}" "${size#*x}"
export PIPEWRIGHT_REAL_WINDOW=1 PIPEWRIGHT_PICTURES=$pictures PIPEWRIGHT_THEME=$theme QT_SCALE_FACTOR=$scale
"$tests" tst_firstwalk aPersonDesignsRunsAndReadsWithinAMinute || fail "the walk, see above"
