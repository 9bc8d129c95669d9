#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What there is to see on a machine with a GPU, in parts of under nine minutes each:
#   tests/gpu.sh OUT [BUNDLE] [PART…]   OUT: a folder; BUNDLE: an installed bundle, else one is built
#     probe     what the machine is, every kernel against its reference, slices, labels of kernels, memory
#     correct   training and shared stages against the reference, over every link, as graphs, as processes, twice
#     fidelity  costs measured in one family, carried over to the others, predicted and measured three times
#     speed     streams against graphs, wide layers in fp32 and bf16, products against PyTorch
# Without a PART all of them. A part goes on after a failure and leaves OUT/PART.tar.gz of less than 12 MB: a report in
# Markdown, all that was said, an environment dump and small traces. With a bundle nothing is needed but the driver and
# NVIDIA's libraries, for example those of an installed PyTorch. --small, before OUT: the least sizes, for a rehearsal.
# Ends with 0 when all of it passed, 1 when something failed, 2 when there is nothing to run, and 3 when there is no GPU
# to run it on; the report says why.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
small=
[ "${1:-}" != --small ] || { small=yes; shift; }
out=${1:?tests/gpu.sh OUT [BUNDLE] [probe|correct|fidelity|speed]…}
shift
bundle=
case ${1:-} in '' | probe | correct | fidelity | speed) ;; *) bundle=$1 && shift ;; esac
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(probe correct fidelity speed)
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
[ ! -d "$bundle" ] || bundle=$(cd "$bundle" && pwd)
[ -n "$bundle" ] || [ ! -x "$root/bin/pipewright" ] || bundle=$root # this script is part of a bundle
fp32=1e-4 bf16=3e-2      # the largest relative error of a tensor's gradient that is none
limit=480                # seconds of a part; what does not fit is left out, and said to be
most=$((12 * 1024 * 1024 - 65536)) # bytes of an archive

if [ -z "$bundle" ]; then
    bundle=$root/build/bundle-installed
    if ! { (cd "$root" && cmake --preset bundle) && cmake --build "$root/build/bundle" &&
           cmake --install "$root/build/bundle" --prefix "$bundle"; } >"$out/build.log" 2>&1; then
        echo "the bundle could not be built: $(grep -m1 -iE 'error' "$out/build.log" || tail -n 1 "$out/build.log")"
        exit 2
    fi
fi
program=$bundle/bin/pipewright
[ -x "$program" ] || { echo "$bundle is no bundle: it has no bin/pipewright"; exit 2; }

say() { printf '%s\n' "$*" | tee -a "$report"; }
title() { say; say "## $*"; say; }
pass() { say "- $*"; }
fail() { failed=1; say "- **FAILED** $*"; }
left() { echo $((limit - (SECONDS - began))); }
fits() { [ "$(left)" -gt "${2:-20}" ] || { say "- $1: left out, the time is up"; return 1; }; }
# The number, or the list, behind "key": in one line of JSON.
value() { sed -n "s/.*\"$1\":\(\[[^]]*\]\|[-0-9.e+]*\).*/\1/p"; }
within() { awk -v error="${1:-none}" -v bound="$2" 'BEGIN { exit !(error ~ /^[0-9]/ && error + 0 <= bound + 0) }'; }
query() { timeout 60 "$program" query "$1" "$2" 2>>"$part.err" | tail -n +2; }

# A small model as the rehearsal's; its head is its own, so that stages may be updated at different times.
if [ -n "$small" ]; then
    model="--model byte-gpt-small --sequence 8 --microbatch-size 1" microbatches=4 devices=2 check=--small
else
    model="--model byte-gpt" microbatches=8 devices=4 check=
fi
untied="--model byte-gpt-small${small:+ --sequence 8 --microbatch-size 1}"

# design NAME FAMILY OPTION…: NAME.json
design() {
    local name=$1 family=$2
    shift 2
    timeout 60 "$program" new "$family" --devices "$devices" --microbatches "$microbatches" "$@" -o "$name.json" --force \
        >>"$name.out" 2>>"$name.err" || { fail "$name: $(tail -n 1 "$name.err")"; return 1; }
}
# run NAME FILE OPTION…: a run on the GPU; its JSON is in NAME.json-out, a trace in NAME.db.
run() {
    local name=$1 file=$2
    shift 2
    fits "$name" || return 2
    timeout 120 "$program" run "$file" --backend cuda --progress none --json --force -o "$name.db" "$@" \
        >"$name.json-out" 2>>"$name.err"
    local code=$?
    [ $code = 0 ] || { fail "$name: $(grep -m 2 error "$name.err" | tr '\n' ' ')(exit code $code)"; return 1; }
}
# checked CASE NAME BOUND: what a run must have shown.
checked() {
    local error
    error=$(value max_relative_error <"$2.json-out")
    if within "$error" "$3"; then
        pass "$1: error $error, loss $(value loss <"$2.json-out")"
    else
        fail "$1: its gradients differ by ${error:-an unknown error} from the reference's, and $3 is the most"
    fi
    [ "$(value dropped_records <"$2.json-out")" = 0 ] || fail "$1: records were dropped"
    for kind in peak_bytes allocated_bytes; do
        [ "$(value $kind <"$2.json-out")" = "$(value predicted_$kind <"$2.json-out")" ] ||
            fail "$1: $kind are not the predicted ones: $(value $kind <"$2.json-out")"
    done
}

