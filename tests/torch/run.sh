#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Hands our schedules to the real PyTorch and PyTorch's schedules to us. The short part, which CI runs:
#   - where PyTorch gathers parameters by itself is what an export says of it;
#   - JaxPP classes and configurations of other programs are parsed and compared with the schedule, and the Python
#     package is installed, and designs and the tutorial (without PyTorch too);
#   - some families run on Gloo processes with the gradients of a plain run; what was trained here is trained there;
#   - a model of somebody's is profiled, run on four ranks, killed and cancelled;
#   - a look finds what modules of somebody's hold (shared and frozen parameters, tuples, …), and some run on two ranks;
#   - two copies of a pipeline share out parameters (ZeRO 3) on four ranks, and backwards recompute layers on two.
# And with --all:
#   - configurations of every class of the supported model types have the parameters of the transformers package's models;
#   - every family that a PyTorch schedule can express, and schedules at random, run as computations alone and with
#     communication, and a few with parameters that FSDP shards;
#   - PyTorch's own schedules and what it makes of ours are imported, equal our families, and run again;
#   - 1F1B and GPipe of a model that sleeps are recorded, and from each six schedules predicted and run;
#   - copies share out states of every level, and PyTorch's memory tracker finds the predicted bytes;
#   - a transformer of somebody's goes all the way: profile, partition, predict, run on four ranks, compare;
#   - weight policies (PipeDream, 2BW, SpecTrain, XPipe, PipeOptim, CDP) train a residual CNN and an LSTM over ranks.
#   tests/torch/run.sh [--all] [PIPEWRIGHT]     PYTHON names the interpreter (python3; environment.sh makes one)
# Exits 0 and says so when that Python has no PyTorch.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
all=0
if [ "${1:-}" = --all ]; then all=1; shift; fi
pipewright=$(realpath -m "${1:-$here/../../build/dev/bin/pipewright}") # some parts change the folder
python=${PYTHON:-python3}
sizes="4:8" # devices:microbatches
[ $all = 0 ] || sizes="2:4 3:9 4:8"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

fail() { echo "FAILED $*" >&2; failed=1; }
command -v "$python" >/dev/null || { echo "tests/torch: skipped, there is no $python"; exit 0; }
[ -x "$pipewright" ] || { echo "tests/torch: there is no $pipewright; build it first" >&2; exit 2; }

export_as() { # DESIGN FORMAT FILE: warnings are left to other tests
    "$pipewright" export "$1" --to "$2" -o "$3" --csv "schedule name.csv" --force >/dev/null 2>"$folder/said"
}

# The communication format that this PyTorch reads; empty without PyTorch.
comms=$("$python" - <<'EOF' 2>/dev/null || true
from torch.distributed import is_gloo_available
from torch.distributed.pipelining import schedules
if is_gloo_available():
    print("pytorch-comms-csv" if hasattr(schedules, "WAIT_SEND_F")
          else "pytorch-2.14-comms-csv" if hasattr(schedules, "REDUCE_GRAD") else "pytorch-2.9-comms-csv")
EOF
)

