#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What there is to see on a machine with a GPU, in one command: whether driver and plugin are found, whether every
# kernel agrees with its reference, and traces and timings of a set of families, written as a short report.
#   tests/gpu.sh OUT [BUNDLE]   OUT: a folder for the report; BUNDLE: an installed bundle, else one is built
# Nothing but the driver is needed with a bundle; building needs the CUDA toolkit, CMake and app/setup.sh's packages.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:?tests/gpu.sh OUT [BUNDLE]}
mkdir -p "$out"
bundle=${2:-}
report=$out/report.txt
failed=0

say() { printf '%s\n' "$*" | tee -a "$report"; }
: >"$report"
say "Pipewright on $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU that nvidia-smi knows of'), $(date -u +%F)"

if [ -z "$bundle" ]; then
    bundle=$root/build/bundle-installed
    if ! { (cd "$root" && cmake --preset bundle) && cmake --build "$root/build/bundle" &&
           { ! grep -q pipewright_gpucheck "$root/build/bundle/build.ninja" || cmake --build "$root/build/bundle" --target pipewright_gpucheck; } &&
           cmake --install "$root/build/bundle" --prefix "$bundle"; } >"$out/build.log" 2>&1; then
        say "the bundle could not be built: see build.log"
        exit 2
    fi
fi
program=$bundle/bin/pipewright

say; say "== devices"
timeout 60 "$program" devices | tee -a "$report" || failed=1

say; say "== kernels against their references"
if [ -x "$bundle/bin/pipewright_gpucheck" ]; then
    timeout 240 "$bundle/bin/pipewright_gpucheck" | tee -a "$report"
    [ "${PIPESTATUS[0]}" = 0 ] || { failed=1; say "FAILED"; }
else
    say "this bundle was built without the CUDA toolkit: nothing checked"
    failed=1
fi

say; say "== schedules on this host's processor (synthetic blocks; the GPU backend does not run designs yet)"
for family in gpipe 1f1b interleaved-1f1b zb-h1 zb-v; do
    "$program" new "$family" --devices 4 --microbatches 8 -o "$out/$family.json" --force >/dev/null &&
        timeout 60 "$program" run "$out/$family.json" --backend host --steps 5 --synthetic --time-scale 4 --progress none \
            --force -o "$out/$family.db" >/dev/null &&
        say "$family: $("$program" compare "$out/$family.json" "$out/$family.db" --tolerance 1000 --json | head -c 160)" ||
        { failed=1; say "$family: FAILED"; }
done

say; [ $failed = 0 ] && say "all of it passed" || say "something FAILED: see above"
exit $failed
