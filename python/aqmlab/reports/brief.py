"""The answer as one page (A4): what to take, what it costs whom, how sure that is.

For readers who decide. The web page and the PDF are written from the same blocks.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab._util.words import capital
from aqmlab.errors import AqmlabError
from aqmlab.results import order
from aqmlab.results.answer import Number, mean
from aqmlab.results.answer_words import Answer
from aqmlab.results.groups import Group, group
from aqmlab.results.metrics import look_up
from aqmlab.results.needs import LEVELS
from aqmlab.results.settings import Answers, answers

if TYPE_CHECKING:
    from aqmlab.results.baseline import Baseline
    from aqmlab.results.run import Run

__all__ = [
    "Bars",
    "Brief",
    "BriefBar",
    "BriefCell",
    "BriefColumn",
    "BriefRow",
    "brief",
    "runs_of_bold",
]


_MOST_COLUMNS = 8
"""Queues in the table."""
_FEW = 5
"""Up to so many queues the cells have words."""
_SHORT = 2
"""Characters of a unit that stands in every cell."""
_SYMBOLS = ("●", "◐", "○")
"""Of a level: what is good is full, what is poor is empty."""


@dataclass(frozen=True)
class BriefColumn:
    """A queue of the table."""

    name: str
    mark: str
    """``take``, ``now``, or nothing."""


@dataclass(frozen=True)
class BriefCell:
    """A number of a queue."""

    text: str
    words: str
    """Its level or its change; empty: nothing."""
    level: int | None
    """None: it has none."""
    symbol: str = ""
    is_taken: bool = False


@dataclass(frozen=True)
class BriefRow:
    """A number of a class."""

    title: str
    who: str
    what: str
    cells: Sequence[BriefCell]
    is_price: bool = False


@dataclass(frozen=True)
class BriefBar:
    """A queue's bar."""

    name: str
    value: float
    low: float
    high: float
    text: str
    is_taken: bool


@dataclass(frozen=True)
class Bars:
    """A picture of one number: a bar for each queue, with the limits of its levels."""

    title: str
    bars: Sequence[BriefBar]
    limits: Sequence[tuple[float, str]]

    @property
    def most(self) -> float:
        """What the widest bar stands for."""
        ends = [max(one.value, 0 if math.isnan(one.high) else one.high) for one in self.bars]
        return max([*ends, *(value for value, _ in self.limits)], default=0.0) or 1.0


@dataclass(frozen=True)
class Brief:
    """The blocks of the page, in the order in which they are read."""

    question: str
    headline: str
    lead: Sequence[str]
    """Sentences; ``**`` stands around what is bold."""
    boxes: Sequence[tuple[str, str, str]]
    columns: Sequence[BriefColumn]
    rows: Sequence[BriefRow]
    notes: Sequence[tuple[str, str]]
    """Headings and texts."""
    bars: Sequence[Bars] = field(default_factory=list)
    legend: str = ""
    title: str = ""
    command: str = ""
    about: str = ""


def brief(
    runs: Sequence[Run],
    folder: Path,
    title: str | None = None,
    question: str | None = None,
    baseline: Baseline = None,
    *,
    ordered: bool = True,
) -> Brief:
    """The page about some runs; addresses are relative to its folder.

    Args:
        runs: what it is about.
        folder: where it will be.
        title: its title; None: the answer.
        question: what the runs are to answer; None: made from what differs.
        baseline: what is used today; None: the drop-tail queue.
        ordered: whether somebody chose the order of the runs.

    Raises:
        AqmlabError: nobody notices anything that these runs measured.
    """
    groups = group(runs)
    found = answers(groups, baseline, ordered=ordered, always=True)
    if found is None:
        names = ", ".join(f'"{one.label}"' for one in groups[:4])
        raise AqmlabError(
            f"--brief: found no number that people notice in these runs ({names}); the page is "
            "about pages, calls, films, games, other responses and transfers"
        )
    command, about = _repeat(groups, folder.resolve())
    made = _of_settings(found) if found.only is None else _of_answer(found.only)
    return replace(
        made,
        title=title or made.headline,
        question=question or made.question,
        command=command,
        about=about,
    )


