"""Pythons of other systems, to try wheels with: `make foreign-pythons`, on Debian and Ubuntu.

Each gets a folder in target/foreign, named after the platform of its wheels, with a launcher
`python`. Nothing is installed: apt works in a folder of its own, with the machine's sources.

glibc: the distribution's own Python for that processor, unpacked. musl: the distribution's musl,
and CPython from the distribution's source package, compiled by zig without optional modules. What
is not of this machine's processor runs in qemu's user emulation (qemu-user-static).
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOREIGN = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "foreign"
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
"""What Debian calls a processor."""


def launcher(tag: str) -> Path:
    """The interpreter for wheels of a platform, once it is made."""
    return FOREIGN / tag / "python"


def split(tag: str) -> tuple[bool, str]:
    """Whether a platform such as musllinux_1_2_x86_64 is of musl, and its processor."""
    [processor] = [name for name in DEBIAN if tag.endswith(f"_{name}")]
    return tag.startswith("musllinux"), processor


def emulator(processor: str) -> list[str]:
    """What starts programs of a processor: nothing, if it is this one."""
    if processor == platform.machine():
        return []
    name = f"qemu-{processor}-static"
    if shutil.which(name) is None:
        sys.exit(f"foreign: {name} is not on the PATH (Debian: apt-get install qemu-user-static)")
    return [name]


class Apt:
    """The package manager with an empty state in a folder, for one processor."""

    def __init__(self, folder: Path, processor: str) -> None:
        for part in ("state/lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "state/status").touch()
        options = {
            "APT::Architecture": DEBIAN[processor],
            "APT::Architectures": DEBIAN[processor],
            "APT::Sandbox::User": "root",
            "Debug::NoLocking": "true",
            "Dir::Cache": folder / "cache",
            "Dir::State": folder / "state",
            "Dir::State::status": folder / "state/status",
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": folder / "sources.list.d",
        }
        file = folder / "apt.conf"
        file.write_text("".join(f'{key} "{value}";\n' for key, value in options.items()))
        self.folder = folder
        self.environment = {**os.environ, "APT_CONFIG": str(file)}
        _with_sources(folder)
        # A source that has nothing for this processor is no reason to stop.
        subprocess.run(
            ["apt-get", "--quiet=2", "update"],
            env=self.environment,
            stderr=subprocess.DEVNULL,
            check=False,
        )

    def __call__(self, *command: str) -> None:
        """Runs apt-get."""
        run(["apt-get", "--quiet=2", *command], self.folder, self.environment)

    def versions(self, *package: str) -> list[str]:
        """The versions of a package, the newest first."""
        command = ["apt-cache", *package]
        shown = subprocess.check_output(command, env=self.environment, text=True)
        return re.findall(r"^Version: (\S+)$", shown, re.MULTILINE)

    def python(self) -> str:
        """The version of the distribution's Python, as in 3.11."""
        [version] = self.versions("show", "--no-all-versions", "python3")
        return ".".join(version.split(".")[:2])

    def source(self, package: str) -> Path:
        """The archive of a package's source, in the folder: of the newest version that is there."""
        for version in self.versions("showsrc", package):
            command = ["apt-get", "--quiet=2", "source", "--download-only", f"{package}={version}"]
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            if done.returncode == 0:
                [archive] = self.folder.glob(f"{package}_*.orig.tar.*z*")
                return archive
        sys.exit(f"foreign: the sources of packages have no source of {package}")


def _with_sources(folder: Path) -> None:
    """The machine's sources of packages, each for source packages, too."""
    parts = folder / "sources.list.d"
    parts.mkdir(exist_ok=True)
    system = Path("/etc/apt")
    lists = [file for file in (system / "sources.list",) if file.exists()]
    for file in lists + sorted((system / "sources.list.d").glob("*.list")):
        text = file.read_text()
        text += "\n" + re.sub(r"^deb ", "deb-src ", text, flags=re.MULTILINE)
        (parts / file.name if file not in lists else folder / file.name).write_text(text)
    (folder / "sources.list").touch()
    for file in (system / "sources.list.d").glob("*.sources"):
        text = re.sub(r"^Types:.*$", "Types: deb deb-src", file.read_text(), flags=re.MULTILINE)
        (parts / file.name).write_text(text)


