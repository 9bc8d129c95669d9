#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Rehearses tests/gpu.sh on stand-in GPUs: gpuday.sh GPU.SH BUNDLE. Every part passes and leaves its archive; a product
# that is silently wrong makes the part fail that compares gradients, and it goes on to its end; without a GPU nothing
# is claimed.
set -uo pipefail
script=$1 bundle=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# As much of a driver's tool as is asked for: a run in between takes memory.
cat >"$folder/nvidia-smi" <<'SMI'
#!/bin/sh
case "$*" in *memory.used*) pgrep -f -- "run slices.json" >/dev/null && echo 400 || echo 100 ;; esac
SMI
chmod +x "$folder/nvidia-smi"
export PATH=$folder:$PATH
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
said() { grep -q -- "$2" "$folder/day/$1/report.md" || bad "the report of $1 does not say: $2"; }
said probe "none of NVIDIA's"
said probe 'all that it links to is there'
said probe '[0-9]* bytes'
said probe 'slice 3: 32 multiprocessors granted, 32 used, 96 to 127, 0 of another'
said probe 'side by side'
said probe '2 devices, .* between them'
said probe "share of kernel time with its block's label: "
said probe "kernels outside their blocks' events by more than 100 us: [0-9]"
said probe 'memory of all GPUs: 100 MiB before, at most 400 during and 100 after; [0-9]* MiB were said'
said correct 'the same losses as train-1f1b--graphs'
said correct 'the same losses of gpipe as of 1f1b'
said correct 'attention of 1f1b--scaledata_typebf16: .*has a kernel of its own'
said fidelity 'zb-h1: errors .*; measured .* ns, of which the spread is'
said speed 'streams: .* ns; calls of a block: [0-9.]* us on average'
said speed '--graphs: .* ns; calls of a block: [0-9.]* us on average'
said speed 'kernels: its quickest step is [0-9]* ns, '
said speed 'ours, 16^3 fp32: '
said speed 'attention, own, 16 tokens: forward [0-9.]* ms'
said speed 'ours, a layer, fp32: [0-9.-]* ms'

# Designs name the GPU on which they run, or shares of its peak would be those of a CPU's threads.
for design in probe/slices correct/train-gpipe fidelity/base fidelity/fidelity-zb-h1 speed/step speed/layer; do
    grep -q '"name": "GPU 0 (' "$folder/day/$design.json" || bad "$design.json does not name its GPU"
done

PIPEWRIGHT_STANDIN_FAIL=wrong:40 "$script" --small "$folder/wrong" "$bundle" correct >"$folder/wrong.log" 2>&1
code=$?
[ $code = 1 ] || bad "with wrong gradients it ended with $code"
grep -q 'FAILED.*differ' "$folder/wrong/correct/report.md" || bad "the wrong gradients are not in the report"
grep -q '## Stages shared' "$folder/wrong/correct/report.md" || bad "it did not go on after the failure"

PIPEWRIGHT_STANDIN_FAIL=overlap:1 "$bundle/bin/pipewright_slicecheck13" --small >"$folder/overlap.log" 2>&1
[ $? = 1 ] && grep -q '32 of another slice WRONG' "$folder/overlap.log" || bad "slices that overlap were not found"

# Without cuBLASLt, which is missed here where a toolkit of CUDA 12 is not installed, it says what that costs.
mkdir "$folder/lib" && ln -s "$bundle"/lib/* "$folder/lib" && rm "$folder/lib/libcublasLt.so.12"
if [ -z "$(find /usr/local/cuda/lib64/ /usr/lib/x86_64-linux-gnu -name libcublasLt.so.12 2>/dev/null)" ]; then
    LD_LIBRARY_PATH=$folder/lib PIPEWRIGHT_STANDIN_DRIVER=12080 "$bundle/bin/pipewright" run "$folder/day/speed/step.json" \
        --backend cuda --steps 1 --no-gradient-check --record nothing --progress none >"$folder/slow.log" 2>&1 || bad "without cuBLASLt nothing runs"
    grep -q 'cuBLASLt was not found (libcublasLt.so.12).* many times slower' "$folder/slow.log" || bad "nothing says that cuBLASLt is missing"
fi

# What hangs is ended with its part, not later.
mkdir -p "$folder/hung/bin"
cat >"$folder/hung/bin/pipewright" <<'HUNG'
#!/bin/sh
case "$1 $2" in
    "devices --json") echo '"cuda":{"available":true' ;;
    run*) exec sleep 300 ;;
esac
HUNG
chmod +x "$folder/hung/bin/pipewright"
truncate -s 50000001 "$folder/hung/ballast"
began=$SECONDS
PIPEWRIGHT_GPU_SECONDS=25 "$script" "$folder/late" "$folder/hung" fidelity >"$folder/late.log" 2>&1
code=$?
[ $code = 1 ] || bad "what hangs ended with $code"
[ $((SECONDS - began)) -lt 100 ] || bad "a part of 25 seconds took $((SECONDS - began))"
grep -q 'FAILED.*base: .*exit code 124\|base: left out, the time is up' "$folder/late/fidelity/report.md" || bad "nothing says what hung"
# A bundle that is too large to be copied is refused.
PIPEWRIGHT_GPU_SECONDS=5 "$script" "$folder/large" "$folder/hung" probe >"$folder/large.log" 2>&1
grep -q 'FAILED.* [0-9]* bytes, and 50000000 is the most' "$folder/large/probe/report.md" || bad "nothing says that the bundle is too large"

PIPEWRIGHT_STANDIN_GPUS=0 "$script" --small "$folder/none" "$bundle" probe >"$folder/none.log" 2>&1
code=$?
[ $code = 3 ] || bad "without a GPU it ended with $code"
grep -q 'Nothing was run on a GPU: ' "$folder/none/probe/report.md" || bad "nothing says that there was no GPU"
echo "the day was rehearsed in $SECONDS seconds"
