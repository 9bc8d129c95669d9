#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The main job in one command: installs what is missing, builds, and opens the designer. Without a display it
# does the same job headless: design, predict, run on the host backend, overlay picture, trace, summary. A program on the
# path that was built of this very commit is taken as it is.
#   app/run.sh [FILE…]            designer (or headless without a display)
#   app/run.sh --headless [DIR]   headless, results in DIR (default: build/demo)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

headless=false
if [ "${1:-}" = --headless ]; then headless=true; shift; fi
[ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] || headless=true

# The program on the path, if it is of the commit that is checked out here, unchanged, and has a designer where one is
# wanted.
installed_program() {
    local found commit says
    found=$(command -v pipewright) || return 1
    commit=$(git -C "$root" --no-optional-locks describe --always --exclude '*' --abbrev=12 --dirty 2>/dev/null) || return 1
    says=$("$found" --version 2>/dev/null) || return 1
    case $says in
    "pipewright "*" (commit $commit)") ;;
    "pipewright "*" (commit $commit), without Qt") $headless || return 1 ;;
    *) return 1 ;;
    esac
    echo "$found"
}

if program=$(installed_program); then
    say "Taking $program, which was built of this commit"
else
    # shellcheck disable=SC2086
    install_packages $packages_build
    # shellcheck disable=SC2086
    install_packages $packages_gui || say "Going on without the designer."
    # shellcheck disable=SC2086
    install_packages $packages_nice || true
    build release pipewright -- -DPIPEWRIGHT_TESTS=OFF
    # The plugin for GPUs takes minutes to compile, and without a driver nothing can load it.
    if has_nvidia_driver && ! build release gpu_plugins; then
        say "Going on without GPUs: the CUDA plugin was not built, the reason is above"
    fi
    program=$root/build/release/bin/pipewright
fi

if ! $headless; then
    say "Opening the designer"
    exec "$program" "$@"
fi

out=${1:-$root/build/demo}
mkdir -p "$out"
rm -f "$out"/{design,calibrated}.json "$out"/{first,run}.db{,-wal,-shm} "$out"/overlay.{svg,png}
# One device per core, so that the overlay compares like with like; two at least, to have a pipeline.
devices=$(nproc); devices=$((devices < 2 ? 2 : devices > 4 ? 4 : devices))

say "1. Design: ZB-H1, $devices devices, 8 microbatches of a byte-level GPT"
"$program" new zb-h1 --devices "$devices" --microbatches 8 --name demo -o "$out/design.json"
"$program" check "$out/design.json"
say "2. Run it once to measure what a block costs on this machine, and put that into the design"
"$program" run "$out/design.json" --backend host --steps 10 -o "$out/first.db"
"$program" calibrate "$out/design.json" "$out/first.db" --busy-machine -o "$out/calibrated.json"
say "3. Predict"
"$program" predict "$out/calibrated.json"
say "4. Run: real training, one thread per device, gradients checked against the sequential run"
"$program" run "$out/calibrated.json" --backend host --steps 10 -o "$out/run.db"
say "5. Lay the recording over the prediction"
picture=$out/overlay.png
"$program" compare "$out/calibrated.json" "$out/run.db" -o "$picture" ||
    { picture=$out/overlay.svg; "$program" compare "$out/calibrated.json" "$out/run.db" -o "$picture"; }
say "Picture: $picture"
say "Trace:   $out/run.db"
say "Design:  $out/calibrated.json   (open it with: $program $out/calibrated.json)"
