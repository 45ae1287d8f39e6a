"""Sweeps: only what is missing is run; the results are the same whatever happened meanwhile."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aqmlab as package
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aqmlab.errors import AqmlabError
from aqmlab.sweeps.campaign import SweepProgress
from aqmlab.sweeps.file import Sweep
from aqmlab.sweeps.results import Results
from aqmlab.sweeps.summary import SweepSummary
from conftest import SMALL, Cli

SWEEP = """
title = "Limits and rates"
scenario = "small.toml"
seeds = [1, 2]
baseline = { queue = "short" }

[set]
"measure.duration" = "20 s"

[[axes]]
name = "queue"
[axes.variants.short]
"topology.bottleneck.discipline.limit" = "5 packets"
[axes.variants.red]
"topology.bottleneck.discipline" = { kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets" }

[[axes]]
field = "traffic.fetches.rate"
values = ["20 /s", "30 /s"]
"""  # noqa: E501 - an inline table stands in one line


@pytest.fixture
def sweep_file(small: Path) -> Path:
    """A sweep of eight runs over the small scenario."""
    file = small.with_name("limits.toml")
    file.write_text(SWEEP)
    return file


PATIENCE_S = 300.0
"""How long a busy machine may take."""


def slow(file: Path) -> None:
    """Makes the runs of a sweep long enough to be caught on their way."""
    file.write_text(SWEEP.replace('"20 s"', '"90 min"\n"measure.record" = []'))


def digest(folder: Path | str) -> str:
    """Hash of a sweep's results."""
    return hashlib.sha256((Path(folder) / "results.parquet").read_bytes()).hexdigest()


def stored(root: str = "runs/store") -> dict[str, int]:
    """Keys of the runs in a store, and when they were made."""
    found = Path(root).glob("*/[!.]*/summary.json")
    return {path.parent.name: path.stat().st_mtime_ns for path in found}


class Listener(SweepProgress):
    """Notes what the sweep reports."""

    def __init__(self) -> None:
        self.made: list[int] = []
        self.found: list[int] = []
        self.shares: list[float] = []
        self.seconds = 0.0

    def making(self, missing: int, found: int, seconds: float, jobs: int) -> None:
        assert jobs >= 1
        self.made.append(missing)
        self.found.append(found)
        self.seconds = seconds

    def progress(self, done: float, total: int) -> None:
        self.shares.append(done / total)


def test_a_sweep_is_a_tidy_table(sweep_file: Path) -> None:
    listener = Listener()
    table = package.sweep(sweep_file, jobs=2, progress=listener)
    assert table.num_rows == 8
    assert table.column_names[:6] == ["queue", "rate", "seed", "key", "status", "error"]
    rows = table.to_pylist()
    assert [(row["queue"], row["rate"], row["seed"]) for row in rows] == [
        (queue, rate, seed)
        for queue in ("short", "red")
        for rate in ("20 /s", "30 /s")
        for seed in (1, 2)
    ]
    assert {row["status"] for row in rows} == {"done"}
    assert {row["error"] for row in rows} == {None}
    assert set(stored()) == {row["key"] for row in rows}
    assert (listener.made, listener.found) == ([8], [0])
    assert 0 < listener.seconds < 60
    assert max(listener.shares) == 1.0
    for row in rows:
        run = package.Run.open(Path("runs/store") / row["key"][:2] / row["key"])
        assert run.seed == row["seed"]
        assert run.scenario["traffic"][0]["rate"] == row["rate"]
        assert run.summary["responses"]["all"]["p50_s"] == row["responses.all.p50_s"]
        forward = run.summary["links"]["bottleneck"]["forward"]
        assert forward["drops"].get("overflow") == row["links.bottleneck.forward.drops.overflow"]
    assert pq.read_table("runs/sweeps/limits/results.parquet").equals(table)
    assert not {"scenario", "version"} & set(table.column_names)
    assert table.schema.field("responses.all.count").type == pa.int64()


def test_repeated_and_extended_sweeps_run_what_is_missing(sweep_file: Path) -> None:
    package.sweep(sweep_file, jobs=2)
    before, first = stored(), digest("runs/sweeps/limits")
    listener = Listener()
    package.sweep(sweep_file, progress=listener)
    assert stored() == before
    assert listener.made == []
    assert digest("runs/sweeps/limits") == first
    # One more seed and one more rate, under another name: eight of eighteen runs are there.
    longer = SWEEP.replace("[1, 2]", "[1, 2, 3]").replace('"30 /s"', '"30 /s", "25 /s"')
    sweep_file.with_name("longer.toml").write_text(longer)
    table = package.sweep("longer.toml", jobs=2, progress=listener)
    assert (listener.made, listener.found) == ([10], [8])
    assert before.items() <= stored().items()
    subset = [row for row in table.to_pylist() if row["key"] in before]
    assert subset == pq.read_table("runs/sweeps/limits/results.parquet").to_pylist()


def test_jobs_and_stores_do_not_show_in_the_results(sweep_file: Path) -> None:
    for jobs in (1, 3):
        package.sweep(sweep_file, jobs=jobs, out=f"out{jobs}", store=f"store{jobs}")
    assert digest("out1") == digest("out3")
    assert stored("store1").keys() == stored("store3").keys()


def command(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Starts the command in a process group of its own."""
    words = [sys.executable, "-m", "aqmlab", *map(str, arguments)]
    return subprocess.Popen(
        words,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )


def wait_for(process: subprocess.Popen[str], finished: int) -> None:
    """Waits until some runs of a sweep are there; the next ones are on their way then."""
    wait_until(process, lambda: len(stored()) >= finished)


def wait_until(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Waits for what a sweep is to do."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)


def processor_time_s(pid: int) -> float:
    """What a process has used so far."""
    # Behind the name in brackets: the times are fields 14 and 15 of proc(5).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
def test_a_killed_sweep_goes_on_where_it_was(sweep_file: Path) -> None:
    slow(sweep_file)
    package.sweep(sweep_file, out="whole", store="whole-store")
    for finished in (1, 3):
        process = command("sweep", sweep_file, "--jobs", 2)
        wait_for(process, finished)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not Path("runs/sweeps/limits").exists()
        kept = stored()
        # Runs that are listed are whole; at most those in flight, two at a time, are lost.
        assert finished <= len(kept) < 8
        for key in kept:
            package.Run.open(Path("runs/store") / key[:2] / key)
    # Nobody is left who goes on by himself: workers end with their parent.
    time.sleep(0.5)
    kept = stored()
    time.sleep(0.5)
    assert stored() == kept
    listener = Listener()
    package.sweep(sweep_file, progress=listener)
    [made], [found] = listener.made, listener.found
    # Whole runs of a group that had no names yet are found, too.
    assert made + found == 8
    assert found >= len(kept)
    assert kept.items() <= stored().items()
    assert digest("runs/sweeps/limits") == digest("whole")
    assert not list(Path("runs/store").glob("*/.*.partial"))


def test_an_interrupt_is_reported_and_keeps_what_is_done(sweep_file: Path) -> None:
    slow(sweep_file)
    process = command("sweep", sweep_file, "--jobs", 1)
    wait_for(process, 1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "aqmlab: interrupted"
    assert "Traceback" not in err
    assert 1 <= len(stored()) < 8


@pytest.mark.long
def test_the_run_of_a_worker_that_dies_is_made_again(sweep_file: Path) -> None:
    slow(sweep_file)
    process = command("sweep", sweep_file, "--jobs", 1, "--seeds", 1, "--json")
    wait_for(process, 1)
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    [worker] = [
        int(word) for thread in threads for word in (thread / "children").read_text().split()
    ]
    # It may still have to report the end of its run: once it has worked on, it is in the next run.
    begun = processor_time_s(worker)
    wait_until(process, lambda: processor_time_s(worker) >= begun + 0.05)
    os.kill(worker, signal.SIGKILL)
    out, err = process.communicate()
    assert (process.returncode, json.loads(out)["failures"]) == (0, [])
    assert "failed" not in err
    assert len(stored()) == 4


def test_a_failed_run_is_recorded_and_tried_again(aqmlab: Cli, sweep_file: Path) -> None:
    plan = Sweep.load(sweep_file)
    runs = {
        plan.scenario_of(point, seed).key: (point, seed) for point in plan.points for seed in (1, 2)
    }
    # Keys change with the engine: one that shares its folder with no other.
    folders = [key[:2] for key in runs]
    key = next(key for key in runs if folders.count(key[:2]) == 1)
    point, seed = runs[key]
    obstacle = Path("runs/store") / key[:2]
    obstacle.parent.mkdir(parents=True)
    obstacle.write_text("in the way")
    answer = aqmlab("sweep", sweep_file)
    assert answer.status == 1
    assert f"1 of 8 runs failed; the first, {point.label}, seed {seed}: " in answer.err
    assert "1, 1 failed" in answer.out
    table = pq.read_table("runs/sweeps/limits/results.parquet")
    failed = [row for row in table.to_pylist() if row["status"] == "failed"]
    assert [(row["rate"], row["seed"], row["key"]) for row in failed] == [
        (point.variables["rate"], seed, key)
    ]
    assert "cannot be made" in failed[0]["error"]
    assert failed[0]["responses.all.p50_s"] is None
    obstacle.unlink()
    answer = aqmlab("sweep", sweep_file)
    assert answer.status == 0
    assert "1 run to make" in answer.err
    package.sweep(sweep_file, out="clean", store="clean-store")
    assert digest("runs/sweeps/limits") == digest("clean")


def test_points_that_are_equal_share_their_run(sweep_file: Path) -> None:
    sweep_file.write_text(
        SWEEP.replace('field = "traffic', 'name = "same"\nset = { title = "x" }\n# ').replace(
            "values", "\nvalues"
        )
    )
    table = package.sweep(sweep_file)
    assert table.num_rows == 8
    assert len(stored()) == 4
    assert table.column("key").to_pylist()[:2] == table.column("key").to_pylist()[2:4]


def test_seeds_are_added_until_the_precision_is_reached(sweep_file: Path) -> None:
    sweep_file.write_text(
        f'precision = "8% of mean"\nmax_seeds = 9\n{SWEEP}'.replace("seeds = [1, 2]", "seeds = [5]")
    )
    listener = Listener()
    table = package.sweep(sweep_file, progress=listener)
    assert len(listener.made) > 1
    summary = SweepSummary(Sweep.load(sweep_file), table, ["mean"])
    counts = [point.runs for point in summary.points]
    assert max(counts) > 3
    assert min(counts) >= 3
    for point in summary.points:
        found = point.estimates["mean"]
        assert found.half_width <= 0.08 * found.mean or point.runs == 9
    seeds = [row["seed"] for row in table.to_pylist()][: counts[0]]
    assert seeds == list(range(5, 5 + counts[0]))
    # The same decisions are made again, from the store alone.
    first = digest("runs/sweeps/limits")
    again = Listener()
    package.sweep(sweep_file, progress=again)
    assert (again.made, digest("runs/sweeps/limits")) == ([], first)


@pytest.mark.long
def test_users_are_calibrated_once(aqmlab: Cli, small: Path) -> None:
    small.write_text(SMALL.replace('rate = "30 /s"\n', ""))
    Path("loads.toml").write_text(
        'scenario = "small.toml"\nseeds = "1..2"\n[[axes]]\nfield = "load"\nvalues = [0.4, 0.6]\n'
    )
    answer = aqmlab("sweep", "loads.toml", "--json")
    assert answer.status == 0
    assert answer.err.count("calibrated: fetches: ") == 2
    points = json.loads(answer.out)["points"]
    rates = [point["estimates"]["utilization.forward"]["mean"] for point in points]
    assert 0.3 < rates[0] < 0.5 < rates[1] < 0.7
    for run in Results.open("runs/sweeps/loads").runs:
        assert run.metadata["load"] in {0.4, 0.6}


def test_the_command_says_what_it_does(aqmlab: Cli, sweep_file: Path) -> None:
    answer = aqmlab("sweep", sweep_file, "--jobs", 2, "--out", "here", "--store", "there")
    assert answer.status == 0
    lines = answer.err.splitlines()
    assert lines[0] == "aqmlab: 8 runs: 4 points x 2 seeds"
    assert lines[1].startswith("aqmlab: 8 runs to make, about ")
    assert lines[1].endswith(" with 2 at a time; 0 in the store")
    for word in ("queue", "rate", "loss.forward %", "p50", "short", "red", "±"):
        assert word in answer.out
    assert "difference to queue = short, seed by seed, with 95 % intervals" in answer.out
    assert "\nresults: here/results.parquet\n\nanswer\n" in answer.out
    found = Results.open("here")
    assert [run.label for run in found.runs][:2] == [
        "queue = short, rate = 20 /s, seed 1",
        "queue = short, rate = 20 /s, seed 2",
    ]
    assert found.table.num_rows == 8
    other = aqmlab("sweep", sweep_file, "--seeds", "4", "--set", "measure.duration=5 s", "--json")
    content = json.loads(other.out)
    assert content["results"] == "runs/sweeps/limits/results.parquet"
    assert [point["runs"] for point in content["points"]] == [1] * 4
    assert content["points"][0]["estimates"]["p50"]["low"] is None
    compared = {entry["run"]: entry for entry in content["differences"]}
    assert len(compared) == 2
    for entry in compared.values():
        assert entry["variables"]["queue"] == "red"
        assert entry["baseline_variables"]["queue"] == "short"
        assert entry["basis"] == "1 pair of runs"
    [run, *_] = Results.open("runs/sweeps/limits").runs
    assert (run.seed, run.summary["measured_s"]) == (4, 5.0)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere.toml"], "nowhere.toml: there is no such sweep file"),
        (["limit.toml"], "did you mean limits.toml?"),
        (["limits.toml", "--set", "sed=1"], "sed: unknown key"),
        (["limits.toml", "--seeds", "3..1"], "larger than its last; expected 1..3"),
        (["limits.toml", "--out", "small.toml"], "is not the folder of a sweep"),
        (["limits.toml", "--out", "."], "is not the folder of a sweep"),
        (["limits.toml", "--scheduler", "nowhere"], "--scheduler: "),
        (["limits.toml", "--jobs", "0"], "Invalid value for '--jobs'"),
    ],
)
def test_wrong_use_gets_one_sentence(
    aqmlab: Cli, sweep_file: Path, arguments: list[str], expected: str
) -> None:
    before = sorted(sweep_file.parent.rglob("*"))
    answer = aqmlab("sweep", *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert expected in answer.err
    assert answer.err.count("\n") == 1
    assert sorted(sweep_file.parent.rglob("*")) == before


def test_a_metric_that_nothing_measures_is_an_error(aqmlab: Cli, sweep_file: Path) -> None:
    sweep_file.write_text(f'precision = "5% of responses.web.p50_s"\n{SWEEP}')
    answer = aqmlab("sweep", sweep_file)
    assert answer.status == 2
    assert "precision: the results have no responses.web.p50_s" in answer.err


def test_a_folder_that_is_no_sweep(elsewhere: Path) -> None:
    with pytest.raises(AqmlabError, match="is not the folder of a finished sweep"):
        Results.open(elsewhere)


def test_results_that_were_half_written_are_written_again(sweep_file: Path) -> None:
    package.sweep(sweep_file, jobs=1, out="out")
    first = digest("out")
    Path("out/sweep.json").rename("out/.sweep.json.77.part")
    package.sweep(sweep_file, out="out")
    assert digest("out") == first
    assert Results.open("out").about["failed"] == 0
