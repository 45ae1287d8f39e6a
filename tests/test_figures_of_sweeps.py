"""Figures of sweeps: curves and their names follow the axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from aqmlab import figures
from aqmlab.errors import AqmlabError
from aqmlab.figures.files import svg
from aqmlab.figures.findings import shown
from aqmlab.results.configurations import configurations
from aqmlab.sweeps.campaign import sweep
from aqmlab.sweeps.file import Sweep
from conftest import SMALL
from figure_runs import axes, colliding, data_of, draw, rows, subtitle, title
from report_runs import SECOND

if TYPE_CHECKING:
    from conftest import Cli

HEAT = """title = "A map"
scenario = "small.toml"
seeds = "1..2"
[[axes]]
name = "queue"
[axes.variants.droptail]
"topology.bottleneck.discipline" = { kind = "droptail", limit = "30 packets" }
[axes.variants.fq-codel]
"topology.bottleneck.discipline" = { kind = "fq-codel" }
[[axes]]
field = "topology.bottleneck.rate"
values = ["2 Mbit/s", "4 Mbit/s", "8 Mbit/s"]
"""


def test_a_sweep_has_the_parameters_of_its_axes(aqmlab: Cli) -> None:
    Path("small.toml").write_text(SMALL)
    Path("map.toml").write_text(HEAT)
    assert aqmlab("sweep", "map.toml", "--out", "swept", "--store", "store").status == 0
    drawn = figures.heat_map("swept", metric="p90")
    fields = {(row["x"], row["y"]): row for row in rows(drawn, "value", "shown")}
    assert set(fields) == {
        (f"{rate} Mbit/s", queue) for rate in (2, 4, 8) for queue in ("droptail", "fq-codel")
    }
    for entry in configurations("swept"):
        at = (entry.parameters["rate"], entry.parameters["queue"])
        mean = np.mean([run.summary["responses"]["all"]["p90_s"] for run in entry.runs])
        assert fields[at]["value"] == pytest.approx(mean)
        assert fields[at]["shown"] == shown(float(mean))
    for width in ("column", "screen"):
        for labels in axes(svg(draw.heat_map("swept", look=figures.Look(width)).to_dict())):
            assert not colliding(labels)
    lines = draw.parameter("swept", metric="p90", look=figures.Look("column"))
    assert {row["series"] for row in rows(lines, "x", "y", "low")} == {"droptail", "fq-codel"}
    assert {row["x"] for row in rows(lines, "x", "y", "low")} == {2, 4, 8}
    with pytest.raises(AqmlabError, match="found queue for both"):
        draw.heat_map("swept", x="queue", y="queue")


GRID = """
scenario = "small.toml"
seeds = [1, 2]
[set]
"measure.warm_up" = "1 s"
"measure.duration" = "3 s"
"measure.record" = []
[[axes]]
name = "queue"
variants.droptail = { "topology.bottleneck.forward.discipline" = "droptail-24" }
variants.fq-codel = { "topology.bottleneck.forward.discipline" = "fq-codel" }
[[axes]]
name = "rate_mbit"
values = [2, 4]
set = { "topology.bottleneck.forward.rate" = "$rate_mbit Mbit/s" }
[[axes]]
zip = { per_s = [15, 30], step = [1, 2] }
set = { "traffic.fetches.rate" = "$per_s /s" }
[[axes]]
name = "delay_ms"
values = [5, 10]
set = { "topology.bottleneck.forward.delay" = "$delay_ms ms" }
"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of four axes, one of which has two variables that change together."""
    folder = tmp_path_factory.mktemp("grid")
    (folder / "small.toml").write_text(SMALL + SECOND)
    (folder / "grid.toml").write_text(GRID)
    plan = Sweep.load(folder / "grid.toml")
    sweep(plan, out=folder / "out", store=folder / "store")
    return folder / "out"


