"""The card cannot be fooled: planted faults are named, what is missing is the worst."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aqmlab as library
import pytest
from aqmlab.cards import draw, page, scoring, sealed
from aqmlab.cards.candidates import candidate
from aqmlab.cards.card import Card
from aqmlab.cards.findings import FAIL, NOTE, ORDER, WARN, findings
from aqmlab.cards.sealed import Sealed, SealedSetting
from aqmlab.cards.suites import Measure
from conftest import Cli

FAULTS = Path(__file__).parent / "plugins" / "faults"
ROWS = ["q-kinds", "q-ecn", "q-light", "q-steady"]


def found(card: Card) -> set[tuple[str, str]]:
    """What fails and what warns."""
    return {(one.name, one.outcome) for one in card.findings if one.outcome in (FAIL, WARN)}


EXPECTED: Mapping[str, set[tuple[str, str]]] = {
    "base": set(),
    "random-loss": {("light load", FAIL), ("marks", WARN)},
    "small-packets": {("light load", FAIL), ("small packets", FAIL), ("marks", WARN)},
    "no-marks": {("marks", FAIL)},
    "reorder": {("order", FAIL)},
    "syn-loss": {("light load", FAIL), ("new connections", FAIL)},
    "one-rate": {("marks", FAIL)},
    "oscillate": {("light load", FAIL), ("swing", WARN)},
    "burst-tolerant": {("ECN share", FAIL)},
    "late": {("steady", FAIL)},
}
"""What the rows of kinds of packets show of each planted fault; docs/evaluate.md says why."""
CONSEQUENCE = ("new flows", FAIL)
"""New flows wait for many a fault."""

NO_MARKS = ("evaluate", FAULTS / "no-marks.py", "--only", "q-ecn", "--seeds", "1,2")
"""The card of a queue that marks nothing, in one test."""


@pytest.mark.long
@pytest.mark.parametrize("name", EXPECTED)
def test_planted_faults_are_named(name: str, store: Path) -> None:
    """In the first lines of the page; the honest queue has none."""
    card = library.evaluate(str(FAULTS / f"{name}.py"), only=ROWS, store=store, progress=False)
    shown = found(card)
    assert shown - {CONSEQUENCE} == EXPECTED[name]
    assert name != "base" or not shown
    lines = [line for part in page.page(card) for line in str(part).splitlines()][1:10]
    failing = {line.split("  ")[1].strip() for line in lines if line.startswith("FAIL")}
    assert len(failing) == sum(outcome == FAIL for _, outcome in shown)


@pytest.mark.long_cases("unrepeatable-False")
@pytest.mark.parametrize(("name", "passed"), [("base", True), ("unrepeatable", False)])
def test_a_plug_in_that_does_not_repeat_fails_a_gate(
    name: str, *, passed: bool, store: Path
) -> None:
    """It is one line of the first ten; the honest twin passes."""
    card = library.evaluate(
        str(FAULTS / f"{name}.py"), only=["q-kinds"], store=store, progress=False
    )
    [gate] = [one for one in card.gates if one.rule.name == "repeats"]
    assert gate.passed is passed
    lines = [line for part in page.page(card) for line in str(part).splitlines()][1:10]
    assert any(line.startswith("FAIL  repeats") for line in lines) is not passed


@pytest.mark.long
def test_settings_that_nobody_knows_show_what_was_made_for_one_rate(store: Path) -> None:
    """The fault serves 10 and 100 Mbit/s alone; its honest twin does well everywhere."""
    honest, cheat = (
        library.evaluate(str(FAULTS / f"{name}.py"), only=["sealed"], store=store, progress=False)
        for name in ("base", "one-rate")
    )
    assert honest.sealed is not None
    assert cheat.sealed is not None
    assert (honest.sealed.mean or 0.0) > 0.7
    assert cheat.sealed.mean == pytest.approx(0.0, abs=0.1)
    assert cheat.sealed.fails([0.7, 0.7])
    assert not cheat.sealed.fails([0.7, 0.4])
    assert not honest.sealed.fails([0.9, 0.9])


def test_one_byte_of_a_file_draws_other_settings(tmp_path: Path) -> None:
    """The name of the file does not; the word of a reviewer does."""
    text = (FAULTS / "base.py").read_text()
    words = []
    for name, own in (("one.py", text), ("two.py", text), ("three.py", text + "#\n")):
        (tmp_path / name).write_text(own)
        words.append(draw.word_of(replace(candidate("pie"), sha256=_hash(own)), 3))
    assert words[0] == words[1] != words[2]
    assert draw.word_of(candidate("pie"), 3) != draw.word_of(candidate("codel"), 3)
    assert draw.word_of(candidate("pie"), 3) != draw.word_of(candidate("pie"), 3, "mine")
    assert draw.word_of(candidate("pie"), 3) != draw.word_of(candidate("pie"), 4)


def _hash(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def test_drawn_settings_lie_in_their_ranges() -> None:
    """Rates from 3 to 60 Mbit/s, round trips from 15 to 100 ms, buffers from 120 to 400 ms."""
    seen = set()
    for word in range(200):
        for cell, seed in draw.drawn(f"{word:x}"):
            row = cell.row
            rate, rtt, buffer = (float(text.split()[0]) for text in (row.rate, row.rtt, row.buffer))
            assert 3 <= rate <= 60
            assert 15 <= rtt <= 100
            assert 119.5 <= buffer <= 400.5
            assert 2 <= int(row.traffic.split()[0]) <= 8
            seen.add((row.rate, seed))
    assert len(seen) > 1100


def test_sealed_scores_are_those_of_the_card() -> None:
    """0 is drop-tail, 1 the median of the baselines; a run that failed scores least."""
    assert sealed.score(0.1, 0.1, [0.02, 0.02]) == 0
    assert sealed.score(0.02, 0.1, [0.02, 0.02]) == 1
    assert sealed.score(math.nan, 0.1, [0.02]) == -1
    assert sealed.score(0.02, 0.1, [0.099]) is None
    twice = Sealed(
        "ab", [SealedSetting("one", 0.02, 0.1, [0.02]), SealedSetting("two", math.nan, 0.1, [0.02])]
    )
    assert twice.mean == 0
    assert Sealed.from_json(twice.to_json()).mean == 0


# --- made counts ---


def counts(**given: float) -> dict[str, list[Any]]:
    """The numbers of a made queue that does nothing wrong, with some replaced."""
    usual = {
        "q-kinds": {
            **{f"{name} sent": 10_000.0 for name in ("small-fast", "large-slow", "large-fast")},
            "small-slow sent": 1000.0,
            **{f"{name} lost": 10.0 for name in ("small-fast", "large-slow", "large-fast")},
            "small-slow lost": 1.0,
            "objects begun": 160.0,
            "probes begun": 800.0,
            "objects SYNs": 1.0,
            "probes SYNs": 1.0,
            "lost": 500.0,
            "resent": 510.0,
            "object p95": 0.5,
        },
        "q-light": {"arrived": 24_000.0, "dropped": 0.0},
        "q-ecn": {
            "arrived": 40_000.0,
            "marked": 400.0,
            "ect sent": 9000.0,
            "ect lost": 0.0,
            "can mark": 1.0,
            "with rate": 4e6,
            "without rate": 4e6,
        },
        "q-steady": {
            "first wait": 0.02,
            "last wait": 0.02,
            "mean wait": 0.02,
            "swing": 0.002,
        },
    }
    columns: dict[str, list[Any]] = {
        name: [] for name in ("test", "cell", "queue", "seed", "measure", "value")
    }
    for queue in ("candidate", "droptail", "pie"):
        for test, numbers in usual.items():
            for name, value in numbers.items():
                own = given.get(f"{test} {name}", value) if queue == "candidate" else value
                row = (test, test, queue, 1, f"find:{name}", own)
                for column, item in zip(columns.values(), row, strict=True):
                    column.append(item)
    return columns


def judged(**given: float) -> set[tuple[str, str]]:
    """What is found in made counts."""
    numbers = counts(**given)
    rows = findings(numbers, "candidate", "droptail", ["pie"])
    return {(one.name, one.outcome) for one in rows if one.text}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, set()),
        ({"q-light dropped": 30}, {("light load", FAIL)}),
        ({"q-light dropped": 24}, set()),
        ({"q-kinds small-fast lost": 900}, {("small packets", FAIL)}),
        ({"q-kinds small-fast lost": 80}, {("small packets", WARN)}),
        ({"q-kinds small-fast lost": 45}, set()),
        (
            {"q-kinds large-slow lost": 900, "q-kinds large-fast lost": 900},
            {("large packets", WARN)},
        ),
        ({"q-kinds large-slow lost": 200}, {("low rates", FAIL), ("large packets", WARN)}),
        ({"q-kinds probes SYNs": 100}, {("new connections", FAIL)}),
        ({"q-kinds resent": 700}, {("order", FAIL)}),
        ({"q-kinds resent": 15, "q-kinds lost": 5}, set()),
        ({"q-kinds object p95": 0.8}, {("new flows", FAIL)}),
        ({"q-ecn marked": 0, "q-ecn ect lost": 90}, {("marks", FAIL)}),
        ({"q-ecn marked": 0, "q-ecn can mark": 0}, {("marks", NOTE)}),
        ({"q-ecn ect lost": 90}, {("marks", WARN)}),
        ({"q-ecn with rate": 7e6}, {("ECN share", FAIL)}),
        ({"q-ecn without rate": 7e6}, {("ECN share", FAIL)}),
        ({"q-steady last wait": 0.04}, {("steady", FAIL)}),
        ({"q-steady swing": 0.03}, {("swing", WARN)}),
    ],
)
def test_bounds_of_findings(given: dict[str, float], expected: set[tuple[str, str]]) -> None:
    """Each bound from both sides."""
    assert judged(**given) == expected


def test_a_swap_of_small_and_large_swaps_the_finding() -> None:
    """Nothing but the size decides."""
    assert judged(**{"q-kinds small-fast lost": 80}) == {("small packets", WARN)}
    swapped = {"q-kinds large-slow lost": 80, "q-kinds large-fast lost": 80}
    assert judged(**swapped) == {("large packets", WARN)}


def test_no_effect_is_said_of_queues_that_do_nothing() -> None:
    """Not of drop-tail itself, whose numbers are equal."""

    def named(pairs: list[tuple[float, float]]) -> set[str]:
        rows = findings(counts(), "candidate", "droptail", ["pie"], pairs)
        return {one.name for one in rows if one.outcome == WARN}

    assert named([(0.098, 0.1), (0.102, 0.1), (0.02, 0.1)]) == {"no effect"}
    assert named([(0.098, 0.1), (0.02, 0.1), (0.02, 0.1)]) == set()
    assert named([(0.1, 0.1)] * 3) == set()


def test_findings_stand_in_the_order_of_harm() -> None:
    """Those that fail first."""
    numbers = counts(**{"q-light dropped": 300, "q-steady swing": 0.1, "q-kinds resent": 900})
    rows = findings(numbers, "candidate", "droptail", ["pie"])
    assert [one.name for one in rows[:3]] == ["light load", "order", "swing"]
    assert {one.name for one in rows} <= {*ORDER}


# --- what is missing, and what harms ---


def frame(
    candidate: Mapping[str, float | None], others: Mapping[str, Mapping[str, float]]
) -> dict[str, list[Any]]:
    """Numbers of one test, with three seeds."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("test", "cell", "queue", "seed", "measure", "value")
    }
    for queue, numbers in {"candidate": candidate, **others}.items():
        for measure, value in numbers.items():
            for seed in (1, 2, 3):
                if value is not None:
                    row = ("t", "t", queue, seed, measure, value * (1 + 0.01 * seed))
                    for column, item in zip(columns.values(), row, strict=True):
                        column.append(item)
    return columns


