"""A sweep's results as frames, and the bars of the Python interface."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import aqmlab
import polars as pl
import pytest
from conftest import Cli, Terminal

SWEEP = """
scenario = "small.toml"
seeds = [1, 2, 3]
baseline = { limit = 20 }

[[axes]]
name = "limit"
values = [5, 20]
set = { "topology.bottleneck.discipline.limit" = "$limit packets" }
"""


@pytest.fixture
def command_line(request: pytest.FixtureRequest) -> Cli:
    """The command, whose fixture has the name of the package."""
    found: Cli = request.getfixturevalue("aqmlab")
    return found


@pytest.fixture
def plan(small: Path) -> aqmlab.Sweep:
    """Two limits with three seeds each."""
    small.with_name("limits.toml").write_text(SWEEP)
    return aqmlab.Sweep.load("limits.toml")


def test_frames_hold_what_the_summary_holds(plan: aqmlab.Sweep) -> None:
    table = aqmlab.sweep(plan)
    summary = aqmlab.SweepSummary(plan, table, ["p50", "loss"])
    points = summary.to_frame()
    # Both directions have drops: each is shown.
    names = ("p50", "loss.forward", "loss.reverse")
    metrics = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    assert points.columns == ["limit", "runs", "failed", *metrics]
    assert points.get_column("limit").to_list() == [5, 20]
    assert points.get_column("runs").to_list() == [3, 3]
    for row, point in zip(points.iter_rows(named=True), summary.points, strict=True):
        for name, found in point.estimates.items():
            assert row[name] == found.mean
            equal = found.method == "equal"  # without an interval
            ends = (None, None) if equal else (found.low, found.high)
            assert (row[f"{name}_low"], row[f"{name}_high"]) == ends

    runs = summary.runs_frame()
    assert runs.equals(pl.read_parquet("runs/sweeps/limits/results.parquet"))
    means = runs.group_by("limit", maintain_order=True).agg(pl.col("responses.all.p50_s").mean())
    assert means.get_column("responses.all.p50_s").to_list() == pytest.approx(
        points.get_column("p50").to_list()
    )

    changes = summary.differences_frame()
    assert changes.get_column("limit").to_list() == [5, 5, 5]
    assert changes.get_column("baseline_limit").to_list() == [20, 20, 20]
    assert changes.get_column("metric").to_list() == list(names)
    expected = [found.difference for found in summary.differences]
    assert changes.get_column("difference").to_list() == expected
    assert expected[1] > 0


def test_an_interval_that_is_none_is_null(plan: aqmlab.Sweep) -> None:
    single = plan.with_seeds([1])
    frame = aqmlab.SweepSummary(single, aqmlab.sweep(single), ["p50"]).to_frame()
    assert frame.get_column("p50").null_count() == 0
    assert frame.get_column("p50_low").to_list() == [None, None]
    assert frame.schema["p50"] == pl.Float64


def test_without_a_baseline_there_is_no_difference(plan: aqmlab.Sweep) -> None:
    Path("limits.toml").write_text(SWEEP.replace("baseline", "# baseline"))
    alone = aqmlab.Sweep.load("limits.toml")
    assert aqmlab.SweepSummary(alone, aqmlab.sweep(plan)).differences_frame().height == 0


@pytest.mark.long_cases("False-None", "False-False", "True-True")
@pytest.mark.parametrize("wanted", [None, True, False])
@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.usefixtures("plan")
def test_bars_are_where_somebody_sees_them(
    monkeypatch: pytest.MonkeyPatch, *, wanted: bool | None, is_terminal: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    small = Path("small.toml")
    small.write_text(small.read_text().replace('duration = "20 s"', 'duration = "2 s"'))
    plan = aqmlab.Sweep.load("limits.toml")
    expected = is_terminal and wanted is not False
    for call, word in (
        (lambda: aqmlab.run("small.toml", progress=wanted), "running small"),
        (lambda: aqmlab.run("small.toml", seeds="2..3", progress=wanted), "running small"),
        (lambda: aqmlab.sweep(plan, progress=wanted), "sweeping"),
    ):
        stream = Terminal() if is_terminal else io.StringIO()
        monkeypatch.setattr(sys, "stderr", stream)
        call()
        assert (word in stream.getvalue()) is expected
        assert expected or not stream.getvalue()


def test_a_function_takes_the_place_of_a_bar(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    shares: list[float] = []
    aqmlab.run(small, progress=shares.append)
    assert shares
    assert shares == sorted(shares)
    assert not stream.getvalue()


def test_only_frames_need_polars(
    plan: aqmlab.Sweep, small: Path, command_line: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    table = aqmlab.sweep(plan)
    summary = aqmlab.SweepSummary(plan, table, ["p50"])
    assert len(summary.points) == 2
    trace = 'measure.flow_trace={ flows = 2, period = "20 ms" }'
    bulk = 'traffic=[{ kind = "bulk", flows = 2, rtt = { kind = "constant", rtt = "40 ms" } }]'
    for command in (
        ("run", small, "--set", trace, "--set", bulk, "--out", "traced"),
        ("plot", "flows", "traced", "-o", "flows.svg"),
        ("plot", "fairness", "traced", "-o", "fairness.svg"),
        ("compare", small, "--vary", "discipline=codel,fq-codel", "--out", "two"),
        ("report", "two", "-o", "two.html"),
    ):
        answer = command_line(*command)
        assert answer.status == 0, answer.err
    columns = ("test", "cell", "queue", "seed", "measure", "value")
    card = aqmlab.Card(
        "codel", {}, {}, "", "e", "quick", (), (1,), (), {name: [] for name in columns}, ()
    )
    for frame in (summary.to_frame, summary.differences_frame, summary.runs_frame, card.frame):
        with pytest.raises(
            aqmlab.AqmlabError, match=r"frames need polars.*pip install 'polars>=1\.30'"
        ):
            frame()
