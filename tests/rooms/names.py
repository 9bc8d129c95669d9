#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every type, and every function that is defined inline, has its name in its namespace alone.

The linker keeps one of two inline functions with the same name, those that a compiler makes for a type among them, and
says nothing: whoever meant the other runs into memory that is not laid out so. What is in an anonymous namespace, or a
member, does not count.

    names.py SOURCE
"""
import collections
import pathlib
import re
import sys

floors = ["app", "core", "executor", "gui", "kernels", "traces"]
opens = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*\{")
closes = re.compile(r"\} // namespace")
a_type = re.compile(r"(?:template\s*<.*>\s*)?(?:struct|class|union|enum|enum class|enum struct)\s+"
                    r"(?:alignas\(\w+\)\s+)?(\w+)(?:\s+final)?\s*(?::[^:;]*)?(\{.*)?$")
a_function = re.compile(r"(?:inline|constexpr|consteval|template\s*<.*>|\[\[nodiscard\]\]|\s)*"
                        r"\b(?:inline|constexpr|consteval)\b[^=;({]*\b(\w+)(\([^{;]*)")


def names_of(path):
    """Namespace, name and, of a function, parameters of what a file defines."""
    scopes, found = [], set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := opens.match(line):
            scopes.append(match.group(1))
        elif closes.match(line) and scopes:
            scopes.pop()
        elif "" in scopes or not scopes:
            continue
        elif match := a_type.match(line):
            found.add(("::".join(scopes), match.group(1), ""))
        elif match := a_function.match(line):
            found.add(("::".join(scopes), match.group(1), re.sub(r"\s+", " ", match.group(2)).strip()))
    return found


def main():
    source = pathlib.Path(sys.argv[1])
    places = collections.defaultdict(list)
    for floor in floors:
        for path in sorted((source / floor).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
                for name in names_of(path):
                    places[name].append(path.relative_to(source))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    for (scope, name, parameters), paths in sorted(twice.items()):
        print(f"FAIL: {scope}::{name}{parameters} is defined in {' and in '.join(map(str, paths))}: "
              "give one another name, or put it in an anonymous namespace")
    if len(places) < 1000:
        sys.exit(f"FAIL: only {len(places)} names were found: the layout of the sources is not what this expects")
    print(f"{len(places)} names")
    sys.exit(1 if twice else 0)


if __name__ == "__main__":
    main()