MEASURES = [Measure("t", "wait", "D", "ms", ""), Measure("t", "probe", "D", "ms", "")]
OTHERS = {
    "droptail": {"wait": 0.1, "probe": 0.1},
    "pie": {"wait": 0.02, "probe": 0.11},
    "cake": {"wait": 0.02, "probe": 0.12},
}


def score(
    candidate: Mapping[str, float | None], others: Mapping[str, Mapping[str, float]] = OTHERS
) -> scoring.Test:
    """The test of a made candidate."""
    [test] = scoring.scored_tests(
        frame(candidate, others),
        MEASURES,
        {"t": "delay"},
        candidate="candidate",
        droptail="droptail",
        baselines=["pie", "cake"],
    )
    return test


def test_a_number_that_is_missing_is_the_worst() -> None:
    """It stays on the card as "none ended", and the gate of answers fails."""
    test = score({"wait": 0.02, "probe": None})
    probe = test.measures[1]
    assert probe.is_missing
    assert probe.score == -1
    assert probe.better is False
    assert probe.measure.shown(probe.candidate) == "none ended"
    assert test.score == -1


def test_losing_a_number_never_improves_a_card() -> None:
    """Made candidates at random, each with and without its second number."""
    draw = random.Random(5)
    for _ in range(300):
        others = {
            name: {"wait": draw.uniform(0.005, 0.2), "probe": draw.uniform(0.05, 1.0)}
            for name in ("droptail", "pie", "cake")
        }
        own = {"wait": draw.uniform(0.001, 0.3), "probe": draw.uniform(0.05, 5.0)}
        whole, lost = score(own, others).score, score({**own, "probe": None}, others).score
        assert lost is not None
        assert lost <= (0.0 if whole is None else max(whole, -1.0)) + 1e-9