environment() {
    { uname -a; cat /etc/os-release; nproc; free -m; df -h .; nvidia-smi; nvidia-smi -q; nvidia-smi topo -m
      env | grep -E '^(CUDA|NCCL|LD_|PATH|VIRTUAL_ENV|CONDA|SLURM|PIPEWRIGHT)' | sort; ulimit -a
      python3 -c 'import torch; print(torch.__version__, torch.version.cuda)'; } >environment.txt 2>&1
    timeout 60 "$program" devices >devices.txt 2>>"$part.err"
    title "Machine"
    sed 's/^/    /' devices.txt | tee -a "$report"
    if ! timeout 60 "$program" devices --json 2>/dev/null | grep -q '"cuda":{"available":true'; then
        say; say "Nothing was run on a GPU: $(sed -n 's/^cuda  off  //p' devices.txt)"
        return 3
    fi
    for library in cuBLASLt CUPTI; do
        grep -q "$library: /" devices.txt || fail "$library was not found: kernels would be slow, traces without them"
    done
    gpus=$(grep -c '^ *GPU [0-9]*: ' devices.txt)
}

probe() {
    title "Kernels against their references"
    if [ -x "$bundle/bin/pipewright_gpucheck" ]; then
        timeout 200 "$bundle/bin/pipewright_gpucheck" $check >gpucheck.out 2>gpucheck.err
        code=$?
        [ $code = 0 ] && pass "$(tail -n 1 gpucheck.out)" || fail "gpucheck (exit code $code): $(grep -m 3 WRONG gpucheck.out)"
        for tool in memcheck racecheck; do
            command -v compute-sanitizer >/dev/null 2>&1 || { say "- compute-sanitizer is not here"; break; }
            fits "compute-sanitizer, $tool" 120 || continue
            timeout 150 compute-sanitizer --tool $tool --error-exitcode 9 "$bundle/bin/pipewright_gpucheck" --small --own-products \
                >$tool.out 2>&1 && pass "compute-sanitizer, $tool: nothing" || fail "compute-sanitizer, $tool: $(tail -n 1 $tool.out)"
        done
    else
        fail "this bundle was built without the CUDA toolkit"
    fi
    title "One GPU in slices, and what was recorded of it"
    design slices 1f1b $model || return
    before=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -n 1)
    run slices slices.json --steps 3 || return
    checked "1f1b, recorded" slices $fp32
    after=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -n 1)
    [ "${before:-0}" = "${after:-0}" ] || say "- memory of the GPU: $before MiB before, $after MiB after"
    labelled=$(query slices.db "SELECT round(100.0 * sum(CASE WHEN taskId IS NULL THEN 0 ELSE end - start END) / sum(end - start), 2) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    if within 90 "${labelled:-0}"; then pass "share of kernel time with its block's label: $labelled %"; else
        fail "share of kernel time with its block's label: ${labelled:-unknown} %"; fi
    outside=$(query slices.db "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN RECORDS r ON r.taskId = k.taskId AND r.step = k.step WHERE k.start < r.start - 100000 OR k.end > r.end + 100000")
    [ "${outside:-none}" = 0 ] && pass "kernels lie inside their blocks' events" ||
        say "- kernels outside their blocks' events by more than 100 us: ${outside:-unknown}"
    run alone slices.json --steps 3 --no-gradient-check --graphs &&
        pass "steps with graphs: $(value step_ns <alone.json-out) ns; with streams: $(value step_ns <slices.json-out) ns"
}

