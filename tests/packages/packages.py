#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the three packages of a build as it stands, and tries each as who gets it would.

    packages.py SOURCE BUILD [--roots] [TestCase.test…]

The packages are of BUILD's own binaries: a dev build's are slower, and laid out as a release's. With --roots each is
tried too in a clean Debian that debootstrap makes, once, in BUILD/roots. What cannot be tried is left out, with the
reason.
"""

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

SOURCE, BUILD, ROOTS = "", "", False
LEFT_OUT = 77  # the exit code of what cannot be tried here
FIRST_COMMANDS = 10  # of README's "The same from the command line"
OF_THE_SYSTEM = re.compile(r"^(ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|expat)\.so)")
PATIENCE = 200  # seconds for what the network brings; a slower one is a reason to leave the clean root out
made = {}  # the packages by their kind, and what wheel.py said


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


def setUpModule():
    if os.path.exists(os.path.join(BUILD, "CPackConfig.cmake")):
        folder = tempfile.mkdtemp(prefix="pipewright-packages-")
        unittest.addModuleCleanup(shutil.rmtree, folder)
        run("cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", folder, cwd=BUILD)
        staged = os.path.join(folder, "staged")
        run("cmake", "--install", BUILD, "--prefix", staged, "--component", "wheel", "--strip")
        made["said"] = run(sys.executable, os.path.join(SOURCE, "app/packaging/wheel.py"), staged,
                           os.path.join(SOURCE, "executor/torch"), folder)
        for kind in ("deb", "tar.gz", "whl"):
            found = [path for path in glob.glob(f"{folder}/*.{kind}") if "pipewright_cuda" not in path]
            if found:
                made[kind] = found[0]


def elf_files(folder):
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def dynamic(path):
    """The libraries that a file needs, and its search path."""
    text = run("readelf", "-dW", path)
    search = [entry for line in re.findall(r"\((?:RPATH|RUNPATH)\)[^\[]*\[(.*)\]", text) for entry in line.split(":")]
    return re.findall(r"\(NEEDED\)[^\[]*\[(.*)\]", text), search


def newest(path, prefix):
    """The newest version of a library's symbols that a file needs, such as (2, 34) of GLIBC."""
    found = re.findall(rf"\b{prefix}_(\d+(?:\.\d+)*)\b", run("readelf", "-VW", path))
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


