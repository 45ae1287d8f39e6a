"""The papers: their tables load, rules of claims name what exists, seeds decide claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from aqmlab import _native
from aqmlab._util.expressions import Expression
from aqmlab.errors import AqmlabError
from aqmlab.papers import judge, noise, rule
from aqmlab.papers.calibration import cases_of
from aqmlab.papers.claim import Claim, Further
from aqmlab.papers.judge import ClaimScore, Judged
from aqmlab.papers.paper import Paper, PaperColumn
from aqmlab.papers.plan import Plan, further_seeds
from aqmlab.papers.reproduce import reproduce
from aqmlab.papers.scoreboard import PaperCell, Scoreboard
from aqmlab.results import recorded
from aqmlab.scenario.scenario import Scenario
from aqmlab.sweeps.file import Sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

PAPERS = Path(__file__).parents[1] / "papers"
KEYS = ("christiansen2000", "synctcp2005", "weigle2003", "zhangqiu2000")
CLAIMS = {
    "christiansen2000": 61,
    "le2005": 288,
    "synctcp2005": 35,
    "weigle2003": 47,
    "zhangqiu2000": 49,
}


def paper(key: str) -> Paper:
    return Paper.load(str(PAPERS / key))


def every_cell(source: Paper, ours: Sequence[float]) -> list[PaperCell]:
    """A cell for each row and column, all with the same numbers."""
    return [
        PaperCell(table.id, row.label, column, "", tuple(ours))
        for table in source.tables
        for row in table.rows
        for column in table.columns
    ] + [
        PaperCell(fit.id, row.label, fit.column, "", tuple(ours))
        for fit in source.fits
        for row in fit.rows
    ]


@pytest.mark.long_cases("weigle2003", "zhangqiu2000")
@pytest.mark.parametrize("key", KEYS)
def test_every_row_is_a_scenario_of_its_own(key: str) -> None:
    source = paper(key)
    for table in source.tables:
        labels = [row.label for row in table.rows]
        assert len(set(labels)) == len(labels)
        plan = Plan(source, [1])
        plan.add_tables([table])
        assert len(plan.scenarios) == len(labels)


@pytest.mark.parametrize("key", KEYS)
def test_quick_runs_are_as_short_as_the_paper_says(key: str) -> None:
    """Whatever its rows say of the length."""
    source = paper(key)
    plan = Plan(source, [1], quick=True)
    plan.add_tables(source.tables)
    short = Scenario.load(source.tables[0].scenario, [*source.common, *source.quick])
    for name in (field.removeprefix("measure.") for field, _ in source.quick):
        found = {scenario.data["measure"][name] for scenario in plan.scenarios.values()}
        assert found == {short.data["measure"][name]}


@pytest.mark.long_cases("le2005", "weigle2003")
@pytest.mark.parametrize("key", CLAIMS)
def test_every_claim_can_be_judged_or_says_why_not(key: str) -> None:
    source = paper(key)
    verdicts = judge.judge(source, every_cell(source, [1.0, 1.0]))
    assert len(verdicts) == len({found.claim.id for found in verdicts}) == CLAIMS[key]
    assert all(found.measured for found in verdicts)


def test_claims_whose_rows_were_not_run_are_undecided() -> None:
    source = paper("synctcp2005")
    assert len(judge.judge(source, [])) < CLAIMS["synctcp2005"]
    verdicts = judge.judge(source, [], tables=[table.id for table in source.tables])
    assert len(verdicts) == CLAIMS["synctcp2005"]
    assert {found.outcome for found in verdicts} == {"undecided"}


def test_sync_tcp_is_compared_by_both_readings_of_its_decrease_rule() -> None:
    source = paper("synctcp2005")
    plan = Plan(source, [1])
    plan.add_tables(source.tables)
    readings = []
    for place in (("table1", "sync_tcp"), ("every-result", "sync_tcp_every_result")):
        data = plan.scenarios[plan.rows[place][0]].data
        stack = data["traffic"][0]["tcp"]
        readings.append(stack["congestion_control"]["decrease"])
        assert stack["congestion_control"]["kind"] == "sync-tcp"
        assert source.table(place[0]).row(place[1]).published["p50_s"] == "0.390"
    assert readings == ["once-per-rtt", "every-result"]


def test_schemes_are_those_of_table_i() -> None:
    source = paper("zhangqiu2000")
    plan = Plan(source, [1])
    plan.add_tables([source.table("figure14")])
    data = plan.scenarios[plan.rows["figure14", "r1e"][0]].data
    red = data["topology"]["bottleneck"]["forward"]["discipline"]
    # B / 6 and B / 2 of a buffer of 38.6 packets.
    assert (red["min_th"], red["max_th"], red["limit"]) == ("6 packets", "19 packets", "39 packets")
    assert (red["gentle"], red["ecn"], red["max_p"], red["w_q"]) == (True, True, 0.1, 0.002)
    assert all(flow["tcp"]["ecn"] for flow in data["traffic"])
    assert [flow["rtt"]["rtt"] for flow in data["traffic"]][::7] == ["102 ms", "300 ms"]


def test_the_experiments_are_those_of_table_1() -> None:
    source = paper("weigle2003")
    plan = Plan(source, source.seeds[:1])
    again = {name for reading in source.interpretations for name in reading.replaces.values()}
    plan.add_tables([table for table in source.tables if table.id not in again])
    # Twelve experiments at nine loads, six runs of RED, twelve one way, the traffic alone.
    assert len(plan.scenarios) == 12 * 9 + 6 + 12 + 1
    for row in source.table("table1").rows:
        data, printed = plan.scenarios[plan.rows["table1", row.label][0]].data, row.published
        for stack in (traffic["tcp"] for traffic in data["traffic"]):
            assert (stack["recovery"], stack["ecn"]) == (
                {"reno": "reno", "sack": "sack-pipe"}[printed["tcp"]],
                printed["ecn"] == "true",
            )
        for direction in ("forward", "reverse"):
            law = data["topology"]["bottleneck"][direction]["discipline"]
            assert (law["kind"], law["limit"]) == (
                printed["aqm"],
                f"{printed['queue_packets']} packets",
            )
            if law["kind"] == "ared":
                assert law["ecn"] == stack["ecn"]
                assert float(law["target_delay"].removesuffix(" ms")) == pytest.approx(
                    1000 * float(printed["target_delay_s"])
                )
        # The paper's 250,000 in the direction that has fewer, and not many more.
        rate = min(number(traffic["rate"]) for traffic in data["traffic"])
        exchanges = rate * number(data["measure"]["duration"])
        assert 250_000 <= exchanges <= 1.01 * 250_000


def test_rates_by_seed_cause_the_loads_of_the_paper() -> None:
    """Section V.D: so much each way, and a response of 10 MB that begins before 1,000 s."""
    source = paper("weigle2003")
    assert source.by_seed is not None
    for case in cases_of(source, source.seeds):
        line = case.row.by_seed[case.seed]
        ways = [key for key in line if key.endswith("_load_pct") and line[key]]
        assert len(ways) == {"two-way": 2, "one-way": 1}[line["traffic"]]
        for way in ways:
            assert float(line[way]) == pytest.approx(case.target_pct, rel=0.02)
        if line["traffic"] == "two-way":
            assert float(line["large_s"]) < 1000


def test_seeds_of_synctcp2005_carry_the_load_of_their_rows_each_way() -> None:
    """And classes of a mix have the rates of the runs with one stack: the same connections."""
    source = paper("synctcp2005")
    cases = cases_of(source, source.seeds)
    assert len(cases) == 4 * len(source.seeds)
    for case in cases:
        line = case.row.by_seed[case.seed]
        for way in ("forward", "reverse"):
            assert float(line[f"{way}_load_pct"]) == pytest.approx(case.target_pct, rel=0.02)
    plan = Plan(source, source.seeds)
    plan.add_tables([source.table(name) for name in ("figures6-8", "figures16-18", "figure10")])
    rates = [
        [
            {one["name"].rpartition("_")[2]: one["rate"] for one in scenario["traffic"][:4]}
            for name in plan.rows[place]
            if (scenario := plan.scenarios[name].data)
        ]
        for place in (("figures6-8", "reno at 95 %"), ("figures16-18", "40 % Reno"))
    ]
    assert rates[0] == rates[1]
    assert len({str(one) for one in rates[0]}) == len(source.seeds)


@pytest.mark.long
def test_a_line_of_rates_by_seed_is_what_runs_give() -> None:
    source = paper("weigle2003")
    case = next(one for one in cases_of(source, source.seeds) if one.target_pct == 105)
    line = case.row.by_seed[case.seed]
    rates = {name: float(line[f"{name}_rate"]) for name in ("forward", "reverse")}
    again = case.line(rates)
    if line["engine"] == _native.engine():
        assert again.to_row() == {key: line[key] for key in again.to_row()}
    for load in again.loads_pct.values():
        assert load == pytest.approx(105, rel=0.02)


def number(quantity: str) -> float:
    return float(quantity.split(maxsplit=1)[0])


SPEC: dict[str, Any] = {"id": "X", "type": "ordering", "text": "x", "own_tables": "agrees"}


def claim(**more: Any) -> Claim:
    return Claim.read({**SPEC, **more}, Path("claims.toml"))


def judged(predicate: str, low: Sequence[float], high: Sequence[float]) -> rule.Decision:
    source = paper("synctcp2005")
    columns = source.table("table1").columns
    loss = next(column for column in columns if column.name == "loss_rate_pct")
    cells = [
        PaperCell("table1", "sync_tcp", loss, "2.0", tuple(low)),
        PaperCell("table1", "reno", loss, "3.9", tuple(high)),
    ]
    values = {(cell.table, cell.row, cell.column.name): cell.ours or None for cell in cells}
    return rule.decide(claim(rule=predicate), source, values)


ORDER = "sync.loss_rate_pct < reno.loss_rate_pct"


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], "holds"),
        ([2.0, 3.0, 4.0], [1.0, 2.0, 3.0], "fails"),
        ([1.0, 3.0, 3.0], [2.0, 2.0, 2.0], "undecided"),
        ([2.0], [2.0], "fails"),
        # Seeds differ more than the schemes do, but each seed says the same: they are paired.
        ([1.0, 10.0, 20.0], [1.1, 10.1, 20.1], "holds"),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "holds"),
    ],
)
def test_seeds_decide(low: list[float], high: list[float], word: str) -> None:
    assert judged(ORDER, low, high).outcome == word


def test_a_missing_run_decides_nothing() -> None:
    assert judged(ORDER, [1.0], []).measured == "a run is missing"


def test_a_claim_is_judged_over_the_seeds_that_all_its_rows_have() -> None:
    """The third seed, which only one row has, would say otherwise."""
    assert judged(ORDER, [1.0, 2.0, 90.0], [2.0, 3.0]).outcome == "holds"
    assert judged(ORDER, [1.0, 4.0], [2.0, 3.0, 9.0]).outcome == "undecided"


def test_a_row_that_lacks_a_run_decides_nothing() -> None:
    """Its other runs are of other seeds than those of the rows beside it."""
    source = paper("synctcp2005")
    cells = every_cell(source, [1.0, 1.0])
    lacking = [
        replace(cell, ours=(1.0,), lacks_runs=True) if cell.row == "sync_tcp" else cell
        for cell in cells
    ]
    verdicts = {found.claim.id: found for found in judge.judge(source, lacking)}
    assert verdicts["S07"].measured == "a run is missing"


def test_claims_within_noise_give_their_rows_further_seeds() -> None:
    """And every row that is the same experiment; a paper of several seeds has no such claims."""
    source = paper("le2005")
    further = (Further(claims=("L4-06",), seeds=(2, 3)),)
    source = replace(source, claims=replace(source.claims, further=further))
    found = further_seeds(source)
    assert {label for _, label in found} == {"droptail_24 at 90", "droptail_240 at 90"}
    assert {table for table, _ in found} == {"4.1", "4.2"}
    assert set(found.values()) == {(2, 3)}
    plan = Plan(source, [1], further=found)
    plan.add_tables([source.table("4.2")])
    names = plan.rows["4.2", "droptail_24 at 90"]
    assert [plan.scenarios[name].data["seed"] for name in names] == [1, 2, 3]
    assert len(plan.rows["4.2", "droptail_24 at 98"]) == 1


@pytest.mark.long
def test_verdicts_that_one_run_leaves_to_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    source = paper("le2005")
    further = (Further(claims=("L4-06",), seeds=(2, 3)),)
    source = replace(source, claims=replace(source.claims, further=further))
    ours = {"L4-06": 0.5, "L4-07": 0.5, "L4-08": 0.97}
    monkeypatch.setattr(noise, "shares_of_ours", lambda *_: ours)
    monkeypatch.setattr(noise, "shares", lambda *_: {})
    first = judge.judge(source, [], tables=[table.id for table in source.tables])

    def within(seeds: int, *, further: bool) -> set[str]:
        found = judge.with_noise(source, first, [], seeds, further=further)
        return {one.claim.id for one in found if one.within_noise}

    assert within(1, further=True) == {"L4-07"}
    # Seeds that somebody names leave out the further ones; several decide all.
    assert within(1, further=False) == {"L4-06", "L4-07"}
    assert within(2, further=False) == set()


def test_the_numbers_behind_a_verdict_are_named() -> None:
    assert judged(ORDER, [1.0, 2.0], [2.0, 3.0]).measured == (
        "sync.loss_rate_pct 1.5; reno.loss_rate_pct 2.5"
    )


def test_a_rule_with_an_unknown_row_or_column_is_an_error() -> None:
    with pytest.raises(AqmlabError, match="there is no row nobody"):
        judged("nobody.loss_rate_pct > 1", [1.0], [2.0])
    with pytest.raises(AqmlabError, match="no column delay"):
        judged("sync.delay > 1", [1.0], [2.0])


def test_a_rule_of_several_cases_is_true_where_it_is_true_of_all() -> None:
    several = claim(
        each={"low": ["free", "sync"], "share": [0, 1]},
        rule=["$low.p50_s < reno.p50_s", "$low.p50_s > $share"],
    )
    assert several.rules == (
        "free.p50_s < reno.p50_s",
        "sync.p50_s < reno.p50_s",
        "free.p50_s > 0",
        "free.p50_s > 1",
        "sync.p50_s > 0",
        "sync.p50_s > 1",
    )
    source = paper("synctcp2005")
    values = {("table1", name, "p50_s"): [1.5, 2.5] for name in ("uncongested", "sync_tcp")}
    found = rule.decide(several, source, {**values, ("table1", "reno", "p50_s"): [2.0, 3.0]})
    assert found.outcome == "holds"
    found = rule.decide(several, source, {**values, ("table1", "reno", "p50_s"): [1.0, 2.0]})
    assert found.outcome == "fails"
    assert found.measured == (
        "free.p50_s 2; reno.p50_s 1.5; sync.p50_s 2; not true in 2 of 6 cases"
    )


def test_a_name_with_a_star_stands_for_many_rows_of_several_tables() -> None:
    source = paper("le2005")
    place = rule.place("c4_pi_24_ecn_98", "loss_pct", source)
    assert (place.table, [row.label for row in place.rows]) == ("4.1", ["pi_24_ecn at 98"])
    assert rule.place("c4_pi_24_ecn_98", "p50_s", source).table == "4.2"
    labels = {row.label.split("_")[0] for row in rule.place("aqm4_80", "p50_s", source).rows}
    assert labels == {"pi", "rem", "ared", "blue", "avq", "lqd", "afd", "rio", "dcn"}
    assert len(rule.place("all6", "p50_s", source).rows) == 72


@pytest.mark.parametrize(
    ("predicate", "answer"),
    [
        ("near(1.09, 1, 0.1)", True),
        ("near(1.11, 1, 0.1)", False),
        ("near(0.16, 0.137, 0.1, 0.03)", True),
        ("at_most(5, 1, 0.1)", False),
        ("at_most(1.05, 1, 0.1) and at_most(0.5, 1, 0.1)", True),
        ("max(largest(x, 4 - x)) == 3 and quantile(0.5, x) == 2", True),
    ],
)
def test_what_near_means(predicate: str, answer: bool) -> None:
    values = {"x": np.array([1.0, 3.0, 2.0])}
    assert Expression.parse(predicate, rule.FUNCTIONS).value(values) == answer


def test_expressions_call_only_what_they_are_given() -> None:
    values = {"x": np.array([1.0, 3.0, 2.0]), "y": np.array([10.0, 30.0, 20.0])}

    def value(text: str) -> object:
        return Expression.parse(text, rule.FUNCTIONS).value(values)

    assert value("max(y / x) == 10 and within(1, 3, x)")
    assert value("at_max(x, y)") == 3
    assert not value("falling(x)")
    with pytest.raises(AqmlabError, match="holds Call"):
        value("open(x)")
    with pytest.raises(AqmlabError, match="holds Call"):
        Expression.parse("max(x)")


def verdict(name: str, outcome: str, own_tables: str, copies: float | None = None) -> Judged:
    return Judged(Claim(name, "ordering", "", own_tables), outcome, "", noisy_copies=copies)


def test_contradicted_claims_are_counted_apart() -> None:
    verdicts = [
        verdict("a", "holds", "agrees"),
        verdict("b", "fails", "partly"),
        verdict("c", "fails", "not_tabulated"),
    ]
    assert judge.score(verdicts) == ClaimScore(holds=1, fails=1, contradicted=1)
    assert "contradict it) | **fails**" in judge.to_markdown(verdicts, {})


def test_claims_that_the_print_cannot_decide_are_counted_apart() -> None:
    """Whether they hold of ours or not; one that the tables contradict stays contradicted."""
    verdicts = [
        verdict("a", "holds", "agrees", 0.79),
        verdict("b", "fails", "agrees", 0.5),
        verdict("c", "fails", "disagrees", 0.1),
        verdict("d", "fails", "agrees", 0.8),
    ]
    assert judge.score(verdicts) == ClaimScore(fails=1, undecidable=2, contradicted=1)
    page = judge.to_markdown(verdicts, {})
    assert "a:  (undecidable: true of 79 % of noisy copies of the paper's tables) | holds" in page
    assert "nor are 2 that its print cannot decide" in page


def test_quick_runs_decide_orderings_only() -> None:
    source = paper("synctcp2005")
    verdicts = {v.claim.id: v for v in judge.judge(source, every_cell(source, [1.0]), quick=True)}
    assert verdicts["S07"].outcome == "fails"
    assert verdicts["S27"].measured == "quick runs decide orderings only"


def test_numbers_from_recorded_responses() -> None:
    found = recorded.of_responses(
        pa.table({"response_bytes": [1000, 3000, 50_000], "response_s": [0.1, 0.3, 4.0]})
    )
    assert (found["mean_bytes"], found["max_bytes"]) == (pytest.approx(18_000), 50_000)
    assert [found["size_le"][limit] for limit in ("999", "3000")] == [0.0, pytest.approx(2 / 3)]
    assert "3 kB" not in found["size_le"]
    assert found["goodput_bps"] == pytest.approx((80_000 + 80_000 + 100_000) / 3)
    assert (found["large"]["share"], found["large"]["le"]["5000ms"]) == (pytest.approx(1 / 3), 1.0)


def test_durations_by_what_was_sent_again() -> None:
    flows = {
        "duration_s": [1.0, 2.0, 3.0, 4.0, 5.0],
        "response_bytes": [500, 500, 500, 50_000, 500],
        "retransmitted_syn": [0, 1, 0, 0, 1],
        "retransmitted_fin": [0, 0, 0, 0, 0],
        "retransmitted_data": [0, 0, 1, 1, 1],
        "timeouts": [0, 1, 0, 0, 2],
    }
    found = recorded.of_connections(pa.table(flows))
    medians = {name: found[name]["p50_s"] for name in ("none", "syn", "data", "several", "any")}
    assert medians == {"none": 1.0, "syn": 2.0, "data": 3.5, "several": 5.0, "any": 3.5}
    assert found["fin"] == dict.fromkeys(("p25_s", "p45_s", "p50_s", "p95_s"))
    assert found["small_without_timeout"] == pytest.approx(1 / 3)


def test_columns_that_the_paper_does_not_print_stand_alone() -> None:
    column = PaperColumn("busy", "busy (%)")
    board = Scoreboard(
        {"1": "Table"}, scored=True, cells=[PaperCell("1", "row", column, "", (97.25,))]
    )
    assert board.to_json()["cells"] == {"within": 0, "by_value": 0, "total": 0}
    assert "| row | 97.25 |" in board.to_markdown()
    assert "The paper prints no numbers" in board.to_markdown()


def test_sweeps_beside_a_paper_can_be_run() -> None:
    sweeps = [Sweep.load(path) for path in sorted(PAPERS.glob("*/sweeps/dcn-*.toml"))]
    assert [len(sweep.points) for sweep in sweeps] == [54, 162]
    for sweep in sweeps:
        for point in (sweep.points[0], sweep.points[-1]):
            effective = sweep.scenario_of(point).effective
            assert 'counts = "forwarded"' in effective
            assert f"b = {point.variables['b']}" in effective


@pytest.mark.parametrize(
    ("key", "table"),
    [("synctcp2005", "every-result"), ("weigle2003", "figure2"), ("zhangqiu2000", "figure5")],
)
def test_a_very_short_run(
    key: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = paper(key)
    short = (("measure.warm_up", '"5 s"'), ("measure.duration", '"10 s"'))
    monkeypatch.setattr(
        Paper, "load", classmethod(lambda *_: Paper(**{**vars(source), "quick": short}))
    )
    result = reproduce(key, [table], quick=True, out=tmp_path)
    assert (result.failed, result.board.scored) == ({}, False)
    assert result.runs == len(source.table(table).rows)
    report = Path(result.files["report"]).read_text(encoding="utf-8")
    assert f"## {source.table(table).title}" in report
