#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzzes every parser for so many seconds or inputs, several at a time, with the mutators, words and seeds that ctest
# uses, and says in one table how many inputs each got, of how many a second, and how many it has had in all runs of
# this build. What is found lies in the build's folder fuzz/, as do the corpus that grows there and those sums.
#   tests/fuzz.sh SECONDS [NAME…]              NAME as in tests/fuzz/fuzz_NAME.cpp; all of them without one
#   tests/fuzz.sh --inputs N [NAME…]           until each has had N in all runs of this build; interrupted, it goes on
#                                              where it was, but for the last ten minutes
#   tests/fuzz.sh --merge [NAME…]              what the corpora cover beyond the seeds becomes seeds, small ones
#   BUILD=build/fuzz-fast tests/fuzz.sh 600    of the preset `fuzz-fast`, or of `fuzz`, the default, with sanitizers
#   JOBS=4 tests/fuzz.sh 600                   so many at a time; without it as many as there are processors
#   TIMEOUT=60 tests/fuzz.sh 600               an input may take so many seconds by the clock, not 10: for a busy machine
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(realpath "${BUILD:-$root/build/fuzz}")
merge='' inputs=''
case ${1:?how many seconds each, or --inputs N, or --merge} in
    --inputs) inputs=${2:?how many inputs each}; shift 2 ;;
    --merge) merge=1; shift ;;
    *) bound=-max_total_time=$1; shift ;;
esac
names=("$@")
if [ $# = 0 ]; then
    for file in "$root"/tests/fuzz/fuzz_*.cpp; do
        name=${file##*/fuzz_}
        names+=("${name%.cpp}")
    done
fi

# Longest input. Databases have a page for each of their tables.
longest() { case $1 in trace | nsight) echo 32768 ;; *) echo 4096 ;; esac; }

had() { cat "$build/fuzz/$1.inputs" 2>/dev/null || echo 0; } # NAME

fuzz() { # NAME
    if [ -z "$inputs" ]; then run "$1" "$bound"; return; fi
    while [ "$(had "$1")" -lt "$inputs" ]; do
        run "$1" -runs=$((inputs - $(had "$1"))) -max_total_time=600 || return
    done
}

run() { # NAME BOUND…
    local name=$1 code words=$root/tests/fuzz/dictionaries/$1.dict
    shift
    mkdir -p "$build/fuzz/corpus/$name"
    "$build/fuzz/fuzz_$name" "$@" -max_len="$(longest "$name")" -timeout="${TIMEOUT:-10}" -rss_limit_mb=2048 \
        -entropic=0 -print_funcs=0 -print_final_stats=1 $([ -e "$words" ] && echo "-dict=$words") \
        -artifact_prefix="$build/fuzz/$name-" \
        "$build/fuzz/corpus/$name" "$root/tests/fuzz/seeds/$name" >"$build/fuzz/$name.log" 2>&1
    code=$?
    awk -v name="$name" -v code=$code -v log_="$build/fuzz/$name.log" -v sum="$build/fuzz/$name.inputs" '
        /stat::number_of_executed_units/ { inputs = $2 }
        /stat::average_exec_per_sec/ { rate = $2 }
        END { getline before < sum
              close(sum)
              printf "%d\n", before + inputs > sum
              printf "%-14s %12d %10d %12d%s\n", name, inputs, rate, before + inputs,
                     code == 0 ? "" : "  FAILED, see " log_ }' "$build/fuzz/$name.log"
    return $code
}

# Of equal coverage the smaller input stays, and at most 16 KiB of them at a time: seeds together stay small.
grow() { # NAME
    local seeds=$root/tests/fuzz/seeds/$1 fresh
    [ -d "$build/fuzz/corpus/$1" ] || return 0
    fresh=$(mktemp -d)
    "$build/fuzz/fuzz_$1" -merge=1 -max_len="$(longest "$1")" "$fresh" "$seeds" "$build/fuzz/corpus/$1" >/dev/null 2>&1
    find "$fresh" -type f -printf '%s %p\n' | sort -n | awk '(total += $1) <= 16384 { print $2 }' |
        while read -r file; do cp -n "$file" "$seeds/"; done
    rm -rf "$fresh"
    printf '%-14s %s\n' "$1" "$(du -sb --apparent-size "$seeds" | cut -f1) bytes of seeds"
}

trap 'trap - TERM; kill 0' INT TERM # what runs in the background heeds no Ctrl+C
[ -n "$merge" ] || printf '%-14s %12s %10s %12s\n' parser inputs "a second" "in all"
failed=0 running=0
for name in "${names[@]}"; do
    if [ $running -ge "${JOBS:-$(nproc)}" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    if [ -n "$merge" ]; then grow "$name" & else fuzz "$name" & fi
    running=$((running + 1))
done
while [ $running -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit $failed
