"""Figures: what is drawn is what was measured, in every look and format."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair
import numpy as np
import pyarrow.compute as pc
import pypdf
import pytest
import vl_convert
from aqmlab import figures
from aqmlab.errors import AqmlabError
from aqmlab.figures import curves, kinds
from aqmlab.figures.altair_charts import altair_chart
from aqmlab.figures.axes import linear, logarithmic, ticks_between
from aqmlab.figures.files import WRITERS, svg
from aqmlab.figures.findings import Finding, finding, shown
from aqmlab.figures.grammar import Chart, inline
from aqmlab.figures.kinds.fairness import jain, windows
from aqmlab.figures.queues import delays
from aqmlab.figures.theme import PATTERNS, THEMES, Heading, finish
from aqmlab.figures.timelines import Panel, stacked
from aqmlab.figures.tradeoffs import Place, ellipse, front, possibly_on_front
from aqmlab.results.configurations import chosen_links, configurations
from aqmlab.results.distributions import Distribution
from aqmlab.results.links import LinkDirection
from broken_down import two_queues
from conftest import SMALL
from figure_runs import axes, colliding, data_of, draw, figure_runs, rows, subtitle, title
from made_runs import made_run

if TYPE_CHECKING:
    from aqmlab.results.run import Run
    from conftest import Cli

RANDOM = np.random.default_rng(1)
TIMES = {
    "one": np.array([0.3]),
    "equal": np.full(50, 0.3),
    "few": np.sort(RANDOM.exponential(1.0, 20)),
    "many": np.sort(RANDOM.exponential(1.0, 50_000)),
    "ties": np.sort(np.round(0.01 + RANDOM.exponential(1.0, 50_000), 2)),
    "slow": np.sort(5 + RANDOM.exponential(1.0, 100)),
}
FORWARD = LinkDirection("bottleneck", "forward")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two queues, three seeds each."""
    return figure_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, runs: list[Run]) -> list[Run]:
    """The same queues at two more rates."""
    return runs + figure_runs(
        tmp_path_factory.mktemp("more"),
        queues=('{ kind = "droptail", limit = "40 packets" }', '{ kind = "fq-codel" }'),
    )


# --- Points, axes, sentences ----------------------------------------------------------------------


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_every_point_of_a_cdf_is_exact(times: np.ndarray) -> None:
    at, share = curves.cdf_points(Distribution.exact(np.sort(times)), 2.0)
    assert len(at) <= curves.CURVE_POINTS
    assert (at[0], share[0], at[-1]) == (0, 0, 2)
    np.testing.assert_allclose(share, [np.mean(times <= t) for t in at], atol=1e-12)
    distinct = np.unique(times[times <= 2.0])
    if len(distinct) < curves.CURVE_POINTS // 2 and len(times) < curves.CURVE_POINTS:
        np.testing.assert_array_equal(at[1:-1], distinct)


def test_thinning_a_cdf_hides_no_large_step() -> None:
    _, share = curves.cdf_points(Distribution.exact(TIMES["many"]), 2.0)
    assert np.max(np.diff(share)) < 1.2 / curves.CURVE_POINTS


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_every_point_of_a_ccdf_is_exact(times: np.ndarray) -> None:
    at, share = curves.ccdf_points(Distribution.exact(times))
    assert len(at) <= curves.CURVE_POINTS
    np.testing.assert_allclose(share, [np.mean(times >= t) for t in at], atol=1e-12)
    assert (at[0], share[0]) == (times[0], 1)
    np.testing.assert_array_equal(at[-10:], np.unique(times)[-10:])


def test_intervals_hold_every_sample() -> None:
    time = 60 + 0.1 * np.arange(2401)
    packets = RANDOM.integers(0, 121, 2401)
    found = curves.binned(time, packets, np.linspace(60, 300, 301))
    assert np.nanmin(found["min"]) == packets.min()
    assert np.nanmax(found["max"]) == packets.max()
    assert np.all((found["min"] <= found["mean"]) & (found["mean"] <= found["max"]))
    gaps = curves.binned(np.array([0.5, 2.5]), np.array([1, 3]), np.arange(4.0))
    np.testing.assert_array_equal(gaps["mean"], [1, np.nan, 3])


