"""Run directories: whole or absent, never overwritten, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.compute as pc
import pytest
from aqmlab import AqmlabError, Run, RunError, Scenario
from aqmlab._util import pool
from aqmlab.engine.execute import default_path, execute
from aqmlab.engine.parallel import execute_all
from aqmlab.results.labels import distinguish
from conftest import SMALL

LONG = [("measure.duration", "240 h")]


def hashes(run: Run) -> dict[str, str]:
    """What the files of a run contain, except those that say when and where it was made."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in run.path.iterdir()
        if file.name not in ("manifest.json", "metadata.json")
    }


def test_a_run_directory_holds_everything(tmp_path: Path) -> None:
    run = execute(Scenario.from_toml(SMALL), tmp_path / "run")
    assert sorted(file.name for file in run.path.iterdir()) == [
        "class_sojourn.parquet",
        "delay.parquet",
        "distribution.parquet",
        "flows.parquet",
        "manifest.json",
        "metadata.json",
        "queue.parquet",
        "responses.parquet",
        "scenario.toml",
        "sojourn.parquet",
        "summary.json",
    ]
    assert run.responses is not None
    assert run.flows is not None
    assert run.queue is not None
    assert run.responses.num_rows == run.summary["responses"]["all"]["count"] > 300
    assert run.flows.num_rows == run.summary["flows"]["all"]["count"]
    assert run.queue.column("direction").to_pylist().count("forward") == 200
    assert run.summary["measured_s"] == 20.0
    assert 0 < run.metadata["cpu_s"] <= run.metadata["wall_s"] + 0.05
    assert not {"cpu_s", "wall_s"} & set(run.summary)
    assert run.label == "droptail 20"
    assert Scenario.load(run.path / "scenario.toml").key == run.metadata["key"]


def test_the_same_scenario_gives_the_same_bytes(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SMALL)
    first, second = (execute(scenario, tmp_path / name) for name in ("first", "second"))
    assert hashes(first) == hashes(second)
    apart = {"manifest.json", "metadata.json"}
    assert set(hashes(first)) == {file.name for file in first.path.iterdir()} - apart
    assert {"scenario.toml", "summary.json", "responses.parquet"} < set(hashes(first))
    other = execute(scenario.with_overrides({"seed": 2}), tmp_path / "other")
    assert hashes(first)["responses.parquet"] != hashes(other)["responses.parquet"]


