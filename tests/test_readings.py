"""Second readings: rows once more with other settings, and claims judged in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.papers import judge
from aqmlab.papers.claim import Claim
from aqmlab.papers.paper import Paper
from aqmlab.papers.plan import Plan
from aqmlab.papers.scoreboard import PaperCell
from aqmlab.results.verdict import FAILS, HOLDS, UNDECIDED
from conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aqmlab.papers.judge import Alternative

TABLES = """
paper = "Somebody: Something, 2000"
scenario = "one.toml"
seeds = [1]
[common]
[quick]
[columns.loss_pct]
title = "loss (%)"
tolerance = { relative = 0.1 }
terms = [{ key = "links.bottleneck.forward.loss_rate", factor = 100.0 }]
[[tables]]
id = "1"
title = "Loss (Table 1)"
vary = { queue = ["red", "tail"], load = [90, 98] }
row = "$queue at $load"
compare = ["loss_pct"]
[tables.set]
"traffic.web.rate" = '"$load /s"'
[[readings]]
id = "small"
title = "small packets count less"
why = "The text does not say."
mark = "hangs on sizes"
[[readings.of]]
tables = ["1"]
rows = "red at *"
set = { "topology.bottleneck.rate" = '"5 Mbit/s"' }
"""

CLAIMS = """
quick = []
[rows]
"*_*" = ["1", "$name"]
red = ["1", "red at 98"]
tail = ["1", "tail at 98"]
low = ["1", "tail at 90"]
[[claims]]
id = "A1"
type = "ordering"
text = "RED loses less"
own_tables = "agrees"
rule = "red.loss_pct < tail.loss_pct"
[[claims]]
id = "A2"
type = "ordering"
text = "Load costs packets"
own_tables = "agrees"
rule = "tail.loss_pct > low.loss_pct"
"""


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """A paper with one table, two queues at two loads, and a reading of its RED rows."""
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "claims.toml").write_text(CLAIMS)
    return Paper.load(str(tmp_path))


def cells(paper: Paper, losses: Mapping[tuple[str, str], float]) -> list[PaperCell]:
    """A cell for each table and row."""
    return [
        PaperCell(table, row, paper.table(table).columns[0], "", ours=(loss,))
        for (table, row), loss in losses.items()
    ]


FIRST = {("1", "red at 90"): 2.0, ("1", "red at 98"): 6.0}
FIRST |= {("1", "tail at 90"): 1.0, ("1", "tail at 98"): 5.0}


def read(paper: Paper, losses: Mapping[tuple[str, str], float]) -> Alternative:
    """What becomes of the claims in the only reading."""
    found = cells(paper, losses)
    first = judge.judge(paper, found, tables=["1", "1-small"])
    [one] = judge.alternatives(paper, found, first, ["1", "1-small"])
    return one


def test_a_reading_has_its_rows_with_its_settings_on_top(paper: Paper) -> None:
    table = paper.table("1-small")
    assert [row.label for row in table.rows] == ["red at 90", "red at 98"]
    assert table.rows[1].overrides == (
        ("traffic.web.rate", '"98 /s"'),
        ("topology.bottleneck.rate", '"5 Mbit/s"'),
    )
    assert table.title == "Loss (Table 1): small packets count less"
    # Its cells are not scored, and quick runs do without it.
    assert [column.tolerance for column in table.columns] == [None]
    plan = Plan(paper, [1], quick=True)
    plan.add_tables([table])
    assert plan.scenarios == {}


def test_claims_are_judged_in_both_readings(paper: Paper) -> None:
    one = read(paper, FIRST | {("1-small", "red at 90"): 1.0, ("1-small", "red at 98"): 4.0})
    [(first, second)] = one.pairs
    assert (first.claim.id, first.outcome, second.outcome) == ("A1", FAILS, HOLDS)
    assert second.measured == "red.loss_pct 4; tail.loss_pct 5"
    assert (one.score.holds, one.score.fails) == (2, 0)


def test_only_claims_on_the_rows_of_a_reading_rest_on_it(paper: Paper) -> None:
    assert judge.concerned(paper, paper.interpretations[0]) == {"A1"}


def test_claims_that_need_a_row_apart_are_not_judged_in_a_reading(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(CLAIMS)
    for pattern, judged in (("tail at *", set()), ("tail at 90", {"A1"}), ("1", set())):
        text = TABLES.replace('mark = "hangs on sizes"', f'apart = ["{pattern}"]')
        (tmp_path / "tables.toml").write_text(text)
        paper = Paper.load(str(tmp_path))
        assert judge.concerned(paper, paper.interpretations[0]) == judged


def test_without_its_runs_a_reading_decides_nothing(paper: Paper) -> None:
    [(first, second)] = read(paper, FIRST).pairs
    assert (first.outcome, second.outcome) == (FAILS, UNDECIDED)
    assert second.measured == "a run is missing"


def test_a_reading_whose_tables_were_not_asked_for_is_left_out(paper: Paper) -> None:
    found = cells(paper, FIRST)
    first = judge.judge(paper, found)
    assert judge.alternatives(paper, found, first, ["1"]) == []


def test_the_report_shows_both_verdicts(paper: Paper) -> None:
    one = read(paper, FIRST | {("1-small", "red at 90"): 1.0, ("1-small", "red at 98"): 4.0})
    text = one.to_markdown()
    assert "1 claims rest on these rows; 1 hold in this reading only, 0 in the first only" in text
    assert "| A1: RED loses less | fails | **holds** | red.loss_pct 4; tail.loss_pct 5 |" in text
    [first, other] = judge.judge(paper, cells(paper, FIRST))
    text = judge.to_markdown([first, other], {"A1": "hangs on sizes"})
    assert "| A1: RED loses less (hangs on sizes) | **fails** |" in text


def test_a_reading_without_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(TABLES.replace('"red at *"', '"rio at *"'))
    with pytest.raises(AqmlabError, match=r"reading small: there is no row rio at \* in table 1"):
        Paper.load(str(tmp_path))


@pytest.mark.long_cases("weigle2003-*", but="weigle2003-ect-*")
@pytest.mark.parametrize(
    ("name", "reading", "rows", "field"),
    [
        ("weigle2003", "by-size", 36, "scale_by_size"),
        ("weigle2003", "ect", 18, "all-but-syn"),
        ("weigle2003", "no-delay", 54, "'server_delay': False"),
        ("weigle2003", "request", 54, "'response_time': 'request'"),
        ("weigle2003", "last-syn", 54, "'response_time': 'last-syn'"),
        ("le2005", "router", 60, "packet_time"),
        ("zhangqiu2000", "new", 139, "web-sessions"),
    ],
)
def test_readings_of_the_papers_set_what_they_say(
    name: str, reading: str, rows: int, field: str
) -> None:
    paper = Paper.load(str(ROOT / "papers" / name))
    [one] = [one for one in paper.interpretations if one.id == reading]
    plan = Plan(paper, paper.seeds[:1])
    plan.add_tables([paper.table(other) for other in one.replaces.values()])
    assert len(plan.rows) >= rows
    for scenario in plan.scenarios.values():
        assert field in str(scenario.data)
    assert len(judge.concerned(paper, one)) >= 15


def test_a_reading_may_measure_a_column_otherwise(tmp_path: Path) -> None:
    other = """
