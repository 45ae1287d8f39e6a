"""Which of some queues to take: the rule, as data. :mod:`aqmlab.results.answer_words` says it.

Levels first (whom does a queue leave poor, whom not good), then what people notice, then what
transfers lose. docs/statistics.md says what "better" means over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from aqmlab._util.words import natural
from aqmlab.results.groups import Group
from aqmlab.results.links import LinkDirection, links_of, loaded_links
from aqmlab.results.metrics import ALL, look_up
from aqmlab.results.needs import FAIR, GOOD, NEEDS, POOR, Need, limited, of_class
from aqmlab.results.run import Run
from aqmlab.results.statistics import (
    Estimate,
    estimate,
    independent_difference,
    paired_difference,
)

__all__ = ["Choice", "Number", "Outcome", "PriceSource", "choose", "numbers_of"]


_STARVED = 0.1
"""A transfer that gets less than this share of its best among the queues counts as poor."""
_OF_ONE_SEED = 3.0
"""One run alone shows a difference from so many times the noticed one on."""
_DEAR = 2.0
"""A class pays dearly where it gets this part of its rate, or waits this many times as long."""
_NEAR_GAIN = 0.75
"""A queue gains nearly what another does if it keeps this share of each of its gains."""
_SECOND = 0.10
"""The second choice keeps at least this much more of the transfer that pays most."""
_NEAR = 0.05
"""Among queues that keep it within this share of each other, levels decide."""
_NAMED = 2 / 3
"""Classes are named as the reason of a price until they explain this share of it."""
FULL = 0.7
"""A direction that is busy for a smaller share of the time is not filled."""


class Outcome(Enum):
    """How a number of one queue compares with the number of another."""

    BETTER = "better"
    WORSE = "worse"
    ALIKE = "alike"
    UNCLEAR = "not told apart"


@dataclass(frozen=True, eq=False)
class Number:
    """A number of some runs that somebody notices."""

    owner: str
    """The class of traffic; empty: all of them."""
    need: Need
    is_price: bool
    """Whether it is what a transfer gets: losing it is a price, not a need."""
    take: Callable[[Run], float | None]

    def values(self, group: Group) -> dict[int, float]:
        """Its values by seed."""
        found = {run.seed: self.take(run) for run in group.runs}
        return {
            seed: float(value)
            for seed, value in found.items()
            if value is not None and not math.isnan(value)
        }

    def of(self, group: Group) -> Estimate | None:
        """Its mean over the seeds, with the interval; None if no run has it."""
        values = list(self.values(group).values())
        return estimate(values) if values else None


@dataclass(frozen=True)
class PriceSource:
    """Where a price comes from: the classes that gained what somebody lost on a link."""

    at: LinkDirection
    lost_bps: float
    gained: Sequence[tuple[str, float]]
    """Class and what it gained, the largest first."""
    idle_bps: float
    """What nobody uses any more."""


def numbers_of(groups: Sequence[Group]) -> list[Number]:
    """The numbers that somebody notices in some runs of one scenario: needs, then prices."""
    first = groups[0].first
    entries = {str(entry["name"]): entry for entry in first.scenario.get("traffic", ())}
    summaries = [run.summary for one in groups for run in one.runs]
    found: list[Number] = []
    seen = set()
    for name, quality in _united(summaries, "quality").items():
        for need in of_class(quality):
            own = limited(need, entries.get(name, {}))
            found.append(_looked_up(name, own, ("quality", name, need.key)))
            seen.add(name)
    answers = _need("answers", "p90_s")
    for name, row in _united(summaries, "responses").items():
        if name not in {*seen, ALL} and row.get("count"):
            found.append(_looked_up(name, answers, ("responses", name, "p90_s")))
            seen.add(name)
    prices = []
    streams = set()
    for name, row in _united(summaries, "flows").items():
        if name in {*seen, ALL}:
            continue
        key = "upload_goodput_bps" if row.get("upload_goodput_bps") else "goodput_bps"
        if row.get(key):
            prices.append(_looked_up(name, _need("transfers", "goodput_bps"), ("flows", name, key)))
        if row.get("datagrams_sent"):
            streams.add(name)
    if all(one.runs_a_program for one in groups):
        found.append(_looked_up("", _need("program", "time_s"), ("live", "program", "time_s")))
    places = {name: place for place, name in enumerate(entries)}
    for numbers in (found, prices):
        numbers.sort(key=lambda one: places.get(one.owner, len(places)))
    if found:
        return [*found, *prices]
    names = [one.owner for one in prices]
    # A stream of datagrams takes what it sends, so a share of the line says nothing of it.
    return _of_transfers(groups, [one for one in names if one not in streams] or names)


def _united(summaries: Sequence[Mapping[str, object]], section: str) -> dict[str, dict[str, float]]:
    """The classes of a section with every number that some run has, and that is not zero first."""
    found: dict[str, dict[str, float]] = {}
    for summary in summaries:
        for name, row in (look_up(summary, (section,)) or {}).items():
            own = found.setdefault(name, {})
            for key, value in row.items():
                if value is not None and not own.get(key):
                    own[key] = value
    return found


def _need(group: str, key: str) -> Need:
    return next(need for need in NEEDS if (need.group, need.key) == (group, key))


def _looked_up(owner: str, need: Need, path: tuple[str, ...]) -> Number:
    """A number that stands in the summary."""
    is_price = need.group == "transfers"
    return Number(owner, need, is_price, lambda run: look_up(run.summary, path))


def _of_transfers(groups: Sequence[Group], names: Sequence[str]) -> list[Number]:
    """What stands for people where there are only transfers: shares, sum and wait."""
    entries = {
        str(entry["name"]): (float(entry.get("flows") or 1), str(entry.get("direction", "")))
        for entry in groups[0].first.scenario.get("traffic", ())
        if entry["name"] in names
    }

    def goodput(run: Run, name: str) -> float:
        return float(look_up(run.summary, ("flows", name, "goodput_bps")) or 0.0)

    def together(run: Run) -> float:
        return sum(goodput(run, name) for name in entries)

    def share(run: Run, name: str) -> float:
        ways = {way for _, way in entries.values()}
        fair = {
            way: sum(goodput(run, one) for one, (_, own) in entries.items() if own == way)
            / sum(flows for flows, own in entries.values() if own == way)
            for way in ways
        }
        flows, way = entries[name]
        return goodput(run, name) / flows / fair[way] if fair[way] else 0.0

    def wait(run: Run) -> float | None:
        rows = [row for at, row in links_of(run).items() if at in set(loaded_links([run]))]
        waits = [row.get("sojourn_p95_s") for row in rows]
        return max((one for one in waits if one is not None), default=None)

    if not entries:
        return []
    found = []
    several = sum(flows for flows, _ in entries.values()) > 1 and len(entries) > 1
    if several:
        need = _need("flows", "smallest_share")
        found.append(Number("", need, False, lambda run: min(share(run, one) for one in entries)))
    found.append(Number("", _need("flows", "goodput_bps"), False, together))
    found.append(Number("", _need("flows", "sojourn_p95_s"), False, wait))
    return found


class Choice:
    """The decision between some groups of runs of one scenario."""

    def __init__(self, groups: Sequence[Group], baseline: Group | None = None) -> None:
        """Decides.

        Args:
            groups: their runs are of one scenario. One alone has levels, and nothing to decide.
            baseline: what is used today, if that is known.
        """
        self.groups = list(groups)
        self.baseline = baseline
        """What is used today; None: nobody said."""
        self.numbers = numbers_of(groups)
        self.needs = [one for one in self.numbers if not one.is_price]
        self.prices = [one for one in self.numbers if one.is_price]
        self._outcomes: dict[tuple[int, str, str], Outcome] = {}

    @cached_property
    def reference(self) -> Group:
        """What the answer is compared with: the baseline, else the queue with the worst levels."""
        return self.baseline or max(self.groups, key=self.standing)

    # --- what a queue gives ---

    def level(self, number: Number, group: Group) -> int:
        """The level of a number's mean."""
        found = number.of(group)
        return number.need.level(None if found is None else found.mean)

    def levels(self, number: Number, group: Group) -> tuple[int, ...]:
        """The level of the mean, then those that the ends of its interval have beside it."""
        found = number.of(group)
        if found is None:
            return (POOR,)
        ends = [one for one in (found.low, found.high) if not math.isnan(one)]
        levels = tuple(dict.fromkeys(number.need.level(one) for one in (found.mean, *ends)))
        # An interval from good to poor contains what is fair.
        return (levels[0], FAIR, levels[1]) if {*levels} == {GOOD, POOR} else levels

    def class_levels(self, group: Group) -> dict[tuple[str, str], int]:
        """The level of each class: that of its worst number."""
        worst: dict[tuple[str, str], int] = {}
        for one in self.needs:
            if one.need.has_levels:
                key = (one.need.group, one.owner)
                worst[key] = max(worst.get(key, GOOD), self.level(one, group))
        return worst

    def starved(self, group: Group) -> list[Number]:
        """Transfers that get next to nothing beside what another queue gives them."""
        found = []
        for one in self.prices:
            best = max((mean(one, other) for other in self.groups), default=0.0)
            if mean(one, group) < _STARVED * best:
                found.append(one)
        return found

    def standing(self, group: Group) -> tuple[int, int]:
        """Classes left poor (and transfers starved), and classes that are not good."""
        levels = list(self.class_levels(group).values())
        starved = len(self.starved(group))
        poor = sum(one == POOR for one in levels) + starved
        return poor, sum(one >= FAIR for one in levels) + starved

    # --- how two queues compare ---

    def outcome(self, number: Number, first: Group, second: Group) -> Outcome:
        """How the second compares with the first: over the seeds that both have, if paired."""
        key = (id(number), first.label, second.label)
        if key not in self._outcomes:
            self._outcomes[key] = self._compared(number, first, second)
        return self._outcomes[key]

    def _compared(self, number: Number, first: Group, second: Group) -> Outcome:
        sides = number.values(first), number.values(second)
        if not (sides[0] and sides[1]):
            there = [bool(side) for side in sides]
            if there[0] == there[1]:
                return Outcome.ALIKE
            return Outcome.BETTER if there[1] else Outcome.WORSE  # what is missing is the worst
        found, fewest = difference(first, second, *sides)
        room = number.need.least(sum(sides[0].values()) / len(sides[0]))
        gain = -found.mean if number.need.less_is_better else found.mean
        told = Outcome.BETTER if gain > 0 else Outcome.WORSE
        if fewest == 1:
            large = abs(gain) >= _OF_ONE_SEED * room
            return Outcome.ALIKE if abs(gain) <= room else told if large else Outcome.UNCLEAR
        if found.method == "equal":
            return Outcome.ALIKE if abs(gain) <= room else told
        if found.clear and abs(gain) > room:
            return told
        within = max(abs(found.low), abs(found.high)) <= room
        return Outcome.ALIKE if within else Outcome.UNCLEAR

    def are_apart(self, number: Number, first: Group, second: Group) -> bool:
        """Whether two queues surely differ, whichever of them the difference is noticed from."""
        told = (Outcome.BETTER, Outcome.WORSE)
        pairs = (first, second), (second, first)
        return all(self.outcome(number, *pair) in told for pair in pairs)

    def beats(self, one: Group, other: Group, numbers: Sequence[Number]) -> bool:
        """Whether a queue is better than another in some number and worse in none."""
        found = [self.outcome(number, other, one) for number in numbers]
        return Outcome.BETTER in found and Outcome.WORSE not in found

    # --- what a queue costs ---

    def costs(self, group: Group, base: Group | None = None) -> list[Number]:
        """Numbers that a queue makes much worse than another does; None: than the reference.

        A rate falls below half of what it was, a time more than doubles, or somebody becomes poor.
        What stays good costs nobody much.
        """
        base = base or self.reference
        return [one for one in self.numbers if self._is_dear(one, group, base)]

    def _is_dear(self, number: Number, group: Group, base: Group) -> bool:
        if group is base or self.outcome(number, base, group) is not Outcome.WORSE:
            return False
        if number.need.has_levels:
            level = self.level(number, group)
            if level == GOOD or level == POOR != self.level(number, base):
                return level == POOR
        if number.of(group) is None:
            return True
        values = mean(number, base), mean(number, group)
        least, most = values if number.need.less_is_better else values[::-1]
        return most > _DEAR * least

    @cached_property
    def affordable(self) -> list[Group]:
        """Queues that no other beats, without those that cost much more than they gain."""
        best = self.undominated(self.groups) or self.groups
        return [one for one in best if not self._is_overpriced(one, best)] or best

    def _is_overpriced(self, group: Group, others: Sequence[Group]) -> bool:
        """Whether another queue gains nearly as much, and spares somebody a high cost."""
        return any(
            self.costs(group, other)
            and not self.costs(other)
            and self._gains_nearly(other, group)
            and not self._gains_nearly(group, other)
            for other in others
            if other is not group
        )

    def _gains_nearly(self, one: Group, other: Group) -> bool:
        """Whether a queue keeps most of each gain of another, and leaves nobody else poor."""
        return all(self._keeps_gain(number, one, other) for number in self.numbers)

    def _keeps_gain(self, number: Number, one: Group, other: Group) -> bool:
        if self.outcome(number, other, one) is not Outcome.WORSE:
            return True
        level, wanted = self.level(number, one), self.level(number, other)
        if number.need.has_levels and (level == GOOD or level == POOR != wanted):
            return level == GOOD
        gain, most = self.gain(number, one), self.gain(number, other)
        if most > 0:
            return gain >= _NEAR_GAIN * most
        return level <= wanted and not self._is_dear(number, one, self.reference)

    def gain(self, number: Number, group: Group) -> float:
        """By how much a number is better than the reference's, in its own unit."""
        gain = mean(number, group) - mean(number, self.reference)
        return -gain if number.need.less_is_better else gain

    # --- the rule ---

    @cached_property
    def best_standing(self) -> tuple[int, int]:
        """The smallest pair of classes left poor and classes not good."""
        return min(map(self.standing, self.affordable))

    @cached_property
    def short_list(self) -> list[Group]:
        """Queues with the best levels, and those that miss them by nothing that is sure."""
        best = [one for one in self.affordable if self.standing(one) == self.best_standing]
        found = []
        for one in self.affordable:
            missed = [
                number
                for number in self.needs
                if any(self.level(number, one) > self.level(number, top) for top in best)
            ]
            if one in best or (
                not self._starves_more(one, best)
                and missed
                and not any(
                    self.outcome(number, one, top) is Outcome.BETTER
                    for number in missed
                    for top in best
                )
            ):
                found.append(one)
        return found

    def _starves_more(self, group: Group, best: Sequence[Group]) -> bool:
        """Whether a queue starves a transfer that the best ones serve."""
        return len(self.starved(group)) > min(len(self.starved(one)) for one in best)

    @cached_property
    def taken(self) -> list[Group]:
        """The answer: fewest losses against the baseline first, equal ones by name."""
        left = self.undominated(self.undominated(self.short_list, self.needs))
        return sorted(left, key=lambda one: (*self._lost(one), natural(one.label)))

    def _lost(self, group: Group) -> tuple[int, int]:
        """How many numbers are worse than the reference's, and the largest loss in percent."""
        lost = self.losses(group)
        shares = (1 - self.kept(one, group) for one in lost if one.is_price)
        return len(lost), round(100 * max(shares, default=0.0))

    def undominated(
        self, groups: Sequence[Group], numbers: Sequence[Number] | None = None
    ) -> list[Group]:
        """Those of some queues that none of them beats in some numbers; None: in all."""
        numbers = self.numbers if numbers is None else numbers
        return [
            one
            for one in groups
            if not any(self.beats(other, one, numbers) for other in groups if other is not one)
        ]

    def gains(self, group: Group) -> list[Number]:
        """Numbers in which a queue is better than the reference."""
        return self._against(group, Outcome.BETTER)

    def losses(self, group: Group) -> list[Number]:
        """Numbers in which it is worse."""
        return self._against(group, Outcome.WORSE)

    def _against(self, group: Group, outcome: Outcome) -> list[Number]:
        base = self.reference
        return [
            one
            for one in self.numbers
            if base is not group and self.outcome(one, base, group) is outcome
        ]

    def _lost_with(self, numbers: Sequence[Number]) -> list[Number]:
        """Those that some queue of the answer makes worse than the reference does."""
        base = self.reference
        return [
            one
            for one in numbers
            if any(self.outcome(one, base, top) is Outcome.WORSE for top in self.taken)
        ]

    @cached_property
    def needs_lost(self) -> list[Number]:
        """Needs that become worse with the answer."""
        return self._lost_with(self.needs)

    @cached_property
    def payers(self) -> list[Number]:
        """Transfers that lose with the answer, the largest share first."""
        lost = self._lost_with(self.prices)
        return sorted(lost, key=lambda one: min(self.kept(one, top) for top in self.taken))

    @property
    def payer(self) -> Number | None:
        """The transfer that loses the largest share with the answer; None: nobody pays."""
        return next(iter(self.payers), None)

    def kept(self, number: Number, group: Group) -> float:
        """What a transfer keeps of what the reference gives it."""
        base = mean(number, self.reference)
        return mean(number, group) / base if base else 1.0

    @cached_property
    def dear(self) -> list[Number]:
        """Numbers that a queue of the answer makes much worse than the reference does."""
        costs = [one for top in self.taken for one in self.costs(top)]
        return [one for one in self.numbers if one in costs]

    @cached_property
    def second(self) -> Group | None:
        """Another queue for whom the payer matters most: it leaves nobody poor."""
        payer = self.payer
        if payer is None:
            return None
        others = [one for one in self.groups if one not in (*self.taken, self.reference)]
        fit = [one for one in others if self.standing(one)[0] == 0]
        most = max(self.kept(payer, one) for one in self.taken)
        kept = {one.label: self.kept(payer, one) for one in fit}
        least = max(most + _SECOND, max(kept.values(), default=0.0) - _NEAR)
        near = [one for one in fit if kept[one.label] >= least]
        near.sort(key=lambda one: (self.standing(one), -kept[one.label]))
        return near[0] if near else None

    @cached_property
    def is_told(self) -> bool:
        """Whether anything tells the queues apart: a difference that is sure."""
        outcomes = (
            self.outcome(number, one, other)
            for number in self.numbers
            for one in self.groups
            for other in self.groups
            if one is not other
        )
        return any(one in (Outcome.BETTER, Outcome.WORSE) for one in outcomes)

    @cached_property
    def is_unclear(self) -> bool:
        """Whether more seeds could tell more apart."""
        return any(
            self.outcome(number, one, other) is Outcome.UNCLEAR
            for number in self.numbers
            for one in self.groups
            for other in self.groups
            if one is not other
        )

    @cached_property
    def fewest_seeds(self) -> int:
        """Runs of the group that has fewest."""
        return min(len(one.runs) for one in self.groups)

    @cached_property
    def busiest(self) -> float:
        """The largest share of time in which a direction of a link is busy, over all runs."""
        rows = (row for one in self.groups for run in one.runs for row in links_of(run).values())
        return max((float(row.get("utilization") or 0.0) for row in rows), default=0.0)

    def source(self, number: Number, group: Group) -> PriceSource | None:
        """Who gained what a transfer lost, on the loaded link where it lost most."""
        found = None
        for at in loaded_links([run for one in self.groups for run in one.runs]):
            before, after = (_by_class(one, at) for one in (self.reference, group))
            change = {
                name: after.get(name, 0.0) - before.get(name, 0.0) for name in {**before, **after}
            }
            lost = -change.get(number.owner, 0.0)
            if lost <= 0 or (found is not None and lost <= found.lost_bps):
                continue
            gained = sorted(
                ((name, more) for name, more in change.items() if more > 0),
                key=lambda pair: (-pair[1], pair[0]),
            )
            named, total = [], 0.0
            for name, more in gained:
                if total < _NAMED * lost:
                    named.append((name, more))
                    total += more
            found = PriceSource(at, lost, named, max(0.0, -sum(change.values())))
        return found