correct() {
    title "Training against the sequential reference on the host"
    local steps=3
    [ -z "$small" ] || steps=2
    # A word @ is the model with a head of its own: of weights that are updated amid a step there is no such error,
    # their reads are checked.
    local cases=("1f1b" "1f1b --graphs" "gpipe" "interleaved-1f1b" "zb-h1" "zb-v" "chimera" "zb-h1 --graphs" "1f1b --bf16"
                 "1f1b --link copy" "1f1b --link nccl" "chimera --link nccl" "1f1b --model=byte-mlp" "chimera --model=byte-mlp"
                 "1f1b --model=byte-llama" "seq1f1b --model=byte-llama" "seq1f1b" "seq1f1b --graphs" "pipedream-2bw @" "pipeoptim @" "dp @" "cdp-v2 @")
    [ -z "$small" ] || cases=("1f1b" "1f1b --graphs" "1f1b --bf16" "chimera --link nccl" "pipedream-2bw @")
    for case in "${cases[@]}"; do
        local family=${case%% *} options=${case#"${case%% *}"} name=train-${case//[ =@]/} bound=$fp32 shape=$model
        case $options in
            *nccl*) [ "$gpus" -ge "$devices" ] || { say "- $case: not supported here, needs $devices GPUs"; continue; } ;;
            *--model=*) shape="--model ${options#*=}" options= ;;
            *@*) shape=$untied options= ;;
            *bf16*) bound=$bf16 ;;
        esac
        design "$name" "$family" $shape || continue
        run "$name" "$name.json" --steps "$steps" $options || continue
        if [ "$shape" = "$untied" ] && [ "$case" != "${case%@}" ] && [ -z "$(value max_relative_error <"$name.json-out")" ]; then
            pass "$case: every block read the version that the schedule says, loss $(value loss <"$name.json-out")"
        else
            checked "$case" "$name" $bound
        fi
    done
    title "Repeating itself"
    if run again train-1f1b.json --steps "$steps" --no-gradient-check; then
        for other in train-1f1b train-1f1b--graphs; do
            [ "$(value loss <again.json-out)" = "$(value loss <$other.json-out)" ] && pass "the same losses as $other" ||
                fail "losses differ from $other: $(value loss <again.json-out)"
        done
    fi
    title "A process for each GPU"
    for family in 1f1b chimera; do
        fits "$family" 60 || continue
        local name=ranks-$family words port=$((29000 + RANDOM % 1000))
        timeout 60 "$program" new "$family" --devices 2 --microbatches "$microbatches" $model -o "$name.json" --force >/dev/null 2>"$name.err"
        words="$name.json --backend mpi --device cuda --deadline 30s --steps $steps --progress none --json --force -o $name.db"
        for rank in 1 0; do # as torchrun starts them
            RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout 100 "$program" run $words \
                >"$name.$rank.out" 2>>"$name.$rank.err" &
        done
        wait $!; local code=$? # of rank 0, which was started last
        wait
        cp "$name.0.out" "$name.json-out"
        if [ "$gpus" -lt 2 ]; then
            [ $code != 0 ] && say "- $family: not supported here, $(head -n 1 "$name.0.err")" || fail "$family: two processes shared a GPU"
        elif [ $code = 0 ]; then checked "$family" "$name" $fp32
        else fail "$family: $(head -n 2 "$name.0.err" | tr '\n' ' ')"; fi
    done
    title "Stages shared by mixed devices"
    # The two devices of each model share one GPU by slices, or have one each.
    local shares=$bundle/share/pipewright/experiments/mixed-speed models="mlp transformer experts"
    [ -z "$small" ] || models=mlp
    for shared in $models; do
        for link in copy nccl; do
            [ "$link" != nccl ] || [ "$gpus" -ge 2 ] || { say "- $shared, nccl: not supported here, needs two GPUs"; continue; }
            local name=shared-$shared-$link error
            fits "$shared, $link" 60 || continue
            timeout 120 "$program" shard "$shares/$shared.json" --run --backend cuda --link "$link" --json >"$name.out" 2>>"$name.err" ||
                { fail "$shared, $link: $(head -n 2 "$name.err" | tr '\n' ' ')"; continue; }
            error=$(value gradient_error <"$name.out")
            within "$error" $fp32 && pass "$shared, $link: error $error, $(value verified <"$name.out") properties" ||
                fail "$shared, $link: gradients are off by ${error:-an unknown error}"
        done
    done
}

