"""Metrics of one's own: what their texts may say, and that every command has the same number."""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aqmlab import Run, Scenario, Sweep, SweepSummary, figures, run, sweep
from aqmlab.errors import AqmlabError
from aqmlab.figures import curves
from aqmlab.results import own_metrics, python_metrics
from aqmlab.results.formula import Formula
from aqmlab.results.metrics import OWN
from aqmlab.results.own_metrics import Definition, define, formula, measured, option
from aqmlab.results.quantity import Quantity
from conftest import Cli

NAN = math.nan
PACKETS = pa.table(
    {
        "link": ["bottleneck"] * 6,
        "direction": ["forward"] * 4 + ["reverse"] * 2,
        "wait_ns": pa.array([10**6, 2 * 10**6, None, 4 * 10**6, 8 * 10**6, None], pa.uint64()),
        "class": pa.array(["calls", "calls", "calls", "web", "web", "web"]).dictionary_encode(),
        "kind": ["data", "syn", "syn", "data", "ack", "syn"],
        "size_bytes": pa.array([1500, 40, 40, 1500, 40, 40], pa.uint32()),
        "again": [False, False, True, False, True, True],
        "outcome": ["left", "marked", "early", "left", "left", "overflow"],
    }
)
QUEUE = pa.table(
    {
        "time_s": np.arange(5.0),
        "bytes": pa.array([0, 1500, 3000, 1500, 0], pa.uint64()),
        "packets": pa.array([0, 1, 2, 1, 0], pa.uint32()),
    }
)
SUMMARY = {
    "measured_s": 2.0,
    "links": {"bottleneck": {"forward": {"throughput_bps": 8e6, "sojourn_mean_s": 0.002}}},
    "responses": {"all": {"p50_s": 0.5, "p90_s": None}},
}
MADE = Run.in_memory(
    {"title": "made", "seed": 1, "measure": {"record": ["packets", "queue"]}},
    SUMMARY,
    {"packets": PACKETS, "queue": QUEUE},
    label="made",
)
RECORD = 'measure.record=["packets", "queue"]'


def forget() -> None:
    """As a new process has it."""
    own_metrics.forget()
    python_metrics.forget()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mean(packets.wait_s)", 0.00375),
        ("mean(packets.wait_s) in ms", 3.75),
        ("mean(packets.wait_ns) in ms", 3.75),
        ("quantile(packets.wait_s, 0.5) in ms", 2.0),
        ("quantile(packets.wait_s, 0.51) in ms", 4.0),
        ("quantile(packets.wait_s, 0) in ms", 1.0),
        ("quantile(packets.wait_s, 1) in ms", 8.0),
        ("median(packets.wait_s) in ms", 2.0),
        ("min(packets.wait_s, where=packets.class == 'web') in ms", 4.0),
        ('max(packets.wait_s, where=packets.direction == "forward") in ms', 4.0),
        ("std(packets.wait_s, where=packets.class == 'calls') in ms", math.sqrt(0.5)),
        ("sum(packets.size_bytes) in kB", 3.16),
        ("rate(packets.size_bytes) in kbit/s", 12.64),
        ("rate(packets.wait_s)", 0.0075),
        ("count(packets.kind == 'syn')", 3),
        ("count(packets.kind == 'syn', where=packets.class == 'calls')", 2),
        ("count(packets.kind == 'nothing')", 0),
        ("count(packets.wait_s)", 4),
        ("count(packets.again)", 3),
        ("count(not packets.again)", 3),
        ("count(not not packets.again)", 3),
        ("share(packets.outcome in ('early', 'overflow')) in %", 100 / 3),
        ("share(packets.outcome in ['early', 'overflow'], where=packets.kind == 'syn')", 2 / 3),
        ("share(packets.outcome not in ('early', 'overflow'))", 2 / 3),
        ("share(packets.wait_s > 0.003)", 0.5),
        ("share(not packets.wait_s > 0.003)", 0.5),
        ("share(packets.wait_s != 0.004)", 0.75),
        ("share(0.001 < packets.wait_s <= 0.004)", 0.5),
        ("share(packets.wait_s > 0.003 or packets.kind == 'syn')", 5 / 6),
        ("share(packets.wait_s > 0.003 and packets.kind == 'syn')", 0.0),
        ("share(packets.class == packets.kind)", 0.0),
        ("share(packets.again == true, where=packets.size_bytes in (40, 41))", 0.75),
        ("mean(packets.again)", 0.5),
        ("mean(packets.wait_s * packets.size_bytes)", 1.975),
        ("mean(packets.wait_s - 0.001) in us", 2750),
        ("mean(packets.size_bytes / (packets.wait_s - packets.wait_s))", None),
        ("mean(-packets.size_bytes)", -3160 / 6),
        ("jain(packets.size_bytes)", 3160**2 / (6 * (2 * 1500**2 + 4 * 40**2))),
        ("max(queue.bytes, where=queue.time_s >= 2) * 8 / 10e6 in s", 0.0024),
        ("links.bottleneck.forward.throughput_bps / links.bottleneck.forward.sojourn_mean_s", 4e9),
        ("delay.forward in us", 2000.0),
        ("throughput.forward in Mbit/s", 8.0),
        ("-(delay.forward - 0.001) in ms", -1.0),
        ("max(packets.wait_s) / delay.forward", 4.0),
        ("p90", None),
        ("1 / (p50 - 0.5)", None),
        ("1 + p90", None),
        ("mean(packets.wait_s, where=packets.class == 'games')", None),
        ("count(packets.again, where=packets.class == 'games')", None),
        ("std(packets.wait_s, where=packets.wait_s > 0.004)", None),
        ("2e-1 + .5", 0.7),
    ],
)
def test_what_a_text_comes_to(text: str, value: float | None) -> None:
    assert MADE.metric(text) == (None if value is None else pytest.approx(value, rel=1e-12))