@pytest.mark.parametrize("low", [0, 0.001, 0.37, 3, 59, 1e6])
@pytest.mark.parametrize("span", [1e-4, 0.013, 0.9, 1, 7, 240, 1e7])
def test_an_axis_has_two_ticks_at_least(low: float, span: float) -> None:
    for count in (3, 5, 8):
        assert 2 <= len(ticks_between(low, low + span, count)) <= 3 * count
        axis = linear("x", [low, low + span], count=count)
        assert axis.low <= low + 1e-9 * span
        assert axis.high >= low + span * (1 - 1e-9)
    if low:
        axis = logarithmic("x", [low, low + span])
        assert len(axis.ticks) >= 2
        assert all(axis.low <= tick <= axis.high for tick in axis.ticks)


def test_a_title_is_no_longer_than_its_axis() -> None:
    axis = linear("Queueing delay (ms)", [0, 1])
    assert axis.lines(100, 12) == ["Queueing", "delay (ms)"]
    assert axis.lines(200, 12) == axis.title
    assert axis.lines(1, 12) == ["Queueing", "delay", "(ms)"]


def test_equal_values_have_an_axis_too() -> None:
    for values in ([5.0, 5.0], [0.0], [], [float("nan")]):
        axis = linear("x", values, zero=True)
        assert axis.high > axis.low
        assert len(axis.ticks) >= 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (512.3, "512"),
        (9.04, "9.04"),
        (0, "0"),
        (0.3774, "0.377"),
        (12345.6, "12,346"),
        (1e-5, "0.00001"),
    ],
)
def test_numbers_in_sentences(value: float, text: str) -> None:
    assert shown(value) == text


def test_a_title_says_no_more_than_the_seeds_do() -> None:
    first = Finding("a", {1: 512.0, 2: 520.0, 3: 504.0})
    second = Finding("b", {1: 9.0, 2: 9.2, 3: 8.8})
    near = Finding("c", {1: 505.0, 2: 528.0, 3: 510.0})
    assert finding([first, second], "delay", "ms") == "b cuts the delay from 512 to 9 ms"
    assert finding([second, first], "delay", "ms") == "a raises the delay from 9 to 512 ms"
    assert finding([first, near], "delay", "ms") == "Delay does not clearly differ: 512 to 514 ms"
    assert finding([first, second, near], "delay", "ms") == "Delay: from 9 ms (b) to 514 ms (c)"
    one = [replace(first, values={1: 512.0}), replace(second, values={1: 9.0})]
    assert finding(one, "delay", "ms") == "b cuts the delay from 512 to 9 ms (one seed)"
    assert finding(one[:1], "delay", "ms") == "Delay is 512 ms (one seed)"
    # The same seeds are compared seed by seed: what they share does not hide the difference.
    shifted = Finding("d", {seed: value + 3 + seed / 100 for seed, value in first.values.items()})
    assert finding([first, shifted], "delay", "ms") == "d raises the delay from 512 to 515 ms"


# --- Every kind -----------------------------------------------------------------------------------


def on_wifi(found: list[Run]) -> list[Run]:
    """The runs, as if each had a Wi-Fi with near stations and a far one."""

    def ways(down: float, up: float) -> dict[str, Any]:
        return {"down": {"airtime_share": down}, "up": {"airtime_share": up}}

    return [
        replace(
            one, summary={**one.summary, "wifi": {"near": ways(0.2, 0.1), "far": ways(k, 0.05)}}
        )
        for one, k in zip(found, (0.6, 0.5, 0.55, 0.3, 0.31, 0.29), strict=False)
    ]


def chart_of(name: str, found: list[Run], swept: list[Run], look: figures.Look) -> Any:
    """A chart of a kind, of runs that it needs."""
    options: dict[str, dict[str, Any]] = {"heat-map": {"x": "discipline", "y": "limit"}}
    chosen = swept if name in {"parameter", "utilization-delay"} else found
    if name == "why":
        chosen = two_queues((1, 2, 3))
    if name == "airtime":
        chosen = on_wifi(found)
    if name == "heat-map":
        pytest.skip("has a sweep of its own, in test_figures_of_sweeps.py")
    return kinds.kind(name).draw(chosen, look=look, **options.get(name, {}))


@pytest.mark.parametrize("name", kinds.names())
@pytest.mark.parametrize("width", ["column", "page", "screen"])
def test_every_kind_fits_its_width_and_its_ticks_each_other(
    name: str, width: Any, runs: list[Run], swept: list[Run]
) -> None:
    chart = chart_of(name, runs, swept, figures.Look(width, "dark" if width == "page" else "light"))
    picture = svg(chart.to_dict())
    size, unit = re.findall(r'^<svg [^>]*?width="([\d.]+)(pt|)"', picture)[0]
    assert unit == ("" if width == "screen" else "pt")
    assert float(size) == {"column": 252, "page": 515.5, "screen": 900}[width]
    found = axes(picture)
    assert found
    for labels in found:
        assert len(labels) >= 2 or not labels[0].text[0].isdigit(), labels
        assert not colliding(labels)


