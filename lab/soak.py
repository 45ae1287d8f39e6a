"""Long and large work, with figures: `make soak`, or `.venv/bin/python -m lab.soak --help`.

Every case runs the command line in processes of its own, in a folder that goes when it is done, and
prints what each step took: time, processor time, and the most memory that the process itself had
(without its workers). Times depend on the machine; what a case promises of memory and of bytes
does not, and an hour of two cores is enough for all of them. A bound on time is held against the
time that passed or the processor time, whichever is less: other work on the machine is not counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
AQMLAB = [sys.executable, "-m", "aqmlab"]
MIB = 1 << 20
KILL_EVERY_S = 20.0
LEAST_KILLED = 10
"""Workers that are killed during the runs on a cluster, at full size."""

NETWORK = """
title = "{title}"

[measure]
warm_up = "{warm_up}"
duration = "{duration}"
queue_sample = "{sample}"
record = {record}

[topology]
kind = "dumbbell"

[topology.bottleneck]
rate = "{rate}"
discipline = {{ kind = "droptail", limit = "{limit} packets" }}
"""

FETCHES = """
[[traffic]]
name = "fetches"
kind = "poisson"
rate = "{per_s} /s"
request = {{ kind = "constant", size = "400 bytes" }}
response = {{ kind = "constant", size = "{size}" }}
rtt = {{ kind = "uniform", min = "20 ms", max = "100 ms" }}
"""

TRANSFERS = """
[[traffic]]
name = "transfers"
kind = "bulk"
flows = {flows}
start_within = "{within}"
rtt = {{ kind = "uniform", min = "20 ms", max = "100 ms" }}
"""

SWEEP = """
scenario = "scenario.toml"
seeds = "1..{seeds}"
baseline = {{ limit = 10 }}

[[axes]]
name = "limit"
range = {{ from = 10, to = {last}, step = 1 }}
set = {{ "topology.bottleneck.discipline.limit" = "$limit packets" }}
"""


@dataclass
class Step:
    """What a process took, and what it must not exceed."""

    case: str
    name: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    most_s: float | None = None
    most_mb: float | None = None
    failure: str | None = None

    @property
    def verdict(self) -> str:
        """Whether it kept its bounds."""
        if self.failure:
            return f"FAILED: {self.failure}"
        if self.most_s is not None and min(self.wall_s, self.cpu_s) > self.most_s:
            return f"TOO SLOW: {self.most_s:g} s are allowed"
        if self.most_mb is not None and self.peak_mb > self.most_mb:
            return f"TOO LARGE: {self.most_mb:g} MB are allowed"
        return "held"


class Soak:
    """The cases that are run, and what they took."""

    def __init__(self, scale: float) -> None:
        """`scale` makes all of them smaller, to try them."""
        self.scale = scale
        self.steps: list[Step] = []

    def number(self, full: int, least: int = 1) -> int:
        """A size at this scale."""
        return max(least, round(full * self.scale))

    def step(
        self,
        case: str,
        name: str,
        *command: object,
        most_s: float | None = None,
        most_mb: float | None = None,
    ) -> Step:
        """Runs a command of aqmlab and notes what it took."""
        found = Step(case, name, most_s=most_s, most_mb=most_mb)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        with Path("log.txt").open("ab") as log:
            process = subprocess.Popen(
                [*AQMLAB, *map(str, command)], stdout=log, stderr=subprocess.STDOUT
            )
            while (status := process.poll()) is None:
                found.peak_mb = max(found.peak_mb, peak_mb(process.pid))
                time.sleep(0.05)
        found.wall_s = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if status:
            last = Path("log.txt").read_text(errors="replace").strip().splitlines()[-1:]
            found.failure = f"status {status}: {' '.join(last)}"
        self.add(found)
        return found

    def add(self, step: Step) -> None:
        """Notes and prints a step."""
        self.steps.append(step)
        facts = ", ".join(f"{value:,} {name}" for name, value in step.facts.items())
        print(
            f"{step.case:<12} {step.name:<34} {step.wall_s:8.1f} s {step.cpu_s:8.1f} s CPU "
            f"{step.peak_mb:7.0f} MB  {step.verdict}{'; ' + facts if facts else ''}",
            flush=True,
        )


def peak_mb(process: int) -> float:
    """The most memory that a process has had so far, in MB; 0 if it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) * 1024 / 1e6 if lines else 0.0


def scenario(traffic: str, **network: object) -> None:
    """Writes ``scenario.toml``."""
    given = {"title": "Soak", "warm_up": "1 s", "record": "[]", "rate": "2 Mbit/s", "limit": 20}
    given |= {"sample": "100 ms"}
    Path("scenario.toml").write_text(NETWORK.format(**{**given, **network}) + traffic)


def summary() -> dict[str, Any]:
    """The summary of the run in ``run``."""
    found: dict[str, Any] = json.loads(Path("run/summary.json").read_text())
    return found


def million(soak: Soak) -> None:
    """A million connections that are open at the same time."""
    flows = soak.number(1_000_000)
    scenario(
        TRANSFERS.format(flows=flows, within="10 s"),
        rate="1 Gbit/s", limit=10000, warm_up="10 s", duration="10 s",
    )  # fmt: skip
    step = soak.step("million", f"{flows:,} connections", "run", "scenario.toml", "--out", "run")
    if step.failure is None:
        print(f"{'':<12} {summary()['events']:,} events", flush=True)