BAD = {
    "quantile(packets.wate_s, 0.99)": 'packets has no column "wate_s"; did you mean "wait_s"?',
    "quantil(packets.wait_s, 0.99)": 'there is no function "quantil"; did you mean "quantile"? '
    "(there are count, share, sum, rate, mean, std, min, max, median, quantile, jain)",
    "quantile(packets.wait_s, 99)": "quantile: found 99; expected a share from 0 to 1, such as "
    "0.99",
    "packets.wait_s": "packets.wait_s: is a column, not a number; take mean(...), quantile(...), "
    "count(...) of it",
    "mean(mean(packets.wait_s))": "mean(...): a function stands inside another; metrics are joined "
    "with + - * /",
    "mean(packets.wait_s, were=packets.again)": 'mean has no "were"; it has where',
    "quantile(packets.wait_s)": "quantile takes 2 values, found 1",
    "mean(links.bottleneck.forward.loss_rate)": "links.bottleneck.forward.loss_rate: is a number "
    "of the summary; it cannot stand among columns",
    "mean(packets.wait_s + flows.duration_s)": "mean: needs columns of one table, found flows, "
    "packets",
    "mean(packets.wait_s, where=flows.failed)": "mean: needs columns of one table, found flows, "
    "packets",
    "9**9**9": 'found "**"; possible are + - * /',
    '__import__("os")': 'there is no function "__import__" (there are count, share, sum, rate, '
    "mean, std, min, max, median, quantile, jain)",
    "[x for x in packets.wait_s]": 'found "["; a list stands behind in only',
    "1" * 501: "is longer than 500 characters",
    "": "is empty; expected a metric such as quantile(packets.wait_s, 0.99)",
    "mean(packets.wait_s": "ends too early; is a bracket open?",
    "mean(pakets.wait_s)": 'there is no table "pakets"; did you mean "packets"? (there are packets,'
    " responses, flows, queue, flow_trace, breakdown, distribution)",
    "mean(packets.class)": "mean: packets.class holds texts; it can stand in a test only",
    "count(packets.kind == 5)": "count: packets.kind is a text, found the number 5",
    "count(packets.kind < 'syn')": 'count: found "<" between texts; possible are == != in',
    "count(packets.wait_s > packets.size_bytes)": "count: found s and bytes; they cannot be "
    "compared",
    "mean(packets.wait_s + packets.size_bytes)": "packets.wait_s + packets.size_bytes: found s and "
    "bytes; they cannot be added",
    "mean(packets.wait_s, where=packets.kind = 'x')": 'found "="; a test of equality is ==',
    "mean(packets.wait_s) in Mbit/s": 'found "in Mbit/s", but the number is in s; possible are ns, '
    "us, ms, s, min, h",
    "mean(packets.wait_s) in fortnights": 'there is no unit "fortnights" (there are ns, us, ms, s, '
    "min, h, bit/s, kbit/s, Mbit/s, Gbit/s, bytes/s, kB/s, MB/s, bytes, kB, MB, GB, %)",
    "delay": '"delay" does not say of which link and direction; delay.forward and delay.reverse '
    "are of the bottleneck, delay.LINK.forward is of another link",
    "links.bottleneck.forward.loss_rat": "links.bottleneck.forward.loss_rat: there is no loss_rat; "
    'did you mean "loss_rate"?',
    "packets.wait_s > 3": "packets.wait_s > 3: is a test, not a number; take count(...) or "
    "share(...) of it",
    "count(calls == 1)": "count: found calls; expected a column such as packets.wait_s, or a text "
    "in quotes",
    "mean(1)": "mean: needs a column, such as packets.wait_s",
    "(" * 60 + "1" + ")" * 60: "is nested too deeply",
    "1e999": "found 1e999, which is not finite",
    "mean(packets.wait_s, where=packets.again, 3)": "mean: found a value behind where=; it comes "
    "last",
    "mean": "mean: is a function; it takes a column, such as packets.wait_s",
    "a.b; import os": 'found "; import os"; expected numbers, names, texts in quotes, + - * /',
}


