"""What a comparison comes to: a few numbers for each class, and a verdict of at most five lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from aqmlab.results.compare import Difference
from aqmlab.results.directions import brief
from aqmlab.results.groups import Group, stated_classes, transfer_classes
from aqmlab.results.links import loaded_links
from aqmlab.results.metrics import (
    ALL,
    LINK,
    OWN,
    PROGRAM,
    QUALITY,
    RESPONSES,
    TRANSFERS,
    Metric,
    chosen,
    look_up,
)
from aqmlab.results.statistics import Estimate

__all__ = ["Effect", "KeyNumber", "conclusion", "effects", "key_numbers", "ranked"]


NO_INTERVAL = "~"
"""Marks a change whose size nothing but one seed bears out."""
MOST_LINES = 5
"""Lines of a verdict, at most."""
WIDTH = 80
"""Characters of a line, at most."""
_LABEL = 22
"""Characters of a configuration's label in a verdict, at most."""
_MOST_LINKS = 2
"""Loaded links among the few numbers."""
_LARGE = 0.1
"""From this relative change on, a number without an interval is said to be better or worse."""
_LARGE_SHARE = 0.01
"""From this change in points on, a share is said to be better or worse."""

_APPLICATIONS: Sequence[tuple[str, ...]] = (
    ("stall_ratio", "bitrate_mean_bps"),
    ("mos_mean",),
    ("frame_delay_p99_s", "bitrate_mean_bps"),
    ("input_delay_p99_s",),
    ("throughput_p50_bps", "throughput_p5_bps"),
)
"""What users of an application notice first, by the first of these figures that they have."""


@dataclass(frozen=True)
class KeyNumber:
    """A number that says much of a class, or of a loaded link."""

    path: tuple[str, ...]
    """Where the metric is in ``summary.json``."""
    place: str
    """The class or the link; empty: all classes."""
    metric: Metric

    @property
    def name(self) -> str:
        """What it is, without its unit."""
        label = self.metric.label
        if self.path == ("metrics",):
            return label
        words = label if label[1:2].isupper() or label.startswith("Jain") else _lower(label)
        if self.metric.is_share:
            words = f"{words} %"
        return f"{self.place} {words}".strip()

    @property
    def head(self) -> str:
        """Name and unit."""
        unit = "" if self.metric.is_share else self.metric.unit
        return f"{self.name} ({unit})" if unit else self.name

    @property
    def change_head(self) -> str:
        """Name and unit of its change."""
        return f"{self.name[:-2]} (points)" if self.metric.is_share else self.head

    @property
    def owner(self) -> str:
        """What a :class:`~aqmlab.results.compare.Difference` calls its class or its link."""
        return ".".join(self.path[1:]) or ALL

    @property
    def of_users(self) -> bool:
        """Whether users notice it; what links do is no aim by itself, nor a metric of one's own."""
        return self.path[0] not in ("links", "metrics")

    def of(self, group: Group) -> Estimate | None:
        """Its mean over a group's runs; None if no run has it."""
        return group.number(self.path, self.metric)


def _lower(label: str) -> str:
    return label[:1].lower() + label[1:]


def key_numbers(groups: Sequence[Group]) -> list[KeyNumber]:
    """The few numbers of some groups: of each class one or two, then of the loaded links.

    The class that headlines speak of comes first.
    """
    runs = [run for one in groups for run in one.runs]
    found = []
    served = list(dict.fromkeys(name for run in runs for name in stated_classes(run.summary)))
    served = [ALL] if ALL in served else served
    applications = dict.fromkeys(name for run in runs for name in run.summary.get("quality", {}))
    own = {name: _of_application(runs[0].summary, name) for name in applications}
    for name in served:
        if not own.get(name):
            place = "" if name == ALL else name
            metrics = chosen(RESPONSES, "p50_s", "p90_s")
            found += [KeyNumber(("responses", name), place, metric) for metric in metrics]
    for name, metrics in own.items():
        found += [KeyNumber(("quality", name), name, metric) for metric in metrics]
    if any(one.runs_a_program for one in groups):
        found += [KeyNumber(("live", "program"), "program", metric) for metric in PROGRAM]
    for name in transfer_classes(groups):
        if not own.get(name):
            keys = _of_transfer([run.summary for run in runs], name)
            found += [KeyNumber(("flows", name), name, one) for one in chosen(TRANSFERS, *keys)]
    for at in loaded_links(runs)[:_MOST_LINKS]:
        metrics = chosen(LINK, "utilization", "sojourn_mean_s", "loss_rate")
        place = brief(at, runs[0].scenario)
        found += [KeyNumber(at.path, place, metric) for metric in metrics]
    found += [KeyNumber(("metrics",), "", metric) for metric in OWN.values()]
    return [one for one in found if any(one.of(group) is not None for group in groups)]


def _of_application(summary: Any, name: str) -> list[Metric]:  # noqa: ANN401 - whatever JSON holds
    """What its users notice; nothing for pages, whose load times are response times."""
    figures = look_up(summary, ("quality", name)) or {}
    for keys in _APPLICATIONS:
        if keys[0] in figures:
            return chosen(QUALITY, *(key for key in keys if key in figures))
    return []