fidelity() {
    title "Costs measured in 1f1b, carried over to the others; errors relative to the measured step"
    local families="gpipe eager-1f1b interleaved-1f1b zb-h1 zb-h2 zb-v 1f1b-v chimera"
    local repeats="1 2 3" steps=4
    [ -z "$small" ] || { families=zb-h1 repeats="1 2" steps=2; }
    design base 1f1b $model && run base base.json --steps $steps --no-gradient-check || return
    timeout 60 "$program" calibrate base.json base.db -o measured.json --force >>base.out 2>>base.err ||
        { fail "calibrate: $(tail -n 1 base.err)"; return; }
    for family in 1f1b $families; do
        local name=fidelity-$family errors="" measured=""
        timeout 60 "$program" new "$family" --devices "$devices" --microbatches "$microbatches" --costs-from measured.json \
            -o "$name.json" --force >>"$name.out" 2>>"$name.err" || { fail "$family: $(tail -n 1 "$name.err")"; continue; }
        for _ in $repeats; do
            run "$name" "$name.json" --steps $steps --no-gradient-check || continue 2
            timeout 60 "$program" compare "$name.json" "$name.db" --json >"$name.compared" 2>>"$name.err"
            errors="$errors $(sed -n 's/.*"makespan":{[^}]*"error":\([-0-9.e+]*\).*/\1/p' "$name.compared")"
            measured="$measured $(sed -n 's/.*"makespan":{[^}]*"measured_ns":\([0-9]*\).*/\1/p' "$name.compared")"
        done
        say "- $family: errors$errors; measured$measured ns, of which the spread is $(tr ' ' '\n' <<<"$measured" |
            awk 'NF { if (!n++ || $1 < low) low = $1; if ($1 > high) high = $1 } END { if (low) printf "%.1f %%", 100 * (high - low) / low }')"
    done
}

speed() {
    title "Steps, streams against graphs"
    local steps=8
    [ -z "$small" ] || steps=2
    design step 1f1b $model || return
    for case in "" "--graphs"; do
        run "step$case" step.json --steps $steps --no-gradient-check $case &&
            pass "${case:-streams}: $(value step_ns <"step$case.json-out") ns"
    done
    [ -z "$small" ] || return
    title "Wide layers"
    for case in "" "--bf16"; do
        timeout 60 "$program" new 1f1b --devices 1 --microbatches 4 --model gpt-1.5b --sequence 1024 --microbatch-size 1 -o wide.json --force \
            >>wide.out 2>>wide.err || { fail "wide: $(tail -n 1 wide.err)"; break; }
        run "wide$case" wide.json --steps 3 --no-gradient-check $case && pass "gpt-1.5b ${case:-fp32}: $(value step_ns <"wide$case.json-out") ns"
    done
    timeout 60 "$program" new 1f1b --devices 1 --microbatches 4 --model llama-3-8b --sequence 2048 --microbatch-size 1 -o llama.json \
        --force >>wide.out 2>>wide.err || fail "llama: $(tail -n 1 wide.err)"
    for case in "" "--bf16"; do
        run "llama$case" llama.json --steps 3 --no-gradient-check --scale layers=4,vocabulary=32000 $case &&
            pass "4 layers of llama-3-8b ${case:-fp32}: $(value step_ns <"llama$case.json-out") ns"
    done
    title "Products of PyTorch on this machine"
    timeout 100 python3 - >torch.out 2>torch.err <<'PYTHON' && sed 's/^/- /' torch.out | tee -a "$report" || say "- PyTorch is not here"
import time, torch
for size in (256, 1024, 4096, 8192):
    for kind in (torch.float32, torch.bfloat16):
        a, b = (torch.randn(size, size, device="cuda", dtype=kind) for _ in range(2))
        for _ in range(3): a @ b
        torch.cuda.synchronize(); begin = time.perf_counter()
        for _ in range(10): a @ b
        torch.cuda.synchronize()
        print(f"{size}^3 {kind}: {20 * size**3 / (time.perf_counter() - begin) / 1e12:.1f} TFLOP/s")
PYTHON
}

# The folder as an archive; the largest traces stay out when it would be too large.
archive() {
    cd "$out" || return
    find "$part" -name '*.db' -size +2M -delete
    while tar -czf "$part.tar.gz" "$part" && [ "$(stat -c %s "$part.tar.gz")" -gt $most ]; do
        local largest
        largest=$(find "$part" -type f -not -name report.md -printf '%s %p\n' | sort -nr | head -n 1 | cut -d' ' -f2-)
        [ -n "$largest" ] || break
        rm -f "$largest"
        printf '%s\n' "- $largest is left out of the archive: it would be too large" >>"$report"
    done
}

worst=0
for part in "${parts[@]}"; do
    case $part in probe | correct | fidelity | speed) ;; *) echo "$part is no part: probe, correct, fidelity or speed"; exit 2 ;; esac
    rm -rf "${out:?}/$part" && mkdir -p "$out/$part" && cd "$out/$part" || exit 2
    report=$out/$part/report.md failed=0 began=$SECONDS gpus=0
    : >"$report"
    say "# Pipewright, $part, $(date -u +%F)"
    environment || { archive; exit 3; }
    "$part"
    title "Summary"
    say "$((SECONDS - began)) seconds. $([ $failed = 0 ] && echo "All of it passed." || echo "Something FAILED: see above.")"
    [ $failed = 0 ] || worst=1
    archive
done
exit $worst
