"""Rates by seed: how rows take them, and how they are found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aqmlab.errors import AqmlabError, RunError
from aqmlab.papers.calibration import (
    NEAR,
    CalibrationCase,
    CalibrationLine,
    calibrate,
    cases_of,
    solved,
)
from aqmlab.papers.paper import Paper
from aqmlab.papers.plan import Plan
from aqmlab.papers.reproduce import reproduce
from conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conftest import Cli

TABLES = """
paper = "Somebody: Something, 2000"
scenario = "both-ways.toml"
seeds = [1, 2]
[by_seed]
file = "loads.csv"
keys = ["load"]
load = "load"
exchanges = 3000
large_mb = 0.09
large_before_s = 10
[by_seed.uncongested]
"topology.bottleneck.rate" = "20 Mbit/s"
[common]
"measure.record" = "[]"
[quick]
[columns.there]
title = "offered there (%)"
by_seed = "there_load_pct"
[columns.busy]
title = "busy (%)"
terms = [{ key = "links.bottleneck.forward.utilization", factor = 100.0 }]
[[tables]]
id = "1"
title = "Table 1"
vary = { load = [50, 80] }
row = "$load %"
compare = ["there", "busy"]
[tables.set]
[tables.set_by_seed]
"traffic.there.rate" = "$there_rate /s"
"traffic.back.rate" = "$back_rate /s"
"measure.duration" = "$duration_s s"
"""
CLASS = """
[[traffic]]
name = "{}"
kind = "poisson"
rate = "10 /s"
direction = "{}"
request = {{ kind = "constant", size = "400 bytes" }}
response = {{ kind = "bounded-pareto", shape = 1.2, minimum = "2 kB", maximum = "100 kB" }}
rtt = {{ kind = "uniform", min = "20 ms", max = "100 ms" }}
"""
SCENARIO = """
[measure]
warm_up = "5 s"
duration = "20 s"
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "2 Mbit/s"
framing = "none"
discipline = { kind = "droptail", limit = "20 packets" }
""" + "".join(CLASS.format(*names) for names in (("there", "forward"), ("back", "reverse")))
LOADS = """load,seed,there_rate,back_rate,there_load_pct,back_load_pct,duration_s,large_s,engine
50,1,20,21,50.25,49.75,20,1,x
50,2,22,23,50.5,50.25,21,2,x
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A paper of two loads, whose rates of the lower one are known."""
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "both-ways.toml").write_text(SCENARIO)
    (tmp_path / "claims.toml").write_text("quick = []\nclaims = []\n[rows]\n")
    (tmp_path / "loads.csv").write_text(LOADS)
    return tmp_path


def test_every_seed_has_its_own_rates(folder: Path) -> None:
    paper = Paper.load(str(folder))
    table = paper.tables[0]
    plan = Plan(paper, [1, 2])
    plan.add_tables([replace(table, rows=table.rows[:1])])
    found = [plan.scenarios[name].data for name in plan.rows["1", "50 %"]]
    assert [[one["rate"] for one in data["traffic"]] for data in found] == [
        ["20 /s", "21 /s"],
        ["22 /s", "23 /s"],
    ]
    assert [data["measure"]["duration"] for data in found] == ["20 s", "21 s"]


def test_a_seed_without_rates_is_refused(folder: Path) -> None:
    plan = Plan(Paper.load(str(folder)), [3])
    message = (
        r"row 50 %: found no rates for seed 3; there are some for seeds 1, 2: choose one of "
        r"these, or let --calibrate find them"
    )
    with pytest.raises(AqmlabError, match=message):
        plan.add_tables(plan.paper.tables)


def test_the_report_shows_the_realised_load_of_each_row(folder: Path) -> None:
    text = (folder / "tables.toml").read_text().replace("load = [50, 80]", "load = [50]")
    (folder / "tables.toml").write_text(text)
    result = reproduce(str(folder), out=folder / "out")
    assert result.failed == {}
    # The mean of 50.25 and 50.5.
    assert "| 50 % | 50.38 |" in result.to_markdown()


def test_rates_are_multiplied_by_what_the_directions_lack() -> None:
    """Each direction carries the responses of its class, and a tenth of that of the other's."""
    tried = []

    def loads(rates: Mapping[str, float]) -> Mapping[str, float]:
        tried.append(rates)
        there, back = rates["there"], rates["back"]
        return {"there": there + back / 10, "back": 2 * back + there / 10}

    rates = solved(loads, {"there": 10.0, "back": 90.0}, 50.0)
    assert tried[1] == {"there": 10.0 * 50 / 19, "back": 90.0 * 50 / 181}
    # By hand: 20 there = 950 / 0.995 ... there = 47.74, back = 22.61.
    assert rates["there"] == pytest.approx(47.74, rel=2 * NEAR)
    assert rates["back"] == pytest.approx(22.61, rel=2 * NEAR)


def test_rates_that_nothing_settles_are_given_up() -> None:
    message = r"found loads of 90.0 % after 96 runs; expected 50 % within 2 % of it"
    with pytest.raises(RunError, match=message):
        solved(lambda _: {"there": 90.0}, {"there": 1.0}, 50.0)


