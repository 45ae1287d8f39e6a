"""Sweeps of thousands of runs: what is read and held does not grow faster than it must."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from array import array
from pathlib import Path

import aqmlab as package
import pyarrow as pa
import pytest
from aqmlab import Run, Scenario, _native
from aqmlab._util.pool import Shares
from aqmlab.engine.kept import KNOWN, Kept
from aqmlab.engine.store import Store
from aqmlab.results.metrics import flattened
from aqmlab.results.numbers import Numbers, layout_of
from aqmlab.results.statistics import estimate
from aqmlab.sweeps.results import _number_arrays
from conftest import SMALL
from test_sweep import SWEEP, Listener, digest


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep that was run."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.toml").write_text(SMALL)
    (folder / "limits.toml").write_text(SWEEP)
    package.sweep(folder / "limits.toml", jobs=1, out=folder / "out", store=folder / "store")
    return folder


@pytest.fixture
def done(finished: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A copy of that sweep, which knows its runs; the runs that are opened from here on."""
    shutil.copytree(finished, elsewhere, dirs_exist_ok=True)
    package.sweep("limits.toml", jobs=1, out="out", store="store")
    opened: list[Path] = []
    open_run = vars(Run)["open"].__func__

    def noted(cls: type[Run], path: Path) -> Run:
        opened.append(path)
        found: Run = open_run(cls, path)
        return found

    monkeypatch.setattr(Run, "open", classmethod(noted))
    return opened


def test_a_sweep_with_nothing_to_do_opens_no_run(done: list[Path]) -> None:
    before = digest("out")
    listener = Listener()
    package.sweep("limits.toml", jobs=1, out="out", store="store", progress=listener)
    assert (done, listener.made) == ([], [])
    assert digest("out") == before
    package.sweep("limits.toml", jobs=1, out="out", store="store", verify=True)
    assert len(done) == 8


def test_only_what_has_changed_is_opened(done: list[Path]) -> None:
    file = sorted(Path("store").glob("??/*/summary.json"))[3]
    file.touch()
    for opened in (1, 0):
        package.sweep("limits.toml", jobs=1, out="out", store="store")
        assert len(done) == opened
        done.clear()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "remove", "text", "pipe"])
def test_without_what_is_known_all_runs_are_opened(done: list[Path], damage: str) -> None:
    before, file = digest("out"), Path("out", KNOWN)
    content = file.read_bytes()
    if damage in ("remove", "pipe"):
        file.unlink()
        if damage == "pipe":
            os.mkfifo(file)
    else:
        middle = len(content) // 2
        file.write_bytes(
            {
                "flip": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
                "cut": content[:middle],
                "empty": b"",
                "text": b"nothing",
            }[damage]
        )
    package.sweep("limits.toml", jobs=1, out="out", store="store")
    assert len(done) == 8
    assert digest("out") == before


def test_what_another_version_knew_is_not_taken(
    done: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aqmlab.engine.kept._FORMAT", 0)
    package.sweep("limits.toml", jobs=1, out="out", store="store")
    assert len(done) == 8


def test_the_numbers_of_a_run_take_little_room(done: list[Path]) -> None:
    runs = [Run.open(path) for path in sorted(Path("store").glob("??/*"))]
    numbers = [Numbers.of(run) for run in runs]
    # A number that a run lacks makes its layout different.
    layouts = [each.layout for each in numbers]
    assert len(set(map(id, layouts))) == len(set(layouts)) < len(runs)
    first = runs[0]
    assert numbers[0].values.itemsize * len(numbers[0].values) < 4096
    for name, value in flattened(first.summary).items():
        assert numbers[0].get(name) == value
        assert type(numbers[0].get(name)) is type(value)
    assert numbers[0].get("no.such.number") is None
    kept, store = Kept(Path("out")), Store(Path("store"))
    key = str(first.metadata["key"])
    done.clear()
    found = kept.find(key, store)
    assert found is not None
    assert found.layout is numbers[0].layout
    assert found.values.tobytes() == numbers[0].values.tobytes()
    assert done == []
    kept.note(key, "what the files of another run are", numbers[1])
    found = kept.find(key, store)
    assert found is not None
    assert done == [first.path]
    assert found.values.tobytes() == numbers[0].values.tobytes()


def test_what_is_known_of_runs_is_written_as_it_lies(tmp_path: Path) -> None:
    """A sweep is at its largest as it ends: no number becomes an object then."""
    runs, layout = 3000, layout_of(tuple(f"number {place}" for place in range(200)), bytes(200))
    kept = Kept(tmp_path)
    for number in range(runs):
        numbers = Numbers(layout, array("d", range(number, number + 200)))
        kept.note(f"{number:032x}", "signed", numbers)
    usual, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        kept.write()
    finally:
        pa.set_memory_pool(usual)
    assert counted.max_memory() < runs * len(layout.names) * 8
    assert Kept(tmp_path)._found == kept._found


def test_a_sweep_needs_no_frames() -> None:
    """What draws and reports is not loaded: 27 MB in the process of a sweep and its workers."""
    command = "import sys, aqmlab.cli.commands.sweep, aqmlab.sweeps.summary; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", command], capture_output=True, check=True)
    assert not {b"polars", b"matplotlib", b"scipy"} & set(said.stdout.split())


