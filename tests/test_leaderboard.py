"""Cards of many queues side by side: the table, its page, its limits.

With AQMLAB_REWRITE=1 in the environment, docs/leaderboard.md is written anew from its CSV file.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from aqmlab import _native
from aqmlab.cards import leaderboard
from aqmlab.cards.candidates import candidate
from aqmlab.cards.generator import scenario_of
from aqmlab.cards.roles import tier_cells
from conftest import ROOT, Cli

PAGE = ROOT / "docs/leaderboard.md"
DATA = PAGE.with_suffix(".csv")


def test_every_shipped_discipline_has_a_row_and_runs_in_every_test() -> None:
    kinds = {kind for kind in json.loads(_native.catalog())["disciplines"] if kind != "plugin"}
    assert {entry.kind for entry in leaderboard.entries()} == kinds
    assert len(kinds) == 30
    for entry in leaderboard.entries():
        for cell in tier_cells("quick"):
            scenario_of(cell, candidate(entry.queue))  # it is checked


def test_the_page_shows_its_file() -> None:
    rows = leaderboard.read(DATA)
    assert [row["kind"] for row in rows] == sorted(one.kind for one in leaderboard.entries())
    parts = {
        "table": leaderboard.markdown(rows),
        "limits": "".join(f"- {limit}\n" for limit in leaderboard.LIMITS),
        "parameters": "".join(
            f"- `{row['queue']}`: {row['chosen']}\n" for row in rows if row["chosen"]
        ),
    }
    shown = PAGE.read_text()
    wanted = shown
    for name, text in parts.items():
        mark = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        wanted, count = re.subn(mark, lambda found: found[1] + text + found[2], wanted, flags=re.S)  # noqa: B023
        assert count == 1, name
    if os.environ.get("AQMLAB_REWRITE") == "1":
        PAGE.write_text(wanted)
    else:
        assert shown == wanted, "AQMLAB_REWRITE=1 writes it anew"
    gates = {row["kind"] for row in rows if row["gates_failed"]}
    assert gates == {"avq", "bernoulli", "dcn", "l4s-marking", "sfb"}, "the page explains these"


def test_all_makes_cards_and_a_table_that_can_be_sorted(
    aqmlab: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [one for one in leaderboard.entries() if one.kind in ("droptail", "red")]
    monkeypatch.setattr(leaderboard, "entries", lambda: two)
    done = aqmlab("evaluate", "--all", "--only", "a-base,a-outage", "--seeds", "1..2")
    assert done.status == 0, done.err
    assert re.search(r"^droptail +\?", done.out, re.M)
    assert all(len(line) <= 80 for line in done.out.splitlines())
    folder = tmp_path / "runs/cards"
    rows = leaderboard.read(folder / "leaderboard.csv")
    assert [row["kind"] for row in rows] == ["droptail", "red"]
    assert rows[0]["delay_score"] == "0.000"
    page = (folder / "leaderboard.html").read_text()
    for place in re.findall(r'href="([^"]+)"', page):
        assert (folder / place).is_file()
    assert page.count("<li>") == len(leaderboard.LIMITS) + 1
    assert "function sort(" in page


@pytest.mark.parametrize("more", [["pie"], ["--suite", "rfc7928"], ["--against", "card.json"]])
def test_all_stands_alone(aqmlab: Cli, more: list[str]) -> None:
    done = aqmlab("evaluate", "--all", *more)
    assert done.status == 2
    assert "--all: found it with" in done.err
