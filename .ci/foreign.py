"""Parts of other systems, to check wheels with: `make foreign`, on Debian and Ubuntu.

Each goes to a folder in target/foreign, named after the platform of its wheels. Nothing is
installed: apt works in a folder of its own, with the machine's sources.

glibc of another processor: the distribution's Python, unpacked, with a launcher `python` that runs
it in qemu's user emulation (qemu-user-static). musl: the distribution's libc, whose symbols are
those that a library may ask for.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from wheel import run

ROOT = Path(__file__).resolve().parent.parent
FOREIGN = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "foreign"
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
"""What Debian calls a processor."""


def launcher(tag: str) -> Path:
    """The interpreter for wheels of a platform, once it is made."""
    return FOREIGN / tag / "python"


def libc(tag: str) -> Path:
    """The musl for wheels of a platform, once it is there."""
    return FOREIGN / tag / "root" / "lib" / f"ld-musl-{split(tag)[1]}.so.1"


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
        }
        file = folder / "apt.conf"
        file.write_text("".join(f'{key} "{value}";\n' for key, value in options.items()))
        self.folder = folder
        self.environment = {**os.environ, "APT_CONFIG": str(file)}
        # A source that has nothing for this processor is no reason to stop.
        subprocess.run(
            ["apt-get", "--quiet=2", "update"],
            env=self.environment,
            stderr=subprocess.DEVNULL,
            check=False,
        )

    def __call__(self, *command: str) -> None:
        """Runs apt-get."""
        run(["apt-get", "--quiet=2", *command], self.folder, self.environment, "foreign")

    def python(self) -> str:
        """The version of the distribution's Python, as in 3.11."""
        command = ["apt-cache", "show", "--no-all-versions", "python3"]
        shown = subprocess.check_output(command, env=self.environment, text=True)
        [version] = re.findall(r"^Version: (3\.\d+)", shown, re.MULTILINE)
        return str(version)


def unpack(packages: Path, root: Path) -> None:
    """Unpacks Debian packages."""
    for package in sorted(packages.glob("*.deb")):
        run(["dpkg-deb", "--extract", package, root], packages, os.environ, "foreign")


def python(folder: Path, processor: str) -> list[str | Path]:
    """The distribution's Python; gives the command that starts it."""
    apt = Apt(folder / "apt", processor)
    apt("install", "--download-only", "--yes", "--no-install-recommends", "python3", "libstdc++6")
    root = folder / "root"
    unpack(folder / "apt/cache/archives", root)
    return [*emulator(processor), "-L", root, root / f"usr/bin/python{apt.python()}"]


def main() -> None:
    """Makes what is missing."""
    parser = argparse.ArgumentParser(description="Fetches parts of other systems.")
    parser.add_argument("platforms", nargs="+", help="such as manylinux_2_28_aarch64")
    for tag in parser.parse_args().platforms:
        musl, processor = split(tag)
        file = libc(tag) if musl else launcher(tag)
        if file.exists() or (not musl and processor == platform.machine()):
            continue
        folder = FOREIGN / tag
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if musl:
            apt = Apt(folder / "apt", processor)
            apt("download", "musl")
            unpack(folder / "apt", folder / "root")
        else:
            command = python(folder, processor)
            words = " ".join(f"'{word}'" for word in command)
            file.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            file.chmod(0o755)
            run([file, "-c", "import ssl, ctypes"], folder, os.environ, "foreign")
        shutil.rmtree(folder / "apt")
        print(f"foreign: {file}", flush=True)


if __name__ == "__main__":
    main()