def test_rates_that_come_back_to_the_same_loads_are_approached_by_halves() -> None:
    """Whole steps go to and fro between 40 and 50, past the rates from 45 to 48 that would do."""
    tried = []

    def loads(rates: Mapping[str, float]) -> Mapping[str, float]:
        rate = rates["there"]
        tried.append(rate)
        return {"there": rate if rate < 45 else 50 if rate < 48 else 1.25 * rate}

    found = solved(loads, {"there": 40.0}, 50.0)
    assert tried[:24] == [40.0, 50.0] * 12
    assert 45 <= found["there"] < 48


def test_calibrate_finds_the_loads_of_every_row(aqmlab: Cli, folder: Path) -> None:
    answer = aqmlab("reproduce", folder, "--calibrate", "--seeds", "3,4", "--out", folder / "out")
    assert answer.status == 0, answer.err
    (folder / "loads.csv").write_text((folder / "out/loads.csv").read_text())
    assert (folder / "loads.csv").read_text() in answer.out
    paper = Paper.load(str(folder))
    for case in cases_of(paper, [3, 4]):
        line = case.row.by_seed[case.seed]
        rates = {name: float(line[f"{name}_rate"]) for name in ("there", "back")}
        again = case.line(rates)
        for name, load in again.loads_pct.items():
            assert abs(load / case.target_pct - 1) <= NEAR
            assert line[f"{name}_load_pct"] == f"{load:.2f}"
        # In the direction that has fewer: the exchanges that must begin, and not many more.
        begun = min(rates.values()) * float(line["duration_s"])
        assert 3000 <= begun <= 1.01 * 3000 + min(rates.values())
    # The network is that of the row without congestion, and the load is of the row's own link.
    scenario = case.scenario(rates)
    assert "20 Mbit/s" in str(scenario.data["topology"]["bottleneck"])
    assert case.places["there"] == ("bottleneck", "forward", 2e6)


def test_without_exchanges_the_span_is_the_scenarios(folder: Path) -> None:
    """And without a size no large response is looked for."""
    text = (folder / "tables.toml").read_text()
    for line in ("exchanges = 3000", "large_mb = 0.09", "large_before_s = 10"):
        text = text.replace(f"{line}\n", "")
    (folder / "tables.toml").write_text(text.replace('"measure.duration" = "$duration_s s"\n', ""))
    case = cases_of(Paper.load(str(folder)), [3])[0]
    rates = {"there": 20.0, "back": 20.0}
    assert case.scenario(rates).data["measure"]["duration"] == "20 s"
    assert list(case.line(rates).to_row()) == [
        *("load", "seed", "there_rate", "back_rate"),
        *("there_load_pct", "back_load_pct", "engine"),
    ]


def test_a_class_without_a_rate_by_seed_keeps_its_own(folder: Path) -> None:
    """A bulk transfer beside the others has no rate to be found."""
    scenario = folder / "both-ways.toml"
    rtt = '{ kind = "constant", rtt = "20 ms" }'
    bulk = f'name = "bulk"\nkind = "bulk"\nflows = 1\nsize = "100 kB"\nrtt = {rtt}\n'
    text = scenario.read_text().replace("[[traffic]]", f"[[traffic]]\n{bulk}[[traffic]]", 1)
    scenario.write_text(text)
    case = cases_of(Paper.load(str(folder)), [3])[0]
    assert list(case.places) == ["there", "back"]
    assert list(case.start()) == ["there", "back"]


def test_a_reading_with_other_rates_shows_no_loads_by_seed(folder: Path) -> None:
    reading = """
[[readings]]
id = "alike"
title = "all seeds alike"
why = "The text does not say."
[[readings.of]]
tables = ["1"]
set = { "traffic.there.rate" = { column = "load", factor = 0.5, unit = "/s" } }
"""
    text = (folder / "tables.toml").read_text()
    (folder / "tables.toml").write_text(text.replace("[50, 80]", "[50]") + reading)
    plan = Plan(Paper.load(str(folder)), [1, 2])
    table = plan.paper.table("1-alike")
    assert [column.name for column in table.columns] == ["busy"]
    plan.add_tables([table])
    rates = [one.data["traffic"][0]["rate"] for one in plan.scenarios.values()]
    assert rates == ["25 /s", "25 /s"]


def test_what_the_file_holds_is_not_found_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "out.csv"
    paper = Paper.load(str(folder))
    first, _ = calibrate(paper, [3], file)
    tried: list[int] = []
    line = CalibrationCase.line

    def counted(case: CalibrationCase, rates: Mapping[str, float]) -> CalibrationLine:
        tried.append(case.seed)
        return line(case, rates)

    monkeypatch.setattr(CalibrationCase, "line", counted)
    both, failed = calibrate(paper, [3, 4], file)
    assert (set(tried), failed) == ({4}, {})
    assert [row["seed"] for row in both] == ["3", "3", "4", "4"]
    assert both[:2] == first
    assert [line.split(",")[:2] for line in file.read_text().splitlines()[1:]] == [
        ["50", "3"],
        ["50", "4"],
        ["80", "3"],
        ["80", "4"],
    ]


def test_a_paper_without_rates_by_seed_is_refused(tmp_path: Path) -> None:
    paper = Paper.load(str(ROOT / "papers" / "christiansen2000"))
    with pytest.raises(AqmlabError, match="christiansen2000: found no rates by seed"):
        calibrate(paper, [1], tmp_path / "loads.csv")