families=$("$pipewright" new --help | sed -n 's/.*one of: *//p' | tr -d ',')
[ -n "$families" ] || fail "pipewright new --help names no family"
jobs=() designs=()
for family in $families; do
    made=0
    for size in $sizes; do
        name=$folder/$family-${size%:*}-${size#*:}
        # A family may not exist at a size.
        "$pipewright" new "$family" --devices "${size%:*}" --microbatches "${size#*:}" -o "$name.json" >/dev/null 2>"$folder/said" || continue
        made=1
        if ! export_as "$name.json" pytorch-csv "$name.only.csv"; then
            # Other operations than forwards and backwards are beyond the format.
            grep -q "the other tools" "$folder/said" && echo "$family: $(tail -n 1 "$folder/said")" || fail "$family: $(cat "$folder/said")"
            break
        fi
        if grep -q "no replicas" "$folder/said"; then
            echo "$family: written for import here only, PyTorch has no replicas"
            break
        fi
        for format in "${comms:-pytorch-comms-csv} comms.csv" "jaxpp py" "torchtitan titan.py" "automodel yaml"; do
            export_as "$name.json" "${format% *}" "$name.${format#* }" || fail "$name ${format% *}: $(cat "$folder/said")"
        done
        designs+=("$name")
        jobs+=("compute_only=$name.only.csv" "compute_comms=$name.comms.csv")
    done
    [ $made = 1 ] || fail "$family exists at none of the sizes $sizes: $(cat "$folder/said")"
done
"$python" "$here/check_exports.py" "${designs[@]}" || failed=1
"$python" "$here/gathers.py" "$pipewright" || [ $? = 77 ] || failed=1
"$python" "$here/profiled_step.py" || fail "what is made of the profiler's events"
"$python" "$here/design_package.py" "$pipewright" 2>"$folder/said" || fail "the Python package: $(cat "$folder/said")"
PIPEWRIGHT=$pipewright PYTHONPATH=$here/../../executor/torch "$python" "$here/notebook.py" \
    "$here/../../resources/examples/tutorial.ipynb" >"$folder/said" 2>&1 || fail "the tutorial: $(tail -n 5 "$folder/said")"

# The package as a person installs it, of a folder that may be read only: nothing but pip and setuptools is asked for.
builds_wheels='
try:
    import setuptools.command.bdist_wheel
except ImportError: # before setuptools 70.1
    import setuptools, wheel.bdist_wheel'
if "$python" -m pip --version >/dev/null 2>&1 && "$python" -c "$builds_wheels" 2>/dev/null; then
    cp -r "$here/../../executor/torch" "$folder/package"
    if "$python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --no-index \
        --target "$folder/installed" "$folder/package" >"$folder/said" 2>&1; then
        (cd "$folder" && PATH=$(dirname "$pipewright"):$PATH PYTHONPATH=$folder/installed "$python" -c '
import pathlib, pipewright
folder = pathlib.Path(pipewright.__file__).parent
assert folder.parent.name == "installed", folder
assert (folder / "py.typed").exists() and (folder / "run.py").exists()
assert len(pipewright.new("1f1b", devices=2, microbatches=4).order) == 2
') || fail "the installed Python package does not work"
    else
        fail "pip install executor/torch: $(tail -n 3 "$folder/said")"
    fi
else
    echo "tests/torch: the package is not installed with pip, $python has no pip or no setuptools that builds wheels"
fi

if [ -z "$comms" ]; then
    echo "tests/torch: skipped, $python has no torch with Gloo (pip install torch)"
    exit $failed
fi

# What was trained here is trained again there, from the same parameters and batches.
trained=("zb-h1")
[ $all = 0 ] || trained=("1f1b" "zb-h1" "1f1b --recompute 0" "pipedream-2bw" "cdp-v2" "pipeoptim")
dumps=()
for made in "${trained[@]}"; do
    name=$folder/trained-${made%% *}-${#dumps[@]}
    # shellcheck disable=SC2086 # several words
    if "$pipewright" new $made --model byte-gpt-small --devices 3 --microbatches 6 -o "$name.json" >/dev/null 2>"$folder/said" \
        && "$pipewright" run "$name.json" --backend host --steps 3 -o "$name.db" --dump "$name.safetensors" >/dev/null 2>"$folder/said"; then
        dumps+=("$name.safetensors")
    else
        fail "$made does not train: $(cat "$folder/said")"
    fi
done
"$python" "$here/check_dump.py" "${dumps[@]}" || failed=1

if [ $all = 0 ]; then
    "$python" "$here/run_schedule.py" "compute_comms=$folder/1f1b-4-8.comms.csv" "compute_comms=$folder/zb-v-4-8.comms.csv" || failed=1
    "$python" "$here/own_model.py" --short --python "$python" "$pipewright" || failed=1
    # Each run starts two interpreters that load PyTorch.
    "$python" "$here/own_modules.py" Looks Reports Shared.test_a_run_sums_the_gradients_of_a_shared_parameter \
        Shared.test_a_profile_records_it_and_designs_of_it_reduce \
        Numbers.test_a_loss_that_is_nan_is_recorded_and_said "$pipewright" || failed=1
    "$python" "$here/recomputing.py" --short --python "$python" "$pipewright" || [ $? = 77 ] || failed=1
    "$python" "$here/shared_states.py" --short --python "$python" "$pipewright" || [ $? = 77 ] || failed=1
    [ $failed = 0 ] && echo "tests/torch: everything agrees (the rest: tests/torch/run.sh --all)"
    exit $failed
fi

# Models of today are those that the transformers package builds from a configuration.
if "$python" -c 'import transformers' 2>/dev/null; then
    "$python" "$here/configurations.py" "$pipewright" || failed=1
    for kind in "decoder models" "encoder encoders"; do # who checks, and the folder of what
        made=() whole=()
        for model in "$here/${kind#* }"/*.json; do
            for type in fp32 bf16; do
                name=$folder/${kind% *}-$type-$(basename "$model" .json)
                sed "s/\"fp32\"/\"$type\"/" "$model" >"$name.model.json"
                if "$pipewright" new zb-h1 --devices 2 --microbatches 4 --model "$name.model.json" -o "$name.json" >/dev/null 2>"$folder/said" \
                    && "$pipewright" run "$name.json" --backend host --steps 3 --maths training -o "$name.db" --dump "$name.safetensors" \
                        --save-weights "$name.weights.safetensors" >/dev/null 2>"$folder/said"; then
                    made+=("$name.safetensors")
                    [ "$type" = bf16 ] || whole+=("$name")
                else
                    fail "$model in $type does not train: $(cat "$folder/said")"
                fi
            done
        done
        "$python" "$here/check_${kind% *}.py" "${made[@]}" || failed=1
        "$python" "$here/check_weights.py" "$pipewright" "${whole[@]}" || failed=1
    done
else
    echo "tests/torch: models of today are not compared, $python has no transformers (pip install transformers)"
fi

"$python" "$here/random_schedules.py" "$folder" 24
for file in "$folder"/random-*.only.csv; do
    name=${file%.only.csv}
    "$pipewright" import "$file" -o "$name.json" >/dev/null 2>"$folder/said" && export_as "$name.json" "$comms" "$name.comms.csv" \
        || { fail "$file: $(cat "$folder/said")"; continue; }
    jobs+=("compute_only=$file" "compute_comms=$name.comms.csv")
done

"$python" "$here/run_schedule.py" "${jobs[@]}" || failed=1
"$python" "$here/run_schedule.py" --fsdp "compute_comms=$folder/1f1b-2-4.comms.csv" "compute_comms=$folder/v-zb-2-4.comms.csv" \
    "compute_comms=$folder/interleaved-1f1b-3-9.comms.csv" || failed=1

# Imports FILE to imported.json and imported.csv, and compares the latter with EXPECTED where one is given.
same_order() { # FILE EXPECTED WHAT
    if ! "$pipewright" import "$1" -o "$folder/imported.json" --force >/dev/null 2>"$folder/said"; then
        fail "$3 is not imported: $(cat "$folder/said")"
    elif ! export_as "$folder/imported.json" pytorch-csv "$folder/imported.csv"; then
        fail "$3: $(cat "$folder/said")"
    elif [ -n "$2" ] && ! cmp -s "$folder/imported.csv" "$2"; then
        fail "$3 is another order than $2"
    fi
}

# Where PyTorch 2.15 puts sends and receives between computations is where `import --transfers pytorch` has them.
same_transfers() { # COMPUTATIONS LOWERED
    [ "$comms" = pytorch-comms-csv ] || return 0
    "$pipewright" import "$1" --transfers pytorch --name same -o "$folder/lowered-here.json" --force >/dev/null 2>"$folder/said" \
        && "$pipewright" import "$2" --name same -o "$folder/lowered-there.json" --force >/dev/null 2>"$folder/said" \
        || { fail "$1, $2: $(cat "$folder/said")"; return; }
    cmp -s "$folder/lowered-here.json" "$folder/lowered-there.json" || fail "PyTorch puts the transfers of $1 elsewhere"
}

# What PyTorch makes of our computations still has our order.
"$python" "$here/builtin_schedules.py" lower "${designs[@]}" || failed=1
for name in "${designs[@]}"; do
    same_order "$name.lowered.csv" "$name.only.csv" "PyTorch's form of $name"
    same_transfers "$name.only.csv" "$name.lowered.csv"
done

# PyTorch's own schedules as NAME:RANKS:STAGES_PER_RANK:MICROBATCHES, and our family where it is the same.
builtins="GPipe:4:1:8=gpipe 1F1B:4:1:8=1f1b Interleaved1F1B:4:2:8=interleaved-1f1b LoopedBFS:4:2:8=looped-bfs
    InterleavedZeroBubble:4:1:8=zb-h1 InterleavedZeroBubble:4:2:8= ZBVZeroBubble:4:2:8=zb-v DualPipeV:4:2:8=dualpipe-v"
# shellcheck disable=SC2086
"$python" "$here/builtin_schedules.py" builtin "$folder" $(printf '%s\n' $builtins | sed 's/=.*//') || failed=1
jobs=()
for builtin in $builtins; do
    IFS=: read -r name ranks per_rank microbatches <<<"${builtin%=*}"
    family=${builtin#*=} file=$folder/$name-$per_rank
    if [ -n "$family" ]; then
        "$pipewright" new "$family" --devices "$ranks" --microbatches "$microbatches" -o "$file.family.json" >/dev/null
        export_as "$file.family.json" pytorch-csv "$file.family.csv"
        same_order "$file.only.csv" "$file.family.csv" "PyTorch's $name"
    fi
    # Both of its forms say the same, and our communication for it runs as well as PyTorch's.
    same_order "$file.only.csv" "" "PyTorch's $name"
    cp "$folder/imported.csv" "$file.order.csv"
    export_as "$folder/imported.json" "$comms" "$file.ours.csv" || fail "$name: $(cat "$folder/said")"
    jobs+=("compute_comms=$file.ours.csv")
    if [ -f "$file.comms.csv" ]; then
        same_order "$file.comms.csv" "$file.order.csv" "PyTorch's $name with communication"
        export_as "$folder/imported.json" "$comms" "$file.kept.csv" || fail "$name: $(cat "$folder/said")"
        same_transfers "$file.only.csv" "$file.comms.csv"
        jobs+=("compute_comms=$file.comms.csv" "compute_comms=$file.kept.csv")
    fi
done
"$python" "$here/run_schedule.py" "${jobs[@]}" || failed=1

# Ranks that receive in another order than is sent do not pass, neither there nor here.
printf '%s\n' "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1" "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1" >"$folder/crossed.csv"
[ "$comms" = pytorch-comms-csv ] && sed -i '1s/$/,0WAIT_SEND_F0,0WAIT_SEND_F1/;2s/$/,1WAIT_SEND_B0,1WAIT_SEND_B1/' "$folder/crossed.csv"
"$python" "$here/run_schedule.py" --timeout 10 "compute_comms=$folder/crossed.csv" >/dev/null 2>&1 && fail "crossed receives give the right gradients"
"$pipewright" import "$folder/crossed.csv" -o "$folder/crossed.json" >/dev/null 2>&1 && fail "crossed receives are imported"

# What other schedules take, predicted from one recording.
"$python" "$here/predict_from_traces.py" --format "$comms" "$pipewright" "$folder" 2>"$folder/said" || fail "$(tail -n 3 "$folder/said")"

# A model of somebody's, and everything that can go wrong with its run.
"$python" "$here/own_model.py" --families 1f1b,zb-v --python "$python" "$pipewright" || failed=1

# Copies of a pipeline that share out its states.
"$python" "$here/recomputing.py" --python "$python" "$pipewright" || [ $? = 77 ] || failed=1
"$python" "$here/shared_states.py" --python "$python" "$pipewright" || [ $? = 77 ] || failed=1

# Modules with all that a pipeline has to know of.
"$python" "$here/own_modules.py" "$pipewright" || failed=1

# Somebody's own model, by one command after the other: gradients and memory by rank; makespans are printed. The other
# two families take half as long again.
"$python" "$here/whole_way.py" --families 1f1b,interleaved-1f1b,looped-bfs,zb-v --steps 3 --python "$python" "$pipewright" || [ $? = 77 ] || failed=1

# Weights that are updated amid the step, on modules of their own.
"$python" "$here/weight_policies.py" --python "$python" "$pipewright" || [ $? = 77 ] || failed=1

[ $failed = 0 ] && echo "tests/torch: everything agrees"
exit $failed
