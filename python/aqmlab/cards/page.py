"""What a card says: its blocks, for a terminal and for a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from aqmlab._util.table import ON_PAGES, WIDE, Cell, TableModel
from aqmlab._util.words import counted
from aqmlab.cards.card import Card, about_seeds
from aqmlab.cards.criteria import criteria
from aqmlab.cards.findings import PASS
from aqmlab.cards.gates import Gate
from aqmlab.cards.kinds import QUEUE
from aqmlab.cards.scoring import CONSTANTS, UNSCORED, VERSION, MeasureScore, Test
from aqmlab.cards.sealed import AREA
from aqmlab.document.blocks import Block, Heading, Item, Items, Pictures, Table, Text, Title
from aqmlab.document.terminal import parts
from aqmlab.results.statistics import Estimate
from aqmlab.scenario.scenario import toml_value

__all__ = ["beside", "blocks", "failure", "faults", "page"]


_MANY = 9.0
"""From this gain on a change is shown as a factor."""
_LARGE = 0.0995
"""Smaller changes have a decimal."""


def page(card: Card, weights: Mapping[str, float] | None = None) -> Iterator[str | TableModel]:
    """What a terminal shows: the card in short, and an overall grade if areas have weights."""
    return parts(blocks(card, weights))


def blocks(
    card: Card,
    weights: Mapping[str, float] | None = None,
    pictures: Pictures | None = None,
) -> Iterator[Block]:
    """The card from top to bottom.

    Args:
        card: the card.
        weights: of areas, for an overall grade; None: there is none.
        pictures: those of a page, which says everything in full; None: the text of a terminal.
    """
    yield Title(f"{card.name}: report card", title(card))
    found = [Item(text, name, word) for word, name, text in faults(card)]
    yield Items([*found, Item(passed(card), word="pass")])
    yield Text(card.sentence, "verdict")
    if pictures:
        yield from _gates(card.gates)
    yield Heading("Grades")
    yield Table(_grades(card))
    if weights:
        area = card.overall(weights)
        shown = ", ".join(f"{name}={weight:g}" for name, weight in weights.items())
        words = f"overall {area.grade}, {shown_area(area.score)}, weights of your choice: {shown}"
        yield Text(words)
    yield Text(legend(card), "soft")
    if pictures:
        yield pictures
    yield Heading("Tests, the worst first")
    yield Table(_tests(card))
    if pictures:
        yield Text(f"{notes(card)} Green is better and red is worse by enough to matter.", "soft")
    else:
        yield Text(f"Worst tests first; --list explains them. {notes(card)}")
    for line in unscored(card):
        yield Text(line, "soft")
    if card.own:
        yield Heading("Your metrics")
        yield Table(own_table(card))
        yield Text(own_notes(card), "soft")
    if card.about is not QUEUE:
        yield Heading("RFC 9743, criterion by criterion")
        yield from _all_criteria(card) if pictures else _criteria(card)
    yield Heading("Not tested")
    if pictures:
        yield Items([Item(why, name) for name, why in card.not_tested])
        yield Heading("To repeat a test")
        first = next((test.id for test in worst_first(card.tests)), "TEST")
        yield Text(
            f"The command that made this card, with --only {first} --write rows, writes the "
            "scenario of the test for aqmlab run."
        )
    else:
        left = [name.split(" (")[0] for name, _ in card.not_tested]
        yield Text(
            f"Not tested: {', '.join(left) or 'nothing of the card'}. docs/evaluate.md says what a "
            "card leaves out."
        )
        yield from _gates(card.gates)
    for line in head(card):
        yield Text(line, "soft")
    if pictures:
        yield Text(
            f"aqmlab, card {VERSION}, engine {card.engine}, {about_seeds(card.seeds)}. The same "
            "candidate and engine give the same card.",
            "soft",
        )


def beside(card: Card) -> list[str]:
    """Baselines whose scores stand beside the candidate's, in the order that was given."""
    return [name for name in card.baselines if name != card.about.anchor]


def legend(card: Card) -> str:
    """What scores and grades mean."""
    letters = (
        f"A from {CONSTANTS['grade_a']}, B from {CONSTANTS['grade_b']}, C from 0, D below; "
        "? = hardly any number can tell, or one seed."
    )
    if card.about is QUEUE:
        whom = ", ".join(card.baselines)
        return (
            f"0 = drop-tail, 1 = median of {whom} (fairness: the fairest of them); in brackets "
            f"95 % over seeds. {letters}"
        )
    yardstick = "Prague where queues mark, else CUBIC" if card.ecn == "l4s" else "CUBIC"
    return (
        f"1 = {yardstick}; 0 = twice its delay or time, half its rate, "
        f"{CONSTANTS['control_loss_factor']:.0f} times its loss, or harm and Jain's index worse by "
        f"{CONSTANTS['control_harm']}; in brackets 95 % over seeds. {letters}"
    )


