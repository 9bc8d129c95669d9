#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a wheel of the Python package and the program without the designer, and a second one of the CUDA plugin where
it was built. The target `wheel` calls it; it needs nothing but the standard library.

    wheel.py INSTALLED PACKAGE OUT    INSTALLED: bin/, lib/ and share/ of the program, below one folder
                                      PACKAGE: executor/torch of the checkout; OUT: the folder for wheels

The wheel's tag says on which systems it runs. It is the one that auditwheel (from PyPI) finds, where this Python has
it, else linux_ARCHITECTURE, which pip installs without a promise.
"""

import base64
import fnmatch
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile

IN_PACKAGE = "pipewright/installed"  # where launch.py looks for it
OF_PLUGIN = ["bin/pipewright_cuda*.so"]
LEFT_OUT = ["bin/gpu.sh", "bin/torchspeed.py", "share/man/*", "share/*completion*", "share/applications/*", "share/icons/*",
            "share/mime/*", "share/zsh/*", "share/fish/*", "*.pyc", "*.egg-info/*"]


def project(package):
    """Version, summary and Python of the package, from the few lines of pyproject.toml that say so."""
    with open(os.path.join(package, "pyproject.toml"), encoding="utf-8") as file:
        text = file.read()
    value = lambda key: re.search(rf'^{key} = "([^"]+)"', text, re.MULTILINE)[1]
    optional = text.split("[project.optional-dependencies]\n", 1)[1].split("\n[", 1)[0]
    extras = re.findall(r'^(\w+) = \["([^"]+)"\]', optional, re.MULTILINE)
    about = {key: value(key) for key in ("name", "version", "description", "requires-python")}
    return {**about, "author": re.search(r'^authors = \[\{ name = "([^"]+)"', text, re.MULTILINE)[1]}, extras


def below(folder):
    """The files below a folder, as paths from it, in an order that does not change. A wheel holds no links: of a library
    and the links to it only the link by whose name programs ask for it."""
    found = []
    for where, _, names in os.walk(folder):
        paths = [os.path.join(where, name) for name in names]
        linked = {os.path.realpath(path) for path in paths if os.path.islink(path)}
        found += [os.path.relpath(path, folder) for path in paths if os.path.islink(path) or os.path.realpath(path) not in linked]
    return sorted(found)


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def write(out, name, version, tag, files, metadata, entry_points=""):
    """One wheel: `files` are pairs of a path in it and a file. Its bytes depend on these files alone."""
    path = os.path.join(out, f"{name}-{version}-py3-none-{tag}.whl")
    information = f"{name}-{version}.dist-info"
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(target, content, mode=0o644):
            entry = zipfile.ZipInfo(target, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{target},sha256={digest},{len(content)}")

        for target, source in files:
            with open(source, "rb") as file:
                add(target, file.read(), 0o755 if os.access(source, os.X_OK) else 0o644)
        add(f"{information}/METADATA", metadata.encode())
        add(f"{information}/WHEEL", f"Wheel-Version: 1.0\nGenerator: pipewright\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n".encode())
        if entry_points:
            add(f"{information}/entry_points.txt", entry_points.encode())
        wheel.writestr(zipfile.ZipInfo(f"{information}/RECORD", (1980, 1, 1, 0, 0, 0)),
                       "\n".join([*lines, f"{information}/RECORD,,"]) + "\n")
    return path


def tag_by_auditwheel(wheel):
    """The tag that auditwheel finds, and None; or None and why there is none."""
    said = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    found = re.search(r'platform tag:\s+"([^"]+)"', said.stdout)
    if said.returncode == 0 and found:
        return found[1], None
    return None, (said.stderr or said.stdout).strip().splitlines()[-1]


def main():
    installed, package, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    about, extras = project(package)
    name, version = about["name"], about["version"]
    head = (f"Metadata-Version: 2.1\nVersion: {version}\nSummary: {{}}\nLicense: GPL-3.0-or-later\n"
            f"Requires-Python: {about['requires-python']}\nAuthor: {about['author']}\nName: {{}}\n")
    files = [(os.path.join("pipewright", path), os.path.join(package, "pipewright", path))
             for path in below(os.path.join(package, "pipewright")) if not matches(path, LEFT_OUT + ["installed/*"])]
    plugin = []
    for path in below(installed):
        if not matches(path, LEFT_OUT):
            (plugin if matches(path, OF_PLUGIN) else files).append((f"{IN_PACKAGE}/{path}", os.path.join(installed, path)))
    if plugin:
        extras.append(("cuda", f"pipewright-cuda=={version}"))
    metadata = head.format(about["description"], name) + "".join(
        f"Provides-Extra: {extra}\nRequires-Dist: {wanted}; extra == '{extra}'\n" for extra, wanted in extras)
    entry = "[console_scripts]\npipewright = pipewright.launch:main\n"
    for old in os.listdir(out):
        if old.endswith(".whl"):
            os.remove(os.path.join(out, old))

    plain = f"linux_{platform.machine()}"
    wheel = write(out, name, version, plain, files, metadata, entry)
    tag, why = tag_by_auditwheel(wheel)
    if tag and tag != plain:
        os.remove(wheel)
        wheel = write(out, name, version, tag, files, metadata, entry)
    print(f"{wheel}: {os.path.getsize(wheel) / 1e6:.1f} MB, "
          + ("tagged as auditwheel found" if tag else f"tagged without a promise of systems, since auditwheel did not look: {why}"))
    if plugin:
        second = write(out, "pipewright_cuda", version, tag or plain, plugin, head.format("The CUDA plugin of pipewright", "pipewright-cuda")
                       + f"Requires-Dist: pipewright=={version}\n")
        print(f"{second}: {os.path.getsize(second) / 1e6:.1f} MB, with the tag of the first, since it needs the C library alone")


if __name__ == "__main__":
    main()