def test_progress_is_added_up_in_one_step() -> None:
    shares: list[float] = []
    total = Shares(3, shares.append)
    for index, done in ((0, 0.1), (0, 0.7), (1, 0.3), (0, 1.0), (2, 1.0), (1, 1.0)):
        total(index, done)
    assert shares[-1] == 1.0
    assert shares[1] == pytest.approx(0.7 / 3)


def test_another_seed_is_the_same_scenario_with_another_seed() -> None:
    text = SMALL.replace("Small fetches", "seed = 3\\nseed = 4").replace(
        "[measure]", "seed = 7\n[measure]", 1
    )
    scenario = Scenario.from_toml(text)
    assert scenario.seed == 7
    for seed in (0, 1, 2**63 - 1):
        quick, slow = scenario.with_seed(seed), scenario.with_overrides({"seed": seed})
        assert (quick.effective, quick.key, quick.seed) == (slow.effective, slow.key, seed)
        assert quick == slow
        assert quick.title == scenario.title
    assert scenario.seed == 7
    with pytest.raises(package.ScenarioError, match="seed"):
        scenario.with_seed(-1)


def test_runs_that_differ_in_their_seed_alone_share_the_rest(tmp_path: Path) -> None:
    """What a report reads of thousands of runs is parsed once for each configuration."""
    short = {"measure.warm_up": "0 s", "measure.duration": "1 s"}
    scenario = Scenario.from_toml(SMALL).with_overrides(short)
    seeds = (3, 4, 2**62)
    runs = [Store(tmp_path).run(scenario.with_seed(seed)) for seed in seeds]
    for seed, run in zip(seeds, runs, strict=True):
        text = (run.path / "scenario.toml").read_text()
        assert run.scenario == json.loads(_native.to_json(text))
        assert run.seed == seed
    assert runs[0].scenario["topology"] is runs[1].scenario["topology"]


@pytest.mark.usefixtures("done")
def test_runs_share_what_their_numbers_are_called() -> None:
    first, second = (Run.open(path) for path in sorted(Path("store").glob("??/*"))[:2])
    for one, other in zip(first.summary, second.summary, strict=True):
        assert one is other
    forward = (run.summary["links"]["bottleneck"]["forward"] for run in (first, second))
    assert len({id(key) for link in forward for key in link}) == len(
        first.summary["links"]["bottleneck"]["forward"]
    )


def test_an_estimate_is_made_once_of_the_same_numbers() -> None:
    numbers = [1.0, 2.5, 4.0, 3.0, 2.0, 5.5, 1.5, 2.25]
    first = estimate(numbers)
    assert estimate(tuple(numbers)) is first
    assert estimate([*numbers[1:], numbers[0]]) is not first
    assert estimate(numbers, 0.9).half_width < first.half_width


def test_columns_hold_the_numbers_of_every_run() -> None:
    """Runs whose layouts differ share columns; one that failed has none of the numbers."""
    names = ("whole", "links.a.b.c", "mixed", "never")
    runs = [
        Numbers(layout_of(names, bytes([1, 0, 1, 0])), array("d", [3, 0.5, 7, math.nan])),
        None,
        Numbers(layout_of(names[:3], bytes([1, 0, 0])), array("d", [2**53, math.nan, 0.25])),
        Numbers(layout_of(names[1:], bytes([0, 1, 0])), array("d", [1e-300, math.nan, math.nan])),
    ]
    columns = _number_arrays(runs)
    assert [*columns] == ["mixed", "never", "whole", "links.a.b.c"]
    for name, column in columns.items():
        wanted = [None if numbers is None else numbers.get(name) for numbers in runs]
        assert column.to_pylist() == wanted
    kinds = {name: str(column.type) for name, column in columns.items()}
    assert kinds == {
        "mixed": "double",
        "never": "double",
        "whole": "int64",
        "links.a.b.c": "double",
    }