def test_a_curve_joins_nothing_that_differs_in_more_than_its_axis(grid: Path) -> None:
    with pytest.raises(AqmlabError, match=r"differ in per_s \(15, 30\) and delay_ms \(5, 10\) too"):
        draw.parameter(grid, x="rate_mbit", series="queue")
    with pytest.raises(AqmlabError, match=r"--where delay_ms=5, and draw .* --facet per_s"):
        draw.parameter(grid, x="rate_mbit", series="queue")
    near = figures.select(grid, ["delay_ms=5"])
    chart = draw.parameter(near, x="rate_mbit", series="queue")
    plots = chart.to_dict()["concat"]
    assert [plot["title"]["text"] for plot in plots] == ["per_s 15", "per_s 30"]
    domains = {str(plot["layer"][1]["encoding"]["y"]["scale"]["domain"]) for plot in plots}
    assert len(domains) == 1
    for plot in plots:
        places = [(row["series"], row["x"]) for row in data_of(chart, plot)]
        assert sorted(places) == sorted(set(places))
        assert len(places) == 4
    # The variables of a zip are one axis.
    one = figures.select(grid, ["delay_ms=5,queue=droptail"])
    lines = draw.parameter(one, x="per_s")
    assert {row["series"] for row in rows(lines, "x", "y")} == {"rate_mbit 2", "rate_mbit 4"}
    with pytest.raises(AqmlabError, match="facet: found queue, which the curves stand for"):
        draw.parameter(near, x="rate_mbit", series="queue", facet="queue")
    with pytest.raises(AqmlabError, match="series: found per_s, which is the horizontal axis"):
        draw.parameter(near, x="per_s", series="per_s")


def test_runs_are_named_by_their_axes(grid: Path) -> None:
    chosen = figures.select(grid, ["rate_mbit=2,per_s=15", "delay_ms=5", "seed=2"])
    assert [entry.label for entry in chosen] == ["droptail", "fq-codel"]
    assert [run.seed for entry in chosen for run in entry.runs] == [2, 2]
    drawn = draw.classes(chosen, metric="goodput")
    assert "seed 2; rate_mbit 2, per_s 15, step 1, delay_ms 5" in subtitle(drawn)
    assert len(figures.select(grid, ["rate_mbit=2", "rate_mbit=4"])) == 16
    with pytest.raises(AqmlabError, match='found rate_mbt; did you mean "rate_mbit"'):
        figures.select(grid, ["rate_mbt=2"])
    with pytest.raises(AqmlabError, match="rate_mbit=3, which no run has; rate_mbit is one of 2"):
        figures.select(grid, ["rate_mbit=3"])


def test_a_curve_for_each_class(grid: Path) -> None:
    chosen = figures.select(grid, ["per_s=15", "delay_ms=5"])
    chart = draw.parameter(chosen, series="class", facet="queue", x="rate_mbit")
    found = rows(chart, "series", "x", "y")
    names = set(chosen[0].runs[0].classes)
    assert {row["series"] for row in found} == names
    entry = next(one for one in chosen if one.label == "droptail, rate_mbit 2")
    values = [run.summary["flows"]["fetches"]["goodput_bps"] / 1e6 for run in entry.runs]
    assert any(
        row["series"] == "fetches" and row["y"] == pytest.approx(np.mean(values), rel=1e-5)
        for row in found
    )


def test_more_than_32_curves_are_answered_with_what_to_keep(
    grid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aqmlab.figures.compared.MOST_SERIES", 8)
    with pytest.raises(AqmlabError, match=r"not 16; the runs differ in queue .* --where queue="):
        draw.throughput_delay(grid)


def test_a_paper_has_its_own_words(grid: Path, aqmlab: Cli) -> None:
    chosen = ["--where", "per_s=15,delay_ms=5", "--x", "rate_mbit", "-o", "f.svg"]
    words = ["--no-title", "--x-label", "Rate (Mbit/s)", "--y-label", "Delay", "--height", "90"]
    more = ["--name", "droptail=FIFO", "--font", "Times New Roman", "--font-size", "9"]
    answer = aqmlab("plot", "parameter", grid, *chosen, *words, *more, "--width", "column")
    assert answer.status == 0, answer.err
    text = Path("f.svg").read_text()
    for word in (">Rate (Mbit/s)<", ">Delay<", ">FIFO<", "Times New Roman", 'font-size="9px"'):
        assert word in text
    for word in ("seeds", "droptail"):
        assert word not in text
    own = draw.cdf(figures.select(grid, ["per_s=15", "delay_ms=5"]), look=figures.Look(title="A"))
    assert title(own) == "A"