def fnv1a(content: bytes) -> int:
    """The 64-bit hash that the engine's own test takes."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def test_a_pinned_run_gives_its_pinned_bytes(tmp_path: Path) -> None:
    # The engine's tests run the same as a debug build.
    pinned = Path(__file__).parent / "pinned"
    run = execute(Scenario.load(pinned / "scenario.toml"), tmp_path / "run")
    files = sorted(run.path.glob("*.parquet"))
    contents = [(file.name, file.read_bytes()) for file in files]
    lines = [f"{fnv1a(content):016x} {len(content)} {name}\n" for name, content in contents]
    assert "".join(lines) == (pinned / "hashes.txt").read_text()


def test_only_what_the_scenario_asks_for_is_recorded(tmp_path: Path) -> None:
    run = execute(Scenario.from_toml(SMALL, [("measure.record", "[]")]), tmp_path / "run")
    assert (run.responses, run.flows, run.queue) == (None, None, None)
    assert run.distribution is not None
    assert sum(run.distribution.column("count").to_pylist()) > 0


def test_sojourn_times_of_links_are_those_of_their_classes(tmp_path: Path) -> None:
    pinned = Path(__file__).parent / "pinned"
    scenario = Scenario.load(pinned / "scenario.toml", [("measure.record", "[]")])
    run = execute(scenario, tmp_path / "run")
    assert run.sojourn is not None
    assert run.class_sojourn is not None
    for direction in ("forward", "reverse"):
        link = run.summary["links"]["bottleneck"][direction]
        classes = link["classes"]
        assert {"mah-web", "poisson"} <= set(classes)
        assert ("cbr" in classes) == (direction == "forward")
        counts = {name: of["left_packets"] for name, of in classes.items()}
        mean = sum(of["sojourn_mean_s"] * counts[name] for name, of in classes.items())
        assert mean / sum(counts.values()) == pytest.approx(link["sojourn_mean_s"])
        assert link["sojourn_max_s"] == max(of["sojourn_max_s"] for of in classes.values())
        for of in (link, *classes.values()):
            names = ("p50", "p90", "p95", "p99", "p999", "max")
            ranks = [of[f"sojourn_{name}_s"] for name in names]
            assert ranks == sorted(ranks)
        for table in (run.sojourn, run.class_sojourn):
            rows = table.filter(pc.equal(table["direction"], direction))
            assert sum(rows["count"].to_pylist()) == sum(counts.values())


def test_finished_runs_are_used_again_and_never_overwritten(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SMALL)
    first = execute(scenario, runs_root=tmp_path)
    stamp = (first.path / "summary.json").stat().st_mtime_ns
    again = execute(scenario, runs_root=tmp_path, reuse=True)
    assert again.path == first.path
    assert (again.path / "summary.json").stat().st_mtime_ns == stamp
    with pytest.raises(AqmlabError, match="this very run"):
        execute(scenario, runs_root=tmp_path)
    with pytest.raises(AqmlabError, match="another scenario, seed or version"):
        execute(scenario.with_overrides({"seed": 2}), first.path, reuse=True)


@pytest.mark.parametrize("reuse", [True, False])
def test_a_run_that_somebody_else_made_meanwhile_is_taken(tmp_path: Path, reuse: bool) -> None:
    scenario, place = Scenario.from_toml(SMALL), tmp_path / "run"
    made: list[Run] = []

    def meanwhile(_: float) -> None:
        if not made:
            made.append(execute(scenario, place))

    if reuse:
        assert execute(scenario, place, progress=meanwhile, reuse=True).path == place
    else:
        with pytest.raises(AqmlabError, match="cannot be written"):
            execute(scenario, place, progress=meanwhile)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert Run.open(place).metadata == made[0].metadata


@pytest.mark.parametrize("taken", ["file", "folder", "dangling"])
def test_a_place_that_is_taken_by_something_else(tmp_path: Path, taken: str) -> None:
    place = tmp_path / "place"
    if taken == "file":
        place.write_text("precious")
    elif taken == "folder":
        place.mkdir()
        (place / "summary.json").write_text("{}")
    else:
        place.symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(AqmlabError, match="is not a run directory"):
        execute(Scenario.from_toml(SMALL), place, reuse=True)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("gone", ["summary.json", "metadata.json", "scenario.toml"])
def test_an_incomplete_directory_is_no_run(tmp_path: Path, gone: str) -> None:
    run = execute(Scenario.from_toml(SMALL), tmp_path / "run")
    (run.path / gone).unlink()
    with pytest.raises(AqmlabError, match=gone.replace(".", r"\.")):
        Run.open(run.path)


def test_a_broken_record_is_refused(tmp_path: Path) -> None:
    run = execute(Scenario.from_toml(SMALL), tmp_path / "run")
    (run.path / "queue.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(AqmlabError, match=r"damaged: queue\.parquet has 15 bytes"):
        _ = Run.open(run.path).queue


def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    def progress(done: float) -> None:
        if done > 0:
            raise EnoughError

    with pytest.raises(EnoughError):
        execute(Scenario.from_toml(SMALL, LONG), tmp_path / "run", progress=progress)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_leaves_no_run_directory(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from aqmlab import Scenario; "
        "from aqmlab.engine.execute import execute; "
        "execute(Scenario.from_toml(sys.argv[1], [('measure.duration', '240 h')]), Path('run'))"
    )
    with subprocess.Popen([sys.executable, "-c", code, SMALL], cwd=tmp_path) as process:
        try:
            deadline = time.monotonic() + 60
            while process.poll() is None and not list(tmp_path.glob(".*")):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            # One that is alive is left alone.
            execute(Scenario.from_toml(SMALL), tmp_path / "beside")
            assert len(list(tmp_path.glob(".*"))) == 1
        finally:
            process.kill()
    assert not (tmp_path / "run").exists()
    assert len(list(tmp_path.glob(".*"))) == 1
    execute(Scenario.from_toml(SMALL), tmp_path / "next")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["beside", "next"]


def test_many_runs_at_a_time(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SMALL)
    named = [(f"s{seed}", scenario.with_overrides({"seed": seed})) for seed in range(1, 7)]
    (tmp_path / "s3").mkdir()
    ended: list[str] = []
    results = execute_all(
        named, tmp_path, 2, lambda name, done: ended.append(name) if done == 1 else None
    )
    assert list(results) == [name for name, _ in named]
    assert sorted(ended) == sorted(results)
    failed = {name for name, run in results.items() if isinstance(run, AqmlabError)}
    assert failed == {"s3"}
    (tmp_path / "s3").rmdir()
    again = execute_all(named, tmp_path, 2)
    assert all(isinstance(run, Run) for run in again.values())
    first, kept = results["s1"], again["s1"]
    assert isinstance(first, Run)
    assert isinstance(kept, Run)
    assert kept.metadata == first.metadata


def test_an_interrupt_ends_all_workers() -> None:
    begun: list[int] = []

    def work(item: int, report: pool.OnProgress) -> int:
        begun.append(item)
        if item == 0:
            signal.raise_signal(signal.SIGINT)
        while True:
            report(0.5)
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        pool.run_all(work, range(100), jobs=2)
    assert len(begun) <= 2


def test_errors_of_workers_are_results() -> None:
    def work(item: int, report: pool.OnProgress) -> int:
        report(0.5)
        if item % 2:
            raise RunError(f"odd {item}")
        return item

    results = pool.run_all(work, range(4), jobs=3)
    assert [str(result) for result in results] == ["0", "odd 1", "2", "odd 3"]


def test_labels_tell_runs_apart(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SMALL)
    red = '{kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets", %s}'
    changes = [
        [],
        [("topology.bottleneck.discipline", red % "ecn = false")],
        [("topology.bottleneck.discipline", red % "ecn = true")],
        [("seed", "2")],
        [("seed", "2"), ("traffic.fetches.rate", "20 /s")],
    ]
    made = [
        execute(scenario.with_overrides(change), tmp_path / str(number))
        for number, change in enumerate(changes)
    ]
    copy = execute(scenario, tmp_path / "copy")
    labels = [run.label for run in distinguish([*made, copy])]
    assert labels == [
        "droptail 20, rate 30 /s, seed 1 [0]",
        "red (5,15)",
        "red (5,15) ECN",
        "droptail 20, rate 30 /s, seed 2",
        "droptail 20, rate 20 /s, seed 2",
        "droptail 20, rate 30 /s, seed 1 [copy]",
    ]
    with pytest.raises(AqmlabError, match="named twice"):
        distinguish([copy, copy])


def test_metadata_is_enough_to_run_it_again(tmp_path: Path) -> None:
    run = execute(Scenario.from_toml(SMALL), tmp_path / "run")
    metadata = json.loads((run.path / "metadata.json").read_text())
    assert metadata["versions"]["aqmlab"] == run.summary["version"]
    assert metadata["seed"] == 1
    assert metadata["machine"]["cpus"] >= 1
    assert default_path(Scenario.from_toml(SMALL)).name.endswith("-s1")


def test_a_run_can_be_made_in_memory(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SMALL)
    real = execute(scenario, tmp_path / "run")
    tables = {"responses": real.responses}
    made = Run.in_memory(scenario.data, real.summary, tables, metadata=real.metadata)
    assert (made.label, made.seed, made.classes) == (real.label, 1, ["fetches"])
    assert made.responses is not None
    assert made.responses.equals(real.responses)
    assert (made.flows, made.queue, made.distribution) == (None, None, None)
    assert (made.has("responses"), made.has("flows")) == (True, False)
    columns = made.read("responses", ["response_s"])
    assert columns is not None
    assert columns.column_names == ["response_s"]
    assert made.without_tables().responses is not None


def test_a_run_shows_itself_in_a_line_and_in_a_small_table(tmp_path: Path) -> None:
    run = execute(Scenario.from_toml(SMALL), tmp_path / "run")
    assert repr(run) == f"<Run droptail 20, seed 1, sim: {tmp_path / 'run'}>"
    page = run._repr_html_()
    assert page.count("<tr>") > 10
    assert f"<td>{run.summary['responses']['all']['p50_s']:.4g}</td>" in page
    bare = Run.in_memory({}, {}, label="<b>")
    assert "<b>" not in bare._repr_html_()
    assert repr(bare) == "<Run <b>, seed -, sim: in memory>"
