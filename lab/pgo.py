"""Build the wheel by a profile of a few runs, or `make wheel-pgo`: into dist.

The crates of this workspace are built twice, as one unit each: first so that they count what they
do, then by the counts of the runs below. What they link with is built once, as always. The plain
wheel is that of `make wheel`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target" / "pgo")).resolve()
WORK = TARGET / "profile"
WRAPPER = WORK / "rustc"
"""Gives the compiler of this workspace's crates the flags of FLAGS; the others get none."""
FLAGS = "AQMLAB_PGO_FLAGS"
WRAPPED = f'#!/bin/sh\nexec "$@" -Ccodegen-units=1 ${FLAGS}\n'

_RED = '{kind = "red", min_th = "40 packets", max_th = "120 packets", limit = "240 packets"}'
RUNS = (
    ("web-100mbit", ()),
    ("web-100mbit", (f"topology.bottleneck.discipline={_RED}",)),
    ("web-100mbit", ("topology.bottleneck.discipline=codel",)),
    ("web-100mbit", ("topology.bottleneck.discipline=fq-codel",)),
    ("web-100mbit", ("topology.bottleneck.discipline=pie",)),
    ("web-100mbit", ('traffic.web.tcp={profile = "rfc", recovery = "sack", ecn = true}',)),
    ("web-1gbit", ("measure.duration=1 s",)),
    ("bulk-50", ("measure.duration=20 s",)),
)
"""What is profiled: a scenario of scenarios/bench, and settings."""


Command = Callable[[Path, Sequence[str], Path], list[str | Path]]
"""The command that runs a scenario with some settings into a directory."""


def main() -> None:
    """Builds, profiles, builds again."""
    parser = argparse.ArgumentParser(description="Builds the wheel by a profile of some runs.")
    parser.add_argument(
        "--runner", action="store_true", help="the runner of `make bench` in its place"
    )
    build = _runner if parser.parse_args().runner else _wheel
    profdata = _profdata()
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "counts").mkdir(parents=True)
    WRAPPER.write_text(WRAPPED, encoding="utf-8")
    WRAPPER.chmod(0o755)
    command = build(f"-Cprofile-generate={WORK / 'counts'}", WORK / "counting")
    for number, (scenario, settings) in enumerate(RUNS):
        file = ROOT / "scenarios" / "bench" / f"{scenario}.toml"
        short = ("measure.warm_up=1 s", "measure.duration=5 s", *settings)
        _run(command(file, short, WORK / "runs" / f"{number}"))
    merged = WORK / "merged.profdata"
    _run([profdata, "merge", "-o", merged, WORK / "counts"])
    build(f"-Cprofile-use={merged}", ROOT / "dist")
    print("wheel-pgo: in dist")


def _profdata() -> Path:
    """The tool that merges counts: it comes with the compiler, if asked for."""
    answer = subprocess.check_output(["rustc", "-vV"], cwd=ROOT, text=True)
    [host] = [line.split()[1] for line in answer.splitlines() if line.startswith("host:")]
    root = subprocess.check_output(["rustc", "--print", "sysroot"], cwd=ROOT, text=True).strip()
    tool = Path(root) / "lib" / "rustlib" / host / "bin" / "llvm-profdata"
    if not tool.exists():
        sys.exit(
            "wheel-pgo: NOT BUILT: llvm-profdata of this compiler is not installed "
            "(rustup component add llvm-tools); `make wheel` needs none"
        )
    return tool


def _wheel(flags: str, out: Path) -> Command:
    """Builds the wheel into a folder; this workspace's crates get some flags."""
    _clean()
    shutil.rmtree(out, ignore_errors=True)
    binaries = ROOT / ".venv" / "bin"
    _run([binaries / "maturin", "build", "--release", "--quiet", "--out", out], flags=flags)
    [wheel] = out.glob("*.whl")
    site = WORK / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)

    def command(file: Path, settings: Sequence[str], directory: Path) -> list[str | Path]:
        own: list[str | Path] = [
            "env",
            f"PYTHONPATH={site}",
            binaries / "python",
            "-m",
            "aqmlab",
            "run",
            file,
        ]
        changes = [word for setting in settings for word in ("--set", setting)]
        return [*own, *changes, "--json", "--out", directory]

    return command


def _runner(flags: str, out: Path) -> Command:
    """The same with the runner that `make bench` measures."""
    _clean()
    example = ["--package", "aqmlab-sim", "--example", "run"]
    _run(["cargo", "build", "--release", "--locked", *example], flags=flags)
    out.mkdir(exist_ok=True)
    runner = shutil.copy(TARGET / "release" / "examples" / "run", out / "run")
    return lambda file, settings, directory: [runner, file, *settings, directory]


def _clean() -> None:
    """Removes what was built of this workspace: cargo does not know of the flags."""
    answer = subprocess.check_output(
        ["cargo", "metadata", "--no-deps", "--locked", "--format-version=1"], cwd=ROOT, text=True
    )
    for package in json.loads(answer)["packages"]:
        _run(["cargo", "clean", "--quiet", "--release", "--package", package["name"]])


def _run(command: Sequence[str | Path], flags: str = "") -> None:
    """Runs a command; what it says is shown, except its results."""
    own = {
        "CARGO_TARGET_DIR": os.fspath(TARGET),
        "RUSTC_WORKSPACE_WRAPPER": os.fspath(WRAPPER),
        FLAGS: flags,
        "VIRTUAL_ENV": os.fspath(ROOT / ".venv"),
        "PIP_QUIET": "1",
    }
    environment = {**os.environ, **own}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        sys.exit(f"wheel-pgo: {' '.join(map(str, command))}: status {done.returncode}")


if __name__ == "__main__":
    main()
