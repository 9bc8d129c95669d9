#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# CPU time and memory of the commands on the largest design there is: 8,388,608 blocks; the required and measured values
# are in README.md. Not a test, since times depend on the machine (the memory per block is bounded in
# tests/app/tst_scale.cpp).
#   tests/bench/scale.sh [PROGRAM]
set -euo pipefail
program=$(realpath "${1:-$(dirname "${BASH_SOURCE[0]}")/../../build/release/bin/pipewright}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
blocks=8388608
measure() { # NAME WORDS…
    local name=$1; shift
    /usr/bin/time -o time -f '%U %S %e %M' "$program" "$@" >said
    awk -v name="$name" -v blocks=$blocks '{ printf "%-14s %6.1f s of CPU, %6.1f s, %6.2f GiB, %4.0f bytes per block\n",
                                              name, $1 + $2, $3, $4 / 1048576, $4 * 1024 / blocks }' time
}
measure new new 1f1b --devices 64 --microbatches 65536 -o design.json
measure predict predict design.json
measure check check design.json
# The same with one edit in the middle: two blocks of a device change places, so the order is no longer the family's.
perl -0pe 's/("B32\.30000"),(\s*)("F32\.[0-9]+")/$3,$2$1/ or die "nothing to edit"' design.json >edited.json
measure predict-edited predict edited.json
measure check-edited check edited.json
measure blocks-csv export design.json --to blocks-csv -o out --force
measure perfetto export design.json --to perfetto -o out --force
measure chrome export design.json --to chrome -o out --force
measure search search design.json --time-limit 1s -o out --force