@pytest.mark.long
def test_a_page_has_what_a_pointer_shows_and_a_picture_has_not(runs: list[Run]) -> None:
    """What is drawn is the same: only labels name fewer values."""
    spec = draw.comparison(runs).to_dict()
    assert b"tooltip" in WRITERS[".html"](spec)
    ours, everything = svg(spec), vl_convert.vegalite_to_svg(spec)
    assert ("value (%)" in ours, "value (%)" in everything) == (False, True)
    drawn = [re.findall(r' (?:d|fill|stroke|transform)="[^"]*"', one) for one in (ours, everything)]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("name", kinds.names())
def test_every_kind_is_an_exported_function_with_all_its_options_explained(name: str) -> None:
    kind = kinds.kind(name)
    assert getattr(figures, name.replace("-", "_")).__wrapped__ is kind.draw
    assert kind.summary.endswith(".")
    assert all(option.help.endswith(".") for option in kind.options.values()), kind.options


@pytest.mark.long
@pytest.mark.parametrize("name", kinds.names())
def test_every_kind_passes_the_checks_of_altair(
    name: str, runs: list[Run], swept: list[Run]
) -> None:
    plain = chart_of(name, runs, swept, figures.Look())
    checked = altair_chart(plain).to_dict()
    assert checked["datasets"] == plain.to_dict()["datasets"]


def test_themes_differ_in_their_colours(runs: list[Run]) -> None:
    for theme in ("light", "dark"):
        picture = svg(draw.cdf(runs, look=figures.Look("column", theme)).to_dict())
        for colour in (THEMES[theme].background, *THEMES[theme].series[:2]):
            assert colour in picture


def test_a_look_that_does_not_exist_is_named() -> None:
    with pytest.raises(AqmlabError, match="width: found wide; expected one of column, page"):
        figures.Look("wide")  # type: ignore[arg-type]
    with pytest.raises(AqmlabError, match="theme: found blue; expected one of light, dark"):
        figures.Look(theme="blue")  # type: ignore[arg-type]


# --- Distributions --------------------------------------------------------------------------------