def _of_transfer(summaries: Sequence[Any], name: str) -> list[str]:
    """Of datagrams loss and delay, of bulk transfers their rate and how fairly it is shared."""
    if any(look_up(one, ("flows", name, "datagrams_sent")) for one in summaries):
        return ["datagram_loss_rate", "datagram_delay_p95_s"]
    uploads = any(look_up(one, ("flows", name, "upload_goodput_bps")) for one in summaries)
    several = any((look_up(one, ("flows", name, "fairness_jain")) or 1) < 1 for one in summaries)
    ways = ["goodput_bps", *(["upload_goodput_bps"] if uploads else [])]
    return [*ways, *(["fairness_jain"] if several else [])]


@dataclass(frozen=True)
class Effect:
    """What became of a number of users between the baseline and another configuration."""

    number: KeyNumber
    change: Difference
    before: Estimate
    after: Estimate
    sure: bool
    """Whether an interval, or equal differences of enough seeds, stand behind the outcome."""

    @property
    def outcome(self) -> str:
        """``better``, ``worse``, ``unclear``, or ``same``."""
        metric, difference = self.number.metric, self.change.difference
        shown = [metric.shown(one.mean) for one in (self.before, self.after)]
        if self.change.interval is not None:
            if self.change.clear:
                return "same" if metric.is_shown_as_zero(difference) else self.change.direction
            return "same" if difference == 0 else "unclear"
        if shown[0] == shown[1] and metric.is_shown_as_zero(difference):
            return "same"
        if self.sure:
            return self.change.direction
        large = _LARGE_SHARE if metric.is_share else _LARGE * abs(self.before.mean)
        return self.change.direction if abs(difference) >= large else "unclear"

    @property
    def mark(self) -> str:
        """A sign where no interval says how sure it is; a star always says that it is clear."""
        return "" if self.sure else NO_INTERVAL

    @property
    def words(self) -> str:
        """The number before and after."""
        metric = self.number.metric
        unit = f" {metric.unit}" if metric.unit and not metric.is_share else ""
        first, last = (metric.shown(one.mean) for one in (self.before, self.after))
        return f"{self.number.name} {first} to {last}{unit}{self.mark}"

    @property
    def brief(self) -> str:
        """The change alone."""
        metric, difference = self.number.metric, self.change.difference
        if metric.is_share:
            return f"{self.number.name[:-2]} {metric.shown(difference, '+')} points{self.mark}"
        if not self.before.mean:
            unit = f" {metric.unit}" if metric.unit else ""
            return f"{self.number.name} {metric.shown(difference, '+')}{unit}{self.mark}"
        return f"{self.number.name} {100 * difference / abs(self.before.mean):+.0f} %{self.mark}"


def effects(changes: Sequence[Difference], groups: Sequence[Group]) -> list[Effect]:
    """What became of the numbers that users notice, for each configuration with a baseline.

    The 99th percentile of response times is among them where it is clearly worse: a better median
    does not hide that some wait longer.
    """
    numbers = [number for number in key_numbers(groups) if number.of_users]
    [p99] = chosen(RESPONSES, "p99_s")
    tails = [replace(one, metric=p99) for one in numbers if one.metric.key == "p90_s"]
    found = _effects((*numbers, *tails), changes, groups)
    return [
        one for one in found if one.number not in tails or (one.sure and one.outcome == "worse")
    ]


def _effects(
    numbers: Sequence[KeyNumber], changes: Sequence[Difference], groups: Sequence[Group]
) -> list[Effect]:
    """What became of some numbers, as far as they were compared."""
    by_label = {group.label: group for group in groups}
    by_key = {(one.run, one.baseline, one.traffic, one.metric): one for one in changes}
    found = []
    for run, baseline in dict.fromkeys((one.run, one.baseline) for one in changes):
        first, second = by_label.get(baseline), by_label.get(run)
        if first is None or second is None:
            continue
        for number in numbers:
            change = by_key.get((run, baseline, number.owner, number.metric.key))
            before, after = number.of(first), number.of(second)
            if change is None or before is None or after is None or math.isnan(change.difference):
                continue
            sure = change.interval is not None or change.clear
            found.append(Effect(number, change, before, after, sure))
    return found