class Packages(Trial):
    """Each package on this machine."""

    def unpacked(self):
        folder = self.folder()
        run("tar", "-xf", self.package("tar.gz"), "-C", folder)
        inside = os.listdir(folder)
        self.assertEqual(len(inside), 1, "the archive has one folder at its top")
        return os.path.join(folder, inside[0])

    def check_search(self, folder):
        """Nothing in a folder looks for libraries where anybody could put one, and all but the system's lie in it."""
        names = {os.path.basename(path) for path in elf_files(folder)}
        looked = 0
        for path in elf_files(folder):
            needed, search = dynamic(path)
            for entry in search:
                # Behind the folder's own comes where the pthread build of OpenBLAS is on Debian.
                self.assertRegex(entry, r"^(\$ORIGIN(/|$)|/usr/lib/)", f"{path} searches {search}")
            for name in needed:
                self.assertTrue(name in names or OF_THE_SYSTEM.match(name), f"{path} needs {name}")
            looked += 1
        return looked

    @needs("readelf")
    def test_the_tar_gz_brings_its_libraries_and_needs_no_newer_system_than_the_page_says(self):
        folder = self.unpacked()
        self.assertGreater(self.check_search(folder), 5)
        for path in elf_files(folder):
            self.assertLessEqual(newest(path, "GLIBC"), (2, 35), path)
            self.assertLessEqual(newest(path, "GLIBCXX"), (3, 4, 30), path)

    def test_the_tar_gz_runs_from_any_folder(self):
        program = os.path.join(self.unpacked(), "bin", "pipewright")
        said = run(program, "predict", "zb-h1", "--model", "llama-3-8b", "--cluster", "h200-node", "--devices", "4",
                   "--microbatches", "8", cwd="/", env={})
        self.assertIn("makespan", said)

    @needs("Xvfb", "xdotool")
    def test_the_designer_starts_from_the_tar_gz(self):
        folder = self.unpacked()
        if not os.path.isdir(os.path.join(folder, "plugins")):
            self.skipTest("this build has no designer")
        with Screen() as screen:
            title = screen.window_of([os.path.join(folder, "bin", "pipewright")], cwd="/", env={})
        self.assertIn("Pipewright", title)

    @needs("dpkg-deb", "readelf")
    def test_the_deb_has_its_papers_and_searches_the_systems_folders(self):
        folder = self.folder()
        run("dpkg-deb", "-x", self.package("deb"), folder)
        for path in elf_files(folder):
            for entry in dynamic(path)[1]:
                self.assertRegex(entry, r"^(\$ORIGIN(/\.\./lib)?|/usr/lib/.*/openblas-pthread)$", path)
        for path in ("bin/pipewright", "share/man/man1/pipewright.1.gz", "share/doc/pipewright/copyright",
                     "share/doc/pipewright/changelog.gz", "share/bash-completion/completions/pipewright",
                     "share/zsh/vendor-completions/_pipewright", "share/fish/vendor_completions.d/pipewright.fish",
                     "share/pipewright/models/llama-3-8b.json", "share/pipewright/python/pipewright/run.py"):
            self.assertTrue(os.path.isfile(os.path.join(folder, "usr", path)), path)
        fields = run("dpkg-deb", "-f", made["deb"])
        self.assertIn("libsqlite3-0", fields)
        # All symbols are looked up at once: one that packing spoilt would show only when it is first called.
        said = run(os.path.join(folder, "usr/bin/pipewright"), "--version", env={**os.environ, "LD_BIND_NOW": "1"})
        self.assertEqual(said, run(program_of_build(), "--version"))

    @needs("lintian")
    def test_lintian_finds_no_error(self):
        run("lintian", "--fail-on", "error", "--allow-root", self.package("deb"))

    @needs("desktop-file-validate", "update-mime-database", "gio", "dpkg-deb")
    def test_a_design_and_a_recording_are_opened_by_the_designer_and_other_files_are_not(self):
        folder = self.folder()
        run("dpkg-deb", "-x", self.package("deb"), folder)
        share = os.path.join(folder, "usr", "share")
        entry = os.path.join(share, "applications", "pipewright.desktop")
        if not os.path.exists(entry):
            self.skipTest("this build has no designer")
        run("desktop-file-validate", entry)
        run("update-mime-database", os.path.join(share, "mime"))
        with open(entry, encoding="utf-8") as file:
            opened = re.search(r"^MimeType=(.*)", file.read(), re.MULTILINE)[1].split(";")
        examples = os.path.join(SOURCE, "resources", "examples")
        shutil.copy(os.path.join(examples, "overlapped-chunks.json"), os.path.join(folder, "a.json"))
        run(program_of_build(), "new", "1f1b", "--devices", "2", "--microbatches", "2", "-o", os.path.join(folder, "b.json"))
        shutil.copy(os.path.join(examples, "zb-h1-byte-gpt.db"), os.path.join(folder, "a.db"))
        with open(os.path.join(folder, "other.json"), "w", encoding="utf-8") as file:
            file.write('{"name": "pipewright", "scripts": {}}')
        environment = {**os.environ, "XDG_DATA_HOME": share, "XDG_DATA_DIRS": share + ":/usr/share"}
        for name, ours in (("a.json", True), ("b.json", True), ("a.db", True), ("other.json", False)):
            said = run("gio", "info", "-a", "standard::content-type", os.path.join(folder, name), env=environment)
            found = re.search(r"content-type: (\S+)", said)[1]
            self.assertEqual(found in opened, ours, f"{name} is {found}")

    def environment(self):
        """The Python of a new virtual environment with the wheel."""
        folder = self.folder()
        python = os.path.join(folder, "bin", "python3")
        try:
            run(sys.executable, "-m", "venv", folder)
        except AssertionError as error:
            self.skipTest(f"no virtual environment: {str(error)[-200:]}")
        run(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", "--quiet", self.package("whl"))
        return python

    def test_the_wheel_runs_the_first_commands_of_the_readme_and_the_tutorial(self):
        python = self.environment()
        bin_folder, work = os.path.dirname(python), self.folder()
        environment = {"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": work}
        commands = readme_commands()
        self.assertEqual(len(commands), FIRST_COMMANDS)
        for command in commands:
            run("sh", "-c", command, cwd=work, env=environment)
        self.assertTrue(os.path.exists(os.path.join(work, "best.json")), os.listdir(work))
        run(python, os.path.join(SOURCE, "tests/torch/notebook.py"), os.path.join(SOURCE, "resources/examples/tutorial.ipynb"),
            cwd=work, env={"HOME": work})
        self.assertEqual(run(os.path.join(bin_folder, "pipewright"), "--version", env=environment).split(",")[0].split(" (")[0],
                         run(program_of_build(), "--version").split(",")[0].split(" (")[0])
        # No designer, which is said; and the presets are those that came along.
        said = subprocess.run(["pipewright"], executable=os.path.join(bin_folder, "pipewright"), env=environment, capture_output=True, text=True)
        self.assertEqual((said.returncode, "built without Qt" in said.stderr), (2, True), said)

    @needs("readelf")
    def test_the_wheel_searches_in_itself_and_its_tag_is_true(self):
        folder = self.folder()
        shutil.unpack_archive(self.package("whl"), folder, "zip")
        self.check_search(folder)
        tag = re.search(r"-none-(.*)\.whl", made["whl"])[1]
        limits = re.match(r"manylinux_(\d+)_(\d+)_", tag)
        if limits:
            for path in elf_files(folder):
                self.assertLessEqual(newest(path, "GLIBC"), (int(limits[1]), int(limits[2])), path)
        else:
            self.assertTrue(tag.startswith("linux_") and "without a promise" in made["said"], tag)

    def test_run_sh_takes_an_installed_program_of_this_commit_and_no_other(self):
        describe = ["git", "-C", SOURCE, "describe", "--always", "--exclude", "*", "--abbrev=12", "--dirty"]
        commit = subprocess.run(describe, capture_output=True, text=True).stdout.strip()
        if not commit or commit.endswith("-dirty"):
            self.skipTest("this is no checkout, or one with changes, for which run.sh always builds")
        folder, out = self.folder(), self.folder()
        for says, taken in ((f"commit {commit}", True), (f"commit {commit}), without Qt", True), (f"commit {commit}, changed", False),
                            ("commit 0123456789ab", False)):
            # A program that only says which it is, and nothing to build another with.
            for name, lines in (("pipewright", f"[ $1 != --version ] || echo 'pipewright 1.2.3 ({says}{'' if 'Qt' in says else ')'}'"),
                                ("cmake", "exit 3"), ("sudo", "exit 1"), ("apt-get", "exit 1")):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/sh\n{lines}\n")
                os.chmod(path, 0o755)
            ended = subprocess.run([os.path.join(SOURCE, "app/run.sh"), "--headless", out], capture_output=True, text=True,
                                   env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
            self.assertEqual((ended.returncode == 0, "which was built of this commit" in ended.stderr), (taken, taken), ended.stderr)

    def test_the_version_stands_in_one_place(self):
        with open(os.path.join(SOURCE, "executor/torch/pyproject.toml"), encoding="utf-8") as file:
            version = re.search(r'^version = "(\d+\.\d+\.\d+)"', file.read(), re.MULTILINE)[1]
        self.assertTrue(run(program_of_build(), "--version").startswith(f"pipewright {version}"))
        for kind in ("deb", "tar.gz", "whl"):
            if kind in made:
                self.assertRegex(os.path.basename(made[kind]), rf"^pipewright[_-]{re.escape(version)}\b")
        tracked = run("git", "-C", SOURCE, "ls-files", "*.txt", "*.cmake", "*.cpp", "*.h", "*.py", "*.sh", "*.toml", "*.json", "*.yml")
        holders = []
        for path in tracked.split():
            if path.startswith(("tests/", "resources/")):
                continue
            with open(os.path.join(SOURCE, path), encoding="utf-8", errors="replace") as file:
                code = [line.split("#")[0].split("//")[0] for line in file]
            if any(re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", line) for line in code):
                holders.append(path)
        self.assertEqual(holders, ["executor/torch/pyproject.toml"])
        with open(os.path.join(SOURCE, "resources/CHANGELOG.md"), encoding="utf-8") as file:
            self.assertIn(f"\n## {version}", file.read(), "the changes of this version are told")


def program_of_build():
    return os.path.join(BUILD, "bin", "pipewright")


class CleanRoots(Trial):
    """The same packages where nothing but a new Debian is."""

    @classmethod
    def setUpClass(cls):
        if not ROOTS:
            raise unittest.SkipTest("clean roots are tried with --roots")
        if os.geteuid() != 0 or not there("debootstrap"):
            raise unittest.SkipTest("a clean root needs root and debootstrap (package debootstrap)")
        with open("/etc/os-release", encoding="utf-8") as file:
            system = dict(re.findall(r'^(\w+)="?([^"\n]*)', file.read(), re.MULTILINE))
        if system.get("ID") != "debian":
            raise unittest.SkipTest("the .deb is for the Debian that it is built on, and this is none")
        cls.base = os.path.join(BUILD, "roots", system["VERSION_CODENAME"])
        try:
            if not os.path.exists(cls.base + ".complete"):
                shutil.rmtree(cls.base, ignore_errors=True)
                os.makedirs(os.path.dirname(cls.base), exist_ok=True)
                run("timeout", str(PATIENCE), "debootstrap", "--variant=minbase", system["VERSION_CODENAME"], cls.base)
                open(cls.base + ".complete", "w", encoding="utf-8").close()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            raise unittest.SkipTest(f"debootstrap makes no root: {str(error)[-300:]}")

    def in_root(self, script, package):
        """Words that run the script in a copy of the root which nothing is left of, with the package in /given."""
        changes = self.folder()
        given = os.path.join(changes, "given")
        os.makedirs(given)
        shutil.copy(package, given)
        for path in ("tests/torch/notebook.py", "resources/examples/tutorial.ipynb"):
            shutil.copy(os.path.join(SOURCE, path), given)
        with open(os.path.join(given, "script"), "w", encoding="utf-8") as file:
            file.write(f"set -e\nexport DEBIAN_FRONTEND=noninteractive HOME=/root LC_ALL=C.UTF-8\n"
                       f"timeout 60 apt-get update -qq || {{ echo 'no packages can be had in the root'; exit {LEFT_OUT}; }}\n"
                       f"take() {{ timeout {PATIENCE} apt-get install -y -qq --no-install-recommends \"$@\" >/dev/null && return; "
                       f"[ $? != 124 ] || {{ echo 'packages take over {PATIENCE} s to arrive in the root'; exit {LEFT_OUT}; }}; exit 1; }}\n"
                       + script)
        inside = (f'trap "[ -n \\"\\$ready\\" ] || exit {LEFT_OUT}" EXIT\n' # what cannot be mounted here
                  'set -e; mount -t tmpfs none "$1"; mkdir "$1/up" "$1/work" "$1/root"\n'
                  'mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/up,workdir=$1/work" "$1/root"\n'
                  'mount -t proc proc "$1/root/proc"; mount --rbind /dev "$1/root/dev"\n'
                  'mkdir "$1/root/given"; mount --bind "$3" "$1/root/given"; cp /etc/resolv.conf "$1/root/etc/resolv.conf"\n'
                  'ready=yes\n'
                  'exec chroot "$1/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DISPLAY="$DISPLAY" sh /given/script')
        place = tempfile.mkdtemp(prefix="pipewright-root-")
        self.addCleanup(os.rmdir, place)
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", inside, "sh", place, self.base, given]

    @needs("Xvfb", "xdotool")
    def test_the_deb_in_a_clean_root(self):
        script = "take /given/*.deb\ncd /\npipewright predict zb-h1 --devices 2 --microbatches 4 >/dev/null\n"
        with Screen() as screen:
            title = screen.window_of(self.in_root(script + "exec pipewright\n", self.package("deb")))
        self.assertIn("Pipewright", title)

    @needs("Xvfb", "xdotool")
    def test_the_tar_gz_in_a_clean_root(self):
        script = "take libexpat1\nmkdir /any && tar -xf /given/*.tar.gz -C /any\n"
        with Screen() as screen:
            title = screen.window_of(self.in_root(script + "exec /any/*/bin/pipewright\n", self.package("tar.gz")))
        self.assertIn("Pipewright", title)

    def test_the_wheel_in_a_clean_root(self):
        script = ("take python3-venv\n"
                  "python3 -m venv /new && /new/bin/pip install -q --no-index /given/*.whl && mkdir /work && cd /work\nPATH=/new/bin:$PATH\n"
                  + "\n".join(readme_commands())
                  + "\n/new/bin/python3 /given/notebook.py /given/tutorial.ipynb\n")
        run(*self.in_root(script, self.package("whl")))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    ROOTS = "--roots" in arguments
    SOURCE, BUILD, *rest = [os.path.abspath(each) if number < 2 else each
                            for number, each in enumerate(each for each in arguments if each != "--roots")]
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