def _of_answer(answer: Answer) -> Brief:
    """The page of one setting."""
    groups = _columns(answer)
    few = len(groups) <= _FEW
    return Brief(
        question=answer.question,
        headline=answer.headline,
        lead=answer.lead,
        boxes=answer.boxes,
        columns=[BriefColumn(answer.names[one.label], _mark(answer, one)) for one in groups],
        rows=[_row(answer, number, groups, few=few) for number in answer.choice.numbers],
        bars=list(_pictures(answer, groups)),
        notes=[("How sure is this?", answer.sure()), ("What counts as good", answer.sources)],
        legend=_legend(answer),
    )


def _columns(answer: Answer) -> list[Group]:
    """The queues of the table: the answer first, what is used today last."""
    choice = answer.choice
    taken = answer.marked
    base = choice.baseline
    others = [one for one in choice.groups if one not in taken and one is not base]
    others.sort(key=choice.standing)  # those with equal levels stay in their order
    second = choice.second if choice.is_told else None
    if second is not None:
        others.remove(second)
        others.insert(0, second)
    last = [] if base is None or base in taken else [base]
    room = _MOST_COLUMNS - len(last)
    return [*[*taken, *others][:room], *last]


def _mark(answer: Answer, group: Group) -> str:
    if answer.thing == "setting":
        return ""
    if group in answer.marked and group is not answer.choice.baseline:
        return "take"
    return "now" if group is answer.choice.baseline else ""


def _legend(answer: Answer) -> str:
    """What stands under the table."""
    parts = (
        ["by published limits, below"]
        if any(one.need.has_levels for one in answer.choice.needs)
        else []
    )
    parts.append("the answer stands first")
    if answer.choice.baseline is not None:
        parts.append("“now” is what the others are compared with")
    hidden = len(answer.choice.groups) - len(_columns(answer))
    if hidden:
        parts.append(f"{hidden} more in aqmlab compare")
    text = "; ".join(parts)
    return f"{capital(text)}."


def _row(answer: Answer, number: Number, groups: Sequence[Group], *, few: bool) -> BriefRow:
    """The row of a number."""
    need = number.need
    # A long unit stands at the head of the row.
    unit = f" {need.unit}" if len(need.unit) > _SHORT else ""
    cells = []
    for one in groups:
        words, level = answer.levels_in_words(number, one)
        taken = one in answer.marked
        found = number.of(one)
        text = number.need.shown(None if found is None else found.mean).removesuffix(unit)
        if number.need.has_levels:
            cells.append(
                BriefCell(
                    text, words if few or words not in LEVELS else "", level, _SYMBOLS[level], taken
                )
            )
        else:
            cells.append(BriefCell(text, _change(answer, number, one), None, "", taken))
    title = number.owner or {"program": "The program", "flows": "All transfers"}.get(need.group, "")
    return BriefRow(
        capital(title),
        answer.population(number.owner),
        f"{need.what},{unit}" if unit else need.what,
        cells,
        number.is_price,
    )


def _change(answer: Answer, number: Number, group: Group) -> str:
    """A change in percent from the reference."""
    base = answer.choice.reference
    if group is base:
        return ""
    before = mean(number, base)
    if not before:
        return ""
    change = round(100 * (mean(number, group) / before - 1))
    return f"{change:+d} %".replace("-", "\N{MINUS SIGN}") if change else "alike"


def _pictures(answer: Answer, groups: Sequence[Group]) -> Iterator[Bars]:
    """The class that gains most, and the transfer that pays."""
    choice = answer.choice
    shown = answer.best_gain or next(iter(choice.needs), None)
    other = choice.payer if choice.is_told else None
    if answer.keeps and answer.rival is not None:
        other = answer.rival[1][0]
    for number in dict.fromkeys((shown, other)):
        if number is not None:
            yield _bars(answer, number, groups)


def _bars(answer: Answer, number: Number, groups: Sequence[Group]) -> Bars:
    need = number.need
    bars = []
    for one in groups:
        found = number.of(one)
        if found is None:
            continue
        ends = (found.mean, found.low, found.high)
        value, low, high = (need.scale * end for end in ends)
        taken = one in answer.marked
        shown = need.shown(found.mean).removesuffix(f" {need.unit}")
        bars.append(BriefBar(answer.names[one.label], value, low, high, shown, taken))
    most = max([0.0, *(bar.value for bar in bars)])
    limits = [
        (need.scale * limit, f"{word} {sign} {need.scale * limit:.3g} {need.unit}".strip())
        for limit, word, sign in _limits(number)
        if need.scale * limit <= 1.6 * most
    ]
    unit = f", {need.unit}" if need.unit else ""
    owner = number.owner or ("the program" if need.group == "program" else "all transfers")
    what = "rate" if number.is_price else need.what
    title = f"{capital(owner)}: {what}{unit}"
    return Bars(title, bars, limits)