[columns.marks_pct]
title = "marks (%)"
terms = [{ key = "links.bottleneck.forward.mark_rate", factor = 100.0 }]
[[tables]]"""
    columns = 'columns = { loss_pct = "marks_pct" }'
    text = TABLES.replace("\n[[tables]]", other)
    text = text.replace('set = { "topology.bottleneck.rate" = \'"5 Mbit/s"\' }', columns)
    (tmp_path / "tables.toml").write_text(text)
    (tmp_path / "claims.toml").write_text(CLAIMS)
    paper = Paper.load(str(tmp_path))
    [column] = paper.table("1-small").columns
    assert (column.name, column.title) == ("loss_pct", "marks (%)")
    assert column.terms[0].key == "links.bottleneck.forward.mark_rate"
    assert [column.name for column in paper.table("1").columns] == ["loss_pct"]
    # The runs are the same.
    assert paper.table("1-small").rows[1].overrides == paper.table("1").rows[1].overrides

    (tmp_path / "tables.toml").write_text(text.replace("{ loss_pct", "{ delay_ms"))
    with pytest.raises(AqmlabError, match="reading small: table 1 has no column delay_ms"):
        Paper.load(str(tmp_path))


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ("a.x < b.x and a.y < b.y", ("(a.x < b.x)",)),
        ("a.x < b.x", ("a.x < b.x",)),
        ("a.x < b.x or a.y < b.y", ()),
        ("a.y < b.x", ()),
        ("(a.x < 1 or a.y > 2) and 0 < b.x - a.x <= 5", ("(0 < b.x - a.x <= 5)",)),
    ],
)
def test_rules_lose_the_conditions_on_columns_that_say_nothing(
    rule: str, left: tuple[str, ...]
) -> None:
    claim = Claim("A1", "ordering", "something", "agrees", rules=(rule,)).without(["y"])
    assert claim.rules == left
    assert claim.undecided == ("" if left else "it compares y only")


def test_a_claim_is_judged_by_what_is_left_of_its_rules(tmp_path: Path) -> None:
    more = 'rule = "red.loss_pct < tail.loss_pct and red.queue < tail.queue"'
    queue = """
