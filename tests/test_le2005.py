"""The tables of Le 2005: rows, shared runs, what is offered, what is not scored."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.papers import measured
from aqmlab.papers.claim import Claims
from aqmlab.papers.judge import judge, with_noise
from aqmlab.papers.paper import Paper
from aqmlab.papers.plan import Plan
from aqmlab.papers.rule import case
from aqmlab.papers.scoreboard import PaperCell, Scoreboard, table_cells, with_references

SOURCE = Paper.load(str(Path(__file__).parents[1] / "papers" / "le2005"))
ROWS = {"4.1": 168, "4.2": 168, "5.1": 54, "5.2": 54, "6.1": 81, "6.2": 81, "7.1": 81, "7.2": 81}


def plan(*, quick: bool = False) -> Plan:
    made = Plan(SOURCE, [1], quick)
    made.add_tables([table for table in SOURCE.tables if table.id in ROWS])
    return made


@cache
def whole() -> Plan:
    return plan()


def scenario(table: str, row: str) -> dict[str, Any]:
    data: dict[str, Any] = whole().scenarios[whole().rows[table, row][0]].data
    return data


def test_every_published_row_is_there_and_the_two_tables_of_a_chapter_share_its_runs() -> None:
    assert {table: len(SOURCE.table(table).rows) for table in ROWS} == ROWS
    assert len(whole().scenarios) == 168 + 54 + 81 + 81
    for chapter in "4567":
        first, second = (
            [whole().rows[table, row.label] for row in sorted(SOURCE.table(table).rows, key=str)]
            for table in (f"{chapter}.1", f"{chapter}.2")
        )
        assert sorted(first) == sorted(second)


def test_quick_runs_have_one_load() -> None:
    labels = {label for _, label in plan(quick=True).rows}
    assert labels == {
        label for _, label in whole().rows if label.endswith((" at 98", " at 95"))
    } - {label for _, label in whole().rows if label.endswith(" at 105")}


def test_rows_become_scenarios() -> None:
    uniform = scenario("4.2", "pi_24_ecn at 105")
    users = uniform["traffic"][0]
    assert (users["users"], users["rtt"]["kind"], users["tcp"]["ecn"]) == (20400, "uniform", True)
    link = uniform["topology"]["bottleneck"]["forward"]
    assert (link["discipline"]["q_ref"], link["discipline"]["ecn"]) == ("24 packets", True)
    assert link["device_ring"] == "254 packets"
    assert scenario("5.1", "dcn_240 at 98")["traffic"][0]["rtt"]["kind"] == "general"
    # In chapter 7 the laws count what the driver holds; a drop-tail queue has no law.
    for row, counted in (("droptail_24 at 80", False), ("ared_byte_12_36 at 95", True)):
        short = scenario("7.2", row)["topology"]["bottleneck"]["reverse"]
        assert (short["device_ring"], "device_ring_counted" in short) == ("4 packets", counted)
    assert "device_ring_counted" not in scenario("6.2", "pi_24 at 80")["topology"]["bottleneck"]
    uncongested = scenario("6.1", "uncongested at 95")["topology"]["bottleneck"]["forward"]
    assert uncongested["rate"] == "1 Gbit/s"


@pytest.mark.parametrize(
    ("table", "row", "column", "counts"),
    [
        ("4.1", "ared_12_36_ecn at 98", "loss_pct", False),
        ("4.1", "ared_12_36_ecn at 98", "completed_m", True),
        ("4.1", "ared_byte_12_36 at 98", "loss_pct", False),
        ("4.2", "ared_120_360 at 80", "p90_s", False),
        ("4.2", "ared_120_360 at 90", "p90_s", True),
        ("6.1", "dcn_24 at 80", "forward_loss_pct", True),
        ("7.2", "droptail_24 at 80", "p50_s", False),
        ("6.2", "droptail_24 at 80", "p50_s", True),
    ],
)
def test_excluded_cells_say_why(table: str, row: str, column: str, counts: bool) -> None:
    assert bool(SOURCE.why_excluded(table, SOURCE.table(table).row(row), column)) != counts


def test_throughput_on_the_other_footing_is_known_by_the_print_alone() -> None:
    """The settings with 75.5 to 76.6 Mbit/s at 80 % load, at all loads, both ways."""
    for table in (SOURCE.table("6.1"), SOURCE.table("7.1")):
        printed = {
            row.published["config"]: float(row.published["forward_mbps"])
            for row in table.rows
            if row.published["load_pct"] == "80"
        }
        for row in table.rows:
            config = row.published["config"]
            if table.id == "7.1" and config.startswith("ared_byte"):
                continue  # excluded as a whole
            other = 75.5 <= printed[config] <= 76.6
            for column in ("forward_mbps", "reverse_mbps"):
                why = SOURCE.why_excluded(table.id, row, column)
                assert why.startswith("throughput counted on another footing") == other, row.label
            assert not SOURCE.why_excluded(table.id, row, "completed_m")


def test_fitted_settings_are_named() -> None:
    """Alike, whether they help or not."""

    def why(table: str, row: str) -> str:
        return SOURCE.why_fitted(table, SOURCE.table(table).row(row), "completed_m")

    assert why("6.1", "dcn_24 at 80").startswith("DCN: thresholds")
    assert why("6.1", "lqd_24 at 80") == "LQD: its period of 2 ms"
    assert why("6.1", "pi_24 at 80") == why("6.1", "droptail_24 at 80") == ""
    assert why("4.1", "pi_24 at 80").startswith("the delay at the clients, 45 bytes between")
    assert why("6.1", "ared_byte_12_36 at 80").count("; ") == 1


def test_informative_cells_tell_a_row_from_drop_tail() -> None:
    """From the paper's tables alone: without any effect of queue management they would fail."""
    cells = [
        PaperCell(table.id, row.label, column, row.published.get(column.name, ""))
        for table in SOURCE.tables
        for row in table.rows
        for column in table.columns
    ]
    cells = [
        replace(
            cell,
            excluded=SOURCE.why_excluded(
                cell.table, SOURCE.table(cell.table).row(cell.row), cell.column.name
            ),
        )
        for cell in cells
        if cell.published
    ]
    board = Scoreboard({}, True, with_references(cells, SOURCE))
    found = {(cell.table, cell.row, cell.column.name): cell for cell in board.cells}
    of_pi = found["4.2", "pi_24_ecn at 98", "p90_s"]
    assert of_pi.reference is not None
    assert of_pi.reference.row == "droptail_240 at 98"
    assert of_pi.informative
    own = found["4.2", "droptail_240 at 98", "p90_s"]
    assert not own.informative
    assert own.reference_within
    dcn = [c for c in board.cells if c.row.startswith("dcn")]
    others = board.power(c for c in board.cells if c not in dcn)
    # Most of the cells that are scored without DCN would be within if every row were
    # that of drop-tail with 240 packets.
    assert (others.informative, others.reference_within) == (356, 1507)