@pytest.mark.parametrize(("text", "message"), BAD.items(), ids=lambda text: str(text)[:40])
def test_what_is_wrong_with_a_text(text: str, message: str) -> None:
    with pytest.raises(AqmlabError) as error:
        formula(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("p95", "the name is taken by the metric responses.all.p95_s"),
        ("packets", "the name is taken by a table"),
        ("mean", "the name is taken by the metric responses.all.mean_s"),
        ("quantile", "the name is taken by a function"),
        ("loss_rate", "the name is taken by a number of summary.json"),
        ("my name", "names are letters, digits and _, and begin with no digit"),
        ("9th", "names are letters, digits and _, and begin with no digit"),
        ("naïve", "names are letters, digits and _, and begin with no digit"),
    ],
)
def test_names_that_a_metric_cannot_have(name: str, message: str) -> None:
    with pytest.raises(AqmlabError) as error:
        define([option(f"{name} = 1")])
    assert str(error.value) == f"--metric: {name}: {message}"


def test_one_name_has_one_text() -> None:
    define([Definition("x", "max(queue.bytes)", "sweep a")])
    define([Definition("x", "max(queue.bytes) ", "sweep b")])
    with pytest.raises(AqmlabError) as error:
        define([Definition("x", "min(queue.bytes)", "--metric")])
    assert str(error.value) == (
        "x: has two definitions; sweep b: max(queue.bytes); --metric: min(queue.bytes)"
    )
    define([Definition("x", "min(queue.bytes)", "sweep b")])  # the file was changed
    assert measured(MADE).summary["metrics"] == {"x": 0.0}


def test_a_metric_is_a_number_of_the_summary() -> None:
    define([option("late = share(packets.wait_s > 0.003) in %"), option("nothing = p90")])
    found = measured(MADE)
    assert found.summary["metrics"] == {"late": 50.0, "nothing": None}
    quantity = Quantity.read("late")
    assert (quantity.of(found), quantity.unit, quantity.bounds) == (50.0, "%", (0.0, 100.0))
    assert Quantity.read("metrics.late") == Quantity("metrics.late", "metrics", "", "late",
                                                     OWN["late"])  # fmt: skip
    assert own_metrics.unmeasured([found, found]) == [
        "nothing: not measured in 2 of 2 runs: no row fits"
    ]
    with pytest.raises(AqmlabError, match="late: is a metric of your own"):
        formula("2 * late")


