"""The answer in words: which queue to take, who gains, who pays, and how sure that is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from aqmlab._util.words import capital, counted, listing, wrapped
from aqmlab.results.answer import FULL, Choice, Number, Outcome, mean
from aqmlab.results.directions import along, in_words
from aqmlab.results.groups import Group
from aqmlab.results.metrics import look_up
from aqmlab.results.needs import FAIR, GOOD, LEVELS, POOR, rate_of
from aqmlab.results.spoken import spoken_names

__all__ = ["Answer", "bare", "named"]


_MOST_NAMED = 4
"""Up to so many queues of an answer are all named; of more, one fewer."""
_MOST_GAINS = 3
"""Classes whose gain is said."""
_PERFECT = 4.395
"""MOS from which a call is called perfect."""
_MUCH = 0.95
"""A stream that gets this share of its highest rate has its full picture."""
_LINES = 7
"""Lines of an answer on a terminal, at most."""

_BEST = "Best served:"
"""What is said of a setting, which nobody takes."""
_MOST_SAID = 2
"""Prices that are said, and what another queue would do better."""

_NOUNS = {
    "pages": "pages",
    "calls": "calls",
    "meetings": "meetings",
    "films": "films",
    "games": "the game",
}
"""What a class is called in a sentence, by the group of its needs."""
_OF_TRANSFERS = {
    "smallest_share": "shares of transfers",
    "goodput_bps": "rates of transfers",
    "sojourn_p95_s": "waits of newcomers",
}
"""What a number is called where there are only transfers, by its key."""


def bare(text: str) -> str:
    """A sentence without the marks of what is bold."""
    return text.replace("**", "")


def named(names: Sequence[str], word: str) -> str:
    """Names as a list; of many, the first ones and how many there are."""
    if len(names) > _MOST_NAMED:
        return f"any of {len(names)} alike, such as {listing(names[: _MOST_NAMED - 1], word)}"
    return listing(names, word)


@dataclass(frozen=True)
class Answer:
    """What is said of a choice between queues."""

    choice: Choice
    thing: str = "queue"
    """What is decided: a queue, a sender, or a setting that nobody chooses for its queue."""

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What each queue is called, by its label."""
        if self.thing != "setting" or len(self.choice.groups) == 1:
            return spoken_names(self.choice.groups)
        parts = {one.label: one.label.split(", ") for one in self.choice.groups}
        shared = set.intersection(*map(set, parts.values()))
        own = {label: [one for one in some if one not in shared] for label, some in parts.items()}
        return {label: ", ".join(some or parts[label]) for label, some in own.items()}

    @property
    def take(self) -> list[str]:
        """Labels of the queues to take; empty: the runs do not tell."""
        return [one.label for one in self.choice.taken] if self.choice.is_told else []

    @cached_property
    def is_baseline_taken(self) -> bool:
        """Whether what is used today is as good as anything."""
        return self.choice.baseline in self.choice.taken

    @property
    def keeps(self) -> bool:
        """Whether the answer is to keep what is used today."""
        return self.choice.is_told and self.is_baseline_taken and not self._is_poor

    @property
    def marked(self) -> list[Group]:
        """The queues that a table marks as the answer."""
        if not self.choice.is_told:
            return []
        return [self.choice.reference] if self.keeps else self.choice.taken

    @cached_property
    def rival(self) -> tuple[Group, list[Number]] | None:
        """Another queue that is better than today's in something, and in what.

        If none surely is: one that the runs do not tell apart from it, and that looks better.
        """
        choice, base = self.choice, self.choice.reference
        others = choice.undominated([one for one in choice.groups if one is not base])
        for outcome in (Outcome.BETTER, Outcome.UNCLEAR):
            found = [
                (self._gain(number, one), one)
                for number in choice.numbers
                for one in others
                if choice.outcome(number, base, one) is outcome
            ]
            gain, group = max(found, key=lambda pair: pair[0], default=(0.0, None))
            if group is not None and gain > 0:
                return group, self._ahead(group, outcome)
        return None

    def _ahead(self, group: Group, outcome: Outcome) -> list[Number]:
        """Numbers of a queue with an outcome against today's that look better, largest first."""
        base = self.choice.reference
        found = [
            one
            for one in self.choice.numbers
            if self.choice.outcome(one, base, group) is outcome and self._gain(one, group) > 0
        ]
        found.sort(key=lambda one: self._gain(one, group), reverse=True)
        nouns = {self._noun(one): one for one in reversed(found)}
        return [one for one in found if one in nouns.values()]

    def _gain(self, number: Number, group: Group) -> float:
        """How many of the least differences that are noticed a number is better; never infinite."""
        least = number.need.least(mean(number, self.choice.reference))
        return self.choice.gain(number, group) / (least or 1.0)

    @property
    def _is_surely_kept(self) -> bool:
        """Whether no queue looks better than today's without being shown to be."""
        base = self.choice.reference
        return self.rival is None or any(
            self.choice.outcome(one, base, self.rival[0]) is Outcome.BETTER for one in self.rival[1]
        )

    @property
    def _top(self) -> Group:
        return self.choice.taken[0]

    @property
    def _is_poor(self) -> bool:
        """Whether every queue leaves somebody poor."""
        return self.choice.best_standing[0] > 0

    @property
    def _is_well_served(self) -> bool:
        """Whether the baseline leaves nobody less than good."""
        base = self.choice.baseline
        return base is not None and self.choice.standing(base) == (0, 0)

    @cached_property
    def trade(self) -> tuple[Group, Number, Group, Number] | None:
        """Two queues of the answer of which each is better in a need of its own."""
        better = Outcome.BETTER
        for first in self.choice.taken:
            for second in self.choice.taken:
                ahead = [one for one in self.choice.needs
                         if self.choice.outcome(one, second, first) is better]  # fmt: skip
                behind = [one for one in self.choice.needs
                          if self.choice.outcome(one, first, second) is better]  # fmt: skip
                if ahead and behind:
                    return first, ahead[0], second, behind[0]
        return None

    # --- sentences ---

    @property
    def headline(self) -> str:
        """The answer in a few words."""
        choice = self.choice
        if len(choice.groups) == 1:
            return self._of_one_queue
        if not choice.is_told:
            if choice.is_unclear:
                return f"Not told apart after {counted(choice.fewest_seeds, 'seed')}."
            return "It makes no difference that anyone would notice."
        if self.keeps:
            return self._keep
        if self.trade is not None and not self._is_poor:
            first, ahead, second, behind = self.trade
            return (
                f"{self.names[first.label]} for {self._noun(ahead)}, "
                f"{self.names[second.label]} for {self._noun(behind)}{self._but}."
            )
        return f"{self._advice} {self._named(choice.taken, 'or')}{self._but}."

    def payers(self, group: Group) -> list[str]:
        """Whom a queue costs much, as sentences call them."""
        found = (self._noun(one) for one in self.choice.costs(group))
        return list(dict.fromkeys(found))

    @property
    def _but(self) -> str:
        """What the answer costs somebody much; nothing if it does not."""
        found = [self._against_base(one, Outcome.WORSE) for one in self.choice.dear]
        return f", but {listing(found, 'and')}" if found else ""

    @property
    def _keep(self) -> str:
        """That nothing is to be changed, and how sure that is."""
        name = self.names[self.choice.reference.label]
        if self.rival is None:
            return f"Nothing to gain: {name} does as well as any."
        keep = _BEST if self.thing == "setting" else "Keep"
        return f"{keep} {name}." if self._is_surely_kept else f"{keep} {name}, or run more seeds."

    @property
    def _of_one_queue(self) -> str:
        """Whom the only queue leaves poor."""
        [group] = self.choice.groups
        for level in (POOR, FAIR):
            if names := self._classes_at(group, level):
                found = list(dict.fromkeys(names))
                text = listing(found, "and")
                words = f"{text} {'is' if _verb('', text) else 'are'} {LEVELS[level]}"
                return f"{capital(words)} behind {self.names[group.label]}."
        return f"Everybody is served well behind {self.names[group.label]}."

    @property
    def _advice(self) -> str:
        """How strongly the answer is meant."""
        choice = self.choice
        if self._is_poor:
            return f"No {self.thing} is enough. Best:"
        if self.thing == "setting":
            return _BEST
        if self._is_well_served:
            return "Could be better:"
        alone = choice.fewest_seeds == 1 and choice.groups[0].first.world == "sim"
        return "It looks like" if alone else "Take"

    def _named(self, groups: Sequence[Group], word: str) -> str:
        """What some queues are called, as a list."""
        return named([self.names[one.label] for one in groups], word)

    def _with(self, some: Sequence[Group]) -> str:
        """With which queues of the answer something holds; nothing where it holds with all."""
        others = [one for one in self.choice.taken if one not in some]
        if not others:
            return ""
        if len(some) <= len(others):
            return f" (with {self._named(some, 'and')})"
        return f" (not with {self._named(others, 'or')})"

    @cached_property
    def lead(self) -> list[str]:
        """Who gains, who pays and why; ``**`` stands around what is bold."""
        return list(self._lead())

    def _lead(self) -> Iterator[str]:
        choice = self.choice
        if len(choice.groups) == 1:
            yield "One queue alone: aqmlab compare shows what others do for the same people."
        if not choice.is_told and choice.is_unclear:
            most = 4 * choice.fewest_seeds
            yield f"More runs tell more: --seeds 1..{most} shows differences half as large."
            return
        if not choice.is_told or self.is_baseline_taken:
            yield from self._of_the_poor()
            if choice.is_told:
                yield from self._of_the_rival()
            if choice.busiest < FULL:
                busy = f"{100 * choice.busiest:.0f} %"
                yield f"Nothing fills this line: it is busy {busy} of the time."
        else:
            yield from self._of_the_poor()
            yield from self._served()
            yield from self._gains()
            yield from self._only_fair()
            yield from self._prices()
            if choice.baseline is None and self.trade is None:
                yield f"Compared with {self.names[choice.reference.label]}."
        if choice.fewest_seeds == 1 and len(choice.groups) > 1:
            yield self._of_one_run

    def _of_the_poor(self) -> Iterator[str]:
        """Who is poor whatever one takes."""
        if self._is_poor and len(self.choice.groups) > 1:
            yield f"**{self._everywhere_poor}**"

    def _of_the_rival(self) -> Iterator[str]:
        """What another queue does better than today's, at which price."""
        if self.rival is None:
            return
        group, ahead = self.rival
        base = self.choice.reference
        name = self.names[group.label]
        gains = listing([self._fragment(one, [group], base) for one in ahead[:_MOST_SAID]], "and")
        if not self._is_surely_kept:
            most = 4 * self.choice.fewest_seeds
            yield f"**{name} looks better, but not surely:** {gains}."
            yield f"More runs tell more: --seeds 1..{most} shows differences half as large."
            return
        lost = [self._fragment(one, [group], base) for one in self.choice.losses(group)]
        but = f", but {listing(lost[:_MOST_SAID], 'and')}" if lost else ""
        yield f"**{name} would help some:** {gains}{but}."

    def _served(self) -> Iterator[str]:
        """Whether everybody is served well: on average, and for sure."""
        choice = self.choice
        groups = [choice.reference] if self._is_well_served else choice.taken
        if choice.dear or any(choice.standing(one) != (0, 0) for one in groups):
            return
        worst: dict[str, int] = {}
        for number in choice.needs:
            level = max(max(choice.levels(number, one)) for one in groups)
            if number.need.has_levels and level > GOOD:
                worst[self._noun(number)] = max(level, worst.get(self._noun(number), GOOD))
        already = " already" if self._is_well_served else ""
        if not worst:
            yield f"**Everybody is served well{already}.**"
            return
        lowest = LEVELS[max(worst.values())]
        yield f"**Everybody is served well{already} on average.**"
        yield f"The seeds differ: {listing(list(worst), 'and')} may turn out {lowest}."

    def _only_fair(self) -> Iterator[str]:
        """Who is only fair, and with which queues of the answer."""
        found: dict[str, list[Group]] = {}
        for one in self.choice.taken if not self._is_poor else ():
            for noun in dict.fromkeys(self._classes_at(one, FAIR)):
                found.setdefault(noun, []).append(one)
        for noun, some in found.items():
            verb = "is" if _verb("", noun) else "are"
            yield f"{capital(noun)} {verb} only fair{self._with(some)}."

    def _gains(self) -> Iterator[str]:
        """What the answer makes better; of a trade, what each side does."""
        if self.trade is not None:
            first, ahead, second, behind = self.trade
            for number, one, other in ((ahead, first, second), (behind, second, first)):
                names = f"{self.names[one.label]} against {self.names[other.label]}"
                yield f"{names}: {self._fragment(number, [one], other)}."
        elif fragments := self._gain_fragments():
            yield f"{capital(listing(fragments, 'and'))}."

    @property
    def _of_one_run(self) -> str:
        if self.choice.groups[0].first.world == "live":
            return "One run each, measured."
        return "One run each: another may differ. --seeds 1..5 shows how sure it is."

    @property
    def _everywhere_poor(self) -> str:
        """Who is poor with every queue."""
        choice = self.choice
        sets = [dict.fromkeys(self._classes_at(one, POOR)) for one in choice.groups]
        names = [one for one in sets[0] if all(one in other for other in sets)]
        if not names:
            return "Each of them leaves somebody poor."
        text = listing(names, "and")
        return f"{capital(text)} {_verb('stay', text)} poor with {_all(len(choice.groups))}."

    def _gain_fragments(self) -> list[str]:
        """What the answer makes better, for the classes that gain most; transfers come last."""
        gains = [one for one in self.choice.gains(self._top) if self._is_worth_saying(one)]
        best: dict[str, Number] = {}
        for one in sorted(gains, key=lambda one: (one.is_price, -self._steps(one))):
            best.setdefault(self._noun(one), one)
        return [self._against_base(one, Outcome.BETTER) for one in [*best.values()][:_MOST_GAINS]]

    def _against_base(self, number: Number, outcome: Outcome) -> str:
        """What becomes of a number with those queues of the answer for which it has an outcome."""
        base = self.choice.reference
        some = [one for one in self.choice.taken
                if self.choice.outcome(number, base, one) is outcome]  # fmt: skip
        return f"{self._fragment(number, some, base)}{self._with(some)}"

    @property
    def best_gain(self) -> Number | None:
        """The need that gains most; None: nothing does."""
        gains = [
            one
            for one in self.choice.gains(self._top)
            if not one.is_price and self._is_worth_saying(one)
        ]
        return max(gains, key=self._steps, default=None) if self.choice.is_told else None

    def _is_worth_saying(self, number: Number) -> bool:
        """Whether a change is seen in the digits that are shown."""
        base = self.choice.reference
        need = number.need
        return need.shown(mean(number, base)) != need.shown(mean(number, self._top))

    def _steps(self, number: Number) -> int:
        """By how many levels a number becomes better."""
        base = self.choice.reference
        return self.choice.level(number, base) - self.choice.level(number, self._top)

    def _prices(self) -> Iterator[str]:
        """Who loses, and to whom."""
        choice = self.choice
        for one in choice.needs_lost[:_MOST_SAID]:
            noun = "transfers" if one.need.group == "flows" else self._noun(one)
            text = self._against_base(one, Outcome.WORSE)
            yield f"**{capital(noun)} {_verb('pay', noun)}:** {text}."
        for place, payer in enumerate(choice.payers[:_MOST_SAID]):
            reason = "" if place else self._reason(payer)
            also = ", too" if place else ""
            yield f"**The {payer.owner} pays{also}:** {self._slower(payer)}{reason}."

    def _slower(self, payer: Number) -> str:
        """How much a transfer loses, with those queues of the answer with which it does."""
        base, need = self.choice.reference, payer.need
        some = [one for one in self.choice.taken
                if self.choice.outcome(payer, base, one) is Outcome.WORSE]  # fmt: skip
        share = _span(f"{100 * (1 - self.choice.kept(payer, one)):.0f}" for one in some)
        before = need.shown(mean(payer, base))
        after = _span(need.shown(mean(payer, one)).removesuffix(f" {need.unit}") for one in some)
        return f"it runs {share} % slower ({after} instead of {before}){self._with(some)}"

    def _reason(self, payer: Number) -> str:
        """To whom the payer's share went."""
        found = self.choice.source(payer, self._top)
        if found is None:
            return ""
        parts = []
        shown = [(name, f"{more / 1e6:.1f}") for name, more in found.gained]
        if gained := [(name, more) for name, more in shown if float(more)]:
            [(first, most), *others] = gained
            takers = [f"{first} take {most}", *(f"{name} {more}" for name, more in others)]
            parts.append(f"{listing(takers, 'and')} Mbit/s more")
        if found.idle_bps > 0.1 * found.lost_bps:
            parts.append(f"{found.idle_bps / 1e6:.1f} Mbit/s more of the line stay idle")
        return f", because {' and '.join(parts)}" if parts else ""

    # --- words of numbers ---

    def _noun(self, number: Number) -> str:
        """What a class is called in a sentence."""
        group = number.need.group
        if group in _NOUNS:
            return _NOUNS[group]
        if group == "program":
            return self._program
        if group == "flows":
            return _OF_TRANSFERS[number.need.key]
        return f"the {number.owner}" if number.is_price else number.owner

    @property
    def _program(self) -> str:
        """The name of the program that was run."""
        words = self.choice.groups[0].first.metadata.get("program")
        first = words[0] if isinstance(words, list) and words else words
        return str(first or "the program").rpartition("/")[2]

    def _fragment(self, number: Number, groups: Sequence[Group], base: Group) -> str:
        """What becomes of a number: "pages open in 1.2 s instead of 6.7 s"."""
        need = number.need
        if any(number.of(one) is None for one in groups):
            return f"no number of {self._noun(number)} could be taken"
        values = sorted(mean(number, one) for one in groups)
        after, before = _said(need.unit, need.scale, values, mean(number, base))
        if need.unit == "%":
            after, before = after + " %", before + " %"
        level = LEVELS[need.level(values[0])]
        said = need.said
        if need.is_picture_of_meetings and values[0] >= _MUCH * self._highest_rate(number):
            said = "meetings get their full picture ({after} instead of {before} Mbit/s)"
        text = said.format(
            after=after,
            before=before,
            noun=self._noun(number),
            level="perfect" if need.group == "calls" and values[0] >= _PERFECT else level,
        )
        if place := self._direction(number):
            words, bracket, numbers = text.partition(" (")
            text = f"{words} {place}{bracket}{numbers}"
        return text

    def _direction(self, number: Number) -> str:
        """The direction of a class whose needs other classes have in another; empty: no other."""
        if number.need.group not in _NOUNS:
            return ""
        scenario = self.choice.groups[0].first.scenario
        directions = {
            str(one.get("name")): str(one.get("direction", "forward"))
            for one in scenario.get("traffic", ())
        }
        alike = [one.owner for one in self.choice.needs if one.need.group == number.need.group]
        found = {directions.get(owner, "") for owner in alike}
        return along(directions[number.owner], scenario) if len(found) > 1 else ""

    def _highest_rate(self, number: Number) -> float:
        """The highest rate of a class of streams, in bits per second."""
        entries = self.choice.groups[0].first.scenario.get("traffic", ())
        found = (one.get("max_rate") for one in entries if one.get("name") == number.owner)
        text = next(found, None)
        return rate_of(str(text)) if text else math.inf

    def _classes_at(self, group: Group, level: int) -> list[str]:
        """What the classes at a level are called."""
        found = [
            self._noun(self._worst(kind, owner, group))
            for (kind, owner), own in self.choice.class_levels(group).items()
            if own == level
        ]
        starved = self.choice.starved(group) if level == POOR else []
        return found + [f"the {one.owner}" for one in starved]

    def _worst(self, kind: str, owner: str, group: Group) -> Number:
        """The number that decides the level of a class."""
        own = [one for one in self.choice.needs if (one.need.group, one.owner) == (kind, owner)]
        return max(own, key=lambda one: (self.choice.level(one, group), one.need.has_levels))

    def _states(self, group: Group, than: Group | None = None) -> list[tuple[str, list[str]]]:
        """Classes that are not good, or at a lower level than with another queue, worst first.

        They stand by the words of their level, such as "poor or fair"; of two classes with one
        name the worse counts.
        """
        best = {} if than is None else self.choice.class_levels(than)
        worst: dict[str, tuple[int, str]] = {}
        for (kind, owner), level in self.choice.class_levels(group).items():
            number = self._worst(kind, owner, group)
            noun = self._noun(number)
            if level > best.get((kind, owner), GOOD) and level > worst.get(noun, (GOOD, ""))[0]:
                worst[noun] = level, self.levels_in_words(number, group)[0]
        if than is None:
            for one in self.choice.starved(group):
                worst[f"the {one.owner}"] = POOR, LEVELS[POOR]
        found: dict[str, list[str]] = {}
        for noun, (_, words) in sorted(worst.items(), key=lambda pair: -pair[1][0]):
            found.setdefault(words, []).append(noun)
        return list(found.items())

    # --- boxes ---

    @cached_property
    def boxes(self) -> list[tuple[str, str, str]]:
        """Title, text and tone of what stands beside each other below the lead."""
        return list(self._boxes())

    def _boxes(self) -> Iterator[tuple[str, str, str]]:
        choice = self.choice
        if not choice.is_told or self.keeps:
            return
        if len(choice.taken) > 1 and self.trade is None:
            yield f"{capital(self._named(choice.taken, 'or'))}?", self._between(), "pick"
        if choice.second is not None and choice.payer is not None:
            payer, second = choice.payer, choice.second
            kept = choice.kept(payer, second)
            slower = round(100 * (1 - kept))
            runs = f"runs {slower} % slower" if slower else "keeps its rate"
            gets = f"The {payer.owner} {runs}."
            if kept > 1:
                gets = f"{capital(self._fragment(payer, [second], choice.reference))}."
            yield (
                f"If the {payer.owner} matters most: {self.names[second.label]}",
                f"{gets} {self._costs(second)}".strip(),
                "care",
            )
        base = choice.baseline
        if base is not None and base not in choice.taken:
            parts = [
                f"{text} {_verb('stay', text)} {words}"
                for words, nouns in self._states(base)
                if (text := listing(nouns, "and"))
            ]
            text = f"{capital('; '.join(parts))}." if parts else "Everybody is served well."
            name = self.names[base.label]
            is_queue = self.thing != "setting"
            yield f"If you do nothing ({name})" if is_queue else f"With {name}", text, "none"

    def _between(self) -> str:
        """How far any two queues of the answer may be apart: where it is noticed most."""
        choice = self.choice
        apart: dict[str, tuple[float, str]] = {}
        is_clear = False
        for number in choice.numbers:
            pairs = [
                pair
                for pair in itertools.combinations(choice.taken, 2)
                if choice.outcome(number, *pair) is not Outcome.ALIKE
            ]
            if not pairs:
                continue
            noun = self._noun(number)
            far = max(_farthest(number, *pair) for pair in pairs)
            steps = far / (number.need.least(mean(number, choice.taken[0])) or 1.0)
            unit = " MOS" if number.need.group == "calls" else ""
            text = f"{noun} within {number.need.shown(far)}{unit}"
            apart[noun] = max(apart.get(noun, (0.0, "")), (steps, text))
            is_clear |= any(choice.are_apart(number, *pair) for pair in pairs)
        advice = "" if self.thing == "setting" else " Take the one that you have."
        parts = [text for _, text in sorted(apart.values(), reverse=True)[:_MOST_GAINS]]
        if not parts:
            return f"No difference that anyone would notice.{advice}"
        within = listing(parts, "and")
        if is_clear:
            return f"They differ: {within}."
        return f"No clear difference: {within}.{advice}"

    def _costs(self, group: Group) -> str:
        """What the second choice leaves less than good."""
        return " ".join(
            f"{capital(text)} {'is' if _verb('', text) else 'are'} "
            f"{'at best fair' if words in ('fair or poor', 'poor or fair') else words}."
            for words, nouns in self._states(group, self._top)
            if (text := listing([self._some(noun, group) for noun in nouns], "and"))
        )

    def _some(self, noun: str, group: Group) -> str:
        """Classes of one name, with "some" if only some of them are at their lowest level."""
        levels = {
            level
            for (kind, owner), level in self.choice.class_levels(group).items()
            if self._noun(self._worst(kind, owner, group)) == noun
        }
        return f"some {noun}" if len(levels) > 1 else noun

    # --- how sure ---

    def sure(self, *, is_drawn: bool = True) -> str:
        """How the numbers came about, and what they do not say.

        Args:
            is_drawn: whether pictures show the intervals.
        """
        choice = self.choice
        first = choice.groups[0].first
        measured = float(first.summary.get("measured_s") or 0.0)
        long = (
            f"{measured / 60:g} minutes"
            if measured >= 120 and measured % 60 == 0
            else (f"{measured:.0f} s")
        )
        times = {len(one.runs) for one in choice.groups}
        count = f"{min(times)}" if len(times) == 1 else f"{min(times)} to {max(times)}"
        if first.world == "live":
            how = f"Measured, {count} runs of each queue."
        elif times == {1}:
            how = f"Simulated, one run of {long} each: another may differ."
        else:
            how = (
                f"Simulated, {count} times {long}, each time with other users; every queue met "
                "the same users."
            )
        if times != {1}:
            drawn = ", drawn as whiskers" if is_drawn else ""
            how += (
                f" Every better or worse named above is larger than chance (95 % interval{drawn}) "
                "and large enough to notice."
            )
            if is_drawn:
                how += " Where the interval spans a limit, the table says so (“fair or good”)."
        return f"{how} Your users may differ from these."

    @property
    def sources(self) -> str:
        """The limits of the levels and who says so."""
        found: dict[str, list[str]] = {}
        for number in self.choice.needs:
            if number.need.has_levels:
                names = found.setdefault(number.need.source, [])
                group = "transfers" if number.need.group == "flows" else number.need.group
                if group not in names:
                    names.append(group)
        return ". ".join(
            f"{capital(listing(names, 'and'))}: {source}" for source, names in found.items()
        ) + ("." if found else "")

    @property
    def question(self) -> str:
        """What the runs are asked."""
        choice = self.choice
        title = str(choice.groups[0].first.scenario.get("title") or "").rstrip(".")
        asked = f"Which of {len(choice.groups)} queues should the router run?"
        if self.thing == "setting":
            asked = f"Which of {len(choice.groups)} settings serves people best?"
        if self.thing == "sender":
            asked = f"Which of {len(choice.groups)} senders is best here?"
        if len(choice.groups) == 1:
            asked = "Whom does this queue serve?"
        return f"{title}. {asked}" if title else asked

    # --- as lines and as data ---

    def lines(self) -> list[str]:
        """The answer for a terminal: at most seven lines; a sentence is never cut."""
        sentences = [self.headline, *map(bare, self.lead)]
        extra = [
            f"{title}. {text}" if ":" in title else f"{title}: {text[:1].lower()}{text[1:]}"
            for title, text, tone in self.boxes
            if tone != "pick"
        ]
        for more in (len(extra), 1, 0):
            chosen = [*sentences, *extra[len(extra) - more :]] if more else sentences
            found = wrapped(" ".join(chosen))
            if len(found) <= _LINES:
                return found
        while len(found := wrapped(" ".join(sentences))) > _LINES and len(sentences) > 1:
            sentences.pop()
        return found

    def to_json(self) -> dict[str, Any]:
        """The answer as data: labels, sentences, and the numbers that gain and pay."""
        choice = self.choice
        told = choice.is_told
        losses = choice.losses(self._top) if told else []
        return {
            "take": self.take,
            "second": choice.second.label if told and choice.second else None,
            "headline": self.headline,
            "sentences": [bare(one) for one in self.lead],
            "gains": [self._change(one) for one in (choice.gains(self._top) if told else [])],
            "prices": [self._change(one) for one in losses],
            "dear": [self._change(one) for one in (choice.dear if told else [])],
            "standings": {
                one.label: dict(zip(("poor", "not_good"), choice.standing(one), strict=True))
                for one in choice.groups
            },
            "seeds": choice.fewest_seeds,
            "why_not": None if told else self.headline,
        }

    def _change(self, number: Number) -> dict[str, Any]:
        base = self.choice.reference
        return {
            "class": number.owner or None,
            "number": number.need.key,
            "reference": mean(number, base),
            "answer": mean(number, self._top),
        }

    def levels_in_words(self, number: Number, group: Group) -> tuple[str, int]:
        """The level of a number with that of its interval, as words, and the level of the mean."""
        if not number.need.has_levels:
            return "", GOOD
        levels = self.choice.levels(number, group)
        return listing([LEVELS[level] for level in levels], "or"), levels[0]

    def where(self, at: Any) -> str:  # noqa: ANN401 - a direction of a link
        """A direction of a link in words."""
        return in_words(at, self.choice.groups[0].first.scenario)

    def population(self, owner: str) -> str:
        """How many people a class has: "30 users"."""
        for entry in self.choice.groups[0].first.scenario.get("traffic", ()):
            if entry.get("name") == owner:
                for key in ("users", "viewers", "streams", "calls", "players", "flows"):
                    count = look_up(entry, (key,))
                    if isinstance(count, int):
                        return counted(count, key.removesuffix("s"))
        return ""


