# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages where nothing else is: in a new Debian, the one that they are built on, and in the oldest and the newest
Ubuntu that the page names. mmdebstrap makes each once, in BUILD/roots; what is tried happens in a copy that nothing is
left of."""

import hashlib
import os
import platform
import re
import shutil
import tempfile
import unittest
import urllib.request

import trial
from trial import LEFT_OUT, Screen, Trial, needs, run

PATIENCE = 200  # seconds for what the network brings; a slower one is a reason to leave the clean root out
UBUNTU = "http://archive.ubuntu.com/ubuntu"
# Ubuntu's keys, which Debian 12 has no package of. They sign what mmdebstrap brings from there.
KEYS = ("pool/main/u/ubuntu-keyring/ubuntu-keyring_2021.03.26_all.deb",
        "0d0e7ed6b112f5d03eabf3c7eb01ebdacf9c57714b279e90495cfc58c8c4520f")


class CleanRoot(Trial):
    @staticmethod
    def new_root(name, *words):
        """Where the root lies that mmdebstrap makes of these words, of which one, FOLDER, stands for it."""
        if not trial.ROOTS:
            raise unittest.SkipTest("clean roots are tried with --roots")
        if os.geteuid() != 0 or not trial.there("mmdebstrap"):
            raise unittest.SkipTest("a clean root needs root and mmdebstrap (package mmdebstrap)")
        try:
            run("unshare", "-m", "--propagation", "private", "true")
        except AssertionError as error:
            raise unittest.SkipTest(f"nothing can be mounted here, as in a container without --privileged: {str(error)[-200:]}") from None
        root = os.path.join(trial.BUILD, "roots", name)
        if not os.path.exists(root + ".complete"):
            shutil.rmtree(root, ignore_errors=True)
            os.makedirs(os.path.dirname(root), exist_ok=True)
            try:
                run("timeout", str(PATIENCE), "mmdebstrap", "--quiet", *(root if each == "FOLDER" else each for each in words))
            except AssertionError as error:
                raise unittest.SkipTest(f"mmdebstrap makes no {name}: {str(error)[-1200:]}") from None
            open(root + ".complete", "w", encoding="utf-8").close()
        return root

    def in_root(self, root, given, script):
        """Words that run the script in a copy of the root, with the folder `given` in /given."""
        with open(os.path.join(given, "script"), "w", encoding="utf-8") as file:
            file.write("set -e\nexport DEBIAN_FRONTEND=noninteractive HOME=/root LC_ALL=C.UTF-8\n" + script)
        inside = (f'trap "[ -n \\"\\$ready\\" ] || exit {LEFT_OUT}" EXIT\n'  # what cannot be mounted here
                  'set -e; mount -t tmpfs none "$1"; mkdir "$1/up" "$1/work" "$1/root"\n'
                  'mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/up,workdir=$1/work" "$1/root"\n'
                  'cd "$1/root"; mkdir -p proc dev root tmp given; mount -t proc proc proc; mount --rbind /dev dev\n'
                  'mount --bind "$3" given; cp /etc/resolv.conf etc/resolv.conf\n'
                  'ready=yes\n'
                  'exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DISPLAY="$DISPLAY" chroot . sh /given/script')
        place = tempfile.mkdtemp(prefix="pipewright-root-")
        self.addCleanup(os.rmdir, place)
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", inside, "sh", place, root, given]


class CleanDebian(CleanRoot):
    @classmethod
    def setUpClass(cls):
        with open("/etc/os-release", encoding="utf-8") as file:
            system = dict(re.findall(r'^(\w+)="?([^"\n]*)', file.read(), re.MULTILINE))
        if system.get("ID") != "debian":
            raise unittest.SkipTest("the .deb is for the Debian that it is built on, and this is none")
        # With the lists of packages, which the trials would fetch one by one.
        cls.root = cls.new_root(system["VERSION_CODENAME"], "--variant=minbase", "--skip=cleanup/apt/lists",
                                system["VERSION_CODENAME"], "FOLDER")

    def with_package(self, kind, script, *files):
        """Words that run the script beside the package and these files of the checkout."""
        given = os.path.join(self.folder(), "given")
        os.makedirs(given)
        for path in (self.package(kind), *(os.path.join(trial.SOURCE, each) for each in files)):
            shutil.copy(path, given)
        # The lists may be older than what is there to be had.
        take = f"""fetch() {{ timeout {PATIENCE} apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }}