def test_a_cdf_is_the_mean_of_the_runs(runs: list[Run]) -> None:
    chart = draw.cdf(runs)
    drawn = [row for row in rows(chart, "x", "y", "low") if row["series"] == runs[0].label]
    scale = 1e3 if "(ms)" in str(chart.to_dict()) else 1
    times = [run.responses["response_s"].to_numpy() for run in runs[:3] if run.responses]
    for row in (drawn[3], drawn[len(drawn) // 2], drawn[-1]):
        shares = [100 * np.mean(one <= row["x"] / scale * (1 + 1e-5)) for one in times]
        assert row["y"] == pytest.approx(np.mean(shares), abs=0.1)
        assert row["low"] is None or row["low"] <= row["y"] <= row["high"]
    medians = [
        [Distribution.known_of(run.without_tables(), "response").time_s(0.5) for run in some]
        for some in (runs[:3], runs[3:])
    ]
    for median in medians:
        assert shown(scale * float(np.mean(median))) in title(chart)
    assert "seeds 1 to 3" in subtitle(chart)
    assert "intervals of the mean over seeds" in subtitle(chart)


def test_one_run_says_that_it_is_one_seed_and_has_blocks(runs: list[Run]) -> None:
    chart = draw.cdf([runs[0], runs[3]])
    assert title(chart).endswith("(one seed)")
    assert "blocks of the measured time" in subtitle(chart)
    assert any(row["low"] is not None for row in rows(chart, "low"))


def test_the_axis_ends_with_the_data_or_where_it_is_asked_to(tmp_path: Path) -> None:
    fast = made_run(tmp_path / "a", label="fast", times=TIMES["many"] / 50)
    slow = made_run(tmp_path / "b", label="slow", times=TIMES["many"] * 10)
    near = draw.cdf([fast]).to_dict()
    x = near["layer"][0]["encoding"]["x"]
    assert x["scale"]["domain"][0] == 0
    assert 1e3 * np.quantile(TIMES["many"] / 50, 0.9) <= x["scale"]["domain"][1] < 60
    assert x["title"] == "Response time (ms)"
    both = draw.cdf([fast, slow]).to_dict()["layer"][0]["encoding"]["x"]
    assert both["scale"]["type"] == "log"
    asked = draw.cdf([slow], limit_s=3).to_dict()["layer"][0]["encoding"]["x"]
    assert asked["scale"]["domain"] == [0, 3]
    with pytest.raises(AqmlabError, match="limit_s: found -1; expected a time above 0"):
        draw.cdf([slow], limit_s=-1)


def test_a_tail_keeps_its_slowest(runs: list[Run]) -> None:
    chart = draw.ccdf(runs, of="response")
    drawn = [row for row in rows(chart, "x", "y") if row["series"] == runs[0].label]
    slowest = max(run.responses["response_s"].to_numpy().max() for run in runs[:3] if run.responses)
    scale = 1e3 if "(ms)" in str(chart.to_dict()) else 1
    assert drawn[-1]["x"] == pytest.approx(scale * slowest, rel=1e-5)
    assert drawn[0]["y"] == pytest.approx(100)


def test_a_class_and_the_queueing_delay(runs: list[Run]) -> None:
    pages = draw.cdf(runs, traffic="pages")
    assert "class pages" in subtitle(pages)
    delay = draw.cdf(runs, of="delay")
    assert "of the download" in title(delay)
    medians = [
        float(
            np.mean(
                [run.summary["links"]["bottleneck"]["forward"]["sojourn_p50_s"] for run in some]
            )
        )
        for some in (runs[:3], runs[3:])
    ]
    numbers = [float(text) for text in re.findall(r"from ([\d.]+) to ([\d.]+) ms", title(delay))[0]]
    assert numbers == [pytest.approx(1e3 * median, rel=0.02) for median in medians]
    with pytest.raises(AqmlabError, match="no run has responses of class nobody"):
        draw.cdf(runs, traffic="nobody")
    with pytest.raises(AqmlabError, match="link: found radio; the runs have bottleneck"):
        draw.cdf(runs, of="delay", link="radio")


def test_what_would_not_change_a_distribution_is_refused(aqmlab: Cli, runs: list[Run]) -> None:
    """Links are those of queueing delays, classes those of responses and connections."""
    answer = aqmlab("plot", "ccdf", runs[0].path, "--direction", "forward", "-o", "tail.svg")
    assert answer.status == 2
    assert answer.err.strip() == (
        "aqmlab: --direction: found forward, but responses belong to no link; "
        "choose of = delay, or leave it out"
    )
    with pytest.raises(AqmlabError, match="link: found bottleneck, but connections belong to no"):
        draw.cdf(runs, of="flow", link="bottleneck")
    with pytest.raises(AqmlabError, match="traffic: found pages, but queueing delays are those of"):
        draw.cdf(runs, of="delay", traffic="pages")


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (partial(figures.cdf, of="delay"), "no run has queueing delays at these links"),
        (figures.delay, 'add "queue" to measure.record'),
        (draw.flows, "set measure.flow_trace"),
        (draw.fairness, "set measure.flow_trace"),
        (draw.parameter, "differ in no parameter"),
        (draw.heat_map, "differ in no parameter"),
    ],
)
def test_what_was_not_recorded_is_named(draw: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(AqmlabError, match=words):
        draw([made_run(tmp_path / "bare", times=TIMES["few"])])


def test_nothing_at_all_is_named(tmp_path: Path) -> None:
    with pytest.raises(AqmlabError, match="no run has responses or queue samples"):
        draw.comparison([made_run(tmp_path / "nothing")])
    with pytest.raises(AqmlabError, match="a figure needs at least one run"):
        draw.cdf([])


# --- Over time ------------------------------------------------------------------------------------


def test_the_delay_is_what_is_queued_over_the_rate(runs: list[Run]) -> None:
    _, found = delays(runs[0], FORWARD) or (None, None)
    assert found is not None
    # 2 Mbit/s without framing; the estimate's mean is near the exact one of the packets.
    assert found.max() < 1e3 * 20 * 1500 * 8 / 2e6 * 1.01
    side = runs[0].summary["links"]["bottleneck"]["forward"]
    assert found.mean() == pytest.approx(1e3 * side["sojourn_mean_s"], rel=0.1)
    chart = draw.delay([runs[0]])
    drawn = rows(chart, "x", "y", "low")
    assert np.mean([row["y"] for row in drawn]) == pytest.approx(found.mean(), rel=0.02)
    assert "curves: an estimate, queued bytes / rate" in subtitle(chart).lower()
    # The title says what is drawn, the subtitle what the packets met.
    assert shown(float(found.mean())) in title(chart)
    assert f"over the packets: {shown(1e3 * side['sojourn_mean_s'])} ms" in subtitle(chart)


def test_a_rate_that_changes_is_the_one_of_the_moment(runs: list[Run]) -> None:
    scenario = {
        **runs[0].scenario,
        "topology": {
            "bottleneck": {
                "forward": {
                    "rate": "2 Mbit/s",
                    "rate_changes": [{"at": "10 s", "rate": "500 kbit/s"}],
                }
            }
        },
    }
    before = delays(runs[0], FORWARD)
    after = delays(replace(runs[0], scenario=scenario), FORWARD)
    assert before is not None
    assert after is not None
    late = before[0] >= 10
    positive = before[1] > 0
    np.testing.assert_allclose(
        after[1][~late & positive] / before[1][~late & positive], 1, rtol=0.05
    )
    np.testing.assert_allclose(after[1][late & positive] / before[1][late & positive], 4, rtol=0.05)


def test_curves_of_unlike_height_have_plots_of_their_own(runs: list[Run]) -> None:
    alike = draw.delay(runs).to_dict()["vconcat"]
    alone = draw.delay([runs[0], runs[3]]).to_dict()["vconcat"]
    assert len(alone) == 2 * len(
        chosen_links(configurations(runs))
    )  # bands of samples would cover each other
    assert len(alike) < len(alone)


def test_loaded_directions_are_drawn(runs: list[Run]) -> None:
    assert chosen_links(configurations(runs))[0] == FORWARD
    with pytest.raises(
        AqmlabError, match="direction: found sideways; the runs have forward, reverse"
    ):
        draw.delay(runs, direction="sideways")
    both = draw.delay(runs, direction="reverse")
    assert "Upload" in subtitle(both)


def test_connections_over_time(runs: list[Run]) -> None:
    chart = draw.flows([runs[0]])
    trace = runs[0].flow_trace
    assert trace is not None
    spec = chart.to_dict()
    assert [plot["layer"][1]["encoding"]["y"]["title"] for plot in spec["vconcat"]] == [
        "Cwnd (kB)",
        "RTT (ms)",
        "Rate (Mbit/s)",
    ]
    windows_kb = [row["high"] for row in data_of(chart, spec["vconcat"][0])]
    begin = runs[0].summary["simulated_s"] - runs[0].summary["measured_s"]
    measured = trace.filter(pc.greater_equal(trace["time_s"], begin))
    assert max(windows_kb) == pytest.approx(measured["cwnd_bytes"].to_numpy().max() / 1e3, rel=1e-3)
    assert min(row["x"] for row in data_of(chart, spec["vconcat"][0])) >= begin
    with pytest.raises(AqmlabError, match="y_label: found 'a', but the figure has several"):
        draw.flows([runs[0]], look=figures.Look(y_label="a"))
    with pytest.raises(AqmlabError, match="flow: found 99; the trace has"):
        draw.flows([runs[0]], flow=99)
    assert "longest-lived connection of each" in subtitle(draw.flows(runs))


def test_fairness_is_jains_index(runs: list[Run]) -> None:
    assert jain(np.array([1.0, 1, 1, 1])) == 1
    assert jain(np.array([4.0, 0, 0, 0])) == 0.25
    times, index = windows(runs[0], 2.0)
    assert 5 <= len(times) <= 10  # one that stalls up to the end does not last
    assert np.all((index >= 1 / 3) & (index <= 1))
    chart = draw.fairness([runs[0]], window_s=2.0)
    assert [row["y"] for row in rows(chart, "x", "y")] == [
        pytest.approx(v, rel=1e-5) for v in index
    ]
    assert shown(float(index.mean())) in title(chart)
    for wrong in (0, float("nan")):
        with pytest.raises(AqmlabError, match="window_s: found"):
            draw.fairness(runs, window_s=wrong)
    with pytest.raises(AqmlabError, match="or a longer window_s"):
        draw.fairness(runs, window_s=100)


# --- Parameters and trade-offs --------------------------------------------------------------------


def test_a_metric_against_a_parameter(swept: list[Run]) -> None:
    chart = draw.parameter(swept, metric="delay")
    drawn = {row["x"]: row for row in rows(chart, "x", "y", "low")}
    assert len(drawn) == 4
    for entry in configurations(swept):
        values = [
            1e3 * run.summary["links"]["bottleneck"]["forward"]["sojourn_mean_s"]
            for run in entry.runs
        ]
        row = drawn[entry.parameters["discipline"]]
        assert row["y"] == pytest.approx(np.mean(values), rel=1e-5)
        assert row["low"] < row["y"] < row["high"]
    # Names have no order: no line joins them, and the title names the smallest and the largest.
    assert "'type': 'line'" not in str(chart.to_dict())
    ranked = sorted(drawn.values(), key=lambda row: row["y"])
    assert f"({ranked[0]['x']})" in title(chart)
    assert f"({ranked[-1]['x']})" in title(chart)
    with pytest.raises(AqmlabError, match="the runs have no parameter disciplin"):
        draw.parameter(swept, x="disciplin")
    with pytest.raises(AqmlabError, match='there is no metric "dely"'):
        draw.parameter(swept, metric="dely")


def test_an_ellipse_is_one_standard_deviation() -> None:
    points = np.array([[10.0, 9], [12, 9.5], [14, 9.2], [11, 9.9]])
    seeds = range(len(points))
    place = Place(
        "a",
        Finding("a", dict(zip(seeds, points[:, 0].tolist(), strict=True))),
        Finding("a", dict(zip(seeds, points[:, 1].tolist(), strict=True))),
    )
    corners = np.array([[row["x"], row["y"]] for row in ellipse(place)], dtype=float)
    away = corners - points.mean(axis=0)
    distance = np.einsum("ij,jk,ik->i", away, np.linalg.inv(np.cov(points.T)), away)
    np.testing.assert_allclose(distance, 1)
    assert corners[:, 0].max() - points[:, 0].mean() == pytest.approx(
        points[:, 0].std(ddof=1), rel=0.01
    )
    assert ellipse(replace(place, cost=Finding("a", {0: 1.0, 1: 2.0}))) == []


def test_delay_runs_from_right_to_left(runs: list[Run]) -> None:
    for kind in (draw.throughput_delay, draw.utilization_delay):
        assert "'reverse': True" in str(kind(runs).to_dict())
    means = {row["series"]: row for row in rows(draw.throughput_delay(runs), "x", "y")[-2:]}
    for entry in configurations(runs):
        sides = [run.summary["links"]["bottleneck"]["forward"] for run in entry.runs]
        mean = np.mean(
            [[1e3 * side["sojourn_mean_s"], side["throughput_bps"] / 1e6] for side in sides], axis=0
        )
        assert [means[entry.label]["x"], means[entry.label]["y"]] == [
            pytest.approx(v) for v in mean
        ]


def test_the_front_is_what_nothing_beats() -> None:
    def at(name: str, cost: float, gain: float, spread: float = 0.1) -> Place:
        own = spread * (1 + cost / 10)  # equal differences of three seeds would say nothing
        sides = [{seed: value + own * seed for seed in (-1, 0, 1)} for value in (cost, gain)]
        return Place(name, Finding(name, sides[0]), Finding(name, dict(sides[1])))

    places = [at("a", 1, 90), at("b", 5, 95), at("c", 5, 80), at("d", 9, 94)]
    assert [one.name for one in front(places)] == ["a", "b"]
    assert possibly_on_front(places) == []
    noisy = Place(
        "n", Finding("n", {0: 1.0, 1: 9.0, 2: 6.0}), Finding("n", {0: 94.0, 1: 99.0, 2: 91.0})
    )
    solid = Place(
        "s", Finding("s", {0: 5.0, 1: 5.1, 2: 5.2}), Finding("s", {0: 95.0, 1: 95.1, 2: 95.2})
    )
    assert [one.name for one in possibly_on_front([solid, noisy])] == ["n"]


def test_bars_by_class(runs: list[Run]) -> None:
    chart = draw.classes(runs)
    drawn = {(row["series"], row["class"]): row["y"] for row in rows(chart, "class", "y")}
    for entry in configurations(runs):
        for name in ("fetches", "pages"):
            values = [run.summary["responses"][name]["p50_s"] for run in entry.runs]
            assert drawn[entry.label, name] == pytest.approx(np.mean(values), rel=1e-5)
    assert (runs[0].label, "transfers") not in drawn
    goodput = draw.classes(runs, metric="goodput")
    assert {row["class"] for row in rows(goodput, "class")} == {"fetches", "pages", "transfers"}
    with pytest.raises(AqmlabError, match="metric: found delay, which is of links"):
        draw.classes(runs, metric="delay")


def test_classes_are_no_change_of_each_other() -> None:
    """The title names both; it does not read as if one had become the other."""
    both = [Finding("web", {1: 0.4, 2: 0.42, 3: 0.41}), Finding("film", {1: 0.2, 2: 0.21, 3: 0.2})]
    assert finding(both, "median", "s", is_change=False) == (
        "Median: from 0.203 s (film) to 0.41 s (web)"
    )
    assert finding(both, "median", "s") == "film cuts the median from 0.41 to 0.203 s"


@pytest.mark.parametrize(("high", "kind"), [(90, "log"), (15, None)])
def test_values_of_unlike_size_share_a_logarithmic_axis(high: float, kind: str | None) -> None:
    time = np.arange(100.0)
    panels = [
        Panel(name, "Delay (ms)", {name: [(time, np.full(100, value))]})
        for name, value in (("low", 2.0), ("high", float(high)))
    ]
    plots = stacked(panels, ["low", "high"], figures.Look(), 300).to_dict()["vconcat"]
    scales = [plot["layer"][1]["encoding"]["y"]["scale"] for plot in plots]
    assert scales[0] == scales[1]
    assert scales[0].get("type") == kind


# --- Files and commands ---------------------------------------------------------------------------

STARTS = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>"}


@pytest.mark.parametrize("suffix", STARTS)
def test_every_format_is_written(suffix: str, runs: list[Run], tmp_path: Path) -> None:
    path = figures.save(draw.comparison(runs), tmp_path / "new" / f"figure{suffix}")
    assert path.read_bytes().startswith(STARTS[suffix])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_html_loads_nothing(runs: list[Run], tmp_path: Path) -> None:
    page = figures.save(draw.classes(runs), tmp_path / "f.html").read_text()
    assert "<script src" not in page
    assert "<link" not in page


def test_a_column_of_print_is_300_dots_per_inch(runs: list[Run], tmp_path: Path) -> None:
    look = figures.Look("column")
    png = figures.save(draw.classes(runs, look=look), tmp_path / "f.png").read_bytes()
    assert 1030 <= int.from_bytes(png[16:20], "big") <= 1055
    pdf = figures.save(draw.classes(runs, look=look), tmp_path / "f.pdf")
    [page] = pypdf.PdfReader(pdf).pages
    assert 249 <= float(page.mediabox.width) <= 252.5


def test_an_unknown_format_is_refused(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(AqmlabError, match=r"written as \.svg, \.png, \.pdf, \.html, not as \.gif"):
        figures.save(draw.classes(runs), tmp_path / "figure.gif")
    assert not list(tmp_path.glob("*figure*"))


def test_a_place_that_cannot_be_written_is_one_sentence(runs: list[Run], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AqmlabError, match="cannot be written"):
        figures.save(draw.classes(runs), tmp_path / "file" / "figure.svg")


def test_runs_of_one_label_are_told_apart(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / name, times=TIMES["few"]) for name in ("a", "b")]
    text = figures.save(draw.cdf(runs), tmp_path / "f.svg").read_text()
    assert ">droptail 120, limit a<" in text
    assert ">droptail 120, limit b<" in text


def test_more_than_eight_curves_get_other_patterns(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / str(k), label=f"run {k}", times=TIMES["few"]) for k in range(9)]
    text = figures.save(draw.cdf(runs), tmp_path / "f.svg").read_text()
    assert f'stroke-dasharray="{",".join(map(str, PATTERNS[1]))}"' in text