def month(soak: Soak) -> None:
    """Thirty simulated days at 1 Mbit/s."""
    hours = soak.number(30 * 24)
    scenario(
        FETCHES.format(per_s=8, size="10 kB"),
        rate="1 Mbit/s", duration=f"{hours} h", sample="1 min",
    )  # fmt: skip
    step = soak.step("month", f"{hours} h at 1 Mbit/s", "run", "scenario.toml", "--out", "run")
    if step.failure is None:
        print(f"{'':<12} {summary()['events']:,} events", flush=True)


def small_runs(seeds: int, points: int, **measure: object) -> int:
    """Writes a sweep of small runs; how many."""
    scenario(FETCHES.format(per_s=30, size="6 kB"), **{"duration": "5 s", **measure})
    Path("sweep.toml").write_text(SWEEP.format(seeds=seeds, last=9 + points))
    return seeds * points


def sweep(soak: Soak) -> None:
    """Five thousand small runs, the same again, and a report about them."""
    count = small_runs(soak.number(50, 2), 100)
    runs = f"{count:,} runs"
    soak.step("sweep", runs, "sweep", "sweep.toml", most_mb=200)
    soak.step("sweep", f"{runs}, nothing to do", "sweep", "sweep.toml", most_s=3, most_mb=200)
    soak.step(
        "sweep", f"report of {runs}", "report", "runs/sweeps/sweep", "-o", "report.html", most_s=15
    )
    size = Path("report.html")
    print(
        f"{'':<12} {size.stat().st_size / 1e6:.1f} MB of report" if size.is_file() else "",
        flush=True,
    )


def responses(soak: Soak) -> None:
    """A run with ten million responses, and its report."""
    seconds = soak.number(10_000)
    scenario(
        FETCHES.format(per_s=1000, size="2 kB"),
        rate="100 Mbit/s", limit=400, duration=f"{seconds} s", record='["responses", "queue"]',
    )  # fmt: skip
    soak.step("responses", f"{seconds * 1000:,} responses", "run", "scenario.toml", "--out", "run")
    count = summary()["responses"]["all"]["count"]
    soak.step(
        "responses", f"report of {count:,}", "report", "run", "-o", "report.html", most_mb=500
    )
    soak.step(
        "responses", f"picture of {count:,}", "plot", "cdf", "run", "-o", "cdf.svg", most_mb=500
    )


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cluster(soak: Soak) -> None:
    """Ten Dask workers, of which one is killed every 20 s: the same bytes as in our processes."""
    import distributed  # only this case needs it

    # An hour each: all of them take two free cores some four minutes, a dozen workers' lives.
    count = small_runs(20, soak.number(100, 2), duration="1 h", sample="10 s")
    runs = f"{count:,} runs"
    soak.step("cluster", f"{runs}, here", "sweep", "sweep.toml", "--out", "here", "--store", "a")
    with distributed.LocalCluster(
        n_workers=10, threads_per_worker=1, processes=True, dashboard_address=None,
        local_directory=os.fspath(Path.cwd() / "dask"),
    ) as made, killing(made) as killed:  # fmt: skip
        step = soak.step(
            "cluster", f"{runs}, ten workers", "sweep", "sweep.toml", "--out", "there",
            "--store", "b", "--scheduler", made.scheduler_address,
        )  # fmt: skip
    same = digest(Path("here/results.parquet")) == digest(Path("there/results.parquet"))
    bytes_ = "the same bytes" if same else "OTHER BYTES"
    print(f"{'':<12} {len(killed)} workers killed; {bytes_}", flush=True)
    step.facts["workers killed"] = len(killed)
    if not same:
        step.failure = "other results"
    elif soak.scale >= 1 and len(killed) < LEAST_KILLED:
        step.failure = f"only {len(killed)} workers were killed"


@contextmanager
def killing(made: Any) -> Iterator[list[int]]:  # noqa: ANN401 - a cluster
    """Kills one worker of a cluster every so often; their process numbers."""
    killed: list[int] = []
    ended = threading.Event()

    def kill() -> None:
        turn = 0
        while not ended.wait(KILL_EVERY_S):
            nannies = list(made.workers.values())
            process = nannies[turn % len(nannies)].pid
            turn += 1
            if process:
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


CASES: dict[str, Callable[[Soak], None]] = {
    "million": million,
    "month": month,
    "sweep": sweep,
    "responses": responses,
    "cluster": cluster,
}


def main() -> int:
    """Runs the cases that were asked for; 1 if one did not keep what it promises."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; default: all")
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the full sizes")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "soak.json", help="figures")
    options = parser.parse_args()
    soak = Soak(options.scale)
    for case in options.cases or CASES:
        folder = Path(tempfile.mkdtemp(prefix=f"aqmlab-soak-{case}-"))
        os.chdir(folder)
        try:
            CASES[case](soak)
        finally:
            os.chdir(ROOT)
            shutil.rmtree(folder, ignore_errors=True)
    about = {
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": {"system": platform.platform(), "cpus": os.cpu_count()},
        "scale": options.scale,
        "steps": [{**step.__dict__, "verdict": step.verdict} for step in soak.steps],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(about, indent=2) + "\n")
    print(f"figures: {options.out}")
    return int(any(step.verdict != "held" for step in soak.steps))


if __name__ == "__main__":
    sys.exit(main())
