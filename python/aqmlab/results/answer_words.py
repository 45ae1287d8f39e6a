"""The answer in words: which queue to take, who gains, who pays, and how sure that is."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from aqmlab._util.words import counted, listing
from aqmlab.results.answer import FULL, Choice, Number, Outcome, mean
from aqmlab.results.directions import in_words
from aqmlab.results.groups import Group
from aqmlab.results.links import links_of
from aqmlab.results.metrics import look_up
from aqmlab.results.needs import FAIR, GOOD, LEVELS, POOR, rate_of
from aqmlab.results.queues import discipline_at
from aqmlab.results.spoken import spoken_names

__all__ = ["Answer", "bare", "wrapped"]


_MOST_NAMED = 3
"""Queues of an answer that are named."""
_MOST_GAINS = 3
"""Classes whose gain is said."""
_PERFECT = 4.395
"""MOS from which a call is called perfect."""
_MUCH = 0.95
"""A stream that gets this share of its highest rate has its full picture."""
_LINES = 7
"""Lines of an answer on a terminal, at most."""

_NOUNS = {
    "pages": "pages",
    "calls": "calls",
    "meetings": "meetings",
    "films": "films",
    "games": "the game",
}
"""What a class is called in a sentence, by the group of its needs."""


def bare(text: str) -> str:
    """A sentence without the marks of what is bold."""
    return text.replace("**", "")


@dataclass(frozen=True)
class Answer:
    """What is said of a choice between queues."""

    choice: Choice

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What each queue is called, by its label."""
        return spoken_names(self.choice.groups)

    @property
    def take(self) -> list[str]:
        """Labels of the queues to take; empty: the runs do not tell."""
        return [one.label for one in self.choice.taken] if self.choice.is_told else []

    @cached_property
    def is_baseline_taken(self) -> bool:
        """Whether what is used today is as good as anything."""
        return self.choice.baseline in self.choice.taken

    @cached_property
    def _thing(self) -> str:
        """What is decided between: queues, or the senders' TCP behind equal queues."""
        queues = [
            [discipline_at(one.first.scenario, at) for at in links_of(one.first)]
            for one in self.choice.groups
        ]
        several = len(queues) > 1 and all(one == queues[0] for one in queues)
        return "sender" if several else "queue"

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
        if self.is_baseline_taken and not self._is_poor:
            name = self.names[choice.reference.label]
            return f"Nothing to gain: {name} does as well as any."
        if self.trade is not None and not self._is_poor:
            first, ahead, second, behind = self.trade
            return (
                f"{self.names[first.label]} for {self._noun(ahead)}, "
                f"{self.names[second.label]} for {self._noun(behind)}."
            )
        names = self._listed([self.names[one.label] for one in choice.taken], "or")
        return f"{self._advice} {names}."

    @property
    def _of_one_queue(self) -> str:
        """Whom the only queue leaves poor."""
        [group] = self.choice.groups
        for level in (POOR, FAIR):
            if names := self._classes_at(group, level):
                found = list(dict.fromkeys(names))
                verb = "is" if len(found) == 1 and found[0].startswith("the ") else "are"
                words = f"{listing(found, 'and')} {verb} {LEVELS[level]}"
                return f"{_capital(words)} behind {self.names[group.label]}."
        return f"Everybody is served well behind {self.names[group.label]}."

    @property
    def _advice(self) -> str:
        """How strongly the answer is meant."""
        choice = self.choice
        if self._is_poor:
            return f"No {self._thing} is enough. Best:"
        if self._is_well_served:
            return "Could be better:"
        alone = choice.fewest_seeds == 1 and choice.groups[0].first.world == "sim"
        return "It looks like" if alone else "Take"

    def _listed(self, names: Sequence[str], word: str) -> str:
        """Names as a list; from the fourth on they are counted."""
        if len(names) > _MOST_NAMED:
            return f"{', '.join(names[:_MOST_NAMED])} or any of {len(names)} alike"
        return listing(names, word)

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
            if choice.busiest < FULL:
                busy = f"{100 * choice.busiest:.0f} %"
                yield f"Nothing fills this line: it is busy {busy} of the time."
            return
        yield from self._state()
        yield from self._gains()
        if choice.best_standing[0] == 0 and (fair := self._stay(self._top, FAIR)):
            yield f"{_capital(fair)}."
        yield from self._prices()
        if choice.baseline is None and self.trade is None:
            yield f"Compared with {self.names[choice.reference.label]}."
        if choice.fewest_seeds == 1:
            yield self._of_one_run

    def _of_the_poor(self) -> Iterator[str]:
        """Who is poor whatever one takes."""
        if self.choice.is_told and self._is_poor:
            yield f"**{self._everywhere_poor}**"

    def _state(self) -> Iterator[str]:
        """Who is served well, or poorly, whatever the numbers."""
        yield from self._of_the_poor()
        if self._is_well_served:
            yield "**Everybody is served well already.**"
        elif self.choice.best_standing == (0, 0):
            yield "**Everybody is served well.**"

    def _gains(self) -> Iterator[str]:
        """What the answer makes better; of a trade, what each side does."""
        if self.trade is not None:
            first, ahead, second, behind = self.trade
            for number, one, other in ((ahead, first, second), (behind, second, first)):
                yield f"{_capital(self._fragment(number, [one], other))}."
        elif fragments := self._gain_fragments():
            yield f"{_capital(listing(fragments, 'and'))}."

    @property
    def _of_one_run(self) -> str:
        if self.choice.groups[0].first.world == "live":
            return "One run each, measured."
        return "One run each: another may differ. --seeds 1..5 shows how sure it is."

    @property
    def _everywhere_poor(self) -> str:
        """Who is poor with every queue."""
        choice = self.choice
        sets = [self._classes_at(one, POOR) for one in choice.groups]
        names = [one for one in sets[0] if all(one in other for other in sets)]
        if not names:
            return "Each of them leaves somebody poor."
        stays = "stays" if len(names) == 1 and names[0].startswith("the ") else "stay"
        return f"{_capital(listing(names, 'and'))} {stays} poor with all {len(choice.groups)}."

    def _gain_fragments(self) -> list[str]:
        """What the answer makes better, for the classes that gain most."""
        base = self.choice.reference
        gains = [one for one in self.choice.gains(self._top) if self._is_worth_saying(one)]
        best: dict[str, Number] = {}
        for one in sorted(gains, key=self._steps, reverse=True):  # equal ones in their order
            name = one.need.key if one.need.group == "flows" else self._noun(one)
            best.setdefault(name, one)
        chosen = list(best.values())[:_MOST_GAINS]
        return [self._fragment(one, self.choice.taken, base) for one in chosen]

    @property
    def best_gain(self) -> Number | None:
        """The need that gains most; None: nothing does."""
        gains = [one for one in self.choice.gains(self._top) if self._is_worth_saying(one)]
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
        base = choice.reference
        lost = [one for one in choice.needs if one in choice.losses(self._top)]
        for one in lost[:2]:
            yield f"**{_capital(self._noun(one))} pay:** {self._fragment(one, choice.taken, base)}."
        payer = choice.payer
        if payer is None:
            return
        slower = [100 * (1 - choice.kept(payer, one)) for one in choice.taken]
        shown = sorted({f"{value:.0f}" for value in slower}, key=float)
        share = shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"
        need = payer.need
        before = need.shown(mean(payer, base))
        after = need.shown(mean(payer, self._top)).removesuffix(f" {need.unit}")
        text = f"it runs {share} % slower ({after} instead of {before})"
        if reason := self._reason(payer):
            text += f", {reason}"
        yield f"**The {payer.owner} pays:** {text}."

    def _reason(self, payer: Number) -> str:
        """To whom the payer's share went."""
        found = self.choice.source(payer, self._top)
        if found is None or not found.lost_bps:
            return ""
        lost = f"{found.lost_bps / 1e6:.1f}"
        parts = []
        if found.gained:
            takers = [
                f"{name} {'take' if not number else ''} {more / 1e6:.1f}".replace("  ", " ")
                for number, (name, more) in enumerate(found.gained)
            ]
            [name, more] = found.gained[0]
            whole = len(takers) == 1 and f"{more / 1e6:.1f}" == lost
            what = f"{name} take it" if whole else f"{listing(takers, 'and')} Mbit/s of it"
            parts.append(f"because {what}")
        if found.idle_bps > 0.1 * found.lost_bps:
            parts.append(f"{found.idle_bps / 1e6:.1f} Mbit/s of the line stays idle")
        return ", and ".join(parts)

    # --- words of numbers ---

    def _noun(self, number: Number) -> str:
        """What a class is called in a sentence."""
        group = number.need.group
        if group in _NOUNS:
            return _NOUNS[group]
        if group == "program":
            return self._program
        return number.owner or "transfers"

    @property
    def _program(self) -> str:
        """The name of the program that was run."""
        words = self.choice.groups[0].first.metadata.get("program")
        first = words[0] if isinstance(words, list) and words else words
        return str(first or "the program").rpartition("/")[2]

    def _fragment(self, number: Number, groups: Sequence[Group], base: Group) -> str:
        """What becomes of a number: "pages open in 1.2 s instead of 6.7 s"."""
        need = number.need
        values = sorted(mean(number, one) for one in groups)
        after, before = _said(need.unit, need.scale, values, mean(number, base))
        if need.unit == "%":
            after, before = after + " %", before + " %"
        level = LEVELS[need.level(values[0])]
        said = need.said
        if need.is_picture_of_meetings and values[0] >= _MUCH * self._highest_rate(number):
            said = "meetings get their full picture ({after} instead of {before} Mbit/s)"
        return said.format(
            after=after,
            before=before,
            noun=self._noun(number),
            level="perfect" if need.group == "calls" and values[0] >= _PERFECT else level,
            smallest=self._smallest(base) if need.key == "smallest_share" else "",
        )

    def _smallest(self, base: Group) -> str:
        """The class of transfers that gets the smallest share with a queue."""
        entries = self.choice.groups[0].first.scenario.get("traffic", ())

        def each(entry: Mapping[str, Any]) -> float:
            total = base.estimate("flows", str(entry["name"]), "goodput_bps")
            return total.mean / float(entry.get("flows") or 1) if total else math.inf

        return str(min(entries, key=each)["name"])

    def _highest_rate(self, number: Number) -> float:
        """The highest rate of a class of streams, in bits per second."""
        entries = self.choice.groups[0].first.scenario.get("traffic", ())
        found = (one.get("max_rate") for one in entries if one.get("name") == number.owner)
        text = next(found, None)
        return rate_of(str(text)) if text else math.inf

    def _stay(self, group: Group, level: int) -> str:
        """Classes that a queue leaves at a level: "pages and the game stay poor"; or nothing."""
        found = self._classes_at(group, level)
        worse = self._classes_at(group, level + 1) if level < POOR else []
        names = [one for one in dict.fromkeys(found) if one not in worse]
        if not names:
            return ""
        single = len(names) == 1 and names[0].startswith("the ")
        return f"{listing(names, 'and')} {'stays' if single else 'stay'} {LEVELS[level]}"

    def _classes_at(self, group: Group, level: int) -> list[str]:
        """What the classes at a level are called."""
        found = [
            _NOUNS.get(kind, owner or "transfers")
            for (kind, owner), own in self.choice.class_levels(group).items()
            if own == level
        ]
        starved = self.choice.starved(group) if level == POOR else []
        return found + [f"the {one.owner}" for one in starved]

    # --- boxes ---

    @cached_property
    def boxes(self) -> list[tuple[str, str, str]]:
        """Title, text and tone of what stands beside each other below the lead."""
        return list(self._boxes())

    def _boxes(self) -> Iterator[tuple[str, str, str]]:
        choice = self.choice
        if not choice.is_told:
            return
        if len(choice.taken) > 1 and self.trade is None:
            names = self._listed([self.names[one.label] for one in choice.taken], "or")
            yield f"{names}?", self._between(choice.taken[0], choice.taken[1]), "pick"
        if choice.second is not None and choice.payer is not None:
            kept = 100 * choice.kept(choice.payer, choice.second)
            costs = self._costs(choice.second)
            yield (
                f"If the {choice.payer.owner} matters most: {self.names[choice.second.label]}",
                f"It keeps {kept:.0f} % of its speed. {costs}".strip(),
                "care",
            )
        base = choice.baseline
        if base is not None and base not in choice.taken:
            parts = [text for level in (POOR, FAIR) if (text := self._stay(base, level))]
            text = f"{_capital('; '.join(parts))}." if parts else "Everybody is served well."
            yield f"If you do nothing ({self.names[base.label]})", text, "none"

    def _between(self, first: Group, second: Group) -> str:
        """How far two queues of the answer may be apart."""
        choice = self.choice
        parts = []
        for numbers in (choice.needs, choice.prices):
            for number in numbers:
                outcome = choice.outcome(number, first, second)
                if outcome is Outcome.ALIKE or not number.need.unit:
                    continue
                far = _farthest(number, first, second)
                parts.append(f"{self._noun(number)} differ by {number.need.shown(far)} at most")
                break
        if not parts:
            return "No difference that anyone would notice. Take the one that you have."
        return f"No clear difference: {listing(parts, 'and')}. Take the one that you have."

    def _costs(self, group: Group) -> str:
        """What the second choice leaves less than good."""
        best = self.choice.class_levels(self._top)
        own = self.choice.class_levels(group)
        found: dict[str, list[str]] = {}
        for (kind, owner), level in own.items():
            if level > best[kind, owner]:
                names = found.setdefault(self._words_of(kind, owner, group), [])
                noun = _NOUNS.get(kind, owner or "transfers")
                if noun not in names:
                    names.append(noun)
        return " ".join(
            f"{_capital(listing(names, 'and'))} {'is' if names == ['the game'] else 'are'} "
            f"{'only ' if level.startswith('fair') else ''}{level}."
            for level, names in found.items()
        )

    def _words_of(self, kind: str, owner: str, group: Group) -> str:
        """The level of a class as the table says it, such as "fair or poor"."""
        own = [one for one in self.choice.needs if (one.need.group, one.owner) == (kind, owner)]
        worst = max(own, key=lambda one: (self.choice.level(one, group), one.need.has_levels))
        return self.levels_in_words(worst, group)[0]

    # --- how sure ---

    @property
    def sure(self) -> str:
        """How the numbers came about, and what they do not say."""
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
            how += (
                " Every better or worse named above is larger than chance (95 % interval, drawn "
                "as whiskers) and large enough to notice. Where the interval spans a limit, the "
                "table says so (“fair or good”)."
            )
        return f"{how} Your users may differ from these."

    @property
    def sources(self) -> str:
        """The limits of the levels and who says so."""
        found: dict[str, list[str]] = {}
        for number in self.choice.needs:
            if number.need.has_levels:
                names = found.setdefault(number.need.source, [])
                if number.need.group not in names:
                    names.append(number.need.group)
        return ". ".join(
            f"{_capital(listing(names, 'and'))}: {source}" for source, names in found.items()
        ) + ("." if found else "")

    @property
    def question(self) -> str:
        """What the runs are asked."""
        choice = self.choice
        title = str(choice.groups[0].first.scenario.get("title") or "").rstrip(".")
        asked = f"Which of {len(choice.groups)} queues should the router run?"
        if self._thing != "queue":
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
        return " or ".join(LEVELS[level] for level in levels[:2]), levels[0]

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


def wrapped(text: str) -> list[str]:
    """A paragraph for a terminal."""
    return textwrap.wrap(text, 80, break_on_hyphens=False)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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
