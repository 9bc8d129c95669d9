#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzzes every parser for so many seconds, one after the other, with the mutators, words and seeds that ctest uses, and
# says how many inputs each got. What is found lies in the build's folder fuzz/, as does the corpus that grows there.
#   tests/fuzz.sh SECONDS [NAME…]        NAME as in tests/fuzz/fuzz_NAME.cpp; all of them without one
#   BUILD=build/fuzz-fast tests/fuzz.sh 600     a build of the preset `fuzz-fast` (or `fuzz`, the default, with sanitizers)
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(realpath "${BUILD:-$root/build/fuzz}")
seconds=${1:?how many seconds each}
shift
names=("$@")
if [ $# = 0 ]; then
    for file in "$root"/tests/fuzz/fuzz_*.cpp; do
        name=${file##*/fuzz_}
        names+=("${name%.cpp}")
    done
fi
failed=0
for name in "${names[@]}"; do
    mkdir -p "$build/fuzz/corpus/$name"
    words=$root/tests/fuzz/dictionaries/$name.dict
    "$build/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 $([ -e "$words" ] && echo "-dict=$words") -artifact_prefix="$build/fuzz/$name-" \
        "$build/fuzz/corpus/$name" "$root/tests/fuzz/seeds/$name" >"$build/fuzz/$name.log" 2>&1
    code=$?
    [ $code = 0 ] || failed=1
    awk -v name="$name" -v code=$code -v log_="$build/fuzz/$name.log" '
        /stat::number_of_executed_units/ { inputs = $2 }
        /stat::average_exec_per_sec/ { rate = $2 }
        END { printf "%-14s %12d inputs, %7d a second%s\n", name, inputs, rate,
                     code == 0 ? "" : ": FAILED, see " log_ }' "$build/fuzz/$name.log"
done
exit $failed