def notes(card: Card) -> str:
    """What the table of tests shows."""
    star = (
        "* = clearly differs: the 95 % interval leaves out zero, which one in twenty does by "
        "chance."
    )
    if card.about is QUEUE:
        return (
            f"Change: from the median of the baselines, same seeds; {star} The score is of the "
            "whole test; - = none."
        )
    return (
        f"Change: from CUBIC in the same place, same seeds; {star} Harm: what others lose beside "
        "the control, as a share of what they have alone."
    )


def unscored(card: Card) -> list[str]:
    """Why tests were not run, and why tests and numbers have no score: a line for each reason."""
    found: dict[str, list[str]] = {}
    for test in card.tests:
        if test.why:
            found.setdefault(test.why, []).append(test.id)
            continue
        for one in test.measures:
            if one.why and one.measure.letter not in (UNSCORED, "G"):
                found.setdefault(one.why, []).append(f"{one.measure.measure} of {test.id}")
    lines = [f"No score: {', '.join(names)}: {why}." for why, names in found.items()]
    homeless: dict[str, list[str]] = {}
    for name, why in card.without_place.items():
        homeless.setdefault(why, []).append(name)
    return lines + [f"Not run: {', '.join(names)}: {why}." for why, names in homeless.items()]


def _criteria(card: Card) -> Iterator[Block]:
    """The criteria of RFC 9743: what a test answers, and what remains to be explained."""
    table = TableModel("", ["RFC 9743", "criterion"], texts=["score or gate"])
    found = criteria(card)
    for one in found:
        if one.answer:
            table.add_row(one.section, one.name, one.answer)
    yield Table(table)
    for later, words in (
        (True, "Not run here"),
        (False, "Must explain, there is no test"),
    ):
        left = [one for one in found if not one.answer and one.later is later]
        if left:
            shown = ", ".join(f"{one.section} {one.name}" for one in left)
            yield Text(f"{words}: {shown}.")


def _all_criteria(card: Card) -> Iterator[Block]:
    """Each criterion with the RFC's own words."""
    table = TableModel("", ["section"], texts=["criterion", "the RFC says", "shown by"])
    for one in criteria(card):
        left = Cell(f"\N{EN DASH} {one.why}")
        if not one.later:
            left = Cell(f"\N{WHITE SQUARE} must explain: {one.why}", "worse")
        table.add_row(one.section, one.name, one.requirement, one.answer or left)
    yield Table(table)
    yield Text(
        "A number is the score of a test: 1 is CUBIC. A dash was not run on this card. A box is "
        "what the authors of a control have to explain themselves.",
        "soft",
    )


def head(card: Card) -> list[str]:
    """What the card is about, in lines."""
    own = ", ".join(
        f"{key} {toml_value(value)}" for key, value in card.parameters.items() if value is not None
    )
    lines = [
        f"card {VERSION}, {card.tier} tier, {about_seeds(card.seeds)}, engine {card.engine[:16]}"
    ]
    lines.append(f"parameters: {own or 'none'}")
    if card.about is not QUEUE:
        lines.append(f"ECN: {card.ecn}; TCP of Linux with this control")
    if card.sha256:
        lines.append(f"file: sha256 {card.sha256[:16]}; tuned on: not stated")
    return lines


def title(card: Card) -> str:
    """What stands beside the name."""
    sealed = f", sealed {card.sealed.word[:4]}" if card.sealed else ""
    return f"card {VERSION}, {card.tier}, {about_seeds(card.seeds)}{sealed}"


def faults(card: Card) -> list[tuple[str, str, str]]:
    """Word, name and text of what is wrong: gates, findings that fail, those that warn."""
    found = [("FAIL", gate.rule.name, _short(gate)) for gate in card.gates if gate.passed is False]
    found.sort(key=lambda one: _HARM.index(one[1]) if one[1] in _HARM else len(_HARM))
    return [*found, *((one.outcome, one.name, one.text) for one in card.findings if one.text)]


_HARM = ("runs", "answers")
"""Gates that stand first."""


def passed(card: Card) -> str:
    """How much is in order."""
    gates = sum(gate.passed is True for gate in card.gates)
    found = sum(one.outcome == PASS for one in card.findings if one.name != AREA)
    parts = [counted(found, "finding")] if card.findings else []
    parts.append(counted(gates, "gate"))
    if card.sealed is not None and (mean := card.sealed.mean) is not None:
        parts.append(f"sealed settings {mean:.2f} (1 = the baselines)")
    return ", ".join(parts)


def _short(gate: Gate) -> str:
    """Why a gate failed, in a line."""
    return gate.reason or (
        f"{gate.rule.meaning}: found {gate.worst:.3g} in {gate.test}, seed {gate.seed}"
    )


