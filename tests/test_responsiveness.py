"""What can be measured from outside, and what users feel: the page, its numbers, its statistics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from aqmlab.cards.leaderboard import entries
from aqmlab.cards.suites import rows
from conftest import ROOT

from lab import responsiveness

PAGE = ROOT / "docs/responsiveness.md"


def test_ranks_with_ties() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0])
    assert responsiveness.correlation(values, np.exp(values)) == pytest.approx(1)
    assert responsiveness.correlation(values, -values) == pytest.approx(-1)
    tied = np.array([1.0, 1.0, 2.0, 3.0])
    # Ranks 1.5, 1.5, 3, 4 beside 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
    assert responsiveness.correlation(tied, values) == pytest.approx(math.sqrt(0.9))
    assert math.isnan(responsiveness.correlation(np.ones(4), values))


def test_every_queue_on_every_link_has_its_numbers() -> None:
    found = responsiveness.read(PAGE.with_suffix(".csv"))
    links = {row.section for row in rows("access")}
    wanted = {(link, entry.kind) for link in links for entry in entries()}
    assert {(row["link"], row["queue"]) for row in found} == wanted
    assert len(found) == len(wanted) == 300
    for row in found:
        assert all(
            math.isfinite(row[name]) for name in (*responsiveness.SEEN, *responsiveness.FELT)
        )
        assert 1 <= row["mos"] <= 4.5
        assert 0 <= row["stalls"] <= 1


@pytest.mark.long
def test_the_page_shows_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = responsiveness.read(PAGE.with_suffix(".csv"))
    text = PAGE.read_text()
    assert responsiveness.shown(text, found) == text, "make responsiveness ARGS=--data writes it"
    turned = [{**row, "rpm": 1 / row["rpm"]} for row in found]
    monkeypatch.setattr(responsiveness, "_RESAMPLED", 2)
    assert responsiveness.shown(text, turned) != text
