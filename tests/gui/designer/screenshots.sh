#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Takes the pictures in resources/screenshots anew: the main views of the example in both themes and two sizes, in a
# real window on an X server of its own.
#   tests/gui/designer/screenshots.sh PROGRAM FOLDER
set -euo pipefail
program=$1 folder=$2 pictures=
source "$(dirname "${BASH_SOURCE[0]}")/realscreen.sh"
for tool in import convert; do
    command -v "$tool" >/dev/null 2>&1 || { echo "$tool is not installed" >&2; exit 2; }
done
mkdir -p "$folder"

await() { # NAME: its window
    waitFor 80 window "$1" || { echo "no window called $1 appeared" >&2; return 1; }
    window "$1"
}
# The look of a window, by how bright it is.
look() { # WINDOW
    import -window "$1" "$work/look.png"
    convert "$work/look.png" -colorspace gray -format '%[fx:mean > 0.5 ? 1 : 0]' info: | sed 's/1/light/;s/0/dark/'
}
looks() { [ "$(look "$1")" = "$2" ]; } # WINDOW THEME
# Under load a key may be lost while another window gives the focus back, and the new look takes its time.
switchTo() { # WINDOW THEME
    for _ in 1 2 3; do
        looks "$1" "$2" && return
        xdotool windowactivate --sync "$1"
        keys ctrl+t
        waitFor 30 looks "$1" "$2" && return
    done
    echo "the look does not become $2" >&2
    return 1
}

session() { # WIDTH HEIGHT SUFFIX
    local width=$1 height=$2 suffix=$3
    openScreen "$width" "$height"
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
    for theme in light dark; do
        switchTo "$main" "$theme"
        xdotool windowactivate --sync "$main"
        keys slash; xdotool type --delay 40 'F0.4'; keys Return
        sleep 6
        picture "designer-$theme" "$main"
        view ctrl+b 'Building block' building-block "$theme"
        view ctrl+shift+c 'Compare schedules' compare "$theme" '198 72' # with 1F1B
        view ctrl+shift+t 'Memory against bubble' memory-against-bubble "$theme"
        view ctrl+m 'Model and cluster' model-and-cluster "$theme"
    done
    kill "$designer" "$server" 2>/dev/null || true
}
session 1280 800 ''
session 2560 1440 -2560
