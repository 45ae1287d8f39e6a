"""Why responses took so long: tables and sentences about the parts of their times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqmlab._util.table import Bar, Cell, TableModel
from aqmlab._util.words import in_sentence
from aqmlab.results.baseline import Baseline, comparisons
from aqmlab.results.breakdown import (
    BANDS,
    Band,
    broken_down_classes,
    by_cause,
    mean_times,
    part,
)
from aqmlab.results.compare import pairs_of
from aqmlab.results.directions import placed
from aqmlab.results.formats import format_change, format_estimate, format_seeds
from aqmlab.results.groups import Group
from aqmlab.results.links import LinkDirection
from aqmlab.results.metrics import ALL
from aqmlab.results.statistics import Estimate, independent_difference, paired_difference

__all__ = [
    "Reason",
    "TimeChange",
    "band_table",
    "change_sentences",
    "changes",
    "changes_tables",
    "content",
    "in_words",
    "milliseconds",
    "reasons",
    "rows",
]


_SMALL = 0.01
"""Parts below this share of the response time in every band are one row."""
WORTH = 0.05
"""Causes below this share are left out of sentences."""
MOST_CAUSES = 4
"""Causes in a sentence."""
_OTHERS = "other parts"
_TAIL = "slowest_10"
"""The band that sentences speak of."""
_RESPONSE = "response"


def milliseconds(seconds: float, sign: str = "") -> str:
    """A time in milliseconds: whole ones from 100 on."""
    value = 1e3 * seconds
    return f"{value:{sign},.0f}" if abs(value) >= 99.95 else f"{value:{sign},.1f}"


def in_words(seconds: float) -> str:
    """A time in a sentence."""
    return f"{seconds:,.2f} s" if seconds >= 0.9995 else f"{milliseconds(seconds)} ms"


def shown_parts(times: Iterable[Mapping[str, float]]) -> tuple[list[str], list[str]]:
    """Which parts have a row, and which are added up to one: those that are small everywhere.

    Args:
        times: of each column, the time of each part and of the whole (``response``).
    """
    columns = list(times)
    keys = dict.fromkeys(key for one in columns for key in one if key != _RESPONSE)
    large, small = [], []
    for key in keys:
        shares = [one.get(key, 0.0) / one[_RESPONSE] for one in columns if one[_RESPONSE]]
        if any(share >= _SMALL for share in shares):
            large.append(key)
        elif any(shares):
            small.append(key)
    return (large + small, []) if len(small) == 1 else (large, small)


def part_names(keys: Sequence[str], scenario: Mapping[str, Any]) -> dict[str, str]:
    """What parts are called beside each other, in runs of a scenario."""
    one = len({at.link for key in keys if (at := part(key).at) is not None}) < 2
    return {key: part(key).named(scenario, only_link=one) for key in keys}


def band_table(group: Group, traffic: str) -> TableModel:
    """A group's parts in a class, a column for each band: milliseconds and shares of the time."""
    means = {band: mean_times(group, traffic, band) for band in BANDS}
    times = {band: {key: one.mean for key, one in found.items()} for band, found in means.items()}
    keys, small = shown_parts(times.values())
    named = part_names(keys, group.first.scenario)
    several = len(group.runs) > 1
    what = "mean ms and 95 % interval" if several else "mean ms and share"
    responses = "response times" if traffic == ALL else f"response times of {traffic}"
    title = f"{group.label}: parts of {responses}, {what}, {format_seeds([group])}"
    table = TableModel(title, ["part"], BANDS.values(), name=f"why-{traffic}")

    def cell(band: str, key: str) -> Cell:
        whole = times[band][_RESPONSE]
        share = 100 * times[band].get(key, 0.0) / whole if whole else 0.0
        if several:
            text = format_estimate(means[band][key], milliseconds)
        else:
            text = f"{milliseconds(times[band].get(key, 0.0))} ({share:.0f} %)"
        return Cell(text, bar=Bar(0, share))

    for key in keys:
        table.add_row(named[key], *(cell(band, key) for band in BANDS))
    if small:
        rest = {band: math.fsum(one.get(key, 0.0) for key in small) for band, one in times.items()}
        table.add_row(
            _OTHERS,
            *(
                milliseconds(rest[band])
                + ("" if several else f" ({100 * rest[band] / times[band][_RESPONSE]:.0f} %)")
                for band in BANDS
            ),
        )
    wholes = (means[band][_RESPONSE] for band in BANDS)
    table.add_row(
        "response time", *(Cell(format_estimate(one, milliseconds), "clear") for one in wholes)
    )
    bands = [_bands(group, traffic, band) for band in BANDS]
    table.add_row("with a loss on the path", *(f"{100 * _lost(found):.0f} %" for found in bands))
    table.add_row(
        "trips on the path", *(f"{_mean([b.trips for b in found]):.1f}" for found in bands)
    )
    table.add_row("responses", *(f"{sum(one.count for one in found):,}" for found in bands))
    return table