def run(command: Sequence[str | Path], folder: Path, environment: dict[str, str]) -> None:
    """Runs a command; what it says is shown if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        said = done.stdout[-4000:]
        sys.exit(f"foreign: {' '.join(map(str, command))}: status {done.returncode}\n{said}")


def unpack(packages: Path, root: Path) -> None:
    """Unpacks Debian packages."""
    for package in sorted(packages.glob("*.deb")):
        run(["dpkg-deb", "--extract", package, root], packages, dict(os.environ))


def with_glibc(folder: Path, processor: str) -> list[str | Path]:
    """The distribution's Python; gives the command that starts it."""
    apt = Apt(folder / "apt", processor)
    apt("install", "--download-only", "--yes", "--no-install-recommends", "python3", "libstdc++6")
    root = folder / "root"
    unpack(folder / "apt/cache/archives", root)
    return [*emulator(processor), "-L", root, root / f"usr/bin/python{apt.python()}"]


def with_musl(folder: Path, processor: str) -> list[str | Path]:
    """CPython that is linked with musl; gives the command that starts it."""
    apt = Apt(folder / "apt", processor)
    apt("download", "musl")
    root = folder / "root"
    unpack(folder / "apt", root)
    version = apt.python()
    archive = apt.source(f"python{version}")
    run(["tar", "--extract", "--file", archive, "--directory", folder], folder, dict(os.environ))
    [source] = folder.glob(f"Python-{version}.*")
    zig = f"{sys.executable} -m ziglang"
    building = shutil.which(f"python{version}")
    if building is None:
        sys.exit(f"foreign: no python{version} on the PATH, which CPython {version} is built with")
    environment = {
        **os.environ,
        "CC": f"{zig} cc -target {processor}-linux-musl -dynamic -O1 -g0 -s -Wno-date-time",
        "AR": f"{zig} ar",
        "RANLIB": f"{zig} ranlib",
        "PKG_CONFIG": "false",  # it would find this machine's libraries
        "READELF": shutil.which("readelf") or "readelf",
    }
    # What packages for musl are called there; CPython 3.13 and newer finds it out.
    configure = source / "configure"
    names = f"{processor}-linux-{{}}"
    configure.write_text(configure.read_text().replace(names.format("gnu"), names.format("musl")))
    options: list[str | Path] = [
        f"--host={processor}-unknown-linux-musl",
        f"--build={platform.machine()}-unknown-linux-gnu",
        f"--with-build-python={building}",
        f"--prefix={folder / 'usr'}",
        "--without-ensurepip",
        "--disable-test-modules",
        "ac_cv_file__dev_ptmx=yes",
        "ac_cv_file__dev_ptc=no",
        "ac_cv_buggy_getaddrinfo=no",
        # zig's musl is newer than that of distributions, which lacks them.
        "ac_cv_func_preadv2=no",
        "ac_cv_func_pwritev2=no",
    ]
    run([configure, *options], source, environment)
    run(["make", f"--jobs={os.cpu_count()}"], source, environment)
    run(["make", "install"], source, environment)
    shutil.rmtree(source)
    own = emulator(processor)
    loader = root / f"lib/ld-musl-{processor}.so.1"
    start: list[str | Path] = [*own, "-L", root] if own else [loader]
    return [*start, folder / f"usr/bin/python{version}"]


def main() -> None:
    """Makes those that are missing."""
    parser = argparse.ArgumentParser(description="Makes Pythons of other systems.")
    parser.add_argument("platforms", nargs="+", help="such as musllinux_1_2_x86_64")
    for tag in parser.parse_args().platforms:
        file = launcher(tag)
        musl, processor = split(tag)
        if file.exists() or (not musl and processor == platform.machine()):
            continue
        emulator(processor)
        shutil.rmtree(file.parent, ignore_errors=True)
        file.parent.mkdir(parents=True)
        command = (with_musl if musl else with_glibc)(file.parent, processor)
        shutil.rmtree(file.parent / "apt")
        words = " ".join(f"'{word}'" for word in command)
        file.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        file.chmod(0o755)
        answer = "import platform, sys; print(platform.machine(), sys.version.split()[0])"
        run([file, "-c", answer], file.parent, dict(os.environ))
        print(f"foreign: {file}", flush=True)


if __name__ == "__main__":
    main()
