#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets this interpreter's PyTorch start without NVIDIA's libraries, which PyPI's wheel for Linux is linked to.

Every library that those of the wheel need, and that is neither theirs nor the system's, is made as a small one beside
them: it has the versions and the functions that are asked of it, and each function returns 100, which is what
cudaGetDeviceCount() returns where there is no GPU. PyTorch then sees no device, and calls none of the others.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+|numa)\.so|ld-linux")
NVIDIA = re.compile(r"(__cuda|cu[A-Z]|cuda|cublas|cudnn|cudss|cufft|cufile|cupti|curand|cusolver|cusparse|nccl|nvJit|nvrtc|nvshmem|nvtx)")


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def needed(file):
    """The libraries that it needs, with the versions asked of each."""
    text = output("objdump", "-p", file)
    versions = {name: set() for name in re.findall(r"NEEDED\s+(\S+)", text)}
    for part in text.split("required from ")[1:]:
        name = part.split(":", 1)[0]
        versions.setdefault(name, set()).update(re.findall(r"^\s+0x\w+ 0x\w+ \d+ (\S+)", part, re.M))
    return versions


def main():
    folder = pathlib.Path(importlib.util.find_spec("torch").submodule_search_locations[0]) / "lib"
    there = {file.name for file in folder.iterdir()}
    versions, asked = {}, set()
    for file in sorted(folder.glob("*.so")):
        for name, of in needed(file).items():
            versions.setdefault(name, set()).update(of)
        for line in output("nm", "-D", "--undefined-only", file).splitlines():
            symbol = line.split()[-1]
            if NVIDIA.match(symbol):
                asked.add(symbol)
    made = []
    with tempfile.TemporaryDirectory() as work:
        source, script = os.path.join(work, "absent.c"), os.path.join(work, "absent.map")
        for name, of in sorted(versions.items()):
            if name in there or SYSTEM.match(name):
                continue
            # Which library has a function without a version is not said: all of those have it.
            mine = {symbol.split("@")[0] for symbol in asked if (symbol.split("@")[-1] in of if of else "@" not in symbol)}
            with open(source, "w", encoding="ascii") as file:
                file.writelines(f"int {symbol}(void) {{ return 100; }}\n" for symbol in sorted(mine))
            with open(script, "w", encoding="ascii") as file:
                file.writelines(f"{version} {{ global: *; }};\n" for version in sorted(of))
            subprocess.run([os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{name}",
                            *([f"-Wl,--version-script,{script}"] if of else []), "-o", folder / name, source], check=True)
            made.append(name)
    print(f"{len(made)} libraries stand in: {' '.join(made)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
