# SPDX-License-Identifier: GPL-3.0-or-later
"""Each package on this machine."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

import trial
from trial import FIRST_COMMANDS, OF_THE_SYSTEM, Screen, Trial, dynamic, elf_files, made, needs, newest, program_of_build, run


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
        examples = os.path.join(trial.SOURCE, "resources", "examples")
        shutil.copy(os.path.join(examples, "overlapped-chunks.json"), os.path.join(folder, "a.json"))
        run(program_of_build(), "new", "1f1b", "--devices", "2", "--microbatches", "2", "-o", os.path.join(folder, "b.json"))
        shutil.copy(os.path.join(examples, "zb-h1-byte-gpt.db"), os.path.join(folder, "a.db"))
        for name, content in (("c.json", '{"pipewright":2,"name":"compact"}'), ("other.json", '{"name": "pipewright", "scripts": {}}'),
                              ("package.json", '{"pipewright": {"version": "1"}}'), ("other.db", "SQLite format 3\0")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(content)
        environment = {**os.environ, "XDG_DATA_HOME": share, "XDG_DATA_DIRS": share + ":/usr/share"}
        for name, ours in (("a.json", True), ("b.json", True), ("c.json", True), ("a.db", True), ("other.json", False),
                           ("package.json", False), ("other.db", False)):
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
        self.install(python, self.package("whl"))
        return python

    def install(self, python, *words):
        run(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", "--quiet", *words)

    def test_the_wheel_runs_the_first_commands_of_the_readme_and_the_tutorial(self):
        if "first commands" in trial.tried:
            self.skipTest("it did in the clean root")
        python = self.environment()
        bin_folder, work = os.path.dirname(python), self.folder()
        environment = {"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": work}
        commands = trial.readme_commands()
        self.assertEqual(len(commands), FIRST_COMMANDS)
        for command in commands:
            run("sh", "-c", command, cwd=work, env=environment)
        self.assertTrue(os.path.exists(os.path.join(work, "best.json")), os.listdir(work))
        run(python, os.path.join(trial.SOURCE, "tests/torch/notebook.py"), os.path.join(trial.SOURCE, "resources/examples/tutorial.ipynb"),
            cwd=work, env={"HOME": work})

    def test_the_wheel_has_the_version_and_no_designer_and_finds_the_plugin_that_the_second_brings(self):
        python = self.environment()
        program = os.path.join(os.path.dirname(python), "pipewright")
        self.assertEqual(run(program, "--version").split(",")[0].split(" (")[0], run(program_of_build(), "--version").split(",")[0].split(" (")[0])
        said = subprocess.run([program], capture_output=True, text=True)
        self.assertEqual((said.returncode, "built without Qt" in said.stderr), (2, True), said)

        environment = dict(os.environ)
        if trial.stand_in("driver_good"):
            environment["LD_LIBRARY_PATH"] = self.folder()
            shutil.copy(trial.stand_in("driver_good"), os.path.join(environment["LD_LIBRARY_PATH"], "libcuda.so.1"))
        cuda = lambda: json.loads(run(program, "devices", "--json", env=environment))["cuda"]
        before = cuda()
        self.assertEqual(("plugin" in before, "this installation has no CUDA plugin" in before["reason"]), (False, True), before)
        # The extra asks for the second wheel by its name: both lie in one folder, as they would on an index.
        self.install(python, "--find-links", os.path.dirname(self.package("plugin")), "pipewright[cuda]")
        after = cuda()
        self.assertRegex(os.path.relpath(after["plugin"], os.path.dirname(os.path.dirname(python))),
                         r"^lib/python[^/]*/site-packages/pipewright/installed/bin/pipewright_cuda1[23]\.so$", after)
        self.assertNotIn("no CUDA plugin", after.get("reason", ""))
        if "stand-in" in made:  # which opens with the driver that stands in too
            self.assertIn("pretended GPU", run(program, "devices", env=environment))

    @needs("readelf")
    def test_the_wheel_searches_in_itself_and_its_tag_and_extras_are_true(self):
        folder = self.folder()
        shutil.unpack_archive(self.package("whl"), folder, "zip")
        self.check_search(folder)
        with open(glob.glob(f"{folder}/*.dist-info/METADATA")[0], encoding="utf-8") as file:
            self.assertEqual(re.findall(r"^Provides-Extra: (.*)", file.read(), re.MULTILINE), ["run"] + ["cuda"] * ("plugin" in made))
        tag = re.search(r"-none-(.*)\.whl", made["whl"])[1]
        limits = re.match(r"manylinux_(\d+)_(\d+)_", tag)
        if limits:
            for path in elf_files(folder):
                self.assertLessEqual(newest(path, "GLIBC"), (int(limits[1]), int(limits[2])), path)
        else:
            self.assertTrue(tag.startswith("linux_") and "without a promise" in made["said"], tag)

    def test_run_sh_takes_an_installed_program_of_this_commit_and_no_other(self):
        describe = ["git", "-C", trial.SOURCE, "describe", "--always", "--exclude", "*", "--abbrev=12", "--dirty"]
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
            ended = subprocess.run([os.path.join(trial.SOURCE, "app/run.sh"), "--headless", out], capture_output=True, text=True,
                                   env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
            self.assertEqual((ended.returncode == 0, "which was built of this commit" in ended.stderr), (taken, taken), ended.stderr)

    @needs("dpkg-deb")
    def test_run_sh_does_the_whole_job_with_the_program_of_the_deb(self):
        folder, out = self.folder(), self.folder()
        run("dpkg-deb", "-x", self.package("deb"), folder)
        bin_folder = os.path.join(folder, "usr", "bin")
        commit = subprocess.run(["git", "-C", trial.SOURCE, "describe", "--always", "--exclude", "*", "--abbrev=12", "--dirty"],
                                capture_output=True, text=True).stdout.strip()
        if f"(commit {commit})" not in run(os.path.join(bin_folder, "pipewright"), "--version"):
            self.skipTest("the program is not of this very commit, for which run.sh always builds")
        said = run(os.path.join(trial.SOURCE, "app/run.sh"), "--headless", out, env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"})
        self.assertIn(f"Taking {bin_folder}/pipewright, which was built of this commit", said)
        self.assertTrue(os.path.exists(os.path.join(out, "overlay.png")), said)

    def test_the_version_stands_in_one_place(self):
        with open(os.path.join(trial.SOURCE, "executor/torch/pyproject.toml"), encoding="utf-8") as file:
            version = re.search(r'^version = "(\d+\.\d+\.\d+)"', file.read(), re.MULTILINE)[1]
        self.assertTrue(run(program_of_build(), "--version").startswith(f"pipewright {version}"))
        for kind in ("deb", "tar.gz", "whl"):
            if kind in made:
                self.assertRegex(os.path.basename(made[kind]), rf"^pipewright[_-]{re.escape(version)}\b")
        tracked = run("git", "-C", trial.SOURCE, "ls-files", "*.txt", "*.cmake", "*.cpp", "*.h", "*.py", "*.sh", "*.toml", "*.json", "*.yml")
        holders = []
        for path in tracked.split():
            if path.startswith(("tests/", "resources/")):
                continue
            with open(os.path.join(trial.SOURCE, path), encoding="utf-8", errors="replace") as file:
                code = [line.split("#")[0].split("//")[0] for line in file]
            if any(re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", line) for line in code):
                holders.append(path)
        self.assertEqual(holders, ["executor/torch/pyproject.toml"])
        with open(os.path.join(trial.SOURCE, "resources/CHANGELOG.md"), encoding="utf-8") as file:
            self.assertIn(f"\n## {version}", file.read(), "the changes of this version are told")
