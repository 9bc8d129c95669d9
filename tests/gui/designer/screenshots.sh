#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Takes the pictures in resources/screenshots anew, in a real window on an X server of its own: in both themes every
# view at 1440 × 900 with what happens in it (a refused drag, a run, an overlay), and the views in which room decides at
# 1024 × 640; in one of them at 2560 × 1440 and at scale 2. A run and a refused drag are pictures of the first minute
# (realwalk.sh).
#   tests/gui/designer/screenshots.sh PROGRAM GUI_TESTS FOLDER [SESSION…]
# Sessions: usual small large scaled gpu walk; all of them where none is named.
set -euo pipefail
program=$1 tests=$2 folder=$3 pictures=
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/realscreen.sh"
for tool in import convert; do
    command -v "$tool" >/dev/null 2>&1 || { echo "$tool is not installed" >&2; exit 2; }
done
mkdir -p "$folder"

await() { # NAME: its window
    waitFor 80 window "$1" || { echo "no window called $1 appeared" >&2; return 1; }
    window "$1"
}
keep() { # PICTURE NAME: with few colours, which is what there is
    convert "$1" +dither -colors "${3:-96}" -define png:compression-level=9 "PNG8:$folder/$2.png"
}
picture() { # NAME WINDOW
    xdotool mousemove $((width - 1)) $((height - 1))
    sleep 1
    import -window "$2" "$work/shot.png"
    keep "$work/shot.png" "$1"
}
# The designer with a look, on a screen of that size; its window is $main, its process $designer.
begin() { # WIDTH HEIGHT THEME SCALE [FILE WINDOW]
    width=$1 height=$2 theme=$3
    openScreen "$width" "$height"
    rm -rf "$HOME" && mkdir -p "$HOME/.config/Pipewright"
    printf '[General]\ntheme=%s\n' "$theme" >"$HOME/.config/Pipewright/pipewright.conf"
    QT_SCALE_FACTOR=$4 "$program" ${5:+"$5"} >/dev/null 2>&1 &
    designer=$!
    pids+=("$designer")
    main=$(await "${6:-llama}")
    xdotool windowactivate --sync "$main" windowmove "$main" 0 0 windowsize "$main" "$width" $((height - 20))
    sleep 20 # what is worked out in the background
}
finishSession() { kill "$designer" "$server" 2>/dev/null || true; wait "$designer" 2>/dev/null || true; }
choose() { # BLOCK
    xdotool windowactivate --sync "$main"
    keys slash; xdotool type --delay 40 "$1"; keys Return
    sleep 6
}
fromPalette() { # WORDS: from the palette
    xdotool windowactivate --sync "$main"
    keys ctrl+shift+p; xdotool type --delay 40 "$1"; keys Return
    sleep 4
}
view() { # KEYS NAME FILE SECONDS [COMMAND…]: a window beside the main one, after that command in it
    local keys=$1 name=$2 file=$3 seconds=$4 id
    shift 4
    xdotool windowactivate --sync "$main"
    keys "$keys"
    id=$(await "$name")
    xdotool windowmove "$id" 0 0 windowsize "$id" $((width - 2)) $((height - 30))
    sleep 2
    [ $# = 0 ] || "$@" "$id"
    sleep "$seconds" # what it works out
    picture "$file" "$id"
    xdotool windowactivate --sync "$id"
    keys alt+F4
    sleep 1
}
press() { xdotool windowactivate --sync "$2"; keys "$1"; } # KEY WINDOW
clickAt() { xdotool mousemove --window "$2" $1 click 1; }  # 'X Y' WINDOW

usual() {
    begin 1440 900 "$1" 1
    choose I1.0
    picture "designer-$1" "$main"
    view ctrl+b 'Building block' "building-block-$1" 6
    view ctrl+shift+c 'Compare schedules' "compare-$1" 6 clickAt '198 72' # with 1F1B
    view ctrl+shift+t 'Memory against bubble' "memory-against-bubble-$1" 45
    view ctrl+m 'Model and cluster' "model-and-cluster-$1" 4
    view ctrl+shift+n '^Plan' "plan-$1" 45 press Return
    view ctrl+shift+f 'Search for a better order' "search-$1" 12 press Return
    view ctrl+shift+d 'Sharding' "sharding-$1" 8
    view ctrl+shift+w 'Train and compare' "experiment-$1" 40 press Return
    view ctrl+e 'Picture' "picture-$1" 4
    fromPalette "see a recorded"
    sleep 4
    choose I1.0
    keys 3
    sleep 2
    main=$(window byte || echo "$main")
    picture "overlay-$1" "$main"
    view ctrl+shift+k 'Trace' "trace-$1" 6
    finishSession
}
small() {
    begin 1024 640 "$1" 1
    choose I1.0
    picture "designer-$1-1024" "$main"
    view ctrl+m 'Model and cluster' "model-and-cluster-$1-1024" 4
    view ctrl+shift+c 'Compare schedules' "compare-$1-1024" 6 clickAt '198 72'
    finishSession
}
large() {
    begin 2560 1440 "$1" 1
    choose I1.0
    picture "designer-$1-2560" "$main"
    view ctrl+b 'Building block' "building-block-$1-2560" 6
    view ctrl+shift+c 'Compare schedules' "compare-$1-2560" 6 clickAt '198 72'
    finishSession
}
scaled() {
    begin 2880 1800 "$1" 2
    choose I1.0
    picture "designer-$1-scaled" "$main"
    finishSession
}
gpu() {
    begin 1440 900 "$1" 1 "$here/../../../resources/experiments/gpu/h100/1f1b-four-slices.db" 1f1b
    keys ctrl+k # the measured costs, which makes the file a design of its own
    sleep 4
    main=$(window 1f1b || echo "$main")
    choose F1.5
    keys 3
    sleep 2
    keys k f
    sleep 4
    picture "kernels-$1" "$main"
    finishSession
}
walk() {
    rm -rf "$work/walk" && mkdir -p "$work/walk"
    "$here/realwalk.sh" "$tests" 1440x900 "$1" 1 "$work/walk" >"$work/walk.log" 2>&1 || cat "$work/walk.log" >&2
    for name in 1-refused 4-running; do
        [ ! -f "$work/walk/walk-$name.png" ] || keep "$work/walk/walk-$name.png" "${name#*-}-$1"
    done
}
[ $# -gt 0 ] || set -- usual small large scaled gpu walk
for session; do
    case $session in
    large) themes=dark ;;
    scaled) themes=light ;;
    *) themes='light dark' ;;
    esac
    for theme in $themes; do "$session" "$theme"; done
done
