#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Counts the lines of code, outside tests and in them, and the largest rooms. Blank lines and comments count.
#   tests/rooms/lines.sh [COMMIT]    COMMIT: of the history, instead of the working tree
set -euo pipefail
cd "$(dirname "$0")/../.."
suffixes='\.(h|cpp|cu|cuh|py|cmake|sh)$|CMakeLists\.txt$'

# "LINES PATH" of every file of code.
counted() {
    if [ $# -gt 0 ]; then
        git ls-tree -r --name-only "$1" | grep -E "$suffixes" | while IFS= read -r path; do
            echo "$(git cat-file -p "$1:$path" | wc -l) $path"
        done
    else
        git ls-files -z --cached --others --exclude-standard | grep -zE "$suffixes" |
            while IFS= read -r -d '' path; do [ ! -f "$path" ] || echo "$(wc -l <"$path") $path"; done
    fi
}

counted "$@" | awk '
    { test = ($2 ~ /^tests\//); total[test] += $1
      count = split($2, part, "/")
      room[count > 2 ? part[1] "/" part[2] : part[1]] += $1 }
    END {
        print total[0] + 0, "lines outside tests"
        print total[1] + 0, "lines in tests"
        for (name in room) print "  " room[name], name | "sort -k1,1nr | head -n 20"
    }'
