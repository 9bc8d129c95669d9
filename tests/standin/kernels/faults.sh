#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every fault planted in faults.cu is caught, by a message that says what and where, and the same kernels without it
# are not complained of:
#   faults.sh PLAIN ADDRESS THREAD    the program, the same under the address and under the thread sanitizer
set -uo pipefail
plain=$1 address=$2 thread=$3
failed=0
unset PIPEWRIGHT_STANDIN_ORDER
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 TSAN_OPTIONS=halt_on_error=1

# caught PROGRAM FAULT MESSAGE: fails, with this extended regular expression in what it says.
caught() {
    local output status=0
    output=$("$1" "$2" 2>&1) || status=$?
    if [ $status = 0 ] || ! grep -qE "$3" <<<"$output"; then
        printf 'NOT CAUGHT: %s %s (status %s) said:\n%s\n' "$1" "$2" $status "$output"
        failed=1
    else
        printf 'caught: %-22s by %s: %s\n' "$2" "$(basename "$1")" "$(grep -m1 -oE "$3" <<<"$output")"
    fi
}

for program in "$plain" "$address" "$thread"; do
    for order in forwards backwards shuffled:1 shuffled:2; do
        PIPEWRIGHT_STANDIN_ORDER=$order "$program" right || { echo "complained of what is right: $program, $order"; failed=1; }
    done
done

place='kernel kernel \(faults\.cu:[0-9]+\), block \(0,0,0\), thread'
caught "$plain" rotate 'wrong result'
caught "$plain" unwrittenShared 'wrong result: out\[0\] is -?nan'
caught "$plain" returnBeforeBarrier "$place \([0-9]+,0,0\): waits at the barrier in faults\.cu:[0-9]+, and thread \(0,0,0\) has returned"
PIPEWRIGHT_STANDIN_ORDER=backwards \
    caught "$plain" returnBeforeBarrier "$place \(0,0,0\): returned, and thread \(63,0,0\) waits for it at the barrier in faults\.cu"
caught "$plain" barriersOfBranches "$place \(1,0,0\): waits at the barrier in faults\.cu:[0-9]+, and thread \(0,0,0\) at another"
caught "$plain" shuffleWithAbsent "$place \([0-9]+,0,0\): takes by __shfl_xor_sync in faults\.cu:[0-9]+ from lane [0-9]+, which has returned"
caught "$plain" shuffleAgainstBarrier "$place \(0,0,0\): all wait and none comes: waits for others at the barrier"
caught "$plain" shuffleAgainstBarrier "thread \(16,0,0\) waits for others at __shfl_xor_sync"
caught "$plain" blockTooLarge 'cannot be launched: a block \(1025,1,1\) is more than 1024 threads'
caught "$plain" blocksWrite 'wrong result'
PIPEWRIGHT_STANDIN_ORDER=sideways caught "$plain" right 'PIPEWRIGHT_STANDIN_ORDER is forwards, backwards or shuffled'

caught "$address" indexOfShared 'use-after-poison|faults\.cu:[0-9]+'
caught "$address" indexOfMemory 'heap-buffer-overflow'

# What one order of threads and blocks hides: here the results are right more often than not.
for fault in rotate rotateTwice rotateByShuffle blocksWrite blocksRead; do
    caught "$thread" $fault 'data race.*faults\.cu:[0-9]+'
done
exit $failed