def conclusion(changes: Sequence[Difference], groups: Sequence[Group]) -> list[str]:
    """The verdict: what is better, what is worse, what is unclear. Nothing without a baseline.

    At most :data:`MOST_LINES` lines of :data:`WIDTH` characters.
    """
    found = effects(changes, groups)
    if not found:
        return []
    pairs = list(dict.fromkeys((one.change.run, one.change.baseline) for one in found))
    bases = {baseline for _, baseline in pairs}
    seeds = _seeds(groups)
    marks = any(not one.sure and one.outcome in ("better", "worse") for one in found)
    against = bases.copy().pop() if len(bases) == 1 else "the baseline of each"
    note = f"{seeds}; {NO_INTERVAL} no interval" if marks else seeds
    if len(pairs) == 1:
        names = f"{_short(pairs[0][0])} against {_short(against)}"
        lines = [_cut(f"{names} ({note})"), *_of_one(found)]
        if len(lines) < MOST_LINES:
            lines += _of_links(changes, groups)
        return lines
    if len(bases) == 1 and len(pairs) < MOST_LINES:
        lines = [_in_one_line(found, run) for run, _ in pairs]
        note += "; (+n): and n more numbers" if any("(+" in line for line in lines) else ""
        return [_cut(f"Against {_short(against)} ({note})"), *map(_cut, lines)]
    return [_cut(f"Against {_short(against)} ({note})"), *_tally(found, len(pairs))]


def _seeds(groups: Sequence[Group]) -> str:
    """How many seeds are behind it, and what one seed does not show."""
    fewest = min(len(group.runs) for group in groups)
    return f"{fewest} seeds" if fewest > 1 else "one seed: another may differ"


_OUTCOMES = ("better", "worse", "unclear")


def _of_one(found: Sequence[Effect]) -> Iterator[str]:
    """A line for each outcome, and one more for the first that needs it."""
    spare = MOST_LINES - 1 - len(_OUTCOMES)
    lines = {}
    for outcome in ("worse", "better", "unclear"):
        items = [one for one in found if one.outcome == outcome]
        ordered = ranked(items, [one.number.place for one in items])
        texts = [one.number.name if outcome == "unclear" else one.words for one in ordered]
        lines[outcome] = _filled(f"  {outcome}: ", texts, 1 + spare) if texts else []
        spare -= max(0, len(lines[outcome]) - 1)
    for outcome in _OUTCOMES:
        yield from lines[outcome] or [f"  {outcome}: nothing"]


def _of_links(changes: Sequence[Difference], groups: Sequence[Group]) -> list[str]:
    """What clearly changed at the loaded links, which is neither better nor worse by itself."""
    numbers = [number for number in key_numbers(groups) if not number.of_users]
    found = [one for one in _effects(numbers, changes, groups) if one.change.clear]
    texts = [one.words for one in found if one.outcome != "same"]
    return _filled("  links: ", texts, 1) if texts else []


_T = TypeVar("_T")


def ranked(items: Sequence[_T], places: Sequence[str]) -> list[_T]:
    """The first of every place, then the second of each, and so on."""
    seen: dict[str, int] = {}
    ranks = []
    for place in places:
        seen[place] = seen.get(place, -1) + 1
        ranks.append(seen[place])
    return [items[k] for k in sorted(range(len(items)), key=ranks.__getitem__)]


def _filled(head: str, texts: Sequence[str], most: int) -> list[str]:
    """Texts in lines after a head, as many as fit; then how many there are besides."""
    lines = [head]
    for number, text in enumerate(texts):
        last = len(lines) == most
        left = len(texts) - number
        room = WIDTH - (len(f"; and {left - 1} more") if last and left > 1 else 1)
        begun = lines[-1] if lines[-1].endswith(": ") or not lines[-1].strip() else lines[-1] + "; "
        if len(begun) + len(text) <= room:
            lines[-1] = begun + text
        elif not last and len(head) + len(text) < WIDTH:
            lines[-1] += ";"
            lines.append(" " * len(head) + text)
        elif number == 0:
            lines[-1] = _cut(begun + text)
        else:
            lines[-1] += f"; and {left} more"
            break
    return lines


def _short(label: str) -> str:
    """A label without its middle where it is long."""
    half = _LABEL // 2
    return label if len(label) <= _LABEL else f"{label[: half - 1]}…{label[-half:]}"


def _cut(line: str) -> str:
    """A line that is not too long."""
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 2]} …"


def _in_one_line(found: Sequence[Effect], run: str) -> str:
    """What became of one configuration among several."""
    own = [one for one in found if one.change.run == run]
    parts = []
    for outcome in ("better", "worse"):
        items = [one for one in own if one.outcome == outcome]
        if items:
            more = f" (+{len(items) - 1})" if len(items) > 1 else ""
            parts.append(f"{outcome}: {items[0].brief}{more}")
    if unclear := sum(one.outcome == "unclear" for one in own):
        parts.append(f"unclear: {unclear}")
    return f"  {_short(run)}: {'; '.join(parts) or 'the same'}"


def _tally(found: Sequence[Effect], pairs: int) -> Iterator[str]:
    """In how many configurations each number is better and worse."""
    names = list(dict.fromkeys(one.number.head for one in found))
    for name in names[: MOST_LINES - 1]:
        own = [one for one in found if one.number.head == name]
        counts = [f"{sum(one.outcome == key for one in own)} {word}" for key, word in (
            ("better", "better"), ("worse", "worse"))]  # fmt: skip
        rest = sum(one.outcome not in ("better", "worse") for one in own)
        yield _cut(f"  {name}: {', '.join(counts)}, {rest} alike or unclear, of {pairs}")