def test_ours_is_on_the_right_side_or_not() -> None:
    column = SOURCE.table("4.2").columns[0]
    droptail = PaperCell("4.2", "droptail_240 at 98", column, "0.200", (0.3,))
    for ours, right in ((0.31, True), (0.29, False)):
        cell = PaperCell("4.2", "x", column, "0.400", (ours,), reference=droptail)
        assert cell.informative
        assert cell.right_side == right
        assert not cell.by_value


def test_excluded_cells_are_shown_and_do_not_count() -> None:
    column = SOURCE.table("4.1").columns[0]
    far = PaperCell("4.1", "a", column, "1.0", (9.0,))
    board = Scoreboard({"4.1": "Table"}, scored=True, cells=[far])
    assert board.count().total == 1
    board = Scoreboard(
        {"4.1": "Table"},
        True,
        [far, PaperCell("4.1", "b", column, "1.0", (9.0,), excluded="broken")],
    )
    assert board.count().total == 1
    assert "- 1 cells: broken." in board.to_markdown()
    assert "| b | *9.0 / 1.0* |" in board.to_markdown()
    assert board.to_csv().splitlines()[-1].endswith(",excluded")


def test_configurations_without_published_percentiles_are_measured_all_the_same() -> None:
    table = SOURCE.table("4.2")
    row = table.row("blue_240_ecn at 90")
    assert "p50_s" not in row.published
    cells = table_cells(table, whole(), {})
    found = {cell.column.name for cell in cells if cell.row == row.label}
    assert {"p50_s", "p90_s", "le_5s_pct"} <= found


def test_a_row_that_did_not_run_decides_no_claim_by_its_published_number() -> None:
    assert case("c4_pi_24_90.loss_pct > 0", SOURCE, {}, 1) is None


@pytest.mark.long
def test_claims_with_further_seeds_are_those_that_one_run_leaves_to_chance() -> None:
    """By the numbers of seed 1 that the paper's file holds."""
    made = Plan(SOURCE, [1])
    made.add_tables(SOURCE.tables)
    runs = measured.read(SOURCE.folder / measured.FILE, SOURCE)
    cells = [cell for table in SOURCE.tables for cell in table_cells(table, made, runs)]
    assert not any(cell.lacks_runs for cell in cells)
    found = with_noise(SOURCE, judge(SOURCE, cells), cells, 1, further=False)
    [entry] = SOURCE.claims.further
    assert set(entry.claims) <= {one.claim.id for one in found if one.within_noise}


def test_further_seeds_of_an_unknown_claim_are_refused(tmp_path: Path) -> None:
    further = '[[further]]\nseeds = [2]\nclaims = ["L9-99"]\n'
    (tmp_path / "claims.toml").write_text(f"quick = []\n[rows]\n{further}")
    with pytest.raises(AqmlabError, match="further: found L9-99, which is none of its claims"):
        Claims.load(tmp_path)