def _gates(gates: Sequence[Gate]) -> Iterator[Block]:
    """A line of what passed, and each failure in full."""
    yield Heading("Gates")
    words = {True: "pass", False: "FAIL", None: "not run"}
    for passed, word in words.items():
        names = [gate.rule.name for gate in gates if gate.passed is passed]
        if names:
            yield Text(f"gates {word}: {', '.join(names)}", "worse" if passed is False else "")
    for gate in gates:
        if gate.passed is False:
            yield Text(f"  {gate.rule.name}: {failure(gate)}", "worse")


def failure(gate: Gate) -> str:
    """Why a gate failed, and the command that shows it."""
    what = gate.reason or f"found {gate.worst:.3g}, bound {gate.rule.bound:.3g}"
    return (
        f"{gate.rule.meaning}; {what}; in {gate.test}, seed {gate.seed}. To repeat it: the same "
        f"command with --only {gate.test.split('/')[0]} --write FOLDER"
    )


def _grades(card: Card) -> TableModel:
    names = beside(card)
    table = TableModel("", ["area", "grade", "worst test"])
    table.add_number("score (95 % interval)", short="score")
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
            area.worst or "-",
            shown_area(area.score),
            *("-" if score is None else f"{score.mean:.2f}" for score in scores),
        )
    return table


def shown_area(score: Estimate | None) -> str:
    """A score with its interval."""
    if score is None:
        return "-"
    mean, low, high = (
        f"{one:.2f}".replace("-0.00", "0.00") for one in (score.mean, score.low, score.high)
    )
    return mean if math.isnan(score.low) else f"{mean} ({low} to {high})"


def worst_first(tests: Sequence[Test]) -> list[Test]:
    """Tests by their score; those without one last."""
    return sorted(tests, key=lambda test: (test.score is None, test.score or 0.0))


def _tests(card: Card) -> TableModel:
    """Every number of every test."""
    is_queue = card.about is QUEUE
    about = {row.id: row for row in card.rows}
    table = TableModel("", ["test", "number"], ["candidate"], is_grouped=True)
    if is_queue:
        table.add_number("drop-tail", room=WIDE)
        table.add_number("median")
        table.add_number("best baseline", room=ON_PAGES)
    for name in () if is_queue else (card.about.called, *beside(card)):
        table.add_number(name)
    table.add_number("change")
    table.add_number("score")
    tones = {True: "better", False: "worse", None: ""}
    for test in worst_first(card.tests):
        total = "-" if test.score is None else f"{test.score:.2f}"
        row = about[test.id]
        named = Cell(test.id, note=f"{row.scenario}; {row.section}")
        for place, one in enumerate(test.measures):
            others = [*map(one.measure.shown, shown_beside(card, one))]
            if is_queue:
                others.append(f"{one.measure.shown(one.best_value)} {one.best}")
            table.add_row(
                "" if place else named,
                one.measure.titled,
                one.measure.shown(one.candidate),
                *others,
                Cell(shown_change(one), tones[one.better]),
                "" if place else total,
            )
    return table


def own_table(card: Card) -> TableModel:
    """The numbers of one's own, test by test: the candidate's beside those of the others."""
    found = card.own_means
    names = [*found[0][1]]
    heads = [
        {"candidate": "candidate", card.about.anchor: card.about.called}.get(n, n) for n in names
    ]
    table = TableModel("", ["your metric", "test"], heads)
    last = ""
    for measure, means in sorted(found, key=lambda one: one[0].measure):
        shown = ("?" if math.isnan(value) else measure.shown(value) for value in means.values())
        table.add_row("" if measure.titled == last else measure.titled, measure.test, *shown)
        last = measure.titled
    return table


def own_notes(card: Card) -> str:
    """What the table of one's own numbers shows."""
    scored = any(one.letter != UNSCORED for one in card.own)
    grades = "Those with a score are the area own." if scored else "They change no grade."
    return (
        "Your metrics: means over settings and seeds; ? = a run of the test has no number, or "
        "not the table that the metric reads. "
        f"{grades}"
    )


def shown_beside(card: Card, one: MeasureScore) -> list[float]:
    """The values that stand beside the candidate's."""
    if card.about is QUEUE:
        return [one.droptail, one.reference]
    return [one.reference, *(one.others[name] for name in beside(card))]


def shown_change(one: MeasureScore) -> str:
    """The difference from the median of the baselines, marked where it is clear."""
    if one.measure.letter == UNSCORED or one.is_missing:
        return ""
    mark = "*" if one.difference.clear else ""
    if not one.is_relative:
        return f"{one.difference.mean:+.2g}{mark}"
    if one.gain >= _MANY:
        return f"{1 + one.gain:.0f} x{mark}"
    digits = 0 if abs(one.gain) >= _LARGE else 1
    return f"{100 * one.gain:+.{digits}f} %{mark}"