def test_what_nothing_can_score_takes_points_off_where_all_are_better() -> None:
    """Baselines that gain nothing earn nothing; twice the worst of all costs a point."""
    good = score({"wait": 0.02, "probe": 0.12})
    assert good.score == pytest.approx(1.0, abs=0.02)
    worse = score({"wait": 0.02, "probe": 0.24})
    assert worse.measures[1].score is None
    assert worse.measures[1].lost == pytest.approx(1.0, abs=0.02)
    assert worse.score == pytest.approx(0.0, abs=0.05)
    assert score({"wait": 0.02, "probe": 0.01}).score == pytest.approx(good.score)


def test_guards_alone_give_a_score_only_below_zero() -> None:
    """A test whose baselines beat drop-tail in nothing."""
    others = {name: {"wait": 0.1, "probe": 0.1} for name in OTHERS}
    assert score({"wait": 0.1, "probe": 0.05}, others).score is None
    assert score({"wait": 0.1, "probe": 0.2}, others).score == pytest.approx(-1.0, abs=0.03)


def test_a_yardstick_that_hardly_differs_from_drop_tail_scores_nothing() -> None:
    """Losses of 0.166 and 0.152 % are no scale: a queue with 0.4 % would score far below zero."""
    measures = [Measure("t", "loss", "D", "%", "")]
    numbers = frame(
        {"loss": 0.004},
        {"droptail": {"loss": 0.00166}, "pie": {"loss": 0.00152}, "cake": {"loss": 0.0050}},
    )
    [test] = scoring.scored_tests(
        numbers,
        measures,
        {"t": "bursts"},
        candidate="candidate",
        droptail="droptail",
        baselines=["pie"],
    )
    assert test.measures[0].score is None
    assert -1 < (test.score or 0.0) < 0


