"""The pages of report cards in a browser: what a telephone shows without scrolling sideways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aqmlab as package
import pytest
from aqmlab.cards import leaderboard
from aqmlab.cards.html import write_html
from conftest import PHONE, ROOT

WIDE = {"width": 1400, "height": 900}


@pytest.mark.long
@pytest.mark.parametrize(
    ("queue", "control", "only"),
    [("fq-codel", None, ["a-base", "a-burst"]), (None, "cubic", ["c-alone", "c-start"])],
)
def test_the_changes_of_a_card_fit(
    browser: Any, queue: str | None, control: str | None, only: list[str], tmp_path: Path
) -> None:
    card = package.evaluate(queue, control=control, only=only, store=tmp_path, progress=False)
    write_html(card, tmp_path / "card.html")
    for size in (PHONE, WIDE):
        page = browser.new_page(viewport=size)
        page.goto((tmp_path / "card.html").as_uri())
        table = page.locator("table.grouped").bounding_box()
        assert table["x"] + table["width"] <= size["width"]
        assert page.locator("tr.head").first.is_visible() is (size is PHONE)
        for head in page.locator("th.less").all():
            assert head.is_visible() is (size is WIDE)
        page.close()


@pytest.mark.parametrize("board", [leaderboard.QUEUES, leaderboard.CONTROLS])
def test_a_table_of_cards_fits_and_keeps_its_names(
    browser: Any, board: leaderboard.Board, tmp_path: Path
) -> None:
    rows = leaderboard.read(ROOT / f"docs/{board.file}.csv")
    leaderboard.write(rows, [row["kind"] for row in rows], tmp_path, board)
    page = browser.new_page(viewport=WIDE)
    page.goto((tmp_path / f"{board.file}.html").as_uri())
    table = page.locator("table").bounding_box()
    assert table["x"] + table["width"] <= WIDE["width"]
    page.set_viewport_size(PHONE)
    name = page.locator("tbody tr th").first
    before = name.bounding_box()
    page.locator(".scroll").evaluate("one => { one.scrollLeft = 150; }")
    assert name.bounding_box()["x"] == pytest.approx(before["x"], abs=1), "names stay in view"
    page.close()
