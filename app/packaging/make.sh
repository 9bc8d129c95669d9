#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The three packages in one command: installs what is missing, builds the release, and leaves in build/release/packages
# a .deb, a .tar.gz and a wheel. auditwheel, which tells the wheel's tag, comes from PyPI where it can be had.
#   app/packaging/make.sh [CMAKE-OPTION…]    such as -DPIPEWRIGHT_CONTACT="NAME <ADDRESS>"
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../setup.sh"

# shellcheck disable=SC2086
install_packages $packages_build $packages_gui $packages_packing
# shellcheck disable=SC2086
install_packages $packages_nice || true
python=$root/build/packing/bin/python3
[ -x "$python" ] || python3 -m venv "$root/build/packing"
"$python" -m pip install --quiet --disable-pip-version-check auditwheel ||
    say "auditwheel cannot be had from PyPI: the wheel's tag promises no systems"
build release package wheel -- -DPIPEWRIGHT_TESTS=OFF "-DPIPEWRIGHT_PYTHON=$python" "$@"
ls -l "$root"/build/release/packages/pipewright*
