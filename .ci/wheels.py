"""Wheels of several Linux systems, cross-built by zig: `make wheels` and `make test-wheels`.

`build` makes a wheel for each platform that is named. `try` looks at what each says of itself and
at what its library links with; then it runs it, where there is a Python of its system: this
machine's own, or one that `make foreign` made. A run must give the pinned bytes of tests/pinned.
No Python for musl is to be had here: what such a library asks for is compared with the symbols of
musl. What was not done is said.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

from foreign import launcher, libc, split
from wheel import PINNED, check_pinned, run, size

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
LIBRARY = "aqmlab/_native.abi3.so"
MB = 1e6
GLIBC = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libgcc_s.so.1"}
"""Libraries that a wheel for glibc may need; the loader comes on top."""


def triple(tag: str) -> str:
    """What Rust calls the system of a platform."""
    musl, processor = split(tag)
    return f"{processor}-unknown-linux-{'musl' if musl else 'gnu'}"


def ours(tag: str) -> bool:
    """Whether this machine's own Python takes wheels of a platform."""
    answer = subprocess.check_output(
        [sys.executable, "-m", "pip", "debug", "--verbose"], stderr=subprocess.DEVNULL, text=True
    )
    return f"-{tag}\n" in answer


def add_target(name: str) -> None:
    """Has rustup install what the compiler needs for a system; ends if it is not there."""
    said = "no rustup on the PATH"
    if shutil.which("rustup") is not None:
        command = ["rustup", "--quiet", "target", "add", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = done.stderr.splitlines()
        said = next((line for line in lines if line.startswith("error")), "rustup added nothing")
    sysroot = subprocess.check_output(["rustc", "--print", "sysroot"], cwd=ROOT, text=True).strip()
    if not (Path(sysroot) / "lib/rustlib" / name).is_dir():
        sys.exit(
            f"wheels: Rust has no target {name} ({said}); rustup target add {name} installs it"
        )


def build(tags: Sequence[str]) -> None:
    """Makes the wheels, each in place of an earlier one."""
    DIST.mkdir(exist_ok=True)
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        # maturin asks the first Python of the path for zig.
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "PIP_QUIET": "1",
        "CARGO_INCREMENTAL": "0",
    }
    for tag in tags:
        for old in DIST.glob(f"aqmlab-*-{tag}.whl"):
            old.unlink()
        add_target(triple(tag))
        _, processor = split(tag)
        began = time.monotonic()
        command: list[str | Path]
        command = [binaries / "maturin", "build", "--release", "--quiet", "--zig", "--out", DIST]
        command += ["--target", triple(tag), "--compatibility", tag.removesuffix(f"_{processor}")]
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        if done.returncode:
            sys.exit(f"wheels: {tag}: maturin: status {done.returncode}")
        print(f"wheels: {tag}: built in {time.monotonic() - began:.0f} s", flush=True)


