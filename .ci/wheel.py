"""Check the wheel in dist, or one that is named (`make test-wheel`): it works without the checkout.

It is installed into an empty environment with the versions of requirements.txt; then come the first
steps of README.md, each in a folder that has nothing but what the steps before it left there. At
last RED in four ways, native, in Python, compiled by numba and in C, which must give the same
numbers: nobody needs Rust for a queue of one's own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
PINNED = ROOT / "tests" / "pinned"
MB = 1e6

STEPS = (
    "aqmlab --version",
    "aqmlab",
    "aqmlab init office.toml --kind office",
    "aqmlab run office.toml --set measure.warm_up=5s --set measure.duration=10s --out office",
    "aqmlab run scenarios/quickstart.toml",
    "aqmlab list scenarios",
    "aqmlab list papers",
    "aqmlab explain p50_s",
    "aqmlab evaluate codel --only a-base --seeds 1",
    "aqmlab report runs office -o report.html",
    "aqmlab report office -o report.pdf",
    "aqmlab reproduce christiansen2000 --quick",
    "aqmlab new discipline my-red",
    "aqmlab new discipline my-red-in-c --language c",
    "aqmlab new discipline my-red-in-rust --language rust",
    "aqmlab check my_red.py",
)
"""What a user may do who has the wheel alone."""
LEFT = (
    "office.toml",
    "report.html",
    "report.pdf",
    "out/reproduce",
    "my_red.py",
    "my_red_in_c.c",
    "aqmlab.h",
    "my_red_in_rust/src/aqmlab.rs",
)
"""What they leave."""
RED = 'min_th = "5 packets", max_th = "15 packets", limit = "60 packets"'
SHORT = ("--set", "measure.warm_up=0 s", "--set", "measure.duration=15 s")
COMPILE = "cc -O2 -shared -fPIC -ffp-contract=off -I. -o red.so red.c -lm"


def size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def run(
    command: Sequence[str | Path],
    folder: Path,
    environment: Mapping[str, str],
    who: str = "wheel",
) -> None:
    """Runs a command; if it fails, the end of what it says is shown and `who` stops."""
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
        said = f"status {done.returncode}\n{done.stdout[-4000:]}"
        sys.exit(f"{who}: {' '.join(map(str, command))}: {said}")


def step(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Runs a command and prints how long it took."""
    began = time.monotonic()
    run(command, folder, environment)
    print(f"wheel: {time.monotonic() - began:5.1f} s  {' '.join(command)}", flush=True)


def four_ways(work: Path, programs: Path, environment: dict[str, str]) -> None:
    """RED of tests/plugins in each way, with the installed header: the same numbers."""
    plugins = ROOT / "tests" / "plugins"
    text = (plugins / "red.py").read_text()
    (work / "red.py").write_text(text)
    compiled = text.replace("class Py", "@compiled\nclass Numba")
    known = "from aqmlab.plugins import"
    (work / "red_numba.py").write_text(compiled.replace(known, f"{known} compiled\n{known}", 1))
    ways = {"py-red": "red.py", "numba-red": "red_numba.py"}
    if shutil.which("cc", path=environment["PATH"]) is None:
        print("wheel: NO C PLUG-IN RAN: no compiler cc", flush=True)
    else:
        shutil.copy(plugins / "red.c", work)
        step(COMPILE.split(), work, environment)
        ways["c-red"] = "./red.so"
    command = [str(programs / "aqmlab"), "run", "scenarios/bulk.toml", *SHORT]
    place = "topology.bottleneck.forward.discipline"

    def summary(name: str, *more: str) -> str:
        step([*command, "--out", f"red-{name}", *more], work, environment)
        links = json.loads((work / f"red-{name}" / "summary.json").read_text())["links"]
        # A plug-in may always force a drop, so its counter is there.
        return json.dumps(links).replace('"forced": 0, ', "")

    native = summary("native", "--set", f'{place}={{ kind = "red", {RED} }}')
    for name, file in ways.items():
        queue = f'{{ kind = "plugin", name = "{name}", {RED} }}'
        if summary(name, "--plugin", file, "--set", f"{place}={queue}") != native:
            sys.exit(f"wheel: {name} gives other numbers than the native RED")
    print(f"wheel: RED is the same in {len(ways) + 1} ways: native, {', '.join(ways)}")