take() {{
    fetch "$@" && return
    [ $? != 124 ] || {{ echo 'packages take over {PATIENCE} s to arrive in the root'; exit {LEFT_OUT}; }}
    timeout 60 apt-get update -qq || {{ echo 'no packages can be had in the root'; exit {LEFT_OUT}; }}
    fetch "$@" || exit 1
}}
"""
        return self.in_root(self.root, given, take + script)

    @needs("Xvfb", "xdotool")
    def test_the_deb_opens_a_design_that_the_desktop_is_told_to_open(self):
        script = """take /given/*.deb libglib2.0-bin shared-mime-info desktop-file-utils xdg-utils
mkdir /new && cd /new
pipewright new zb-h1 --devices 2 --microbatches 4 --name "told to open" -o a.json >/dev/null
for type in application/x-pipewright-design+json application/x-pipewright-trace
do [ "$(xdg-mime query default $type)" = pipewright.desktop ] || { echo "$type is opened by '$(xdg-mime query default $type)'"; exit 1; }
done
for type in application/json application/vnd.sqlite3
do [ -z "$(xdg-mime query default $type)" ] || { echo "$type is taken over"; exit 1; }
done
gio open a.json
exec sleep 600
"""
        with Screen() as screen:
            title = screen.window_of(self.with_package("deb", script))
        self.assertIn("told to open (a.json)", title)

    @needs("Xvfb", "xdotool")
    def test_the_designer_starts_from_the_tar_gz(self):
        script = "take libexpat1\nmkdir /any && tar -xf /given/*.tar.gz -C /any\nexec /any/*/bin/pipewright\n"
        with Screen() as screen:
            title = screen.window_of(self.with_package("tar.gz", script))
        self.assertIn("Pipewright", title)

    def test_the_wheel_runs_the_first_commands_of_the_readme_and_the_tutorial(self):
        script = ("take python3-venv\n"
                  "python3 -m venv /new && /new/bin/pip install -q --no-index /given/*.whl && mkdir /work && cd /work\nPATH=/new/bin:$PATH\n"
                  + "\n".join(trial.readme_commands())
                  + "\n/new/bin/python3 /given/notebook.py /given/tutorial.ipynb\n")
        run(*self.with_package("whl", script, "tests/torch/notebook.py", "resources/examples/tutorial.ipynb"))
        trial.tried.add("first commands")


class CleanUbuntu(CleanRoot):
    """What the page says of other systems, with no more of them than a C library, libstdc++, expat, Python and a shell, as
    they were when the system was new."""

    def try_on(self, release, python):
        if platform.machine() != "x86_64":
            self.skipTest(f"{UBUNTU} is for x86-64")
        archive, wheel = self.package("tar.gz"), self.package("whl")
        folder = self.folder()
        packages = ["dash", "libc6", "libstdc++6", "libgcc-s1", "libexpat1", "zlib1g", f"{python}-minimal",
                    f"lib{python}-minimal", f"lib{python}-stdlib"]
        root = self.new_root(release, "--variant=extract", f"--include={','.join(packages)}", f"--keyring={self.keys(folder)}",
                             '--aptopt=APT::Sandbox::User "root"',  # another could not read the keys
                             "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", release, "FOLDER", UBUNTU)
        given = os.path.join(folder, "given")
        os.makedirs(os.path.join(given, "wheel"))
        run("tar", "-xf", archive, "-C", given)
        shutil.unpack_archive(wheel, os.path.join(given, "wheel"), "zip")
        os.chmod(os.path.join(given, "wheel/pipewright/installed/bin/pipewright"), 0o755)
        script = (f"program=$(echo /given/pipewright-*/bin/pipewright)\ncd /tmp\nexport PYTHONPATH=/given/wheel\n"
                  f"{python} -c 'import pipewright as p; p.new(\"zb-h1\", devices=2, microbatches=4, name=\"of {release}\").write(\"a.json\")'\n"
                  "$program run a.json --backend host --steps 2 -o a.db >/dev/null\n"
                  f"{python} -c 'import pipewright as p; assert len(p.query(\"a.db\", \"SELECT step FROM STEPS\")) == 2'\n"
                  "exec $program a.json a.db\n")
        with Screen() as screen:
            title = screen.window_of(self.in_root(root, given, script))
        self.assertIn(f"of {release} (a.json)", title)

    def keys(self, folder):
        """The file of Ubuntu's keys, from a package that is known by its sum."""
        if not trial.ROOTS:
            return ""
        try:
            with urllib.request.urlopen(f"{UBUNTU}/{KEYS[0]}", timeout=60) as answer:
                content = answer.read()
        except OSError as error:
            self.skipTest(f"{UBUNTU} cannot be reached: {error}")
        self.assertEqual(hashlib.sha256(content).hexdigest(), KEYS[1], KEYS[0])
        path = os.path.join(folder, "keys.deb")
        with open(path, "wb") as file:
            file.write(content)
        run("dpkg-deb", "-x", path, os.path.join(folder, "keys"))
        return os.path.join(folder, "keys/usr/share/keyrings/ubuntu-archive-keyring.gpg")

    @needs("Xvfb", "xdotool", "dpkg-deb")
    def test_the_tar_gz_and_the_wheel_on_ubuntu_22_04(self):
        self.try_on("jammy", "python3.10")

    @needs("Xvfb", "xdotool", "dpkg-deb")
    def test_the_tar_gz_and_the_wheel_on_ubuntu_24_04(self):
        self.try_on("noble", "python3.12")