def _bands(group: Group, traffic: str, band: str) -> list[Band]:
    """A band in each run."""
    found = (Band.of(run.summary, traffic, band) for run in group.runs)
    return [one for one in found if one is not None]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _lost(bands: Sequence[Band]) -> float:
    """Share of the responses with a loss on their path, in the mean."""
    return _mean([one.lost_share for one in bands])


@dataclass(frozen=True)
class Reason:
    """Why responses of a group took so long, in words."""

    run: str
    """Label of the group."""
    traffic: str
    """The class, or "all"."""
    text: str
    """A paragraph."""


def reasons(groups: Sequence[Group], traffic: str | None = None) -> list[Reason]:
    """A paragraph for each class and group; of one class if it is named."""
    return [
        Reason(group.label, name, _paragraph(group, name))
        for name in broken_down_classes(groups, traffic)
        for group in groups
    ]


def _paragraph(group: Group, traffic: str) -> str:
    """What the slowest responses of a class wait for, for a reader who does not know TCP."""
    means = {band: mean_times(group, traffic, band) for band in (_TAIL, ALL)}
    tail, every = ({key: one.mean for key, one in found.items()} for found in means.values())
    whole = tail.pop(_RESPONSE)
    bands = {band: _bands(group, traffic, band) for band in (_TAIL, ALL)}
    shares = spent(tail, whole)
    named = [one for one in shares if one.share >= WORTH][:MOST_CAUSES] or shares[:1]
    clauses: list[str] = []
    for one in named:
        text = f"{100 * one.share:.0f} % "
        text += "of their time " if not clauses else ""
        text += _queue_words(tail, group.first.scenario) if one.doing == "in queues" else one.doing
        if one.doing == _TIMERS and (after := _after(bands[_TAIL])):
            text += f" ({after})"
        clauses.append(text)
    of_class = "" if traffic == ALL else f" of {traffic}"
    lost_tail, lost_all = (f"{100 * _lost(bands[band]):.0f} %" for band in (_TAIL, ALL))
    all_take = in_words(every[_RESPONSE])
    over = f" over {len(group.runs)} seeds" if len(group.runs) > 1 else ""
    who = f"The slowest 10 % of responses{of_class} under {group.label}"
    sentences = [
        f"{who} take {in_words(whole)} on average{over}. All responses take {all_take}.",
        f"The slowest spend {in_sentence(clauses)}.",
        named[0].gloss,
        f"{lost_tail} of the slowest and {lost_all} of all wait for at least one lost packet.",
    ]
    return " ".join(filter(None, sentences))


_TIMERS = part("timeout").cause.doing


@dataclass(frozen=True)
class Spent:
    """A share of the time, and what it is spent with."""

    doing: str
    share: float
    gloss: str


def spent(parts: Mapping[str, float], whole: float) -> list[Spent]:
    """What a time is spent with, the most first."""
    found: dict[str, tuple[float, str]] = {}
    for cause, time in by_cause(parts).items():
        before, _ = found.get(cause.doing, (0.0, ""))
        found[cause.doing] = (before + time, cause.gloss)
    shares = [Spent(doing, time / whole, gloss) for doing, (time, gloss) in found.items()]
    return sorted(shares, key=lambda one: -one.share)


def _queue_words(parts: Mapping[str, float], scenario: Mapping[str, Any]) -> str:
    """Which queue it is, if most of the waiting is in one."""
    waits: dict[LinkDirection, float] = {}
    for key, time in parts.items():
        found = part(key)
        if found.at is not None and found.cause.name == "queues":
            waits[found.at] = waits.get(found.at, 0.0) + time
    most = max(waits, key=waits.__getitem__)
    one = waits[most] > 0.9 * sum(waits.values())
    return f"in the queue {placed(most, scenario)}" if one else "in queues"


REASONS = {
    "early": "dropped by a queue before it was full",
    "overflow": "dropped by a full queue",
    "wire": "lost at random on a wire",
}


