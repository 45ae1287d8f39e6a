"""What changed from one card to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from aqmlab.cards.card import Card
from aqmlab.cards.regression import Comparison
from aqmlab.errors import AqmlabError
from conftest import Cli

SEEDS = (1, 2, 3, 4, 5, 6, 7, 8)
NUMBERS: Mapping[str, tuple[str, float]] = {
    "wait p95": ("a-base", 0.010),
    "goodput": ("a-base", 9e6),
    "goodput ratio": ("a-rtt-fair", 0.8),
    "gate:outage": ("a-outage", 0.9),
}


def card(**factors: float | Sequence[float]) -> Card:
    """A card whose numbers are those above times a factor, a little different for each seed."""
    columns: dict[str, list[object]] = {
        name: [] for name in ("test", "cell", "queue", "seed", "measure", "value")
    }
    for measure, (test, value) in NUMBERS.items():
        factor = factors.get(measure.replace(" ", "_").replace(":", "_"), 1.0)
        for k, seed in enumerate(SEEDS):
            own = factor if isinstance(factor, float) else factor[k]
            row = (test, test, "candidate", seed, measure, value * own * (1 + 0.01 * (k % 3)))
            for name, item in zip(columns, row, strict=True):
                columns[name].append(item)
    return Card("queue", {}, {}, "", "e", "quick", (), SEEDS, ("pie",), columns, ())


def verdicts(found: Comparison) -> dict[str, str]:
    return {one.measure.measure: one.verdict for one in found.changes}


def noisy(factor: float, spread: float = 0.001) -> list[float]:
    """Factors around one, a little different for each seed."""
    return [factor * (1 + spread * (-1) ** k) for k in range(len(SEEDS))]


def test_equal_cards_are_the_same() -> None:
    found = card().compare(card())
    assert set(verdicts(found).values()) == {"same"}
    assert found.regressions == []


def test_longer_waits_regress_and_shorter_ones_improve() -> None:
    longer = card(wait_p95=noisy(1.3))
    assert verdicts(longer.compare(card()))["wait p95"] == "regressed"
    assert verdicts(card().compare(longer))["wait p95"] == "improved"
    assert longer.compare(card()).regressions == ["a-base wait p95: +30.0 %"]


def test_less_goodput_and_fairness_regress() -> None:
    assert verdicts(card(goodput=noisy(0.95)).compare(card()))["goodput"] == "regressed"
    found = card(goodput_ratio=noisy(0.8)).compare(card())
    assert verdicts(found)["goodput ratio"] == "regressed"


def test_clear_changes_may_be_too_small_to_matter() -> None:
    assert verdicts(card(wait_p95=noisy(1.03)).compare(card()))["wait p95"] == "small"
    assert verdicts(card(goodput=noisy(0.995, 0.0001)).compare(card()))["goodput"] == "small"


def test_chance_does_not_regress() -> None:
    found = card(wait_p95=noisy(1.1, 0.6)).compare(card())
    assert verdicts(found)["wait p95"] == "unclear"


def test_a_gate_that_fails_now_regresses() -> None:
    found = card(gate_outage=0.1).compare(card())
    assert found.regressions == ["gate outage: failed, passed before"]
    assert card().compare(card(gate_outage=0.1)).regressions == []


def test_cards_need_seeds_in_common() -> None:
    with pytest.raises(AqmlabError, match="expected two or more in common"):
        card().compare(replace(card(), seeds=(1, 20, 21)))


def test_reports_for_other_programs() -> None:
    found = card(wait_p95=noisy(1.3), gate_outage=0.1).compare(card())
    suite = ElementTree.fromstring(found.junit())
    assert suite.attrib["failures"] == "2"
    failures = suite.findall("testcase/failure")
    assert [one.attrib["message"] for one in failures] == [
        "wait p95 is 13.1 ms, was 10.1 ms (+30.0 %)",
        "passed before, fails now",
    ]
    assert failures[0].text == "To repeat a test: the same command with `--only a-base`."
    assert suite[0].attrib == {"classname": "a-base: one long flow", "name": "wait p95"}
    text = found.markdown()
    assert "| worse | a-base: one long flow | wait p95 ms | 10.1 | 13.1 | +30.0 % |" in text
    assert "Means over 8 seeds." in text
    assert "Holm's correction over 3 numbers" in text
    assert "gates that fail now: outage" in text


def test_exit_statuses(aqmlab: Cli) -> None:
    few = ("--only", "a-base", "--baseline", "pie")
    first = aqmlab("evaluate", "codel", *few, "--against", "ref.json", "--update")
    assert first.status == 0
    assert Path("ref.json").is_file()
    same = aqmlab("evaluate", "codel", *few, "--against", "ref.json")
    assert same.status == 0
    assert "codel against codel: 2 the same" in same.out
    worse = aqmlab(
        *("evaluate", "codel: target 50 ms", *few, "--against", "ref.json"),
        *("--junit", "junit.xml", "--markdown", "summary.md"),
    )
    assert worse.status == 1
    assert "1 regression against ref.json; the first: a-base wait p95" in worse.err
    assert Path("junit.xml").is_file()
    assert "| worse | a-base" in Path("summary.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--against", "none.json"), "none.json"),
        (("--update",), "--update: found it without --against"),
        (("--against", "x", "--suite", "rfc7928"), "only cards are compared"),
    ],
)
def test_bad_input(aqmlab: Cli, arguments: tuple[str, ...], message: str) -> None:
    answer = aqmlab("evaluate", "pie", *arguments)
    assert answer.status == 2
    assert message in answer.err
    assert not Path("runs").exists()
