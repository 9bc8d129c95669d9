# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by what wants a real window: an X server of its own (openScreen), a window manager, and a home folder that
# nobody else has. $pictures is a folder for screenshots, or empty. Exits 77, "skipped", where a tool is missing.
for tool in Xvfb openbox xdotool python3; do
    command -v "$tool" >/dev/null 2>&1 || { echo "skipped: $tool is not installed"; exit 77; }
done
work=$(mktemp -d)
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED: $*" >&2; shot failed; exit 1; }
shot() { if [ -n "$pictures" ] && command -v import >/dev/null 2>&1; then import -window root "$pictures/$1.png" || true; fi; }

export HOME=$work/home XDG_RUNTIME_DIR=$work/run QT_QPA_PLATFORM=xcb LC_ALL=C.UTF-8
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME WAYLAND_DISPLAY
mkdir -p "$HOME" && mkdir -m 700 "$XDG_RUNTIME_DIR"
# An X server with one screen of that size and a window manager; its process is $server.
openScreen() { # WIDTH HEIGHT
    rm -f "$work/display"
    Xvfb -displayfd 3 -screen 0 "${1}x${2}x24" -nolisten tcp 3>"$work/display" 2>"$work/xvfb.log" &
    server=$!
    pids+=("$server")
    for _ in $(seq 100); do [ -s "$work/display" ] && break; sleep 0.1; done
    [ -s "$work/display" ] || { echo "skipped: no X server can be started here"; exit 77; }
    DISPLAY=:$(cat "$work/display")
    export DISPLAY
    openbox >"$work/openbox.log" 2>&1 &
    pids+=($!)
    # A window that comes before the manager is never made active.
    for _ in $(seq 100); do xdotool get_num_desktops >/dev/null 2>&1 && break; sleep 0.1; done
}
# waitFor SECONDS COMMAND…
waitFor() {
    local until=$((SECONDS + $1)); shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $until ] || return 1
        sleep 0.2
    done
}
window() { xdotool search --onlyvisible --name "$1" 2>/dev/null | head -n1 | grep .; }
keys() { xdotool key --clearmodifiers --delay 60 "$@"; sleep 0.4; }