def _after(bands: Sequence[Band]) -> str:
    """Why most of the packets were lost; empty if none was lost at a port."""
    found: dict[str, float] = {}
    for band in bands:
        for (_, reason), share in band.reasons.items():
            found[reason] = found.get(reason, 0.0) + share
    if not found:
        return ""
    most = max(found, key=found.__getitem__)
    share = found[most] / sum(found.values())
    if share <= 0.5:
        return "dropped for several reasons"
    words = REASONS.get(most, f"dropped: {most.replace('_', ' ')}")
    return words if share > 0.9 else f"mostly {words}"


@dataclass(frozen=True)
class TimeChange:
    """A part of a group's response times minus that of its baseline."""

    run: str
    baseline: str
    traffic: str
    band: str
    part: str
    """Key of the part, ``response`` for the whole."""
    estimate: Estimate
    """In seconds."""
    basis: str
    """What the interval comes from."""
    scenario: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The effective scenario, which says what its links are called."""

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        low, high = self.estimate.low, self.estimate.high
        return {
            "run": self.run,
            "baseline": self.baseline,
            "class": self.traffic,
            "band": self.band,
            "part": self.part,
            "difference_s": self.estimate.mean,
            "low_s": None if math.isnan(low) else low,
            "high_s": None if math.isnan(high) else high,
            "basis": self.basis,
        }


def changes(
    groups: Sequence[Group], baseline: Baseline = None, traffic: str | None = None
) -> list[TimeChange]:
    """Differences of each part between groups and the baseline of their scenario.

    Groups with the same users are compared seed by seed.

    Args:
        groups: of one or several scenarios.
        baseline: what was asked for; default: the drop-tail queue.
        traffic: one class; None: the stated classes.
    """
    return [
        change
        for first, others in comparisons(groups, baseline, ordered=False)
        for other in others
        for name in broken_down_classes([first, other], traffic)
        for band in BANDS
        for change in _changes(first, other, name, band)
    ]


def _changes(first: Group, other: Group, traffic: str, band: str) -> list[TimeChange]:
    """Differences in a band."""
    pairs = pairs_of(first, other)
    if len(pairs) == 1 < max(len(first.runs), len(other.runs)):
        pairs = []  # one pair has no interval, all runs together have one
    if pairs:
        compute = paired_difference
        sides = [[run for run, _ in pairs], [run for _, run in pairs]]
        basis = f"{len(pairs)} pairs of runs" if len(pairs) > 1 else "one pair of runs"
    else:
        compute, sides = independent_difference, [list(first.runs), list(other.runs)]
        basis = f"{len(first.runs)} and {len(other.runs)} runs, other users"
    bands = [[Band.of(run.summary, traffic, band) for run in side] for side in sides]
    known = [[one for one in side if one is not None] for side in bands]
    if any(len(one) < len(side) for one, side in zip(known, sides, strict=True)):
        return []
    times = [[{**one.parts, _RESPONSE: one.response_s} for one in side] for side in known]
    keys = dict.fromkeys(key for side in times for one in side for key in one)
    found = []
    for key in keys:
        before, after = ([one.get(key, 0.0) for one in side] for side in times)
        difference = compute(before, after, bounds=(0.0, math.inf))
        found.append(
            TimeChange(
                *(other.label, first.label, traffic, band, key, difference, basis),
                first.first.scenario,
            )
        )
    return found


def change_sentences(found: Sequence[TimeChange]) -> list[str]:
    """How the slowest responses of each group and class change, a sentence each."""
    tail = [one for one in found if one.band == _TAIL]
    places = dict.fromkeys((one.run, one.baseline, one.traffic) for one in tail)
    return [
        _change_sentence([one for one in tail if (one.run, one.baseline, one.traffic) == place])
        for place in places
    ]


def _change_sentence(found: Sequence[TimeChange]) -> str:
    """What becomes of a group's slowest responses, and what they wait for instead."""
    [whole] = [one for one in found if one.part == _RESPONSE]
    known = not math.isnan(whole.estimate.low)
    of_class = "" if whole.traffic == ALL else f" of {whole.traffic}"
    who = f"Against {whole.baseline}, the slowest 10 % of responses{of_class}"
    if known and not whole.estimate.clear:
        return f"{who} are not clearly faster or slower under {whole.run}."
    by_doing: dict[str, float] = {}
    for one in found:
        if one.part != _RESPONSE:
            doing = part(one.part).cause.doing
            by_doing[doing] = by_doing.get(doing, 0.0) + one.estimate.mean
    ranked = sorted(by_doing.items(), key=lambda item: -abs(item[1]))
    least = WORTH * max([abs(time) for _, time in ranked], default=0.0)
    clauses = [
        f"{in_words(abs(time))} {'more' if time > 0 else 'less'} {doing}"
        for doing, time in ranked[:3]
        if abs(time) > least
    ]
    time = whole.estimate.mean
    said = f"take {in_words(abs(time))} {'longer' if time > 0 else 'less'} under {whole.run}"
    causes = f": {in_sentence(clauses)}" if clauses else ""
    chance = "" if known else f" With {whole.basis} that may be chance."
    return f"{who} {said}{causes}.{chance}"