def test_a_run_without_the_table() -> None:
    bare = Run.in_memory({"seed": 1, "measure": {"record": ["flows"]}}, SUMMARY, {}, label="bare")
    with pytest.raises(AqmlabError) as error:
        bare.metric("mean(packets.wait_s)")
    assert str(error.value) == (
        "this metric reads packets.parquet, which these runs did not record; run them again with "
        """--set 'measure.record=["flows", "packets"]'"""
    )


WORDS = (
    *("packets", "flows", "wait_s", "class", "mean", "quantile", "count", "share", "where", "in"),
    *("not", "and", "or", "0.5", "1e9", "99", "(", ")", "[", "]", ",", "=", "==", "<", "+", "-"),
    *("*", "/", "**", ".", '"calls"', "'", '"', "p50", "delay.forward", "packets.wait_s", "ms"),
    *("packets.class", "packets.again", "links.bottleneck.forward.loss_rate", "é", "\n", "\x00"),
    *("queue.bytes", "max(queue.bytes)", "count(packets.again)", "packets.wait_s > 0.001", "%"),
)


def test_any_text_ends_in_a_number_or_one_line_of_error() -> None:
    dice = random.Random(57)
    numbers = errors = 0
    slowest = 0.0
    for _ in range(10_000):
        joint = dice.choice(("", " ", " "))
        text = joint.join(dice.choices(WORDS, k=dice.randint(1, 14)))
        if dice.random() < 0.4:
            test = " ".join(dice.choices(WORDS, k=dice.randint(1, 3)))
            text = f"mean(packets.wait_s, where={test})"
        began = time.process_time()
        try:
            found = MADE.metric(text)
            assert found is None or math.isfinite(found)
            numbers += 1
        except AqmlabError:
            errors += 1
        slowest = max(slowest, time.process_time() - began)
    assert numbers > 100, "the texts would show little"
    assert errors > 1000
    assert slowest < 0.05


TEXT = 'quantile(packets.wait_s, 0.99, where=packets.direction == "forward") in ms'


def by_hand(folder: Path) -> float:
    """The same number, from the file alone."""
    table = pq.read_table(folder / "packets.parquet", columns=["wait_ns", "direction"])
    rows = zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    waits: list[float] = sorted(
        wait / 1e9 for wait, way in rows if wait is not None and way == "forward"
    )
    return waits[math.ceil(0.99 * len(waits)) - 1] * 1000


def planned(folder: Path, text: str = TEXT) -> Path:
    """A sweep file with the metric."""
    file = folder / "queues.toml"
    file.write_text(
        f"""
        scenario = "small.toml"
        seeds = "1..2"
        set = {{ "measure.record" = ["packets", "queue"] }}
        metrics = {{ waited = '{text}' }}
        [[axes]]
        name = "rate"
        field = "topology.bottleneck.rate"
        values = ["2 Mbit/s", "4 Mbit/s"]
        """
    )
    return file


@pytest.mark.usefixtures("small")
def test_every_command_has_the_same_number(elsewhere: Path, aqmlab: Cli) -> None:
    plan = Sweep.load(planned(elsewhere))
    table = sweep(plan, jobs=2, progress=False)
    rows = table.select(["rate", "seed", "key", "metrics.waited"]).to_pylist()
    assert len(rows) == 4
    by_key = {row["key"]: row["metrics.waited"] for row in rows}
    for key, value in by_key.items():
        folder = elsewhere / "runs/store" / key[:2] / key
        assert value == by_hand(folder) == Run.open(folder).metric(TEXT)
    folders = [elsewhere / "runs/store" / key[:2] / key for key in by_key]

    own_metrics.forget()  # as a new process has it
    answer = aqmlab("compare", *folders, "--metric", f"waited = {TEXT}", "--tsv")
    head, *lines = (line.split("\t") for line in answer.out.splitlines())
    place = head.index("metrics.waited")
    assert {float(line[place]) for line in lines} == set(by_key.values())

    own_metrics.forget()
    found = aqmlab("compare", "runs/sweeps/queues", "--json", "--no-figure")
    summaries = [entry["summary"]["metrics"] for entry in json.loads(found.out)["runs"]]
    assert {one["waited"] for one in summaries} == set(by_key.values())

    own_metrics.forget()
    chart = aqmlab("plot", "parameter", "runs/sweeps/queues", "--metric", "waited", "-o", "a.html")
    assert chart.status == 0, chart.err
    means = [np.mean([row["metrics.waited"] for row in rows if row["rate"] == rate])
             for rate in ("2 Mbit/s", "4 Mbit/s")]  # fmt: skip
    assert "waited (ms)" in (elsewhere / "a.html").read_text()
    own_metrics.forget()
    drawn = json.dumps(figures.parameter("runs/sweeps/queues", metric="waited").to_dict())
    assert all(f'"y": {curves.number(mean)}' in drawn for mean in means)

    summary = SweepSummary(plan, table)
    assert [point.estimates["waited"].mean for point in summary.points] == pytest.approx(means)


