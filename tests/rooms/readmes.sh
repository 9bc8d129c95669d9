#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What is written about rooms is true: every folder with code is a room, its README.md says "It uses" and names
# exactly the rooms that rooms.cmake gives it, and the front page names it in its floor's row. The recipe for a new
# block operation names exactly the files where the compiler stops.
#   readmes.sh ROOMS SOURCE    ROOMS: as for walls.sh
set -euo pipefail
list=$1 source=$2
failed=0
fail() { echo "FAIL: $*"; failed=1; }
declare -A known floors
while IFS='|' read -r room _; do known[$room]=1 floors[${room%%/*}]=1; done <"$list"

while IFS='|' read -r room used _; do
    readme=$source/$room/README.md
    [ -f "$readme" ] || { fail "$room has no README.md"; continue; }
    [ "$(head -n 1 "$readme")" = "# $room" ] || fail "$room/README.md does not begin with # $room"
    said=
    for name in $(tr '\n' ' ' <"$readme" | grep -o 'It uses [^.]*' | head -n 1 | grep -o '`[^`]*`' | tr -d '`'); do
        [ -z "${known[$name]:-}" ] || said+="$name"$'\n'
    done
    told=$(sort -u <<<"$said" | xargs) may=$(tr ' ' '\n' <<<"$used" | sort -u | xargs)
    [ "$told" = "$may" ] || fail "$room/README.md says that it uses [$told], rooms.cmake [$may]"
    grep "^| \`${room%%/*}/\` |" "$source/README.md" | grep -q "\`${room##*/}/*\`" || fail "README.md does not name $room"
    ! grep -rn '#include "\.\.\?/' "$source/$room" || fail "$room includes by a relative path, around its wall"
done <"$list"

for floor in "${!floors[@]}"; do
    [ -z "${known[$floor]:-}" ] || continue # one room, subfolders and all
    for folder in "$source/$floor"/*/; do
        room=$floor/$(basename "$folder")
        [ -n "${known[$room]:-}" ] || fail "$room is no room of $floor/rooms.cmake"
    done
    ! compgen -G "$source/$floor/*.h" >/dev/null && ! compgen -G "$source/$floor/*.cpp" >/dev/null ||
        fail "code in $floor itself belongs to no room"
done

# A file name without a folder is in that of the last one with a folder.
recipe() {
    sed -n '/^\*\*A block operation/,/^`tests/p' "$source/.github/CONTRIBUTING.md" | sed -n '/^- /,/^$/p' |
        grep -o '`[^`]*\.\(cpp\|h\)`' | tr -d '`' |
        awk '/\// { folder = $0; sub(/[^\/]*$/, "", folder); print; next } { print folder $0 }' | sort -u
}
stops() { # switches over all operations, and tables of them that a static_assert watches
    (cd "$source" && grep -rlE 'case Op::|greyOfNarrowBlocks\{' --include='*.cpp' --include='*.h' \
        app core executor gui kernels traces) | sort -u
}
[ "$(recipe | wc -l)" -gt 9 ] || fail "CONTRIBUTING.md has no recipe for a block operation"
while read -r line; do
    fail "recipe for a block operation in CONTRIBUTING.md: $line"
done < <(comm -3 <(recipe) <(stops) | sed 's/^\t\(.*\)/does not name \1/; t; s/^/names without reason /')
echo "${#known[@]} rooms"
exit $failed
