#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What there is to see on a machine with a GPU, in parts of under nine minutes each:
#   tests/gpu.sh OUT [BUNDLE] [PART…]   OUT: a folder; BUNDLE: an installed bundle, else one is built
#     probe     what the machine is and as a cluster, every kernel against its reference, slices, labels, memory
#     correct   training and shared stages against the reference, over every link, as graphs, as processes, twice
#     fidelity  costs measured in one family, carried over to the others, predicted and measured three times
#     speed     streams against graphs, what recording costs, wide models, products and a layer against PyTorch
# Without a PART all of them. A part goes on after a failure and leaves OUT/PART.tar.gz of less than 12 MB: a report in
# Markdown, all that was said, an environment dump and small traces. With a bundle nothing is needed but the driver and
# NVIDIA's libraries, for example those of an installed PyTorch. --small, before OUT: the least sizes, for a rehearsal.
# PIPEWRIGHT_GPU_SECONDS: of a part, when 480 are too many.
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
limit=${PIPEWRIGHT_GPU_SECONDS:-480} # seconds of a part; what does not fit is left out or ended, and said to be
most=$((12 * 1024 * 1024 - 65536)) # bytes of an archive
most_bundle=$((50 * 1000 * 1000)) # bytes

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
# capped SECONDS COMMAND…: for so long, but no longer than the part has left.
capped() {
    local most
    most=$(left)
    [ "$most" -ge 1 ] || most=1
    [ "$1" -le "$most" ] || set -- "$most" "${@:2}"
    timeout "$@"
}
fits() { [ "$(left)" -gt "${2:-20}" ] || { say "- $1: left out, the time is up"; return 1; }; }
# The number, or the list, behind "key": in one line of JSON.
value() { sed -n "s/.*\"$1\":\(\[[^]]*\]\|[-0-9.e+]*\).*/\1/p"; }
within() { awk -v error="${1:-none}" -v bound="$2" 'BEGIN { exit !(error ~ /^[0-9]/ && error + 0 <= bound + 0) }'; }
query() { capped 60 "$program" query "$1" "$2" 2>>"$part.err" | tail -n +2; }

# A small model as the rehearsal's; its head is its own, so that stages may be updated at different times.
if [ -n "$small" ]; then
    model="--model byte-gpt-small --sequence 8 --microbatch-size 1" microbatches=4 devices=2 check=--small
else
    model="--model byte-gpt" microbatches=8 devices=4 check=
fi
untied="--model byte-gpt-small${small:+ --sequence 8 --microbatch-size 1}"

rm -f "$out"/machine*.json
# measured N: $cluster is the file of this machine measured as N devices, once for all parts, so that designs name the GPU
# on which they run.
measured() {
    cluster=$out/machine$1.json
    [ -s "$cluster" ] || capped 120 "$program" devices --measure --backend cuda --devices "$1" -o "$cluster" --progress none \
        --force >>"machine$1.out" 2>>"machine$1.err" ||
        { fail "devices --measure --devices $1: $(grep -m 2 error "machine$1.err" | tr '\n' ' ')"; return 1; }
}
# design NAME FAMILY OPTION…: NAME.json
design() {
    local name=$1 family=$2
    shift 2
    measured "$devices" || return 1
    capped 60 "$program" new "$family" --devices "$devices" --microbatches "$microbatches" --cluster "$cluster" "$@" \
        -o "$name.json" --force >>"$name.out" 2>>"$name.err" || { fail "$name: $(tail -n 1 "$name.err")"; return 1; }
}
# run NAME FILE OPTION…: a run on the GPU; its JSON is in NAME.json-out, a trace in NAME.db, if one is wanted.
run() {
    local name=$1 file=$2 trace=(--force -o "$1.db")
    shift 2
    case " $* " in *' --record nothing '*) trace=() ;; esac
    fits "$name" || return 2
    capped 120 "$program" run "$file" --backend cuda --progress none --json "${trace[@]}" "$@" \
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

used_memory() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | awk '{ sum += $1 } END { if (NR) print sum }'; }

