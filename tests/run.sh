#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds and runs the tests, from a fresh clone on. Installs what is missing, builds with warnings as errors, and runs:
# - under the thread sanitizer the executor, the search, and the kernels and the plugin for GPUs (on the CPU);
# - under the address and undefined-behaviour sanitizers all libraries and these kernels, with some seconds of fuzzing
#   for every parser where there is clang;
# - without sanitizers the designer, the command line, the mathematics once more, the plugin for GPUs, and, with the
#   newest PyTorch from PyPI where it can be had, our schedules and models in it (tests/torch/run.sh; with --all what
#   takes longer); and the packages, made of this build, in a clean Debian too where one can be made (tests/packages).
# Before the last it checks the layout of all files and the code of changed ones (tests/lint.sh), where clang-format and
# clang-tidy are installed, and compiles changed files by themselves, and those that include them
# (tests/rooms/filesalone.py). Fails when any part fails.
#   tests/run.sh            everything
#   tests/run.sh --quick    while working: without the sanitizers, the fuzzing, the soak, GPUs that stand in, PyTorch
#                           and the packages
# One test alone, by its file's name, once it is built: build/dev/tests/core_tests tst_compile [function…]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../app/setup.sh"

# shellcheck disable=SC2086
install_packages $packages_build $packages_gui $packages_tests
# shellcheck disable=SC2086
install_packages $packages_nice $packages_window clang-format $packages_packing || true
# shellcheck disable=SC2086
[ "${1:-}" = --quick ] || install_packages $packages_trial || true

# While all else is built and tested; tests/torch/run.sh needs it at the end.
fetch_torch() {
    torch_folder=$(mktemp -d)
    "$root/tests/torch/environment.sh" >"$torch_folder/python" 2>"$torch_folder/said" &
    torch_job=$!
    trap 'kill "$torch_job" 2>/dev/null || true; rm -rf "$torch_folder"' EXIT
}

# The tests with PyTorch use $PYTHON; without PyTorch they do what can be done without.
find_python() {
    if wait "$torch_job"; then PYTHON=$(cat "$torch_folder/python"); export PYTHON
    else say "What needs PyTorch is left out: $(tail -n 1 "$torch_folder/said")"; fi
}

run_tests() { # PRESET [ctest options…]
    local preset=$1; shift
    say "Testing ($preset)"
    # Each sanitizer's first report ends its test; OpenBLAS and Qt are not instrumented. One test more than there are
    # processors: some wait for half of their time.
    TSAN_OPTIONS="halt_on_error=1 allocator_may_return_null=1 suppressions=$root/tests/executor/tsan.supp ${TSAN_OPTIONS:-}" ASAN_OPTIONS="detect_leaks=0 allocator_may_return_null=1 ${ASAN_OPTIONS:-}" \
        ctest --test-dir "$root/build/$preset" --parallel $(($(nproc) + 1)) --output-on-failure --no-tests=error "$@"
}

# Whether clang++ links a libFuzzer program here.
has_fuzzer() {
    local folder ok=1
    command -v clang++ >/dev/null 2>&1 || return 1
    folder=$(mktemp -d)
    echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char *, unsigned long) { return 0; }' >"$folder/empty.cpp"
    clang++ -fsanitize=fuzzer,address "$folder/empty.cpp" -o "$folder/empty" >/dev/null 2>&1 && ok=0
    rm -rf "$folder"
    return $ok
}

# The libraries' tests under the address and undefined-behaviour sanitizers; with clang one build serves them and
# the fuzzers.
run_sanitized() {
    # Debian 12 keeps libFuzzer's runtime in a package of its own.
    has_fuzzer || install_packages clang libclang-rt-14-dev || true
    if has_fuzzer; then
        build fuzz library_tests fuzzers -- -DPIPEWRIGHT_BENCHMARKS=OFF "-DPIPEWRIGHT_FUZZ_SECONDS=$fuzz_seconds" || return 1
        run_tests fuzz -R '^(core|kernels|traces|executor|standin|fuzz)\.'
    else
        say "No clang with libFuzzer here (packages clang and libclang-rt-14-dev): the parsers are not fuzzed"
        build asan library_tests -- -DPIPEWRIGHT_GUI=OFF -DPIPEWRIGHT_BENCHMARKS=OFF || return 1
        run_tests asan -R '^(core|kernels|traces|executor|standin)\.'
    fi
}

check_layout() {
    say "Checking layout (clang-format) and changed files (clang-tidy)"
    "$root/tests/lint.sh"
}

# Of the executor those on GPUs that stand in.
on_gpus='\.tst_(cudaloader|cudarun|cudaattention|gpuraces|gpuranks|groupgpus|backend_conformance|membercollectives|shardingrun)$'
fuzz_seconds=3 # each target
failed=0
if [ "${1:-}" != --quick ]; then
    fetch_torch
    build tsan threaded_tests -- -DPIPEWRIGHT_GUI=OFF -DPIPEWRIGHT_BENCHMARKS=OFF
    run_tests tsan -R '^(executor|standin)\.|\.tst_searchthreads$' || failed=1
    run_sanitized || failed=1
    build dev program_tests
    check_layout || failed=1
    say "Reading files by themselves"
    python3 "$root/tests/rooms/filesalone.py" "$root/build/dev" || failed=1
    find_python
    # The thread sanitizer has had a part of the rows of those on GPUs.
    run_tests dev -R "^(kernels|gui|app|relations|rooms|standin|gpu|torch)\.|$on_gpus" || failed=1
else
    build dev quick_tests
    check_layout || failed=1
    run_tests dev -E "^(standin|gpu)\.|^torch\.run\$|^app\.(soak|packages)\$|$on_gpus" || failed=1
    say "Left to tests/run.sh without --quick: sanitizers, fuzzing, the soak, GPUs that stand in, PyTorch, packages, benchmarks that compile"
fi
left_out=$(sed -n 's/^-- \(.* are off: .*\)/\1/p' "$root/build/dev/configure.log")
[ -z "$left_out" ] || say "Not tested here: $left_out"
[ $failed = 0 ] || say "FAILED: see above"
exit $failed