def _limits(number: Number) -> Iterator[tuple[float, str, str]]:
    need = number.need
    if need.good is not None and need.poor is not None:
        signs = ("≤", "≥") if need.less_is_better else ("≥", "<")
        yield need.good, "good", signs[0]
        yield need.poor, "poor", signs[1]


def _of_settings(found: Answers) -> Brief:
    """The page of several settings: what each queue leaves poor and not good in each of them."""
    names = sorted(found.names, key=lambda name: (name not in found.safe, found.names.index(name)))
    shown = names[:_MOST_COLUMNS]
    rows = []
    for one in found.settings:
        by_name = {found_name: group for group, found_name in found.queues(one)}
        taken = one.answer.choice.taken if one.answer.choice.is_told else []
        cells = []
        for name in shown:
            group = by_name.get(name)
            if group is None:
                cells.append(BriefCell("-", "", None))
                continue
            poor, fair = one.answer.choice.standing(group)
            level = 2 if poor else 1 if fair else 0
            text = f"{poor} poor" if poor else f"{fair} fair" if fair else "all good"
            words = "in the answer" if group in taken else ""
            cells.append(BriefCell(text, words, level, _SYMBOLS[level], group in taken))
        rows.append(BriefRow(one.title, "", one.answer.headline, cells))
    first = found.settings[0].answer
    titles = {str(one.answer.choice.groups[0].first.scenario.get("title") or "").rstrip(".")
              for one in found.settings}  # fmt: skip
    title = titles.pop() if len(titles) == 1 else ""
    return Brief(
        question=f"{title}. Which queue, in {len(found.settings)} settings?".removeprefix(". "),
        headline=found.headline,
        lead=found.sentences,
        boxes=[],
        columns=[BriefColumn(name, "take" if name in found.safe else "") for name in shown],
        rows=rows,
        notes=[
            ("How sure is this?", first.sure(is_drawn=False)),
            ("What counts as good", first.sources),
        ],
        legend="Classes of traffic that a queue leaves poor, or not good, in each setting.",
    )


def _repeat(groups: Sequence[Group], folder: Path) -> tuple[str, str]:
    """The command that made the runs, and the version that it takes."""
    runs = [run for one in groups for run in one.runs]
    seeds = sorted({run.seed for run in runs})
    listed = ",".join(map(str, seeds))
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        listed = f"{seeds[0]}..{seeds[-1]}"
    folders = {run.path.parent for run in runs}
    command = ""
    if len(folders) == 1:
        command = order.command_of(folders.pop(), [run.path.name for run in runs])
    note = ""
    if not command:
        names = [_scenario_of(one.first, folder) for one in groups]
        command = f"aqmlab compare {' '.join(names)} --seeds {listed}"
        note = "From the folder of this page; "
    versions = look_up(runs[0].metadata, ("versions",)) or {}
    engines = {str(look_up(run.metadata, ("versions", "engine")) or "unknown") for run in runs}
    program = versions.get("aqmlab", runs[0].summary.get("version", ""))
    about = (
        f"{note}aqmlab {program}, engine {', '.join(sorted(engines))}. All numbers: aqmlab report."
    )
    return command, about + _plugins(runs)


def _plugins(runs: Sequence[Run]) -> str:
    """The files of queues of one's own, by their hashes."""
    found = {
        f"{one['name']} (sha256 {str(one['sha256'])[:16]})"
        for run in runs
        for one in look_up(run.metadata, ("plugins",)) or ()
        if isinstance(one, dict) and "sha256" in one
    }
    return f" Plug-ins: {', '.join(sorted(found))}." if found else ""


def _scenario_of(run: Run, folder: Path) -> str:
    """The scenario of a run, as a shell names it from the folder of the report."""
    return shlex.quote(os.path.relpath(run.path.resolve() / "scenario.toml", folder))


def runs_of_bold(text: str) -> list[tuple[str, bool]]:
    """The parts of a sentence, and whether each is bold."""
    parts = re.split(r"\*\*", text)
    return [(part, bool(number % 2)) for number, part in enumerate(parts) if part]
