#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What there is to see on a machine with a GPU, in one command and under 8 minutes: whether driver and plugin are
# found; whether every kernel agrees with its reference; whether designs train on the GPU as the sequential reference
# does, over every kind of link and captured as graphs; whether a calibrated prediction meets the measurement, family
# by family; and what recording costs. A compact report, and a few small traces, are left in a folder.
#   tests/gpu.sh OUT [BUNDLE]   OUT: a folder for the report; BUNDLE: an installed bundle, else one is built
# Nothing but the driver is needed with a bundle; building needs the CUDA toolkit, CMake and the libraries that
# app/setup.sh installs, but no Qt. Ends with 0 when all of it passed, 1 when something failed, 2 when there is
# nothing to run, and 3 when there is no GPU to run it on; the report says why.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:?tests/gpu.sh OUT [BUNDLE]}
mkdir -p "$out"
out=$(cd "$out" && pwd)
bundle=${2:-}
[ ! -d "$bundle" ] || bundle=$(cd "$bundle" && pwd)
[ -n "$bundle" ] || [ ! -x "$root/bin/pipewright" ] || bundle=$root # this script is part of a bundle
report=$out/report.txt
failed=0
began=$SECONDS
limit=460 # seconds; what does not fit is left out, and said to be

say() { printf '%s\n' "$*" | tee -a "$report"; }
fail() { failed=1; say "FAILED: $*"; }
left() { echo $((limit - (SECONDS - began))); }
# The number behind "key": in one line of JSON.
value() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p"; }

: >"$report"
say "Pipewright on $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU that nvidia-smi knows of'), $(date -u +%F)"

if [ -z "$bundle" ]; then
    bundle=$root/build/bundle-installed
    if ! { (cd "$root" && cmake --preset bundle) && cmake --build "$root/build/bundle" &&
           cmake --install "$root/build/bundle" --prefix "$bundle"; } >"$out/build.log" 2>&1; then
        say "the bundle could not be built: $(grep -m1 -iE 'error' "$out/build.log" || tail -n 1 "$out/build.log")"
        exit 2
    fi
    began=$SECONDS # building does not count
fi
program=$bundle/bin/pipewright
if [ ! -x "$program" ]; then
    say "$bundle is no bundle: it has no bin/pipewright"
    exit 2
fi
cd "$out" || exit 2

say; say "== devices"
timeout 60 "$program" devices 2>&1 | tee -a "$report"
if ! timeout 60 "$program" devices --json 2>/dev/null | grep -q '"cuda":{"available":true'; then
    say; say "nothing was run on a GPU: $(timeout 60 "$program" devices 2>/dev/null | sed -n 's/^cuda  off  //p')"
    exit 3
fi
gpus=$(timeout 60 "$program" devices | grep -c '^ *GPU [0-9]*: ')

say; say "== kernels against their references"
if [ -x "$bundle/bin/pipewright_gpucheck" ]; then
    timeout 120 "$bundle/bin/pipewright_gpucheck" | tee -a "$report"
    [ "${PIPESTATUS[0]}" = 0 ] || fail "kernels"
else
    fail "this bundle was built without the CUDA toolkit"
fi

# run NAME FILE OPTION…: a run on the GPU; its JSON is in NAME.json-out.
run() {
    local name=$1 file=$2
    shift 2
    [ "$(left)" -gt 20 ] || { say "$name: left out, the time is up"; return 2; }
    timeout 60 "$program" run "$file" --backend cuda --progress none --json --force -o "$name.db" "$@" >"$name.out" 2>"$name.err" ||
        { fail "$name: $(head -n 2 "$name.err" | tr '\n' ' ')"; return 1; }
}

