#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The walls between rooms hold: with a room's own include folders a header of a room that it may use is found, and
# every other room's is not; a program that crosses a wall does not compile; CMake refuses rooms in a circle.
#   walls.sh ROOMS COMPILER CMAKE SOURCE    ROOMS: written by tests/CMakeLists.txt, "room|rooms it uses|include folders"
set -euo pipefail
list=$1 compiler=$2 cmake=$3 source=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }

declare -A uses folders reaches header
rooms=()
while IFS='|' read -r room used include; do
    rooms+=("$room")
    uses[$room]=$used
    folders[$room]=$(printf -- '-I%s ' $include)
    header[$room]=$(cd "$source" && find "$room" -name '*.h' | sort | head -n 1)
    reaches[$room]=" $room "
    for other in $used; do reaches[$room]+=${reaches[$other]}; done # declared before, so already complete
done <"$list"

for room in "${rooms[@]}"; do
    for other in "${rooms[@]}"; do
        case ${reaches[$room]} in
        *" $other "*) printf '#if !__has_include("%s")\n#error "cannot use %s"\n#endif\n' "${header[$other]}" "$other" ;;
        *) printf '#if __has_include("%s")\n#error "reaches %s"\n#endif\n' "${header[$other]}" "$other" ;;
        esac
    done >"$scratch/probe.cpp"
    # shellcheck disable=SC2086
    "$compiler" -std=c++20 -E -o /dev/null ${folders[$room]} "$scratch/probe.cpp" 2>"$scratch/log" ||
        { fail "$room:"; grep error "$scratch/log"; }
done

# compiles ROOM HEADER: with what ROOM may include?
compiles() {
    echo "#include \"$2\"" >"$scratch/user.cpp"
    # shellcheck disable=SC2086
    "$compiler" -std=c++20 -fsyntax-only ${folders[$1]} "$scratch/user.cpp" 2>"$scratch/log"
}
compiles core/schedule core/base/units.h || { fail "core/schedule does not compile with core/base:"; cat "$scratch/log"; }
if compiles core/schedule core/program/compile.h; then fail "core/schedule compiles with core/program"; fi
grep -q 'core/program/compile.h' "$scratch/log" || { fail "core/schedule fails for another reason:"; cat "$scratch/log"; }

# The whole project, but core/base uses core/search.
mkdir -p "$scratch/project/core"
ln -s "$source"/* "$scratch/project/" 2>/dev/null || true # core is there already
ln -s "$source"/core/* "$scratch/project/core/"
rm "$scratch/project/core/rooms.cmake"
sed 's|^pipewright_room(core/base |&USES core/search |' "$source/core/rooms.cmake" >"$scratch/project/core/rooms.cmake"
if "$cmake" -S "$scratch/project" -B "$scratch/build" -G Ninja "-DCMAKE_CXX_COMPILER=$compiler" >"$scratch/log" 2>&1; then
    fail "CMake takes core/base and core/search in a circle"
elif ! tr -s '\n ' ' ' <"$scratch/log" | grep -q 'core/base uses core/search, which is not declared before it'; then
    fail "CMake refuses the circle for another reason:"
    cat "$scratch/log"
fi
echo "${#rooms[@]} rooms"
exit $failed