def mean(number: Number, group: Group) -> float:
    """The mean of a number; 0 if no run has it."""
    found = number.of(group)
    return 0.0 if found is None else found.mean


def difference(
    first: Group, second: Group, before: Mapping[int, float], after: Mapping[int, float]
) -> tuple[Estimate, int]:
    """The difference of two groups' values by seed, and how many values are behind it.

    Live runs are not paired: two repeats with one seed meet other moments of the machine.
    """
    shared = [seed for seed in before if seed in after]
    if first.first.world == second.first.world == "sim" and shared:
        pairs = [before[seed] for seed in shared], [after[seed] for seed in shared]
        return paired_difference(*pairs), len(shared)
    sides = list(before.values()), list(after.values())
    return independent_difference(*sides), min(map(len, sides))


def _by_class(group: Group, at: LinkDirection) -> dict[str, float]:
    """Mean throughput of each class at one direction of a link, where runs say it."""
    found: dict[str, float] = {}
    for run in group.runs:
        for name, row in (look_up(run.summary, (*at.path, "classes")) or {}).items():
            found[name] = found.get(name, 0.0) + (row.get("throughput_bps") or 0.0)
    return {name: total / len(group.runs) for name, total in found.items()}


def choose(groups: Sequence[Group], baseline: Group | None = None) -> Choice | None:
    """The choice between some groups of one scenario; None if nothing in them can be judged."""
    found = Choice(groups, baseline)
    return found if found.numbers else None