environment() {
    { uname -a; cat /etc/os-release; nproc; free -m; df -h .; nvidia-smi; nvidia-smi -q; nvidia-smi topo -m
      env | grep -E '^(CUDA|NCCL|LD_|PATH|VIRTUAL_ENV|CONDA|SLURM|PIPEWRIGHT)' | sort; ulimit -a
      python3 -c 'import torch; print(torch.__version__, torch.version.cuda)'; } >environment.txt 2>&1
    capped 60 "$program" devices >devices.txt 2>>"$part.err"
    title "Machine"
    sed 's/^/    /' devices.txt | tee -a "$report"
    if ! capped 60 "$program" devices --json 2>/dev/null | grep -q '"cuda":{"available":true'; then
        say; say "Nothing was run on a GPU: $(sed -n 's/^cuda  off  //p' devices.txt)"
        return 3
    fi
    for library in cuBLASLt CUPTI; do
        grep -q "$library: /" devices.txt || fail "$library was not found: kernels would be slow, traces without them"
    done
    gpus=$(grep -c '^ *GPU [0-9]*: ' devices.txt)
    toolkit=$(sed -n 's/^cuda .*, plugin for CUDA \([0-9]*\).*/\1/p' devices.txt)
    gpucheck=$bundle/bin/pipewright_gpucheck$toolkit slicecheck=$bundle/bin/pipewright_slicecheck$toolkit
}