say; say "== training against the sequential reference on the host (relative error of the worst gradient)"
# A word @MODEL is the model. Of weights that are updated amid a step there is no such error; their reads are checked.
for case in "gpipe" "1f1b" "interleaved-1f1b" "zb-h1" "zb-v" "chimera" "1f1b --graphs" "zb-h1 --graphs" "1f1b --bf16" "1f1b --link copy" "1f1b --link nccl" "chimera --link nccl" "1f1b @byte-mlp" "chimera @byte-mlp" "seq1f1b" "seq1f1b --graphs" "pipedream-2bw" "pipeoptim" "dp" "cdp-v2"; do
    family=${case%% *} options=${case#"$family"} name=train-${case// /} model=byte-gpt
    case $options in *nccl*) [ "$gpus" -ge 2 ] || { say "$case: not supported here, needs two GPUs"; continue; } ;; esac
    case $options in *@*) model=${options#*@} options= ;; esac
    "$program" new "$family" --devices 4 --microbatches 8 --model "$model" -o "$name.json" --force >/dev/null 2>"$name.err" ||
        { fail "$case: $(head -n 1 "$name.err")"; continue; }
    # shellcheck disable=SC2086
    run "$name" "$name.json" --steps 5 $options || continue
    say "$case: passed, error $(value max_relative_error <"$name.out"), loss $(sed -n 's/.*"loss":\[\([^]]*\)\].*/\1/p' "$name.out")"
    grep -q '"dropped_records":0' "$name.out" || fail "$case dropped records"
    peaks=$(sed -n 's/.*"peak_bytes":\(\[[^]]*\]\).*/\1/p' "$name.out")
    [ "$peaks" = "$(sed -n 's/.*"predicted_peak_bytes":\(\[[^]]*\]\).*/\1/p' "$name.out")" ] || fail "$case: its peaks $peaks are not the predicted ones"
    held=$(sed -n 's/.*"allocated_bytes":\(\[[^]]*\]\).*/\1/p' "$name.out")
    [ "${held:-none}" = "$(sed -n 's/.*"predicted_allocated_bytes":\(\[[^]]*\]\).*/\1/p' "$name.out")" ] || fail "$case: it allocated $held, which is not what it had told"
done
# As torchrun starts them; without a GPU for each they are to be refused.
for family in 1f1b chimera; do
    [ "$(left)" -gt 20 ] || { say "$family, a process for each GPU: left out, the time is up"; continue; }
    name=ranks-$family
    "$program" new "$family" --devices 2 --microbatches 8 --model byte-gpt -o "$name.json" --force >/dev/null 2>"$name.err"
    for rank in 1 0; do
        RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29610 timeout 60 "$program" run "$name.json" --backend mpi \
            --device cuda --deadline 20s --steps 5 --progress none --json --force -o "$name.db" >"$name.$rank.out" 2>"$name.$rank.err" &
    done
    wait $!; code=$? # of rank 0, which was started last
    wait
    if [ "$gpus" -lt 2 ] && [ $code != 0 ]; then
        say "$family, a process for each GPU: not supported here, $(head -n 1 "$name.0.err")"
    elif [ "$gpus" -lt 2 ]; then
        fail "$family: two processes shared a GPU"
    elif [ $code = 0 ]; then
        say "$family, a process for each GPU: passed, error $(value max_relative_error <"$name.0.out"), loss $(sed -n 's/.*"loss":\[\([^]]*\)\].*/\1/p' "$name.0.out")"
    else
        fail "$family, a process for each GPU: $(head -n 2 "$name.0.err" | tr '\n' ' ')"
    fi
done

say; say "== stages shared by mixed devices: synthesised programs against one device on the host"
# The two devices of each model share one GPU by slices, or have one each.
shares=$bundle/share/pipewright/experiments/mixed-speed
for model in mlp transformer experts; do
    for link in copy nccl; do
        [ "$link" != nccl ] || [ "$gpus" -ge 2 ] || { say "$model, nccl: not supported here, needs two GPUs"; continue; }
        [ "$(left)" -gt 20 ] || { say "$model, $link: left out, the time is up"; continue; }
        name=shared-$model-$link
        if timeout 60 "$program" shard "$shares/$model.json" --run --backend cuda --link "$link" --json >"$name.out" 2>"$name.err"; then
            say "$model, $link: passed, loss $(value loss <"$name.out") of $(value reference_loss <"$name.out"), gradients off by $(value gradient_error <"$name.out"), $(value verified <"$name.out") properties"
        else
            fail "$model, $link: $(head -n 2 "$name.err" | tr '\n' ' ')"
        fi
    done
done
if "$program" shard "$shares/mlp.json" --calibrate shared-measured.json --backend cuda --force --json >shared-measured.out 2>shared-measured.err; then
    say "calibration: passed, rates and collectives of this machine's GPUs are in shared-measured.json"
else
    fail "calibrating shared stages: $(head -n 1 shared-measured.err)"
fi

say; say "== fidelity: calibrated on this machine, then predicted and measured again (errors relative to measured)"
for family in gpipe 1f1b eager-1f1b interleaved-1f1b looped-bfs zb-h1 zb-h2 zb-v v-half v-min 1f1b-v chimera hanayo dualpipe dualpipe-v; do
    name=fidelity-$family
    "$program" new "$family" --devices 4 --microbatches 8 -o "$name.json" --force >/dev/null 2>"$name.err" ||
        { say "$family: $(head -n 1 "$name.err")"; continue; }
    run "$name" "$name.json" --synthetic --steps 6 || continue
    "$program" calibrate "$name.json" "$name.db" -o "$name-calibrated.json" --force >/dev/null 2>"$name.err" ||
        { fail "$family: $(head -n 1 "$name.err")"; continue; }
    run "$name" "$name-calibrated.json" --synthetic --steps 6 || continue
    "$program" compare "$name-calibrated.json" "$name.db" --json >"$name.out" 2>"$name.err"
    say "$family: $(sed -n 's/.*\("makespan":{[^}]*}\).*/\1/p' "$name.out") $(sed -n 's/.*\("start_error":{[^}]*}\).*/\1/p' "$name.out")"
done

say; say "== what it costs: one step of 1f1b"
"$program" new 1f1b --devices 4 --microbatches 8 --model byte-gpt -o cost.json --force >/dev/null 2>&1
for options in "" "--graphs"; do
    # shellcheck disable=SC2086
    run "cost$options" cost.json --steps 20 --no-gradient-check $options &&
        say "with blocks ${options:---streams}: last steps $(sed -n 's/.*"step_ns":\[\([^]]*\)\].*/\1/p' "cost$options.out" | tr ',' '\n' | tail -n 3 | tr '\n' ' ')ns"
done

# Small traces are worth keeping; the rest was only measured.
find . -maxdepth 1 -name '*.db' -size +2M -delete
rm -f ./*.err
say; say "$((SECONDS - began)) seconds"
[ $failed = 0 ] && say "all of it passed" || say "something FAILED: see above"
exit $failed
