#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Checks the layout of every file with clang-format, and changed files with the checks of .clang-tidy. Both in version
# 14, because others lay out and find otherwise; without it says so and passes.
#   tests/lint.sh [COMMIT]    changed since COMMIT, the last but one when it is not given; work not yet committed too.
# At most LINT_FILES files, 40 when it is not set: each takes some seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# version_14 TOOL: its name here, if it is there in that version.
version_14() {
    local name
    for name in "$1-14" "$1"; do
        if command -v "$name" >/dev/null 2>&1 && "$name" --version | grep -q 'version 14\.'; then
            echo "$name"
            return 0
        fi
    done
    echo "No $1 of version 14 here (package $1-14): nothing is checked with it" >&2
    return 1
}

failed=0
if format=$(version_14 clang-format); then
    git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' | while IFS= read -r -d '' file; do
        [ ! -e "$file" ] || printf '%s\0' "$file" # not one that was just deleted
    done | xargs -0 "$format" --dry-run -Werror || failed=1
fi

since=${1:-HEAD~1}
if ! git rev-parse -q --verify "$since^{commit}" >/dev/null; then
    echo "No commit $since here: changed files are unknown, so clang-tidy checks none" >&2
elif tidy=$(version_14 clang-tidy); then
    # Configured but never built: one command for each file, and no compiled header that clang could not read.
    mkdir -p build
    commands=build/lint/compile_commands.json
    cmake --preset dev -B build/lint -DCMAKE_UNITY_BUILD=OFF -DPIPEWRIGHT_CUDA=OFF >build/lint.log 2>&1 ||
        { cat build/lint.log >&2; exit 1; }
    # What moc made for files that were built and include it; files that were not are left out, and named.
    made=()
    for folder in build/dev/{,tests/}*_autogen/include; do [ ! -d "$folder" ] || made+=("--extra-arg=-I$PWD/$folder"); done
    # A changed header is checked through the .cpp of its name, or else through one that includes it.
    while IFS= read -r file; do
        case $file in
        *.cpp) echo "$file" ;;
        *.h) if [ -e "${file%.h}.cpp" ]; then echo "${file%.h}.cpp"
             else { git grep -lE "[\"/]$(basename "$file")\"" -- '*.cpp' || true; } | sed -n 1p; fi ;;
        esac
    done < <({ git diff --name-only --diff-filter=d "$since"; git ls-files --others --exclude-standard; } | sort -u) |
        sort -u | while IFS= read -r file; do
            if ! grep -qF "\"$PWD/$file\"" "$commands"; then
                echo "Not built here, so not checked: $file" >&2
            elif wanted=$(sed -nE 's/^#include "(moc_.*\.cpp|.*\.moc)"/\1/p' "$file") && [ -n "$wanted" ] &&
                ! compgen -G "build/dev/*_autogen/include/$wanted" >/dev/null &&
                ! compgen -G "build/dev/tests/*_autogen/include/$wanted" >/dev/null; then
                echo "Not built in build/dev, so not checked: $file" >&2
            else
                echo "$file"
            fi
        done >build/lint.files
    count=$(wc -l <build/lint.files)
    if [ "$count" -gt "${LINT_FILES:-40}" ]; then
        echo "clang-tidy checks ${LINT_FILES:-40} of $count changed files; LINT_FILES=$count checks all" >&2
    fi
    head -n "${LINT_FILES:-40}" build/lint.files |
        xargs -d '\n' -r -n 4 -P "$(nproc)" "$tidy" -p build/lint --quiet --extra-arg=-Wno-unknown-warning-option \
            --extra-arg=-Wno-unused-command-line-argument ${made[@]+"${made[@]}"} || failed=1
fi
exit $failed
