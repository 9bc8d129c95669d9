#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# syntax.sh COMPILER ARGUMENT…: reads a source as the compiler would, and leaves an empty object file in place of what
# nobody links, so that the next build finds it done. Headers are precompiled as always.
for argument in "$@"; do
    case $argument in *.gch) exec "$@" ;; esac
done
"$@" -fsyntax-only || exit
while [ "$1" != -o ]; do shift; done
: >"$2"
