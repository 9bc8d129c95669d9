# SPDX-License-Identifier: GPL-3.0-or-later
# Shared by app/run.sh and tests/run.sh (sourced, not run): installs what is missing, configures, builds.
# Says what it does, changes nothing that is already there, and is quick the second time.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What every build needs; what the designer adds; what the tests add; what is merely nice to have.
packages_build="g++ cmake ninja-build pkg-config libfmt-dev nlohmann-json3-dev libsqlite3-dev libsqlitecpp-dev libsimdjson-dev zlib1g-dev libcli11-dev libopenblas-pthread-dev libglpk-dev libsodium-dev"
packages_gui="qt6-base-dev libqt6opengl6-dev qt6-charts-dev qt6-svg-dev libgl-dev fonts-inter fonts-jetbrains-mono fonts-dejavu-core"
packages_tests="librapidcheck-dev libbenchmark-dev procps"
packages_nice="ccache lld libgecode-dev"
packages_window="xvfb openbox xdotool" # a real window for the tests that want one
packages_packing="dpkg-dev fakeroot file python3-venv" # for app/packaging/make.sh
packages_trial="lintian mmdebstrap desktop-file-utils shared-mime-info libglib2.0-bin" # what packages are tried with

# Bold on a terminal only.
say() { if [ -t 2 ]; then printf '\033[1m%s\033[0m\n' "$*" >&2; else printf '%s\n' "$*" >&2; fi; }

# Those of the named packages that dpkg does not list as installed.
missing_packages() {
    local name
    for name in "$@"; do
        dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q '^install ok installed' || printf '%s ' "$name"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1; then sudo "$@"
    else return 127; fi
}

# install_packages NAME…: through apt, as root or with sudo. Fails with a sentence when it cannot.
install_packages() {
    local missing
    command -v dpkg-query >/dev/null 2>&1 || { say "No dpkg here: make sure these are installed: $*"; return 0; }
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    say "Installing with apt: $missing"
    if ! as_root true 2>/dev/null; then
        say "Not root and no sudo. Please run: apt-get install $missing"
        return 1
    fi
    # shellcheck disable=SC2086
    { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing ||
      { as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing; }
    } >&2
}

# Whether an NVIDIA driver is loaded here, or WSL's stands in for one.
has_nvidia_driver() { [ -e /dev/nvidiactl ] || [ -e /proc/driver/nvidia/version ] || [ -e /usr/lib/wsl/lib/libcuda.so.1 ]; }

# build PRESET TARGET… [-- CMAKE-OPTION…]: configures when needed and builds below build/PRESET.
build() {
    local preset=$1 log
    shift
    local targets=() options=()
    while [ $# -gt 0 ]; do
        if [ "$1" = -- ]; then shift; options=("$@"); break; fi
        targets+=("$1"); shift
    done
    log=$root/build/$preset/configure.log
    mkdir -p "$root/build/$preset"
    if ! (cd "$root" && cmake --preset "$preset" ${options[@]+"${options[@]}"} >"$log" 2>&1); then
        cat "$log" >&2
        say "Configuring failed; the reason is above and in $log"
        return 1
    fi
    sed -n '/^-- Switched off:/,/^-- Config/p' "$log" | grep -v '^-- Config' >&2 || true
    say "Building ($preset)"
    cmake --build "$root/build/$preset" ${targets[@]+--target "${targets[@]}"} >&2
}