def test_too_many_curves_are_refused(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / str(k), label=str(k), times=TIMES["one"]) for k in range(33)]
    with pytest.raises(AqmlabError, match="at most 32 curves, not 33"):
        draw.cdf(runs)


def test_a_comparison_draws_what_there_is(tmp_path: Path) -> None:
    only = made_run(tmp_path / "only", queue=np.full(100, 5))
    text = figures.save(draw.comparison([only]), tmp_path / "f.svg").read_text()
    assert "queueing delay" in text
    assert "esponse time" not in text


def test_the_command_draws_a_kind(aqmlab: Cli, runs: list[Run]) -> None:
    paths = [run.path for run in runs]
    answer = aqmlab("plot", "cdf", *paths, "--of", "delay", "--width", "column", "-o", "f.svg")
    assert (answer.status, answer.out, answer.err) == (0, "figure: f.svg\n", "")
    assert Path("f.svg").read_text() == svg(
        figures.cdf(runs, of="delay", look=figures.Look("column")).to_dict()
    )
    folder = aqmlab("plot", "delay", paths[0].parent, "--theme", "dark")
    assert folder.out == "figure: delay.svg\n"
    assert THEMES["dark"].background in Path("delay.svg").read_text()


def test_the_command_lists_its_kinds(aqmlab: Cli) -> None:
    answer = aqmlab("plot", "--list")
    assert answer.status == 0
    assert all(f"{name} " in answer.out for name in kinds.names())
    assert "--of --class --link --direction --limit" in answer.out
    assert aqmlab("plot").out == answer.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dealy", "."], "No such command 'dealy'. Did you mean 'delay'?"),
        (["base.toml"], "base.toml: is a scenario; run it with `aqmlab run base.toml`"),
        (["."], "a kind of figure comes first: `aqmlab plot cdf .`"),
        (["cdf", "nowhere"], "nowhere: there is no such run directory"),
        (["cdf", ".", "--metric", "p50"], "No such option: --metric"),
        (["cdf", ".", "--of", "delai"], "'delai' is not one of 'response', 'flow', 'delay'"),
        (["cdf", "nowhere", "-o", "x.gif"], "x.gif: a figure is written as .svg"),
    ],
)
def test_wrong_commands(aqmlab: Cli, arguments: list[str], words: str) -> None:
    Path("base.toml").write_text(SMALL)
    answer = aqmlab("plot", *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert words in answer.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--limit", "-3"], "--limit: found -3"),
        (["--where", "rate"], "--where: found 'rate'; expected NAME=VALUE"),
        (["--name", "a=b"], "--name: found a; the figure has"),
        (["--height", "0"], "--height: found 0; expected a length above 0"),
        (["--title", "a", "--no-title"], "found both; give one of them"),
    ],
)
def test_wrong_options_are_named(
    aqmlab: Cli, options: list[str], words: str, runs: list[Run]
) -> None:
    answer = aqmlab("plot", "cdf", runs[0].path, *options)
    assert (answer.status, answer.out) == (2, "")
    assert words in answer.err
    assert not list(Path().glob("*.svg"))


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(AqmlabError, match="there is no figure cdff"):
        kinds.kind("cdff")


