#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Takes the pictures in resources/screenshots anew: the main views of the example in both themes and two sizes, in a
# real window on an X server of its own.
#   tests/gui/designer/screenshots.sh PROGRAM FOLDER
set -euo pipefail
program=$1 folder=$2
for tool in Xvfb openbox xdotool import convert; do
    command -v "$tool" >/dev/null 2>&1 || { echo "$tool is not installed" >&2; exit 2; }
done
work=$(mktemp -d)
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
export HOME=$work/home XDG_RUNTIME_DIR=$work/run QT_QPA_PLATFORM=xcb LC_ALL=C.UTF-8
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME WAYLAND_DISPLAY
mkdir -p "$HOME" "$folder" && mkdir -m 700 "$XDG_RUNTIME_DIR"

window() { xdotool search --onlyvisible --name "$1" 2>/dev/null | head -n1; }
await() { # NAME: its window
    for _ in $(seq 400); do
        id=$(window "$1")
        [ -z "$id" ] || { echo "$id"; return; }
        sleep 0.2
    done
    echo "no window called $1 appeared" >&2
    return 1
}
keys() { xdotool key --clearmodifiers --delay 60 "$@"; sleep 1; }

session() { # WIDTH HEIGHT SUFFIX
    local width=$1 height=$2 suffix=$3
    rm -f "$work/display"
    Xvfb -displayfd 3 -screen 0 "${width}x${height}x24" -nolisten tcp 3>"$work/display" 2>/dev/null &
    local server=$!
    pids+=("$server")
    for _ in $(seq 100); do [ -s "$work/display" ] && break; sleep 0.1; done
    DISPLAY=:$(cat "$work/display")
    export DISPLAY
    openbox >/dev/null 2>&1 &
    pids+=($!)
    for _ in $(seq 100); do xdotool get_desktop >/dev/null 2>&1 && break; sleep 0.1; done # it is there
    "$program" >/dev/null 2>&1 &
    local designer=$!
    pids+=("$designer")
    local main
    main=$(await llama)
    xdotool windowactivate --sync "$main" windowmove "$main" 0 0 windowsize "$main" "$width" $((height - 20))
    sleep 20 # what is worked out in the background
    picture() { # NAME: of the window in front
        xdotool mousemove $((width - 1)) $((height - 1))
        sleep 1
        import -window "$2" "$work/shot.png"
        convert "$work/shot.png" +dither -colors 128 -define png:compression-level=9 "PNG8:$folder/$1$suffix.png"
    }
    view() { # KEYS NAME FILE THEME [X Y]: a window beside the main one, after a click at that place
        xdotool windowactivate --sync "$main"
        keys "$1"
        local id
        id=$(await "$2")
        xdotool windowmove "$id" 0 0 windowsize "$id" $((width - 2)) $((height - 30))
        [ -z "${5:-}" ] || xdotool mousemove --window "$id" $5 click 1
        case $3 in memory-*) sleep 25 ;; *) sleep 6 ;; esac # what it works out
        picture "$3-$4" "$id"
        xdotool windowactivate --sync "$id"
        keys alt+F4
    }
    # The designer opens in the look that was used last, at first the light one.
    for theme in light dark; do
        xdotool windowactivate --sync "$main"
        keys slash; xdotool type --delay 40 'F0.4'; keys Return
        sleep 6
        picture "designer-$theme" "$main"
        view ctrl+b 'Building block' building-block "$theme"
        view ctrl+shift+c 'Compare schedules' compare "$theme" '198 72' # with 1F1B
        view ctrl+shift+t 'Memory against bubble' memory-against-bubble "$theme"
        view ctrl+m 'Model and cluster' model-and-cluster "$theme"
        xdotool windowactivate --sync "$main"
        keys ctrl+t
    done
    kill "$designer" "$server" 2>/dev/null || true
}
session 1280 800 ''
session 2560 1440 -2560
