"""Cards of many queues side by side: the table, its page, its limits.

With AQMLAB_REWRITE=1 in the environment, docs/leaderboard.md is written anew from its CSV file.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import aqmlab as package
import pytest
from aqmlab import _native
from aqmlab.cards import leaderboard
from aqmlab.cards.candidates import candidate
from aqmlab.cards.generator import scenario_of
from aqmlab.cards.kinds import CONTROL
from aqmlab.cards.roles import CONTROLS, control_roles, tier_cells
from conftest import ROOT, Cli

PAGE = ROOT / "docs/leaderboard.md"


@pytest.mark.long
def test_every_shipped_control_has_a_row_and_runs_in_every_test() -> None:
    prefix = "congestion_control."
    names = {
        name.removeprefix(prefix)
        for name in json.loads(_native.catalog())["transports"]
        if name.startswith(prefix)
    }
    found = leaderboard.entries(leaderboard.CONTROLS)
    assert {entry.kind for entry in found} == names - {"plugin", "external"}
    assert len(found) == 12
    for entry in found:
        _, _, roles, _ = control_roles(entry.text, entry.ecn, CONTROLS)
        for cell in tier_cells("quick", (), CONTROL):
            for role in roles(cell):
                scenario_of(cell, role.queue, role.control_in(cell))  # it is checked


@pytest.mark.long
def test_every_shipped_discipline_has_a_row_and_runs_in_every_test() -> None:
    kinds = {kind for kind in json.loads(_native.catalog())["disciplines"] if kind != "plugin"}
    # These limit rates; the queue behind a rate is what a card is about.
    kinds -= {"policer", "shaper", "htb", "cake-mq"}
    assert {entry.kind for entry in leaderboard.entries()} == kinds
    assert len(kinds) == 30
    for entry in leaderboard.entries():
        for cell in tier_cells("quick"):
            scenario_of(cell, candidate(entry.text))  # it is checked


@pytest.mark.parametrize(
    ("board", "failing"),
    [
        (leaderboard.QUEUES, {"avq", "bernoulli", "dcn", "l4s-marking", "sfb", "sfq", "step"}),
        (leaderboard.CONTROLS, {"bbr1", "fast", "santa-cruz", "sync-tcp", "vegas"}),
    ],
)
def test_the_page_shows_its_file(board: leaderboard.Board, failing: set[str]) -> None:
    rows = leaderboard.read(ROOT / f"docs/{board.file}.csv")
    assert [row["kind"] for row in rows] == sorted(one.kind for one in leaderboard.entries(board))
    name = board.about.name
    parts = {
        "table": leaderboard.markdown(rows, board),
        "limits": "".join(f"- {limit}\n" for limit in board.limits),
        "parameters": "".join(
            f"- `{row[name]}`: {row['chosen']}\n" for row in rows if row["chosen"]
        ),
    }
    shown = PAGE.read_text()
    wanted = shown
    for part, text in parts.items():
        mark = rf"(<!-- {name} {part} -->\n).*?(<!-- end -->)"
        wanted, count = re.subn(mark, lambda found: found[1] + text + found[2], wanted, flags=re.S)  # noqa: B023
        assert count == 1, part
    if os.environ.get("AQMLAB_REWRITE") == "1":
        PAGE.write_text(wanted)
    else:
        assert shown == wanted, "AQMLAB_REWRITE=1 writes it anew"
    found = {row["kind"] for row in rows if leaderboard.failing(row)}
    assert found == failing, "records/leaderboard.md explains these"


def test_all_makes_cards_and_a_table_that_can_be_sorted(
    aqmlab: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [one for one in leaderboard.entries() if one.kind in ("droptail", "red")]
    monkeypatch.setattr(leaderboard, "entries", lambda _: two)
    done = aqmlab("evaluate", "--all", "--only", "a-base,a-outage", "--seeds", "1..2")
    assert done.status == 0, done.err
    assert re.search(r"^droptail +C", done.out, re.M)
    assert all(len(line) <= 80 for line in done.out.splitlines())
    folder = tmp_path / "runs/cards"
    rows = leaderboard.read(folder / "leaderboard.csv")
    assert [row["kind"] for row in rows] == ["droptail", "red"]
    assert rows[0]["delay_score"] == "0.000"
    page = (folder / "leaderboard.html").read_text()
    for place in re.findall(r'href="([^"]+)"', page):
        assert (folder / place).is_file()
    assert page.count("<li>") == len(leaderboard.QUEUES.limits) + 1
    assert "function sort(" in page


@pytest.mark.long
def test_all_controls_makes_their_cards(
    aqmlab: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = leaderboard.entries(leaderboard.CONTROLS)
    two = [one for one in found if one.kind in ("cubic", "dctcp")]
    monkeypatch.setattr(leaderboard, "entries", lambda _: two)
    done = aqmlab("evaluate", "--all-controls", "--only", "c-many,c-start", "--seeds", "1..2")
    assert done.status == 0, done.err
    assert re.search(r"^cubic +A", done.out, re.M)
    folder = tmp_path / "runs/cards"
    rows = leaderboard.read(folder / "controls.csv")
    assert [(row["control"], row["speed_score"] == "1.000") for row in rows] == [
        ("cubic", True),
        ("dctcp", False),
    ]
    page = (folder / "controls.html").read_text()
    for place in re.findall(r'href="([^"]+)"', page):
        assert (folder / place).is_file()
    assert package.Card.load(folder / "dctcp/card.json").ecn == "classic"


@pytest.mark.parametrize("option", ["--all", "--all-controls"])
@pytest.mark.parametrize("more", [["pie"], ["--suite", "rfc7928"], ["--against", "card.json"]])
def test_all_stands_alone(aqmlab: Cli, option: str, more: list[str]) -> None:
    done = aqmlab("evaluate", option, *more)
    assert done.status == 2
    assert f"{option}: found it with" in done.err
