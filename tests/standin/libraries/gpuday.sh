#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Rehearses tests/gpu.sh on stand-in GPUs: gpuday.sh GPU.SH BUNDLE. Every part passes and leaves its archive; a product
# that is silently wrong makes the part fail that compares gradients, and it goes on to its end; without a GPU nothing
# is claimed.
set -uo pipefail
script=$1 bundle=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LD_LIBRARY_PATH=$bundle/lib PIPEWRIGHT_STANDIN_GPUS=2
bad() {
    echo "FAILED: $*"
    cat "$folder"/*.log
    exit 1
}
"$script" --small "$folder/day" "$bundle" >"$folder/day.log" 2>&1 || bad "the rehearsal ended with $?"
for part in probe correct fidelity speed; do
    archive=$folder/day/$part.tar.gz
    [ -s "$archive" ] || bad "$part left no archive"
    [ "$(stat -c %s "$archive")" -lt $((12 * 1024 * 1024)) ] || bad "the archive of $part is too large"
    for file in report.md environment.txt; do
        grep -q "^$part/$file$" <<<"$(tar -tzf "$archive")" || bad "the archive of $part has no $file"
    done
    grep -q 'All of it passed' "$folder/day/$part/report.md" || bad "the report of $part does not say that it passed"
done
grep -q "none of NVIDIA's" "$folder/day/probe/report.md" || bad "the report does not say what it ran on"

PIPEWRIGHT_STANDIN_FAIL=wrong:40 "$script" --small "$folder/wrong" "$bundle" correct >"$folder/wrong.log" 2>&1
code=$?
[ $code = 1 ] || bad "with wrong gradients it ended with $code"
grep -q 'FAILED.*differ' "$folder/wrong/correct/report.md" || bad "the wrong gradients are not in the report"
grep -q '## Stages shared' "$folder/wrong/correct/report.md" || bad "it did not go on after the failure"

PIPEWRIGHT_STANDIN_GPUS=0 "$script" --small "$folder/none" "$bundle" probe >"$folder/none.log" 2>&1
code=$?
[ $code = 3 ] || bad "without a GPU it ended with $code"
grep -q 'Nothing was run on a GPU: ' "$folder/none/probe/report.md" || bad "nothing says that there was no GPU"
echo "the day was rehearsed in $SECONDS seconds"