@pytest.mark.parametrize("name", kinds.names())
def test_a_figure_of_usual_labels_is_drawn_once(
    name: str, runs: list[Run], swept: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind knows about how much its axes take; the rest is the size that the file states."""
    drawn: list[dict[str, Any]] = []
    render = vl_convert.vegalite_to_svg

    def counted(spec: dict[str, Any], **options: Any) -> str:
        drawn.append(spec)
        return render(spec, **options)

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", counted)
    chart = chart_of(name, runs, swept, figures.Look())
    for suffix in ("svg", "png", "pdf"):
        figures.save(chart, f"figure.{suffix}")
    assert len(drawn) == 1


@pytest.mark.parametrize(("off", "rooms"), [(0, 1), (9, 1), (-9, 1), (60, 2), (-60, 2)])
def test_a_picture_states_the_width_of_its_look(off: float, rooms: int) -> None:
    """Shown 1 % smaller if it comes out 1 % wider; drawn anew if it comes out far wider."""
    asked: list[float] = []

    def build(room: float) -> Chart:
        asked.append(room)
        return Chart(inline([{"x": 1}]), width=room + off).mark("point")

    # A plot without axes takes its own width and the padding around it.
    chart = finish(build, figures.Look(), Heading("words"), margin=2 * 7 / 12)
    assert len(asked) == rooms
    [[width, inner]] = re.findall(r'width="(\d+)".* viewBox="0 0 (\d+) ', svg(chart.to_dict()))
    assert width == "900"
    assert int(inner) == 900 + (off if rooms == 1 else 0)


def test_a_figure_in_python_is_an_altair_chart(runs: list[Run]) -> None:
    """It can be changed, and is shown by what shows Altair's."""
    one = figures.cdf(runs[:2])
    assert isinstance(one, altair.LayerChart)
    wide = one.properties(title="words", width=300)
    assert isinstance(figures.comparison(runs[:2]), altair.VConcatChart)
    with altair.renderers.enable("svg"):
        assert "image/svg+xml" in str(one._repr_mimebundle_())
    figures.save(wide, "changed.svg")
    assert ">words<" in Path("changed.svg").read_text()
