"""Power failures: whatever was not synced may be gone, and nothing that is there is wrong."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import aqmlab as package
import power
import pytest
from aqmlab import Run
from aqmlab.engine import schedulers
from aqmlab.engine.store import Store
from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Scenario
from aqmlab.sweeps.results import Results
from conftest import SMALL

POINTS = 100
"""Failures at random points of two sweeps."""

SWEEP = """
scenario = "small.toml"
seeds = "1..{seeds}"
set = {{ "measure.warm_up" = "0 s", "measure.duration" = "1 s" }}
[[axes]]
field = "topology.bottleneck.discipline.limit"
name = "limit"
values = ["5 packets", "10 packets"]
"""

RECORDED = """
import os
import sys
from pathlib import Path

import aqmlab
from aqmlab.engine.commit import RunCommit

take = RunCommit._taken


def reported(self, key):
    with open("reported", "a") as file:
        file.write(key + "\\n")
    return take(self, key)


RunCommit._taken = reported
for name in ("first", "second"):
    aqmlab.sweep(Path("..") / f"{name}.toml", jobs=2, out="sweep", store="store", progress=False)
    with open("reported", "a") as file:
        file.write(name + "\\n")
"""
"""Makes two sweeps, and writes down which run and which sweep was reported as finished."""


@dataclass(frozen=True)
class Recorded:
    """Two sweeps, one after the other, and everything that they did to files."""

    root: Path
    acts: Sequence[power.Act]
    tables: dict[str, bytes]
    """`results.parquet` of each."""


@pytest.fixture(scope="module")
def recorded(syscalls: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("power").resolve()
    (folder / "small.toml").write_text(SMALL)
    (folder / "first.toml").write_text(SWEEP.format(seeds=2))
    (folder / "second.toml").write_text(SWEEP.format(seeds=3))
    (folder / "root").mkdir()
    environment = {
        **os.environ,
        "LD_PRELOAD": str(syscalls),
        "AQMLAB_TEST_LOG": str(folder / "log"),
        "AQMLAB_TEST_ROOT": str(folder / "root"),
    }
    command = [sys.executable, "-c", RECORDED]
    subprocess.run(command, cwd=folder / "root", env=environment, check=True)
    tables = {}
    for name in ("first", "second"):
        out = folder / f"wanted-{name}"
        package.sweep(folder / f"{name}.toml", jobs=1, out=out, store=folder / "root/store")
        tables[name] = (out / "results.parquet").read_bytes()
    return Recorded(folder / "root", [*power.acts((folder / "log").read_bytes())], tables)


class Here:
    """Makes runs in this process, as a worker does in its own."""

    jobs = 1

    def probe(self, scenarios: Sequence[Scenario]) -> list[float]:
        return [0.0 for _ in scenarios]

    def run(
        self,
        scenarios: Sequence[Scenario],
        store: Store,
        _progress: object,
        take: Callable[[Run], object],
    ) -> list[object]:
        return [take(store.run(scenario)) for scenario in scenarios]


def test_the_disk_gets_everything(recorded: Recorded, tmp_path: Path) -> None:
    """With nothing lost, a disk that recorded every act holds what was written."""
    disk = power.Disk(recorded.root)
    for act in recorded.acts:
        disk.do(act)
    for inode in [*disk._of]:
        disk._sync(disk._of[inode])
    copy = tmp_path / "copy"
    disk.fail(copy, random.Random(0))
    wanted = {path.relative_to(recorded.root) for path in recorded.root.rglob("*")}
    assert {path.relative_to(copy) for path in copy.rglob("*")} == wanted
    for path in wanted:
        if (recorded.root / path).is_file():
            assert (copy / path).read_bytes() == (recorded.root / path).read_bytes()


@pytest.mark.long
def test_nothing_reported_is_lost_and_nothing_wrong_is_read(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # this test's own files need not be safe
    monkeypatch.setattr(schedulers, "scheduler", lambda *_: nullcontext(Here()))
    chance = random.Random(1)
    kept = 0
    for number in range(POINTS):
        kept += fails(recorded, chance, tmp_path / str(number))
        shutil.rmtree(tmp_path / str(number))
    assert kept > POINTS, "the failures came too early to tell"


def fails(recorded: Recorded, chance: random.Random, folder: Path) -> int:
    """A failure at a random point, what is there then, and the sweep again; reported runs."""
    acts = recorded.acts[: chance.randrange(len(recorded.acts) + 1)]
    disk = power.Disk(recorded.root)
    reported = b""
    notes = {act.inode for act in recorded.acts if act.writes(recorded.root / "reported")}
    for act in acts:
        disk.do(act)
        if act.kind == "W" and act.inode in notes:
            reported += act.first
    disk.fail(folder / "root", chance)
    names = reported.decode().split()
    sweeps = [name for name in names if name in recorded.tables]
    runs = set(names) - set(sweeps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = Store(folder / "root/store", verify=True)
        for key in runs:
            found = store.find(key)
            assert found is not None, f"{key} was reported as finished, and is lost"
        for path in store.runs():
            run = store.opened(path, everything=True)
            for name in ("summary.json", "responses.parquet", "flows.parquet", "queue.parquet"):
                wanted = recorded.root / run.path.relative_to(folder / "root") / name
                assert (path / name).read_bytes() == wanted.read_bytes()
        results_are_right(recorded, folder / "root/sweep", sweeps)
        for name in recorded.tables:
            shutil.copy(recorded.root.parent / f"{name}.toml", folder)
        shutil.copy(recorded.root.parent / "small.toml", folder)
        out = folder / "root/sweep"
        package.sweep(folder / "second.toml", out=out, store=store.root, progress=False)
    assert (out / "results.parquet").read_bytes() == recorded.tables["second"]
    return len(runs)


def results_are_right(recorded: Recorded, folder: Path, reported: Sequence[str]) -> None:
    """A table that can be read is one that was written, and not an earlier one than reported."""
    try:
        results = Results.open(folder)
        table = results.table
    except AqmlabError:
        assert len(reported) != 1 or (folder / "results.parquet").is_file()
        assert len(reported) < 2, "a finished sweep is lost"
        return
    content = (folder / "results.parquet").read_bytes()
    allowed = [*recorded.tables.values()][max(0, len(reported) - 1) :]
    assert content in allowed
    assert table.num_rows == len(results.about["runs"])
