# SPDX-License-Identifier: GPL-3.0-or-later
"""What the trials of packages share: the build that they are of, how they are made, and a screen to try them on."""

import functools
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, BUILD, ROOTS = "", "", False  # set by packages.py
LEFT_OUT = 77  # the exit code of what cannot be tried here
FIRST_COMMANDS = 10  # of README's "The same from the command line"
OF_THE_SYSTEM = re.compile(r"^(ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|expat)\.so)")
made = {}  # the packages by their kind, the folder that they are in, and what wheel.py said
tried = set()  # what need not be tried on this machine, since a clean root had it


def run(*words, timeout=600, **options):
    """Its output; a failure shows what it said."""
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, **options)
    if result.returncode == LEFT_OUT:
        raise unittest.SkipTest(result.stdout.strip()[-300:])
    if result.returncode:
        raise AssertionError(f"{' '.join(map(str, words))}: {result.returncode}\n{result.stdout[-3000:]}")
    return result.stdout


def there(program):
    return shutil.which(program) is not None


def program_of_build():
    return os.path.join(BUILD, "bin", "pipewright")


def stand_in(name):
    """A driver or plugin of tests/executor/cuda/plugins; None where this build has no tests."""
    path = os.path.join(BUILD, "tests", "standins", f"{name}.so")
    return path if os.path.exists(path) else None


def make_packages(folder):
    """All that this build makes, into the folder. Where it has no CUDA plugin a stand-in takes its place, which says one
    GPU and does nothing."""
    if not os.path.exists(os.path.join(BUILD, "CPackConfig.cmake")):
        return
    run("cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", folder, cwd=BUILD)
    staged = os.path.join(folder, "staged")
    run("cmake", "--install", BUILD, "--prefix", staged, "--component", "wheel", "--strip")
    if not glob.glob(f"{staged}/bin/pipewright_cuda*.so") and stand_in("plugin_good"):
        made["stand-in"] = shutil.copy(stand_in("plugin_good"), os.path.join(staged, "bin", "pipewright_cuda13.so"))
    made["said"] = run(sys.executable, os.path.join(SOURCE, "app/packaging/wheel.py"), staged,
                       os.path.join(SOURCE, "executor/torch"), folder)
    made["folder"] = folder
    for path in glob.glob(f"{folder}/pipewright*"):
        kind = next((kind for kind in ("deb", "tar.gz", "whl") if path.endswith("." + kind)), None)
        if kind:
            made["plugin" if "pipewright_cuda" in path else kind] = path


def elf_files(folder):
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


@functools.cache
def read_elf(path):
    return run("readelf", "-dVW", path)


def dynamic(path):
    """The libraries that a file needs, and its search path."""
    text = read_elf(path)
    search = [entry for line in re.findall(r"\((?:RPATH|RUNPATH)\)[^\[]*\[(.*)\]", text) for entry in line.split(":")]
    return re.findall(r"\(NEEDED\)[^\[]*\[(.*)\]", text), search


def newest(path, prefix):
    """The newest version of a library's symbols that a file needs, such as (2, 34) of GLIBC."""
    found = re.findall(rf"\b{prefix}_(\d+(?:\.\d+)*)\b", read_elf(path))
    return max((tuple(map(int, each.split("."))) for each in found), default=())


class Screen:
    """A screen without a monitor, and whether a window with a name comes."""

    def __enter__(self):
        read, write = os.pipe()
        self._server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten", "tcp"],
                                        pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as number:
            self.display = ":" + number.readline().strip()
        return self

    def __exit__(self, *_):
        self._server.terminate()
        self._server.wait()

    def _titles(self):
        words = ["xdotool", "search", "--name", ".", "getwindowname", "%@"]  # it matches no more than ASCII
        environment = {**os.environ, "DISPLAY": self.display, "LC_ALL": "C.UTF-8"}
        return subprocess.run(words, env=environment, capture_output=True, text=True, encoding="utf-8").stdout.splitlines()

    def window_of(self, words, **options):
        """The title of the main window that these words open, "DESIGN — Pipewright", within five minutes; it is closed."""
        environment = {**options.pop("env", os.environ), "DISPLAY": self.display}
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryDirectory() as home:
            environment["HOME"] = home
            process = subprocess.Popen(words, env=environment, stdout=said, stderr=said, start_new_session=True, **options)
            try:
                until = time.monotonic() + 300
                while time.monotonic() < until and process.poll() is None:
                    for title in self._titles():
                        if title.endswith("— Pipewright"):
                            return title
                    time.sleep(0.3)
                said.seek(0)
                if process.poll() == LEFT_OUT:
                    raise unittest.SkipTest(said.read().strip()[-300:])
                raise AssertionError(f"{words}: no window, {process.poll()}: {said.read()[-2000:]}")
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def needs(*programs):
    missing = [program for program in programs if not there(program)]
    return unittest.skipIf(missing, f"not here: {', '.join(missing)}")


def readme_commands():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        part = file.read().split("The same from the command line", 1)[1].split("```sh\n", 1)[1].split("```", 1)[0]
    commands = [line.split("  #")[0].strip() for line in part.splitlines()][:FIRST_COMMANDS]
    # Other tests run beside these, which would have measured times refused.
    return [re.sub(r"(pipewright calibrate|--costs-from first.db)", r"\1 --busy-machine", command) for command in commands]


class Trial(unittest.TestCase):
    def package(self, kind):
        if kind not in made:
            self.skipTest(f"this build makes no .{kind}")
        return made[kind]

    def folder(self):
        folder = tempfile.mkdtemp(prefix="with a blank ")
        self.addCleanup(shutil.rmtree, folder)
        return folder
