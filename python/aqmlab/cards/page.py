"""The card on a terminal, 80 columns wide."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from aqmlab._util.console import strong
from aqmlab._util.table import TableModel
from aqmlab.cards.card import Card, about_seeds, card_rows
from aqmlab.cards.scoring import CONSTANTS, UNSCORED, VERSION, Gate, MeasureScore, Test
from aqmlab.results.statistics import Estimate

__all__ = ["failure", "head", "page", "shown_area", "shown_change", "worst_first"]


WIDTH = 80
_MANY = 9.0
"""From this gain on a change is shown as a factor."""
_LARGE = 0.0995
"""Smaller changes have a decimal."""


def page(card: Card) -> Iterator[str | Text | TableModel]:
    """What a terminal shows: title, sentence, gates, grades, tests, and what was left out."""
    yield strong(f"{card.name}: report card")
    yield from head(card)
    yield ""
    yield from _wrapped(card.sentence)
    yield ""
    yield from _gates(card.gates)
    yield ""
    yield _grades(card)
    whom = ", ".join(sorted(card.baselines))
    yield from _wrapped(
        f"0 = drop-tail, 1 = median of {whom} (fairness: the fairest of them); in brackets 95 % "
        f"over seeds. A from "
        f"{CONSTANTS['grade_a']}, B from {CONSTANTS['grade_b']}, C from 0, D below; ? = fewer than "
        f"{CONSTANTS['settings_for_a_grade']:.0f} settings that can tell, or one seed."
    )
    yield ""
    yield _tests(card)
    yield from _wrapped(
        "Worst tests first; --list explains them. Change: from the median of the baselines, same "
        "seeds; * = its 95 % interval leaves out zero, which one in twenty does by chance. "
        "- = no score: the baselines gain too little on drop-tail here."
    )
    yield ""
    left = [name.split(" (")[0] for name, _ in card.not_tested]
    yield from _wrapped(
        f"Not tested: {', '.join(left)}. docs/evaluate.md says what a card leaves out."
    )


def head(card: Card) -> list[str]:
    """What the card is about, in lines."""
    own = ", ".join(f"{key} {value}" for key, value in card.given.items() if key != "preset")
    lines = [
        f"card {VERSION}, {card.tier} tier, {about_seeds(card.seeds)}, engine {card.engine[:16]}"
    ]
    lines += _wrapped(f"parameters: {own}" if own else "parameters: as they come")
    if card.sha256:
        lines.append(f"file: sha256 {card.sha256[:16]}; tuned on: not stated")
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def _gates(gates: Sequence[Gate]) -> Iterator[str]:
    """A line of what passed, and each failure in full."""
    words = {True: "pass", False: "FAIL", None: "not run"}
    for passed, word in words.items():
        names = [gate.rule.name for gate in gates if gate.passed is passed]
        if names:
            yield from _wrapped(f"gates {word}: {', '.join(names)}")
    for gate in gates:
        if gate.passed is False:
            yield from _wrapped(f"  {gate.rule.name}: {failure(gate)}")


def failure(gate: Gate) -> str:
    """Why a gate failed, and the command that shows it."""
    what = gate.reason or f"found {gate.worst:.3g}, bound {gate.rule.bound:.3g}"
    return (
        f"{gate.rule.meaning}; {what}; in {gate.test}, seed {gate.seed}. To repeat it: the same "
        f"command with --only {gate.test.split('/')[0]} --write FOLDER"
    )


def _grades(card: Card) -> TableModel:
    table = TableModel()
    table.add_key("area")
    table.add_key("grade")
    table.add_number("score")
    table.add_number("tests")
    names = sorted(card.baselines)
    for name in names:
        table.add_number(name)
    others = [card.areas_of(name) for name in names]
    for place, area in enumerate(card.areas):
        if area.score is None and not any(test.area == area.name for test in card.tests):
            continue
        scores = [one[place].score for one in others]
        table.add_row(
            area.name,
            area.grade,
            shown_area(area.score),
            str(area.tests),
            *("-" if score is None else f"{score.mean:.2f}" for score in scores),
        )
    return table


def shown_area(score: Estimate | None) -> str:
    """A score with its interval."""
    if score is None:
        return "-"
    if not math.isnan(score.low):
        return f"{score.mean:.2f} ({score.low:.2f} to {score.high:.2f})"
    return f"{score.mean:.2f}"


def worst_first(tests: Sequence[Test]) -> list[Test]:
    """Tests by their score; those without one last."""
    return sorted(tests, key=lambda test: (test.score is None, test.score or 0.0))


def _tests(card: Card) -> TableModel:
    """Every number of every test."""
    about = {row.id: row for row in card_rows(card.tier)}
    table = TableModel()
    table.add_key("test")
    table.add_key("number")
    for name in ("candidate", "drop-tail", "median", "change", "score"):
        table.add_number(name)
    for test in worst_first(card.tests):
        if about[test.id].area in ("safety", "cost"):
            continue
        total = "-" if test.score is None else f"{test.score:.2f}"
        for place, one in enumerate(test.measures):
            table.add_row(
                "" if place else test.id,
                one.measure.titled,
                one.measure.shown(one.candidate),
                one.measure.shown(one.droptail),
                one.measure.shown(one.reference),
                shown_change(one),
                "" if place else total,
            )
    return table


def shown_change(one: MeasureScore) -> str:
    """The difference from the median of the baselines, marked where it is clear."""
    if one.measure.letter == UNSCORED:
        return ""
    mark = "*" if one.difference.clear else ""
    if not one.is_relative:
        return f"{one.difference.mean:+.2g}{mark}"
    if one.gain >= _MANY:
        return f"{1 + one.gain:.0f} x{mark}"
    digits = 0 if abs(one.gain) >= _LARGE else 1
    return f"{100 * one.gain:+.{digits}f} %{mark}"