# What is copied to a machine with a GPU is small, and complete: it needs nothing but what has the driver.
bundle_itself() {
    title "The bundle"
    local bytes missing
    bytes=$(find "$bundle" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%.0f", sum }')
    missing=$(for file in "$program" "$gpucheck" "$slicecheck" "$bundle"/bin/pipewright_cuda*.so; do
        [ ! -f "$file" ] || ldd "$file" 2>/dev/null | awk '/not found/ { print $1 }'; done | sort -u | tr '\n' ' ')
    [ -z "$missing" ] && pass "all that it links to is there" || fail "it links to what is not here: $missing"
    if [ "$bytes" -le $most_bundle ]; then
        pass "$bytes bytes"
    elif [ -n "$small" ]; then
        say "- $bytes bytes, with what is for debuggers: more than $most_bundle" # a rehearsal's is none to be copied
    else
        fail "$bytes bytes, and $most_bundle is the most"
    fi
}

probe() {
    bundle_itself
    title "Kernels against their references"
    if [ -x "$gpucheck" ]; then
        capped 200 "$gpucheck" $check >gpucheck.out 2>gpucheck.err
        code=$?
        [ $code = 0 ] && pass "$(tail -n 1 gpucheck.out)" || fail "gpucheck (exit code $code): $(grep -m 3 WRONG gpucheck.out)"
        for tool in memcheck racecheck; do
            command -v compute-sanitizer >/dev/null 2>&1 || { say "- compute-sanitizer is not here"; break; }
            fits "compute-sanitizer, $tool" 120 || continue
            capped 150 compute-sanitizer --tool $tool --error-exitcode 9 "$gpucheck" --small --own-products \
                >$tool.out 2>&1 && pass "compute-sanitizer, $tool: nothing" || fail "compute-sanitizer, $tool: $(tail -n 1 $tool.out)"
        done
    else
        fail "this bundle has no ${gpucheck##*/}: it was built without that CUDA toolkit"
    fi
    title "Slices of one GPU"
    if [ -x "$slicecheck" ]; then
        capped 60 "$slicecheck" $check >slices.out 2>slices.err
        code=$?
        sed 's/^/    /' slices.out | tee -a "$report"
        case $code in
            0) pass "four slices have multiprocessors of their own" ;;
            2) say "- not checked: $(tail -n 1 slices.out)" ;;
            *) fail "slices (exit code $code)" ;;
        esac
    else
        fail "this bundle has no ${slicecheck##*/}"
    fi
    title "This machine as a cluster"
    for way in "" "--devices $devices"; do
        local as=machine${way##* }
        [ -z "$small" ] || [ -z "$way" ] || continue
        fits "devices --measure $way" 60 || continue
        if capped 120 "$program" devices --measure --backend cuda $way -o "$as.json" --progress none --force >"$as.out" 2>>"$as.err"; then
            say; sed 's/^/    /' "$as.out" | tee -a "$report"; say
            [ -z "$way" ] || cp "$as.json" "$out/"
        else
            fail "devices --measure $way: $(grep -m 2 error "$as.err" | tr '\n' ' ')"
        fi
    done
    title "One GPU's slices, or as many GPUs, and what was recorded of them"
    design slices 1f1b $model || return
    before=$(used_memory)
    : >used.txt
    while sleep 0.1; do used_memory; done >used.txt 2>/dev/null &
    local watch=$!
    run slices slices.json --steps 3
    code=$?
    kill $watch; wait $watch 2>/dev/null
    [ $code = 0 ] || return
    checked "1f1b, recorded" slices $fp32
    after=$(used_memory)
    if [ -n "$before" ]; then
        local said during
        said=$(value allocated_bytes <slices.json-out | tr -d '[]' | tr ',' '\n' | awk '{ sum += $1 } END { printf "%.0f", sum / 1048576 }')
        during=$(sort -n used.txt | tail -n 1)
        say "- memory of all GPUs: $before MiB before, at most ${during:-$before} during and $after after; $said MiB were said to be allocated, the rest is contexts, kernels and recorders"
        [ "$((${during:-$before} - before))" -ge "$said" ] || [ -n "$small" ] || fail "less memory was taken than is said to be allocated"
        [ "$((after - before))" -le 64 ] || fail "$((after - before)) MiB of the GPUs were not given back"
    else
        say "- memory of the GPUs: not known, nvidia-smi is not here"
    fi
    labelled=$(query slices.db "SELECT round(100.0 * sum(CASE WHEN taskId IS NULL THEN 0 ELSE end - start END) / sum(end - start), 2) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    if within 90 "${labelled:-0}"; then pass "share of kernel time with its block's label: $labelled %"; else
        fail "share of kernel time with its block's label: ${labelled:-unknown} %"; fi
    outside=$(query slices.db "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN RECORDS r ON r.taskId = k.taskId AND r.step = k.step WHERE k.start < r.start - 100000 OR k.end > r.end + 100000")
    if [ -n "$small" ]; then # streams of a CPU dawdle
        say "- kernels outside their blocks' events by more than 100 us: ${outside:-unknown}"
    elif [ "${outside:-none}" = 0 ]; then
        pass "kernels lie inside their blocks' events"
    else
        fail "kernels outside their blocks' events by more than 100 us: ${outside:-unknown}"
    fi
}

correct() {
    title "Training against the sequential reference on the host"
    local steps=3
    [ -z "$small" ] || steps=2
    local stored="--scale data_type=bf16"
    # A word @ is the model with a head of its own: of weights that are updated amid a step there is no such error,
    # their reads are checked.
    local cases=("1f1b" "1f1b --graphs" "gpipe" "interleaved-1f1b" "zb-h1" "zb-v" "chimera" "zb-h1 --graphs" "1f1b --bf16"
                 "1f1b --link copy" "1f1b --link nccl" "chimera --link nccl" "1f1b --model=byte-mlp" "chimera --model=byte-mlp"
                 "1f1b $stored" "zb-h1 $stored" "1f1b --graphs $stored" "1f1b --attention own $stored"
                 "1f1b --model=byte-llama" "seq1f1b --model=byte-llama" "seq1f1b" "seq1f1b --graphs" "pipedream-2bw @" "pipeoptim @" "dp @" "cdp-v2 @")
    [ -z "$small" ] || cases=("1f1b" "1f1b --graphs" "gpipe" "1f1b --bf16" "1f1b $stored" "chimera --link nccl" "pipedream-2bw @")
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
    # Families of as many stages add up the same numbers in the same order, whenever they compute them.
    for family in gpipe zb-h1 seq1f1b; do
        [ -s train-$family.json-out ] || continue
        if [ "$(value loss <train-$family.json-out)" = "$(value loss <train-1f1b.json-out)" ]; then
            pass "the same losses of $family as of 1f1b"
        elif [ $family = seq1f1b ]; then
            say "- losses of $family, which sums pieces of sequences, beside 1f1b's: $(value loss <train-$family.json-out)"
        else
            fail "losses of $family differ from 1f1b's: $(value loss <train-$family.json-out)"
        fi
    done
    local first="train-1f1b $stored" other
    first=${first//[ =]/}
    say "- attention of ${first#train-}: $(value attention <"$first.json-out")"
    for case in "zb-h1 $stored" "1f1b --graphs $stored"; do
        other=train-${case//[ =]/}
        [ -s "$other.json-out" ] || continue
        [ "$(value loss <"$other.json-out")" = "$(value loss <"$first.json-out")" ] && pass "the same losses of $case as of 1f1b" ||
            fail "losses of $case differ from 1f1b's: $(value loss <"$other.json-out")"
    done
    title "A process for each GPU"
    for family in 1f1b chimera; do
        fits "$family" 60 || continue
        local name=ranks-$family words port=$((29000 + RANDOM % 1000))
        capped 60 "$program" new "$family" --devices 2 --microbatches "$microbatches" $model -o "$name.json" --force >/dev/null 2>"$name.err"
        words="$name.json --backend mpi --device cuda --deadline 30s --steps $steps --progress none --json --force -o $name.db"
        for rank in 1 0; do # as torchrun starts them
            RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port capped 100 "$program" run $words \
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
            capped 120 "$program" shard "$shares/$shared.json" --run --backend cuda --link "$link" --json >"$name.out" 2>>"$name.err" ||
                { fail "$shared, $link: $(head -n 2 "$name.err" | tr '\n' ' ')"; continue; }
            error=$(value gradient_error <"$name.out")
            within "$error" $fp32 && pass "$shared, $link: error $error" ||
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
    capped 60 "$program" calibrate base.json base.db -o measured.json --force >>base.out 2>>base.err ||
        { fail "calibrate: $(tail -n 1 base.err)"; return; }
    for family in 1f1b $families; do
        local name=fidelity-$family errors="" measured=""
        capped 60 "$program" new "$family" --devices "$devices" --microbatches "$microbatches" --costs-from measured.json \
            -o "$name.json" --force >>"$name.out" 2>>"$name.err" || { fail "$family: $(tail -n 1 "$name.err")"; continue; }
        for _ in $repeats; do
            run "$name" "$name.json" --steps $steps --no-gradient-check || continue 2
            capped 60 "$program" compare "$name.json" "$name.db" --json >"$name.compared" 2>>"$name.err"
            errors="$errors $(sed -n 's/.*"makespan":{[^}]*"error":\([-0-9.e+]*\).*/\1/p' "$name.compared")"
            measured="$measured $(sed -n 's/.*"makespan":{[^}]*"measured_ns":\([0-9]*\).*/\1/p' "$name.compared")"
        done
        say "- $family: errors$errors; measured$measured ns, of which the spread is $(tr ' ' '\n' <<<"$measured" |
            awk 'NF { if (!n++ || $1 < low) low = $1; if ($1 > high) high = $1 } END { if (low) printf "%.1f %%", 100 * (high - low) / low }')"
    done
}

speed() {
    title "Steps, streams against graphs, and the host's time to issue a block"
    local steps=8 few=8 precisions=("" --bf16)
    [ -z "$small" ] || { steps=3 few=2 precisions=(""); } # a block is captured in the second step
    design step 1f1b $model || return
    for case in "" "--graphs"; do
        run "step$case" step.json --steps $steps --no-gradient-check $case || continue
        # Of the last step: the calls that launched a block's kernels.
        local issued
        issued=$(query "step$case.db" "SELECT round(avg(spent) / 1000.0, 2) || ' us on average, ' || round(max(spent) / 1000.0, 2) || ' at most' FROM
            (SELECT sum(c.end - c.start) AS spent FROM CUPTI_ACTIVITY_KIND_RUNTIME c JOIN
                (SELECT DISTINCT correlationId, taskId FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE taskId IS NOT NULL AND step = $((steps - 1))) k
                ON k.correlationId = c.correlationId GROUP BY k.taskId)")
        pass "${case:-streams}: $(value step_ns <"step$case.json-out") ns; calls of a block: ${issued:-unknown}"
        [ -n "$issued" ] || fail "${case:-streams}: nothing is known of the host's calls"
    done
    title "What recording costs: the same run without, with blocks, with kernels"
    local quickest=""
    for what in nothing blocks kernels; do
        run "record-$what" step.json --steps $few --no-gradient-check --record $what || continue
        local step
        step=$(value step_ns <"record-$what.json-out" | tr -d '[]' | tr ',' '\n' | tail -n +2 | sort -n | head -n 1)
        quickest=${quickest:-$step}
        pass "$what: its quickest step is $step ns, $(awk -v a="$step" -v b="$quickest" 'BEGIN { printf "%+.1f %%", 100 * (a / b - 1) }')"
    done
    title "Products and a layer, ours and PyTorch's"
    capped 100 "$gpucheck" --products $check >products.out 2>products.err && sed 's/^/- ours, /' products.out | tee -a "$report" ||
        fail "products: $(tail -n 1 products.out)"
    capped 100 "$gpucheck" --attention $check >attention.out 2>attention.err && sed 's/^/- attention, /' attention.out | tee -a "$report" ||
        fail "attention: $(tail -n 1 attention.out)"
    # What a second layer adds to the blocks of a step.
    local layer="--model llama-3-8b --sequence 2048" one=layers=1,vocabulary=1000 two=layers=2,vocabulary=1000
    [ -z "$small" ] || layer="--model byte-gpt-small --sequence 8" one=layers=1 two=layers=2
    measured 1 || return
    if capped 60 "$program" new 1f1b --devices 1 --microbatches 1 --cluster "$cluster" $layer --microbatch-size 1 -o layer.json \
        --force >>layer.out 2>>layer.err; then
        for case in "${precisions[@]}"; do
            run "one$case" layer.json --steps $few --no-gradient-check --scale $one $case &&
                run "two$case" layer.json --steps $few --no-gradient-check --scale $two $case || continue
            local of="SELECT sum(r.end - r.start) FROM RECORDS r JOIN TASKS t USING (taskId) WHERE t.kind = 'compute' AND r.step = $((few - 1))"
            pass "ours, a layer, ${case:-fp32}: $(awk -v a="$(query "one$case.db" "$of")" -v b="$(query "two$case.db" "$of")" 'BEGIN { printf "%.2f", (b - a) / 1e6 }') ms"
        done
    else
        fail "layer: $(tail -n 1 layer.err)"
    fi
    local script=$root/tests/gpu/torchspeed.py
    [ -f "$script" ] || script=$bundle/bin/torchspeed.py
    if python3 -c 'import torch; raise SystemExit(not torch.cuda.is_available())' 2>/dev/null; then
        if fits PyTorch 40; then
            capped 150 python3 "$script" >torch.out 2>torch.err || fail "PyTorch: $(tail -n 1 torch.err)"
            sed "s/^/- PyTorch's, /" torch.out | tee -a "$report"
        fi
    else
        say "- PyTorch is not here, or has no GPU"
    fi
    [ -z "$small" ] || return
    title "Wide models"
    for case in "" "--bf16"; do
        capped 60 "$program" new 1f1b --devices 1 --microbatches 4 --cluster "$cluster" --model gpt-1.5b --sequence 1024 \
            --microbatch-size 1 -o wide.json --force >>wide.out 2>>wide.err || { fail "wide: $(tail -n 1 wide.err)"; break; }
        run "wide$case" wide.json --steps 3 --no-gradient-check $case && pass "gpt-1.5b ${case:-fp32}: $(value step_ns <"wide$case.json-out") ns"
    done
    capped 60 "$program" new 1f1b --devices 1 --microbatches 4 --cluster "$cluster" --model llama-3-8b --sequence 2048 \
        --microbatch-size 1 -o llama.json --force >>wide.out 2>>wide.err || fail "llama: $(tail -n 1 wide.err)"
    for case in "" "--bf16" "--attention own"; do
        run "llama${case// /}" llama.json --steps 3 --no-gradient-check --scale layers=4,vocabulary=32000 $case &&
            pass "4 layers of llama-3-8b ${case:-as it is}: $(value step_ns <"llama${case// /}.json-out") ns; $(value attention <"llama${case// /}.json-out")"
    done
}

# The folder as an archive; the largest traces stay out when it would be too large.
archive() {
    cd "$out" || return
    find "$part" -name '*.db' -size +2M -printf '- %p is left out of the archive: a trace of more than 2 MB\n' -delete >>"$report"
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