[columns.queue]
title = "queue"
terms = [{ key = "links.bottleneck.forward.queue_mean_packets" }]
[[tables]]"""
    text = TABLES.replace("\n[[tables]]", queue).replace('["loss_pct"]', '["loss_pct", "queue"]')
    (tmp_path / "tables.toml").write_text(text.replace("mark =", 'without = ["queue"]\nmark ='))
    claims = CLAIMS.replace('rule = "red.loss_pct < tail.loss_pct"', more)
    (tmp_path / "claims.toml").write_text(claims)
    paper = Paper.load(str(tmp_path))
    found = [
        PaperCell(table, row, column, "", ours=(loss if column.name == "loss_pct" else 9.0,))
        for (table, row), loss in (FIRST | {("1-small", "red at 98"): 4.0}).items()
        for column in paper.table(table).columns
    ]
    tables = ["1", "1-small"]
    first = judge.judge(paper, found, tables=tables)
    [one] = judge.alternatives(paper, found, first, tables)
    [(before, after)] = one.pairs
    assert (before.outcome, after.outcome) == (FAILS, HOLDS)


def test_a_claim_may_be_decided_by_a_measurement_elsewhere(tmp_path: Path) -> None:
    text = CLAIMS.replace(
        'rule = "tail.loss_pct > low.loss_pct"', 'elsewhere = "holds"\nbecause = "0.86 to 0.91"'
    )
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "claims.toml").write_text(text)
    paper = Paper.load(str(tmp_path))
    judged = judge.judge(paper, cells(paper, FIRST))[1]
    assert (judged.outcome, judged.measured) == (HOLDS, "0.86 to 0.91")
    assert judge.score([judged]).holds == 1


def test_a_reading_may_show_more_columns(tmp_path: Path) -> None:
    marks = """
[columns.marks_pct]
title = "marks (%)"
terms = [{ key = "links.bottleneck.forward.mark_rate", factor = 100.0 }]
[[tables]]"""
    text = TABLES.replace("\n[[tables]]", marks)
    text = text.replace('tables = ["1"]', 'tables = ["1"]\ncompare = ["marks_pct"]')
    (tmp_path / "tables.toml").write_text(text)
    (tmp_path / "claims.toml").write_text(CLAIMS)
    paper = Paper.load(str(tmp_path))
    named = {name: [one.name for one in paper.table(name).columns] for name in ("1", "1-small")}
    assert named == {"1": ["loss_pct"], "1-small": ["loss_pct", "marks_pct"]}