def _all(number: int) -> str:
    """Several things together, small numbers in words: both, all three."""
    names = {3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}
    return "both" if number == 2 else f"all {names.get(number, number)}"


def _verb(stem: str, subject: str) -> str:
    """A verb behind its subject, which is plural unless it is one noun with an article."""
    is_one = subject.startswith("the ") and " and " not in subject
    return f"{stem}s" if is_one else stem


def _span(texts: Iterable[str]) -> str:
    """Numbers as text, from the least to the largest."""
    shown = sorted(set(texts), key=float)
    return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"


def _said(unit: str, scale: float, values: Sequence[float], before: float) -> tuple[str, str]:
    """The values of an answer and the one before, in as few digits as tell them apart."""
    shown = [scale * value for value in (values[0], values[-1], before)]
    for digits in (2, 3, 4):
        first, last, base = (_rounded(value, digits, unit) for value in shown)
        if base not in (first, last):
            break
    return first if first == last else f"{first} to {last}", base


def _rounded(value: float, digits: int, unit: str) -> str:
    """A number with some significant digits; milliseconds and percent of 10 and more are whole."""
    if not value or abs(value) < 0.005:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    if unit == "%":
        places = min(places, 1)
    return f"{round(value, places):.{max(0, places)}f}"


def _farthest(number: Number, first: Group, second: Group) -> float:
    """The farther end of the interval of a difference."""
    from aqmlab.results.answer import difference

    found, _ = difference(first, second, number.values(first), number.values(second))
    ends = [abs(one) for one in (found.low, found.high) if not math.isnan(one)]
    return max([*ends, abs(found.mean)])
