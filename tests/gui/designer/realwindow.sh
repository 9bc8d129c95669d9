#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# One walk through the designer in a real window: an X server of its own, a window manager, keys and a mouse. What
# the walk does is saved with the designer's own keys and asked of the command line, so nothing here knows pixels but
# the place where a block is gripped. Exits 77, "skipped", where a tool is missing.
#   tests/gui/designer/realwindow.sh PROGRAM [FOLDER FOR SCREENSHOTS]
set -euo pipefail
program=$1 pictures=${2:-}
source "$(dirname "${BASH_SOURCE[0]}")/realscreen.sh"
openScreen 1280 800
start() { # [FILE]: opens it; the designer's process in $designer
    "$program" "$@" >>"$work/designer.log" 2>&1 &
    designer=$!
    pids+=("$designer")
}
focus() { # NAME
    waitFor 120 window "$1" || fail "no window called $1 appeared: $(tail -n 5 "$work/designer.log")"
    local id
    id=$(window "$1")
    xdotool windowactivate --sync "$id"
    if [ "$2" = full ]; then xdotool windowmove --sync "$id" 0 0; xdotool windowsize "$id" 1280 780; fi
    sleep 1
}
# Whether the saved design is as a python expression over `design` and `order` says.
holds() {
    python3 - "$file" "$1" <<'PYTHON'
import json, sys
design = json.load(open(sys.argv[1])); order = design["schedule"].get("order", [])
sys.exit(0 if eval(sys.argv[2]) else 1)
PYTHON
}
saveAndExpect() { # WHAT EXPRESSION
    keys ctrl+s
    waitFor 20 holds "$2" || fail "$1: the saved design is $(head -c 600 "$file")"
    echo "ok: $1"
}

file=$work/walk.json
"$program" new 1f1b --devices 4 --microbatches 8 -o "$file" >/dev/null
cp "$file" "$work/before.json"
start "$file"
focus microbatches full
shot 1-opened

# A block is found by its name and moved by key; undo brings back what was.
keys slash; xdotool type --delay 40 'F0.5'; keys Return
keys alt+Left
shot 2-moved
saveAndExpect "a block moves by key" 'order[0].index("F0.5") < order[0].index("B0.1")'
keys ctrl+z
saveAndExpect "undo brings it back" 'design == json.load(open("'"$work"'/before.json"))'

# The same by mouse: the first block of the first lane is dropped behind its neighbour.
read -r x y <<<"${PIPEWRIGHT_GRIP:-407 245}"
xdotool mousemove --sync "$x" "$y" mousedown 1
for step in 10 20 30 40 50 60; do xdotool mousemove --sync $((x + step)) "$y"; sleep 0.1; done
sleep 0.5
shot 3-dragging
xdotool mouseup 1
sleep 0.5
saveAndExpect "a block moves by mouse" 'order[0][0] == "F0.1" and sorted(sum(order, [])) == sorted(sum(json.load(open("'"$work"'/before.json"))["schedule"]["order"], []))'
keys ctrl+z
saveAndExpect "undo brings that back, too" 'design == json.load(open("'"$work"'/before.json"))'

# Emptied and rebuilt: one block by hand, the rest in style.
keys ctrl+Delete
shot 4-empty
saveAndExpect "the timeline is emptied" 'sum(order, []) == []'
keys n n
saveAndExpect "blocks are placed one by one" 'len(sum(order, [])) == 2'
keys ctrl+p
shot 5-completed
saveAndExpect "the rest is completed as 1F1B" 'order == json.load(open("'"$work"'/before.json"))["schedule"]["order"]'
"$program" check "$file" >/dev/null || fail "what the designer saved does not pass the check"

# A killed program loses nothing that was done: the next one offers it.
keys slash; xdotool type --delay 40 'F0.5'; keys Return
keys alt+Left
sleep 5 # autosave writes every three seconds
kill -9 "$designer"
wait "$designer" 2>/dev/null || true
start
focus Recover ''
shot 6-recovery
keys Return
focus microbatches full
saveAndExpect "a killed program's work is recovered" 'order[0].index("F0.5") < order[0].index("B0.1")'
shot 7-recovered
keys ctrl+q
waitFor 20 sh -c "! kill -0 $designer 2>/dev/null" || fail "the designer does not close"
echo "ok: it closes"
[ -f "$HOME/.config/Pipewright/pipewright.conf" ] && ! ls "$HOME/.config" | grep -q Unknown \
    || fail "the settings are elsewhere: $(find "$HOME/.config" -name '*.conf')"
echo "ok: settings have the program's own folder"
