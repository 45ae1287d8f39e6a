"""Sanity bars of report cards: what any card of these candidates must say, by runs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import aqmlab as package
import pytest


def letters(card: package.Card) -> dict[str, set[str]]:
    """The letters of each area's grade."""
    return {area.name: {*area.grade} - {"-"} for area in card.areas}


@pytest.mark.long
@pytest.mark.parametrize("queue", ["fq-codel", "cake"])
def test_deployed_queues_do_well_for_users(queue: str, store: Path) -> None:
    only = ("a-base", "a-cubic", "a-mild", "a-heavy", "a-web", "a-mix", "a-rpm")
    found = letters(package.evaluate(queue, only=only, store=store, progress=False))
    assert found["delay"] <= {"A", "B"}
    assert found["users"] <= {"A", "B"}


@pytest.mark.long
def test_droptail_is_the_zero_of_the_whole_tier(store: Path) -> None:
    card = package.evaluate("droptail", store=store, progress=False)
    assert {test.score for test in card.tests} <= {0.0, None}
    assert all(grades <= {"C", "?"} for grades in letters(card).values())
    # Only a plug-in's run is made again.
    found = {gate.rule.name: gate.passed for gate in card.gates}
    assert found.pop("repeats") is None
    assert all(found.values())


@pytest.mark.long
def test_red_with_its_guidelines_thresholds_hardly_helps_users(store: Path) -> None:
    """Christiansen et al. 2000: with (5, 15) RED is worse than drop-tail near saturation."""
    queue = "red: min_th 5 packets, max_th 15 packets"
    card = package.evaluate(queue, only=("a-web", "a-mix", "a-rpm"), store=store, progress=False)
    assert letters(card)["users"] <= {"C", "D"}


@pytest.mark.long
def test_cubic_is_the_one_of_the_whole_tier(store: Path) -> None:
    card = package.evaluate(control="cubic", store=store, progress=False)
    assert {test.score for test in card.tests} <= {1.0, None}
    found = letters(card)
    assert found["coexistence"] == {"A"}
    assert all(grades in ({"A"}, {"?"}) for grades in found.values())
    assert all(gate.passed is not False for gate in card.gates)


@pytest.mark.long
def test_bbr1_loses_much_and_leaves_others_little(store: Path) -> None:
    """RFC 9743, 5.1.3, names BBRv1's losses in small buffers."""
    only = ("c-loss", "c-harm")
    card = package.evaluate(control="bbr1", only=only, seeds=[1], store=store, progress=False)
    assert {gate.rule.name for gate in card.gates if gate.passed is False} == {"loss", "harm"}


@pytest.mark.long
def test_a_card_that_was_killed_goes_on(tmp_path: Path) -> None:
    def start() -> subprocess.Popen[bytes]:
        words = ("evaluate", "codel", "--seeds", "1..4", "--jobs", "1", "--store", "store")
        more = ("--only", "a-base,a-cubic,a-levels", "--baseline", "fq-codel", "--json")
        return subprocess.Popen(
            [sys.executable, "-m", "aqmlab", *words, *more],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def runs() -> dict[Path, int]:
        """When the summary of each finished run was written."""
        made = (tmp_path / "store").glob("??/*/summary.json")
        return {file.parent: file.stat().st_mtime_ns for file in made}

    first = start()
    until = time.monotonic() + 120
    while len(runs()) < 3:
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    made = runs()
    out, err = start().communicate(timeout=300)
    assert {path: when for path, when in runs().items() if path in made} == made
    whole = package.evaluate(
        "codel",
        only=["a-base", "a-cubic", "a-levels"],
        baselines=["fq-codel"],
        seeds="1..4",
        store=tmp_path / "whole",
        progress=False,
    )
    assert json.loads(out) == json.loads(json.dumps(whole.to_json()))
    every = len([*(tmp_path / "whole").glob("??/*/summary.json")])
    assert every - to_make(err) >= len(made)


def to_make(err: bytes) -> int:
    """How many runs a command says that it is going to make; it says nothing of none."""
    found = re.search(r"(\d+) runs? to make", err.decode())
    return int(found[1]) if found else 0
