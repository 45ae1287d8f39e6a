"""Comparisons draw no wrong conclusion: the right queue, the right baseline, one scenario."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aqmlab
import pytest
from aqmlab import AqmlabError, Run, Scenario
from aqmlab._util.table import TableModel
from aqmlab.results.baseline import comparisons, scenarios_of
from aqmlab.results.compare import Difference, differences
from aqmlab.results.conclusion import conclusion, effects
from aqmlab.results.formats import format_seeds
from aqmlab.results.groups import Group
from aqmlab.results.statistics import Estimate
from aqmlab.results.tables import comparison, difference_cell
from conftest import SMALL, Cli

QUEUE = "topology.bottleneck.discipline"
OWN = "topology.bottleneck.reverse.discipline"
BUSY = {"utilization": 0.9, "loss_rate": 0.0, "mark_rate": 0.0, "queue_mean_packets": 864.0}
IDLE = {**BUSY, "utilization": 0.1, "queue_mean_packets": 0.0}
UPLOADS = SMALL.replace("[[traffic]]", '[[traffic]]\ndirection = "reverse"').replace(
    "[[traffic]]",
    '[topology.bottleneck.reverse]\nrate = "2 Mbit/s"\n'
    'discipline = { kind = "droptail", limit = "1000 packets" }\n[[traffic]]',
)


def made(*overrides: tuple[str, str], path: str = "a", **flows: Mapping[str, Any]) -> Group:
    """A run of the small scenario with a loaded upload, as a group of its own."""
    scenario = Scenario.from_toml(SMALL, overrides).data
    summary: dict[str, Any] = {
        "links": {"bottleneck": {"forward": IDLE, "reverse": BUSY}},
        "responses": {name: {"count": 0} for name in flows},
        "flows": flows,
    }
    run = Run.in_memory(scenario, summary, path=path)
    return Group(run.label, (run,))


def change(run: str, metric: str, low: float, high: float, basis: str = "") -> Difference:
    """A difference with some interval."""
    found = Estimate((low + high) / 2, low, high, 3, "t")
    return Difference(run, "droptail 20", "all", metric, found, True, basis)


def answered() -> tuple[Run, ...]:
    """A run with responses."""
    row = {"count": 500, "p50_s": 1.0, "p90_s": 3.0}
    run = made().first
    summary = {**run.summary, "responses": {"all": row, "fetches": row}}
    return (Run.in_memory(run.scenario, summary, path="b"),)


def test_a_difference_that_rounds_to_zero_stands_out_nowhere() -> None:
    """However sure it is, nobody feels it."""
    assert change("a", "p50_s", 0.00001, 0.00003).clear
    for low, high, tone in ((0.00001, 0.00003, ""), (0.01, 0.03, "worse"), (-0.01, 0.03, "")):
        assert difference_cell(change("a", "p50_s", low, high)).tone == tone
    groups = [Group("droptail 20", answered() * 3), Group("a", answered() * 3)]
    sure = [change("a", "p50_s", 0.00001, 0.00003), change("a", "p90_s", 0.1, 0.3)]
    assert [one.outcome for one in effects(sure, groups)] == ["same", "worse"]


def test_the_trap(aqmlab: Cli) -> None:
    """The upload is full: its queue is shown, its discipline names the rows, and it is varied."""
    Path("office.toml").write_text(UPLOADS)
    refused = aqmlab("compare", "office.toml", "--vary", f"{QUEUE}=droptail-240,fq-codel")
    assert refused.status == 2
    assert f"{OWN} wins" in refused.err
    answer = aqmlab("compare", "office.toml", "--vary", f"{OWN}=droptail-240,fq-codel")
    assert answer.status == 0
    assert "\nreverse mean queueing delay (ms) " in answer.out
    assert "forward" not in answer.out
    [longer, shorter] = [
        json.loads(Path(line.split()[2], "summary.json").read_text())["links"]["bottleneck"]
        for line in answer.out.splitlines()
        if line.startswith("run directory")
    ]
    queue = "queue_mean_packets"
    assert longer["reverse"][queue] > shorter["reverse"][queue] > longer["forward"][queue]
    every = aqmlab("compare", "office.toml", "--all", "--vary", f"{OWN}=droptail-240,fq-codel")
    shown = [line.split() for line in every.out.splitlines() if " bottleneck reverse " in line]
    assert [row[0] for row in shown] == ["droptail-240", "fq-codel"]
    assert f"{longer['reverse'][queue]:.1f}" in shown[0]
    single = aqmlab("run", "office.toml")
    assert "bottleneck reverse" in single.out
    assert "idle, not shown: bottleneck forward" in single.out


def test_tables_show_loaded_links_alone() -> None:
    """With what the queue that matters held."""
    groups = [made(), made((QUEUE, "fq-codel"), path="b")]
    [table] = comparison(groups)
    # No marks, no column of marks; nothing measured, no column.
    heads = ["run", "link", "loss %", "busy %", "queue mean"]
    assert [column.short for column in table.columns] == heads
    assert table.head[0] == "configuration"
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [(row[:2], row[-1]) for row in rows] == [
        (["droptail 20", "upload"], "864.0"),
        (["fq-codel", "upload"], "864.0"),
    ]


def _first_row(table: TableModel) -> dict[str, str]:
    """What the first row has, by the heads on a terminal."""
    return {
        column.short: cell.text for column, cell in zip(table.columns, table.rows[0], strict=True)
    }


def test_traffic_without_responses_is_shown_by_what_it_has() -> None:
    """Bulk transfers have goodput and time-outs, datagrams a loss; a starved class is shown too."""
    bulk = {"goodput_bps": 2e6, "fairness_jain": 0.9, "span_timeouts": 3, "datagrams_sent": 0}
    call = {
        "goodput_bps": 1e6,
        "span_timeouts": 0,
        "datagrams_sent": 200,
        "datagram_loss_rate": 0.025,
    }
    groups = [made(bulk=bulk, call=call), made(path="b", bulk={**bulk, "goodput_bps": 0.0})]
    transfers, datagrams, _ = comparison(groups)
    # A table each: no column stands there for the other kind of traffic.
    assert _first_row(transfers) == {
        "run": groups[0].label,
        "class": "bulk",
        "goodput Mbit/s": "2.000",
        "Jain": "0.900",
        "timeouts": "3",
    }
    assert _first_row(datagrams) == {
        "run": groups[0].label,
        "class": "call",
        "goodput Mbit/s": "1.000",
        "loss %": "2.50",
    }
    assert transfers.rows[1][2].text == "0.000"
    [goodput, *_] = differences(groups)
    assert (goodput.traffic, goodput.metric, goodput.difference) == ("bulk", "goodput_bps", -2e6)
    assert goodput.interval is None


def test_the_baseline_is_drop_tail() -> None:
    """Wherever it stands, and whatever its folder is called."""
    groups = [made((QUEUE, "fq-codel"), path="a"), made(path="z")]
    [(first, others)] = comparisons(groups)
    assert (first.label, [other.label for other in others]) == ("droptail 20", ["fq-codel"])
    # What queue the idle direction has does not matter.
    forward = "topology.bottleneck.forward.discipline"
    mixed = [groups[0], made((forward, "fq-codel"), path="z")]
    assert comparisons(mixed)[0][0].first.path == Path("z")


def test_the_baseline_is_the_one_asked_for() -> None:
    """By its label or its beginning; a wrong one is refused with those that there are."""
    groups = [made(), made((QUEUE, "fq-codel"), path="b"), made((QUEUE, "fq-pie"), path="c")]
    assert comparisons(groups, "fq-codel")[0][0].label == "fq-codel"
    assert comparisons(groups, "FQ-P")[0][0].label == "fq-pie"
    with pytest.raises(AqmlabError, match='fits "fq-codel", "fq-pie"; name one'):
        comparisons(groups, "fq")
    with pytest.raises(AqmlabError, match=r'no run is called.*there are "droptail 20", "fq-'):
        comparisons(groups, "codle")
    runs = [group.first for group in groups]
    assert {entry.baseline for entry in aqmlab.compare(runs, "fq-pie")} <= {"fq-pie"}


def test_without_drop_tail_order_decides_only_if_somebody_chose_it() -> None:
    """The first value of --vary does; the first name in a folder does not."""
    groups = [made((QUEUE, "fq-codel")), made((QUEUE, "codel"), path="b")]
    assert comparisons(groups)[0][0].label == "fq-codel"
    assert comparisons(groups, ordered=False) == []
    limits = [made((f"{QUEUE}.limit", f"{n} packets"), path=str(n)) for n in (100, 30)]
    assert comparisons(limits)[0][0].label == "droptail 100"
    assert comparisons(limits, ordered=False)[0][0].label == "droptail 30"


def test_a_sweep_states_a_baseline_for_each_point() -> None:
    """Points without one are compared with nothing."""
    groups = [made((f"{QUEUE}.limit", f"{n} packets"), path=str(n)) for n in (5, 6, 7, 8)]
    names = [group.label for group in groups]
    found = comparisons(groups, {names[1]: names[0], names[3]: names[2]})
    assert [(first.label, others[0].label) for first, others in found] == [
        ("droptail 5", "droptail 6"),
        ("droptail 7", "droptail 8"),
    ]


def test_scenarios_are_compared_apart() -> None:
    """Each with its own drop-tail queue."""
    other = ("title", "Another"), ("traffic.fetches.rate", "5 /s")
    groups = [
        made(),
        made(*other, path="b"),
        made(*other, (QUEUE, "fq-codel"), path="c"),
        made((QUEUE, "codel"), path="d"),
    ]
    assert [[group.first.path.name for group in own] for own in scenarios_of(groups)] == [
        ["a", "d"],
        ["b", "c"],
    ]
    found = comparisons(groups)
    assert [(first.first.path.name, len(others)) for first, others in found] == [("a", 1), ("b", 1)]


def test_compare_shows_scenarios_apart(aqmlab: Cli, small: Path) -> None:
    """With a heading, tables and a figure of its own for each."""
    Path("other.toml").write_text(
        SMALL.replace("Small fetches", "Many fetches").replace('"30 /s"', '"35 /s"')
    )
    vary = f"{QUEUE}=fq-codel,droptail-240"
    answer = aqmlab("compare", small, "other.toml", "--vary", vary)
    assert answer.status == 0
    for title in ("Small fetches over a slow link", "Many fetches over a slow link"):
        assert answer.out.splitlines().count(title) == 1
    assert answer.out.count("against droptail-240") >= 2
    assert "These are runs of 2 scenarios: each is compared for itself." in answer.out
    for number in (1, 2):
        assert f"figure: runs/compare-{number}.svg" in answer.out
        assert Path(f"runs/compare-{number}.svg").exists()
    content = json.loads(aqmlab("compare", small, "other.toml", "--vary", vary, "--json").out)
    assert [part["title"] for part in content["scenarios"]] == [
        "Small fetches over a slow link",
        "Many fetches over a slow link",
    ]
    labels = [set(part["labels"]) for part in content["scenarios"]]
    for entry in content["differences"]:
        assert any({entry["run"], entry["baseline"]} <= own for own in labels)


def test_compare_takes_a_baseline(aqmlab: Cli, small: Path) -> None:
    """A label of the table."""
    vary = f"{QUEUE}=fq-codel,pie"
    assert "against fq-codel" in aqmlab("compare", small, "--vary", vary).out
    named = aqmlab("compare", small, "--vary", vary, "--baseline", "pie").out
    assert "against pie" in named
    folders = [path for path in sorted(Path("runs").iterdir()) if path.is_dir()]
    answer = aqmlab("compare", *folders)
    assert "nothing is compared: none of them is drop-tail" in answer.out
    assert "against" not in answer.out
    assert aqmlab("compare", *folders, "--baseline", "nobody").status == 2


def test_the_verdict_says_what_is_better_worse_and_unclear() -> None:
    """Over seeds, and in one run, where a number without an interval has its own sign."""
    runs = answered()
    several = [Group("droptail 20", runs * 3), Group("red", runs * 3)]
    changes = [change("red", "p50_s", -0.1, 0.2), change("red", "p90_s", 0.1, 0.3)]
    head, better, worse, unclear = conclusion(changes, several)
    assert head == "red against droptail 20 (3 seeds)"
    assert better == "  better: nothing"
    assert worse.startswith("  worse: 90 % ")
    assert unclear == "  unclear: median"
    alone = [Group("droptail 20", runs), Group("red", runs)]
    assert "one seed: another may differ" in conclusion(changes, alone)[0]
    sure = replace(changes[1], estimate=Estimate(0.6, math.nan, math.nan, 1, "none"))
    assert conclusion([sure], alone)[2].endswith("s~")
    assert conclusion([], alone) == []


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.1, 0.3, "  worse: 99 % 5.000 to 5.000 s"), (-0.1, 0.3, "  worse: nothing")],
)
def test_a_better_median_hides_no_longer_tail(low: float, high: float, said: str) -> None:
    """The 99th percentile is in the verdict where it is clearly worse, and only there."""
    row = {"count": 500, "p50_s": 1.0, "p90_s": 3.0, "p99_s": 5.0}
    run = made().first
    summary = {**run.summary, "responses": {"all": row, "fetches": row}}
    runs = (Run.in_memory(run.scenario, summary, path="b"),)
    groups = [Group("droptail 20", runs * 3), Group("red", runs * 3)]
    changes = [change("red", "p50_s", -0.3, -0.1), change("red", "p99_s", low, high)]
    assert conclusion(changes, groups)[1:] == [
        "  better: median 1.000 to 1.000 s",
        said,
        "  unclear: nothing",
    ]


def test_a_verdict_has_five_lines_of_eighty_characters() -> None:
    """However many configurations there are, and however long their names."""
    runs = answered()
    for count in (1, 2, 4, 9):
        names = [
            f"a queue with a name that is far too long for one line, {n}" for n in range(count)
        ]
        groups = [Group(name, runs * 2) for name in ("droptail 20", *names)]
        changes = [change(name, key, 0.1, 0.3) for name in names for key in ("p50_s", "p90_s")]
        lines = conclusion(changes, groups)
        assert 1 < len(lines) <= 5
        assert max(map(len, lines)) <= 80
        assert "worse" in "".join(lines)


def test_tables_say_how_many_seeds() -> None:
    """Of each row."""
    runs = made().runs
    one, two = Group("a", runs), Group("b", runs * 2)
    assert format_seeds([one, one]) == "one seed each"
    assert format_seeds([two]) == "2 seeds each"
    assert format_seeds([one, two]) == "1 to 2 seeds each"