def fnv(data: bytes) -> str:
    """FNV-1a of 64 bits, as crates/sim/tests/world.rs computes it."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def check_pinned(made: Path, who: str) -> None:
    """Ends if the pinned run's files have other bytes."""
    for line in (PINNED / "hashes.txt").read_text().splitlines():
        value, _, name = line.split()
        found = fnv((made / name).read_bytes())
        if found != value:
            sys.exit(f"{who}: {name} of the pinned run is {found}, not {value}")


def check_playground(wheel: Path, work: Path, programs: Path, environment: dict[str, str]) -> None:
    """The page of the wheel is served; without one the command says so, and so does this check."""
    with zipfile.ZipFile(wheel) as archive:
        has_page = "aqmlab/shipped/playground/index.html" in archive.namelist()
    command = [str(programs / "aqmlab"), "playground", "--no-browser"]
    with subprocess.Popen(
        command,
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as served:
        try:
            assert served.stdout is not None
            address = served.stdout.readline().strip()
            if has_page:
                with urlopen(address) as page:
                    if b"<title>aqmlab playground" not in page.read():
                        sys.exit(f"wheel: {address} is not the playground")
                print("wheel: the playground is served")
            elif address:
                sys.exit("wheel: aqmlab playground serves a page that the wheel does not hold")
        finally:
            served.kill()
    if not has_page:
        print("wheel: THE PLAYGROUND IS NOT IN IT: make playground before make wheel", flush=True)


def not_shipped(wheel: Path) -> list[str]:
    """The files of scenarios, papers, suites and their baselines that a wheel lacks."""
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    files = subprocess.run(
        ["git", "ls-files", "scenarios", "papers", "python/aqmlab/cards"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.splitlines()
    shipped = {"python": "", "scenarios": "aqmlab/shipped/", "papers": "aqmlab/shipped/"}
    places = {
        name: shipped[name.partition("/")[0]] + name.removeprefix("python/") for name in files
    }
    return [name for name, place in places.items() if place not in inside]


def main() -> None:
    """Install and try it."""
    made = sorted(DIST.glob("aqmlab-*.whl"), key=lambda file: file.stat().st_mtime)
    wheels = [Path(name).resolve() for name in sys.argv[1:]] or made
    if not wheels:
        sys.exit(f"wheel: {DIST} holds none; make wheel makes it")
    wheel = wheels[-1]
    if lost := not_shipped(wheel):
        sys.exit(f"wheel: {wheel.name} lacks {', '.join(lost)}")
    with tempfile.TemporaryDirectory(prefix="aqmlab-wheel-") as name:
        place = Path(name)
        venv.create(place / "environment", with_pip=True)
        programs = place / "environment" / "bin"
        [packages] = (place / "environment" / "lib").glob("python*/site-packages")
        before = size(packages)
        # Nothing of the checkout, of its environment or of the user is seen.
        environment = {
            "PATH": f"{programs}:{os.defpath}",
            "HOME": name,
            "LANG": "C.UTF-8",
            **{key: value for key, value in os.environ.items() if key.lower().endswith("_proxy")},
            **{key: value for key, value in os.environ.items() if key.startswith("PIP_")},
        }
        pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        constraint = ["--constraint", str(ROOT / "requirements.txt")]
        work = place / "work"
        work.mkdir()
        step([*pip, "install", *constraint, f"{wheel}[figures]"], work, environment)
        for text in STEPS:
            step([str(programs / "aqmlab"), *text.split()[1:]], work, environment)
        missing = [left for left in LEFT if not (work / left).exists()]
        if missing:
            sys.exit(f"wheel: not written: {', '.join(missing)}")
        scenario = str(PINNED / "scenario.toml")
        command = [str(programs / "aqmlab"), "run", scenario, "--out", "pinned"]
        step(command, work, environment)
        check_pinned(work / "pinned", "wheel")
        print("wheel: the pinned run has its bytes")
        check_playground(wheel, work, programs, environment)
        installed = size(packages) - before
        dev = ["--constraint", str(ROOT / "requirements-dev.txt")]
        step([*pip, "install", *dev, "numba"], work, environment)
        four_ways(work, programs, environment)
    print(f"wheel: {wheel.name}: {wheel.stat().st_size / MB:.1f} MB; with all that it needs")
    print(f"wheel: an environment grows by {installed / MB:.0f} MB")


if __name__ == "__main__":
    main()