def changes_tables(found: Sequence[TimeChange], band: str) -> list[TableModel]:
    """Differences in a band, in milliseconds: a table for each baseline and class."""
    tables = []
    chosen = [one for one in found if one.band == band]
    for baseline, traffic in dict.fromkeys((one.baseline, one.traffic) for one in chosen):
        same = [one for one in chosen if (one.baseline, one.traffic) == (baseline, traffic)]
        tables.append(_changes_table(same, baseline, traffic, band))
    return tables


def _changes_table(
    found: Sequence[TimeChange], baseline: str, traffic: str, band: str
) -> TableModel:
    """Differences of some groups to one."""
    runs = list(dict.fromkeys(one.run for one in found))
    by_run = {run: {one.part: one.estimate for one in found if one.run == run} for run in runs}
    reach = max(abs(one[_RESPONSE].mean) for one in by_run.values())
    every = dict.fromkeys(key for one in by_run.values() for key in one if key != _RESPONSE)
    largest = {key: max(abs(one[key].mean) for one in by_run.values() if key in one)
               for key in every}  # fmt: skip
    worth = _SMALL * max([reach, *largest.values()])
    keys = [key for key in every if largest[key] > worth]
    small = [key for key in every if 0 < largest[key] <= worth]
    named = part_names(keys, found[0].scenario)
    bases = ", ".join(dict.fromkeys(one.basis for one in found))
    sure = any(not math.isnan(one.estimate.low) for one in found)
    about = f"95 % intervals, {bases}" if sure else f"{bases}, no interval"
    whose = "all responses" if band == ALL else BANDS[band]
    whose += "" if traffic == ALL else f" of {traffic}"
    table = TableModel(f"{whose} against {baseline}: change in ms, {about}", ["part"], runs)

    def cell(one: Estimate | None) -> Cell:
        if one is None:
            return Cell("-")
        text = format_change(one, lambda value: milliseconds(value, "+"))
        return Cell(text, "clear" if one.clear else "")

    for key in keys:
        table.add_row(named[key], *(cell(by_run[run].get(key)) for run in runs))
    if small:
        rest = (math.fsum(by_run[run][key].mean for key in small if key in by_run[run])
                for run in runs)  # fmt: skip
        table.add_row(_OTHERS, *(milliseconds(value, "+") for value in rest))
    table.add_row("response time", *(cell(by_run[run][_RESPONSE]) for run in runs))
    return table


def content(
    groups: Sequence[Group], found: Sequence[TimeChange], traffic: str | None = None
) -> dict[str, Any]:
    """Everything as JSON."""
    runs = [(group.label, run) for group in groups for run in group.runs]
    stated = reasons(groups, traffic)
    return {
        "runs": [
            {
                "label": label,
                "path": str(run.path),
                "seed": run.seed,
                "breakdown": run.summary["breakdown"],
            }
            for label, run in runs
        ],
        "differences": [one.to_json() for one in found],
        "why": [{"run": one.run, "class": one.traffic, "text": one.text} for one in stated],
    }


def rows(groups: Sequence[Group], traffic: str | None = None) -> list[dict[str, object]]:
    """A row for each run, class and band: every part in seconds."""
    return [
        {
            "label": group.label,
            "path": run.path,
            "seed": run.seed,
            "class": name,
            "band": band,
            "count": found.count,
            "response_s": found.response_s,
            **{f"{key}_s": time for key, time in found.parts.items()},
            "trips": found.trips,
            "lost_share": found.lost_share,
        }
        for name in broken_down_classes(groups, traffic)
        for group in groups
        for run in group.runs
        for band in BANDS
        if (found := Band.of(run.summary, name, band)) is not None
    ]