def form(wheel: Path, tag: str) -> str:
    """What a wheel's library asks of its system, in words; ends if its tag does not allow that."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        [about] = [name for name in names if name.endswith(".dist-info/WHEEL")]
        tags = re.findall(r"^Tag: (\S+)$", archive.read(about).decode(), re.MULTILINE)
        libraries = [name for name in names if re.search(r"\.so(\.|$)", name)]
        library = archive.extract(LIBRARY, folder)
        shown = _readelf("--file-header", "--dynamic", "--version-info", library)
        unknown = foreign_symbols(library, tag)
    if [name.rpartition("-")[2] for name in tags] != [tag]:
        sys.exit(f"wheels: {wheel.name}: its tags are {', '.join(tags)}")
    if libraries != [LIBRARY]:
        sys.exit(f"wheels: {wheel.name}: holds the libraries {', '.join(libraries)}")
    musl, processor = split(tag)
    machines = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
    if not re.search(rf"Machine: +{machines[processor]}$", shown, re.MULTILINE):
        sys.exit(f"wheels: {wheel.name}: its library is of another processor")
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", shown))
    versions = {
        (int(major), int(minor)) for major, minor in re.findall(r"\bGLIBC_(\d+)\.(\d+)", shown)
    }
    if musl:
        allowed, newest = {"libc.so"}, (0, 0)
    else:
        series = re.match(r"manylinux_(\d+)_(\d+)_", tag)
        assert series is not None
        loader = "ld-linux-x86-64.so.2" if processor == "x86_64" else "ld-linux-aarch64.so.1"
        allowed, newest = {*GLIBC, loader}, (int(series[1]), int(series[2]))
    if needed - allowed:
        sys.exit(f"wheels: {wheel.name}: needs {', '.join(sorted(needed - allowed))}")
    if max(versions, default=(0, 0)) > newest:
        sys.exit(f"wheels: {wheel.name}: needs glibc {'.'.join(map(str, max(versions)))}")
    if unknown:
        sys.exit(f"wheels: {wheel.name}: musl has no {', '.join(unknown)}")
    text = f"{wheel.stat().st_size / MB:.1f} MB, needs {', '.join(sorted(needed))}"
    if musl:
        known = "which has all its symbols" if libc(tag).exists() else "whose SYMBOLS WERE NOT READ"
        return f"{text}, {known}"
    return f"{text}, glibc {'.'.join(map(str, max(versions)))}"


def foreign_symbols(library: str, tag: str) -> list[str]:
    """What a library asks for that neither Python nor the musl of `make foreign` has."""
    if not libc(tag).exists():
        return []
    asked, _ = _symbols(library)
    _, given = _symbols(str(libc(tag)))
    return sorted(name for name in asked - given if not name.startswith(("Py", "_Py")))


def _symbols(library: str) -> tuple[set[str], set[str]]:
    """The symbols that a library asks for, and those that it gives; what is weak may lack."""
    rows = re.findall(
        r"^ *\d+: \S+ +\S+ +\S+ +(GLOBAL|WEAK) +\S+ +(\S+) ([^\s@]+)",
        _readelf("--dyn-syms", library),
        re.MULTILINE,
    )
    asked = {name for binding, where, name in rows if where == "UND" and binding == "GLOBAL"}
    return asked, {name for _, where, name in rows if where != "UND"}


def _readelf(*arguments: str) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.check_output(["readelf", "--wide", *arguments], env=environment, text=True)


def installed(wheel: Path, tag: str, folder: Path) -> list[str] | None:
    """An environment with nothing but a wheel and what it needs: the command of its Python."""
    constraint = ["--constraint", str(ROOT / "requirements.txt")]
    quiet = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    if ours(tag):
        venv.create(folder, with_pip=True)
        python = str(folder / "bin" / "python")
        subprocess.run([python, *quiet, *constraint, wheel], check=True)
        return [python]
    foreign = launcher(tag)
    if not foreign.exists():
        return None
    version = "import sys; print('%d.%d' % sys.version_info[:2])"
    version = subprocess.check_output([foreign, "-c", version], text=True).strip()
    # Packages of that system, by this machine's pip.
    _, processor = split(tag)
    series = [f"manylinux_2_{minor}" for minor in range(28, 16, -1)] + ["manylinux2014"]
    platforms = [f"--platform={name}_{processor}" for name in series]
    only = ["--only-binary=:all:", "--implementation=cp", f"--python-version={version}"]
    there = ["--target", str(folder), str(wheel)]
    command = [sys.executable, *quiet, *constraint, *platforms, *only, *there]
    subprocess.run(command, check=True)
    return ["env", f"PYTHONPATH={folder}", str(foreign)]


def first_steps(python: Sequence[str], tag: str, work: Path) -> str:
    """The first steps, the pinned run and the Python interface; gives a hash of quickstart's."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(work), "LANG": "C.UTF-8"}

    def step(*words: str | Path) -> None:
        run([*python, *words], work, environment, f"wheels: {tag}")

    began = time.monotonic()
    step("-m", "aqmlab", "--version")
    step("-m", "aqmlab", "run", PINNED / "scenario.toml", "--out", "pinned")
    check_pinned(work / "pinned", f"wheels: {tag}")
    step("-m", "aqmlab", "run", "scenarios/quickstart.toml", "--out", "quickstart")
    step("-m", "aqmlab", "show", "quickstart")
    step("-m", "aqmlab", "compare", "pinned", "quickstart", "--no-figure")
    step("-c", "import aqmlab; assert aqmlab.Run.open('quickstart').responses.num_rows > 1000")
    files = sorted((work / "quickstart").glob("*.parquet"))
    files.append(work / "quickstart" / "summary.json")
    value = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    print(f"wheels: {tag}: pinned bytes are the same; quickstart {value}; ", end="")
    print(f"steps took {time.monotonic() - began:.0f} s", flush=True)
    return value


def attempt(tags: Sequence[str]) -> None:
    """Tries the wheels of some platforms."""
    values = {}
    for tag in tags:
        found = [*DIST.glob(f"aqmlab-*-{tag}.whl")]
        if len(found) != 1:
            sys.exit(f"wheels: {tag}: {DIST} holds {len(found)} such wheels; make wheels makes one")
        [wheel] = found
        print(f"wheels: {wheel.name}: {form(wheel, tag)}", flush=True)
        with tempfile.TemporaryDirectory(prefix="aqmlab-wheels-") as name:
            work = Path(name) / "work"
            work.mkdir()
            packages = Path(name) / "environment"
            python = installed(wheel, tag, packages)
            if python is None:
                print(f"wheels: {tag}: WAS NOT RUN: there is no Python for it", flush=True)
                continue
            print(f"wheels: {tag}: an environment takes {size(packages) / MB:.0f} MB", flush=True)
            values[tag] = first_steps(python, tag, work)
    if len(set(values.values())) > 1:
        sys.exit("wheels: quickstart gives other bytes elsewhere")


def main() -> None:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Builds wheels of several systems, tries them.")
    parser.add_argument("what", choices=("build", "try"))
    parser.add_argument("platforms", nargs="+", help="such as manylinux_2_28_aarch64")
    arguments = parser.parse_args()
    (build if arguments.what == "build" else attempt)(arguments.platforms)


if __name__ == "__main__":
    main()