@pytest.mark.usefixtures("small")
def test_a_kept_number_is_never_that_of_another_text(elsewhere: Path, aqmlab: Cli) -> None:
    assert aqmlab("sweep", planned(elsewhere)).status == 0
    first = pq.read_table("runs/sweeps/queues/results.parquet").column("metrics.waited").to_pylist()
    own_metrics.forget()
    other = TEXT.replace("0.99", "0.5")
    answer = aqmlab("sweep", planned(elsewhere, other), "--metric", "m = max(queue.packets)")
    assert answer.status == 0, answer.err
    assert "to make" not in answer.err, "no run is made again"
    table = pq.read_table("runs/sweeps/queues/results.parquet")
    second = table.column("metrics.waited").to_pylist()
    assert all(small < large for small, large in zip(second, first, strict=True))
    assert table.column("metrics.m").to_pylist() == [
        Run.open(Path("runs/store") / key[:2] / key).metric("max(queue.packets)")
        for key in table.column("key").to_pylist()
    ]
    own_metrics.forget()
    assert aqmlab("sweep", planned(elsewhere)).status == 0
    again = pq.read_table("runs/sweeps/queues/results.parquet")
    assert again.column("metrics.waited").to_pylist() == first
    assert "metrics.m" not in again.column_names


@pytest.mark.usefixtures("small")
def test_a_number_is_kept(elsewhere: Path, aqmlab: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert aqmlab("sweep", planned(elsewhere)).status == 0
    first = (elsewhere / "runs/sweeps/queues/results.parquet").read_bytes()

    def refuse(*_: object) -> float:
        raise AssertionError("a run was read again")

    monkeypatch.setattr(Formula, "of", refuse)
    assert aqmlab("sweep", elsewhere / "queues.toml").status == 0
    assert (elsewhere / "runs/sweeps/queues/results.parquet").read_bytes() == first


@pytest.mark.usefixtures("small")
def test_a_sweep_that_lacks_the_table_ends_before_any_run(elsewhere: Path, aqmlab: Cli) -> None:
    file = planned(elsewhere)
    file.write_text(file.read_text().replace('"packets", "queue"', '"queue"'))
    answer = aqmlab("sweep", file)
    assert answer.status == 2
    assert answer.err == (
        "aqmlab: waited: this metric reads packets.parquet, which these runs did not record; run "
        """them again with --set 'measure.record=["queue", "packets"]'\n"""
    )
    assert not list(elsewhere.glob("runs/store/*/*"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('waited = "men(packets.wait_s)"', 'metrics.waited: there is no function "men"'),
        ("waited = 3", "metrics.waited: found 3; expected a text, or a table such as"),
        ('waited = { unit = "%" }', "metrics.waited: of is missing"),
        ('p95 = "max(queue.bytes)"', "metrics.p95: the name is taken by the metric responses.all"),
        ('x = { of = "p50", better = "mor" }', 'metrics.x.better: found "mor"; expected less or '),
        (
            'x = { of = "p50", colour = "red" }',
            "metrics.x.colour: unknown key (allowed: of, python",
        ),
        (
            'x = { of = "p50 in ms", unit = "s" }',
            "metrics.x: found a unit in the text and in unit; ",
        ),
    ],
)
@pytest.mark.usefixtures("small")
def test_what_is_wrong_with_a_table_of_metrics(entry: str, message: str, aqmlab: Cli) -> None:
    Path("bad.toml").write_text(f'scenario = "small.toml"\n[metrics]\n{entry}\n')
    answer = aqmlab("sweep", "bad.toml")
    assert answer.status == 2
    assert answer.err.startswith(f"aqmlab: {message}"), answer.err


@pytest.mark.usefixtures("small")
def test_compare_shows_metrics_and_their_differences(aqmlab: Cli) -> None:
    rows = "late = count(responses.response_s > 0.2)"
    answer = aqmlab(
        *("compare", "small.toml", "--vary", "topology.bottleneck.rate=2 Mbit/s,4 Mbit/s"),
        *("--seeds", "1..3", "--metric", rows, "--metric", "nothing = p50 / 0", "--no-figure"),
    )
    assert answer.status == 0, answer.err
    assert answer.out.count("\nlate ") == 2, "once among the numbers, once among the differences"
    assert "warning: nothing: not measured in 6 of 6 runs" in answer.err
    every = aqmlab("compare", "runs", "--metric", rows, "--no-figure", "--all").out
    assert "metrics of your own, 3 seeds each" in every


@pytest.mark.parametrize("text", ["late", "= 3", "late =", "a == b"])
def test_an_option_is_a_name_and_a_text(text: str, aqmlab: Cli) -> None:
    answer = aqmlab("compare", ".", "--metric", text)
    assert answer.status == 2
    assert answer.err.startswith(f'aqmlab: --metric: found "{text}"; expected NAME = TEXT')


@pytest.mark.usefixtures("small")
def test_compare_of_runs_without_the_table(aqmlab: Cli) -> None:
    vary = ("--vary", "topology.bottleneck.rate=2 Mbit/s,4 Mbit/s", "--no-figure")
    metric = ("--metric", "m = mean(packets.wait_s)")
    answer = aqmlab("compare", "small.toml", *vary, *metric)
    assert answer.status == 2
    assert "m: this metric reads packets.parquet" in answer.err
    assert not Path("runs").exists(), "nothing runs before"
    own_metrics.forget()
    assert aqmlab("compare", "small.toml", *vary).status == 0
    own_metrics.forget()
    assert aqmlab("compare", "runs", *metric, "--no-figure").status == 2


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_a_search_for_a_metric_of_ones_own(aqmlab: Cli) -> None:
    pytest.importorskip("optuna", reason="NO SEARCH IS TESTED: optuna is not installed")

    def search(text: str, *more: str) -> Any:
        own_metrics.forget()
        return aqmlab(
            *(
                "tune",
                "small.toml",
                "--vary",
                "topology.bottleneck.discipline.limit=5..40 packets:whole",
            ),
            *("--set", RECORD, "--metric", f"waited = {text}", "--goal", "minimize waited"),
            *("--seeds", "1..2", "--trials", "4", "--confirm", "2", *more),
        )

    answer = search(TEXT, "--constraint", "waited <= 900 ms", "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    own_metrics.forget()
    text = json.dumps(found)
    scenario = Scenario.load("small.toml", [tuple(RECORD.split("=", 1))])  # type: ignore[list-item]
    untuned = [run(scenario.with_seed(seed), progress=False).metric(TEXT) for seed in (1, 2)]
    assert all(str(value) in text for value in untuned), "the untuned numbers are those of the runs"
    other = search(TEXT.replace("0.99", "0.5"), "--constraint", "waited <= 900 ms")
    assert other.status == 2
    assert "choose another --out" in other.err, other.err
    lacking = aqmlab(
        *("tune", "small.toml", "--vary", "topology.bottleneck.discipline.limit=5..9 packets"),
        *("--goal", "minimize waited", "--out", "other"),
    )
    assert lacking.status == 2
    assert "waited: this metric reads packets.parquet" in lacking.err


@pytest.mark.usefixtures("small")
def test_a_report_has_metrics_of_ones_own(aqmlab: Cli) -> None:
    answer = aqmlab("run", "small.toml")
    assert answer.status == 0
    folder = next(Path("runs").iterdir())
    text = "late = share(responses.response_s > 0.2) in %"
    assert aqmlab("report", folder, "-o", "r.md", "--metric", text).status == 0
    value = Run.open(folder).metric(text.partition("=")[2])
    page = Path("r.md").read_text()
    assert "etrics of your own" in page
    assert f"{value:.4g}" in page


CODE = '''
"""Metrics of this file."""
import math


def longest(run):
    """The longest wait."""
    waits = run.packets.column("wait_ns").drop_null().to_pylist()
    return _second(max(waits))


def _second(nanoseconds):
    return nanoseconds / 1e9


def wrong(run):
    return {}
'''


def test_a_metric_in_python(elsewhere: Path, small: Path, aqmlab: Cli) -> None:
    file = elsewhere / "mine.py"
    file.write_text(CODE.format("None"))
    text = planned(elsewhere).read_text()
    entry = '{ python = "mine.py:longest", unit = "s", reads = ["packets"], better = "less" }'
    plan = elsewhere / "python.toml"
    plan.write_text(text.replace(f"waited = '{TEXT}'", f"longest = {entry}"))
    refused = aqmlab("sweep", plan)
    assert refused.status == 2
    assert refused.err == (
        "aqmlab: metrics.longest: is code of mine.py, which runs if you allow it: --metrics "
        "mine.py\n"
    )
    answer = aqmlab("sweep", plan, "--metrics", file)
    assert answer.status == 0, answer.err
    rows = pq.read_table("runs/sweeps/python/results.parquet").to_pylist()
    for row in rows:
        folder = Path("runs/store") / row["key"][:2] / row["key"]
        assert row["metrics.longest"] == Run.open(folder).metric("max(packets.wait_s)")
        assert row["metrics.wrong"] is None
    stated = json.loads(Path("runs/sweeps/python/sweep.json").read_text())["metrics"]["longest"]
    assert stated["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()

    forget()  # the results are enough for a figure
    drawn = aqmlab("plot", "parameter", plan, "--metric", "longest", "-o", "a.svg")
    assert drawn.status == 0, drawn.err
    forget()
    file.write_text(CODE.format("None").replace("max(waits)", "2 * max(waits)"))
    assert aqmlab("sweep", plan, "--metrics", file).status == 0, "another file is another number"
    after = pq.read_table("runs/sweeps/python/results.parquet").column("metrics.longest")
    assert after.to_pylist() == [2 * row["metrics.longest"] for row in rows]
    assert small.exists()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("'1'", "mine.py:wrong gives '1' of "),
        ("True", "mine.py:wrong gives 'True' of "),
        ("[1.0]", "mine.py:wrong gives '[1.0]' of "),
        ("math.nan", "mine.py:wrong gives 'nan' of "),
        ("run.nothing", "mine.py:17: AttributeError: 'Run' object has no attribute 'nothing' (in "),
        ("1 / 0", "mine.py:17: ZeroDivisionError: division by zero (in "),
    ],
)
def test_what_a_function_may_not_give(
    result: str, message: str, aqmlab: Cli, small: Path, elsewhere: Path
) -> None:
    assert aqmlab("run", small).status == 0
    Path("mine.py").write_text(CODE.format(result).replace("longest", "_longest"))
    answer = aqmlab("compare", "runs", next(Path("runs").iterdir()), "--metrics", "mine.py")
    assert answer.status == 2
    assert answer.err.startswith(f"aqmlab: wrong: {message}"), answer.err
    assert elsewhere.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(run:\n", "mine.py:1: SyntaxError: "),
        ("x = 1\nraise OSError('no')\n", "mine.py:2: OSError: no"),
        ("x = 1\n", "mine.py: has no function; expected one such as def mine(run):"),
        ("def p95(run):\n    return 1\n", "p95: the name is taken by the metric"),
    ],
)
def test_what_is_wrong_with_a_file_of_metrics(text: str, message: str, aqmlab: Cli) -> None:
    Path("mine.py").write_text(text)
    answer = aqmlab("compare", ".", "--metrics", "mine.py")
    assert answer.status == 2
    assert answer.err.startswith(f"aqmlab: --metrics: {message}"), answer.err
