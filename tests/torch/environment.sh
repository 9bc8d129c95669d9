#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints a Python interpreter that has PyTorch and what else the tests of tests/torch use: a virtual environment below
# build/, made once from PyPI (some 600 MB). Of PyTorch only its own wheel is taken: absent_libraries.py stands in for
# NVIDIA's libraries, which are four times as large and of no use on a CPU.
#   tests/torch/environment.sh [VERSION]    the newest PyTorch, or this one; without one, where PYTHON has it, that
# Where that cannot be done it exits 1 and says why in one line.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=${1:-}
folder=$(cd "$here/../.." && pwd)/build/torch${version:+-$version}
python=${PYTHON:-python3}

give_up() { echo "$*" >&2; exit 1; }

if [ -z "$version" ] && "$python" -c 'from torch.distributed.pipelining.schedules import REDUCE_GRAD
import torch.distributed as d; assert d.is_gloo_available()' 2>/dev/null; then command -v "$python"; exit 0; fi
if [ -e "$folder/complete" ]; then echo "$folder/bin/python"; exit 0; fi
command -v "$python" >/dev/null || give_up "there is no $python"
rm -rf "$folder"
mkdir -p "$folder"
log=$folder/log
"$python" -m venv "$folder" >"$log" 2>&1 || give_up "$python -m venv fails (Debian: apt-get install python3-venv): $(tail -n 1 "$log")"
take() { # PIP-ARGUMENTS…
    "$folder/bin/python" -m pip install --disable-pip-version-check --no-compile --only-binary :all: --timeout 30 --retries 2 "$@" >>"$log" 2>&1 \
        || give_up "pip install $* fails, see $log: $(grep -i error "$log" | tail -n 1)"
}
echo "Taking PyTorch from PyPI into $folder, once" >&2
take --no-deps "torch${version:+==$version}"
take "setuptools>=77" typing-extensions filelock sympy networkx jinja2 fsspec numpy pyyaml scikit-learn transformers
# Only its source is read, which wants a newer Python than PyTorch does.
"$folder/bin/python" -m pip install --disable-pip-version-check --no-deps torchtitan >>"$log" 2>&1 || true
"$folder/bin/python" "$here/absent_libraries.py" >>"$log" 2>&1 || give_up "the libraries that PyTorch is linked to: see $log: $(tail -n 1 "$log")"
# Every rank of every test imports these, which takes 3 s instead of 7 once Python has compiled them. It does so here,
# also where PYTHONDONTWRITEBYTECODE is set.
env -u PYTHONDONTWRITEBYTECODE "$folder/bin/python" -c 'import torch.distributed.fsdp, torch.distributed.pipelining, torch.profiler
import torch.distributed as d; assert d.is_gloo_available(), "it has no gloo"' >>"$log" 2>&1 \
    || give_up "PyTorch does not start, see $log: $(tail -n 1 "$log")"
touch "$folder/complete"
echo "$folder/bin/python"