def test_the_exit_status_says_that_a_finding_fails(aqmlab: Cli, store: Path) -> None:
    """Unless it is allowed; an unknown name is an error."""
    words = (*NO_MARKS, "--store", store)
    failed = aqmlab(*words)
    assert failed.status == 1
    assert "no-marks fails: marks" in failed.err
    assert aqmlab(*words, "--allow", "marks").status == 0
    refused = aqmlab(*words, "--allow", "everything")
    assert refused.status == 2
    assert "is no gate and no finding" in refused.err


@pytest.mark.long
def test_a_card_keeps_its_findings(tmp_path: Path, store: Path) -> None:
    """They are in card.json, and are found again from its numbers."""
    card = library.evaluate(
        "pie", only=["q-ecn", "sealed"], seeds="1..2", store=store, progress=False
    )
    data = card.to_json()
    assert {one["name"] for one in data["findings"]} >= {"marks", "ECN share", "sealed"}
    assert len(data["sealed"]["settings"]) == 6
    import json

    (tmp_path / "card.json").write_text(json.dumps(data))
    again = Card.load(tmp_path / "card.json")
    assert again.findings == card.findings


def test_a_card_for_a_teacher_has_names_points_and_grades(aqmlab: Cli, store: Path) -> None:
    """As JUnit XML, which graders read."""
    words = (*NO_MARKS, "--store", store)
    assert aqmlab(*words, "--junit", "points.xml").status == 1
    from xml.etree import ElementTree

    suite = ElementTree.parse("points.xml").getroot()
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    cases = [one.get("name") for one in suite.iter("testcase")]
    assert suite.get("name") == "no-marks"
    assert properties["points"] == f"{len(cases) - 1} of {len(cases)}"
    assert properties["grade ecn"]
    [failed] = [
        one.get("name") for one in suite.iter("testcase") if one.find("failure") is not None
    ]
    assert failed == "marks"
