"""Answers in several settings: the same queues at other rates, with other users, in other networks.

What is decided is the queue; where all queues are equal, the senders' TCP. Everything else that
differs makes another setting, in which the rule of :mod:`aqmlab.results.answer` decides anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from aqmlab._util.words import counted, listing, natural, wrapped
from aqmlab.results.answer import choose
from aqmlab.results.answer_words import Answer, named
from aqmlab.results.baseline import Baseline, comparisons, is_droptail, scenarios_of
from aqmlab.results.families import family_titles
from aqmlab.results.groups import Group
from aqmlab.results.spoken import kind_of, spoken

__all__ = ["Answers", "SettingAnswer", "answers"]


_OFTEN = 0.8
"""A queue is recommended if it is in the answer in this share of the settings."""
_LINES = 7


@dataclass(frozen=True)
class SettingAnswer:
    """A setting and the answer in it."""

    title: str
    """What tells it from the others; empty: it is the only one."""
    answer: Answer


@dataclass(frozen=True)
class Answers:
    """The answers of all settings, and what they have in common; see :func:`aqmlab.answer`.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/bulk.toml").with_overrides(short)
        >>> queues = ("droptail-240", "fq-codel")
        >>> runs = [aqmlab.run(scenario.with_overrides({"discipline": queue})) for queue in queues]
        >>> len(aqmlab.answer(runs).settings)
        1
    """

    settings: Sequence[SettingAnswer]

    @property
    def only(self) -> Answer | None:
        """The answer, if there is one setting."""
        return self.settings[0].answer if len(self.settings) == 1 else None

    @cached_property
    def _kinds(self) -> set[str]:
        """Kinds of which no setting has two queues."""
        counts = [Counter(map(kind_of, one.answer.choice.groups)) for one in self.settings]
        return {kind for kind in set().union(*counts) if max(one[kind] for one in counts) == 1}

    def _named(self, setting: SettingAnswer) -> dict[str, str]:
        """What the queues of a setting are called in all of them, by their labels.

        A kind of which no setting has two has its usual name, whatever its limit is in each.
        """
        groups = setting.answer.choice.groups
        return {
            group.label: spoken(kind)
            if (kind := kind_of(group)) not in ("", "plugin") and kind in self._kinds
            else name
            for group, name in zip(groups, _bare(setting.answer), strict=True)
        }

    @cached_property
    def names(self) -> list[str]:
        """The queues of all settings, in the order of the first."""
        found = (name for one in self.settings for name in self._named(one).values())
        return list(dict.fromkeys(found))

    @cached_property
    def tally(self) -> dict[str, int]:
        """In how many settings each queue is in the answer."""
        found = dict.fromkeys(self.names, 0)
        for one in self.settings:
            names = self._named(one)
            for group in one.answer.choice.taken:
                found[names[group.label]] += 1
        return found

    @cached_property
    def poor(self) -> dict[str, list[int]]:
        """How many classes each queue leaves poor, by setting."""
        found: dict[str, list[int]] = {name: [] for name in self.names}
        for one in self.settings:
            names = self._named(one)
            for group in one.answer.choice.groups:
                found[names[group.label]].append(one.answer.choice.standing(group)[0])
        return found

    @cached_property
    def safe(self) -> list[str]:
        """Queues that are mostly in the answer and nowhere leave poor whom another serves."""
        found = []
        for name, count in self.tally.items():
            if count < _OFTEN * len(self.settings):
                continue
            choices = (one.answer.choice for one in self.settings)
            behind = [
                choice.standing(group)[0] - choice.best_standing[0]
                for choice, one in zip(choices, self.settings, strict=True)
                for group in choice.groups
                if self._named(one)[group.label] == name
            ]
            if max(behind, default=0) == 0:
                found.append(name)
        return sorted(found, key=lambda name: (-self.tally[name], natural(name)))

    def queues(self, setting: SettingAnswer) -> list[tuple[Group, str]]:
        """The groups of a setting and what their queues are called in all of them."""
        names = self._named(setting)
        return [(group, names[group.label]) for group in setting.answer.choice.groups]

    @property
    def headline(self) -> str:
        """The answer for all settings."""
        if only := self.only:
            return only.headline
        count = len(self.settings)
        if not self._is_decided:
            return f"Nothing is decided between {count} scenarios."
        if not self.safe:
            return f"It depends on the setting: no queue is the answer in most of {count}."
        times = {self.tally[name] for name in self.safe}
        bases = {self._named(one)[base.label] for one in self.settings
                 if (base := one.answer.choice.baseline) is not None}  # fmt: skip
        if len(bases) == 1 and bases <= {*self.safe}:
            [name] = bases
            return (
                f"Nothing to gain: {name} is in the answer in {self.tally[name]} of {count} "
                "settings."
            )
        whom = "each" if len(self.safe) > 1 else "it"
        number = f"{min(times)}" if len(times) == 1 else f"{min(times)} to {max(times)}"
        return (
            f"Take {named(self.safe, 'or')}: {whom} is in the answer in {number} of {count} "
            f"settings{self._but}."
        )

    @property
    def _but(self) -> str:
        """Whom the recommended queues cost much, and in how many settings; nothing if nobody."""
        payers = [
            {
                noun
                for group, name in self.queues(one)
                if name in self.safe
                for noun in one.answer.payers(group)
            }
            for one in self.settings
        ]
        nouns = sorted(set().union(*payers))
        count = sum(map(bool, payers))
        verb = "loses" if len(nouns) == 1 and nouns[0].startswith("the ") else "lose"
        return f", but {listing(nouns, 'and')} {verb} much in {count} of them" if nouns else ""

    @property
    def _is_decided(self) -> bool:
        """Whether a queue or a sender is decided in some setting."""
        return any(one.answer.thing != "setting" for one in self.settings)

    @property
    def sentences(self) -> list[str]:
        """What follows it: who is left poor, and how often each queue is in the answer."""
        if self.only or not self._is_decided:
            return []
        found = []
        words = []
        for name in self.names:
            low, high = min(self.poor[name]), max(self.poor[name])
            if high:
                words.append(f"{name} {high}" if low == high else f"{name} up to {high}")
        clean = [name for name in self.names if not max(self.poor[name])]
        if clean:
            leave = "leaves" if len(clean) == 1 else "leave"
            found.append(f"{listing(clean, 'and')} {leave} no class of traffic poor.")
        if words:
            found.append(f"Classes left poor: {listing(words, 'and')}.")
        others: dict[int, list[str]] = {}
        for name in self.names:
            if name not in self.safe:
                others.setdefault(self.tally[name], []).append(name)
        if others:
            shown = ", ".join(
                f"{listing(names, 'and')} in {count or 'none'}"
                for count, names in sorted(others.items(), reverse=True)
            )
            less = "In the answer less often" if self.safe else "In the answer"
            found.append(f"{less}: {shown} of {counted(len(self.settings), 'setting')}.")
        return found

    def lines(self) -> list[str]:
        """The answer for a terminal."""
        if only := self.only:
            return only.lines()
        head = wrapped(" ".join([self.headline, *self.sentences]))
        each = [
            line for one in self.settings for line in wrapped(f"{one.title}: {one.answer.headline}")
        ]
        return [*head, *each] if len(head) + len(each) <= _LINES + 1 else head

    def to_json(self) -> dict[str, Any] | None:
        """As data: the answer, or one for each setting."""
        if only := self.only:
            return only.to_json()
        return {
            "take": self.safe,
            "headline": self.headline,
            "sentences": self.sentences,
            "settings": [{"title": one.title, **one.answer.to_json()} for one in self.settings],
        }


def answers(
    groups: Sequence[Group],
    baseline: Baseline = None,
    *,
    ordered: bool = True,
    always: bool = False,
) -> Answers | None:
    """The answers of some runs; None if there is nothing to decide between.

    Runs that differ in something else than queues or senders have an answer only if it is asked
    for: which of them serves people best, or whom the queue of a single group serves.

    Args:
        groups: of one or several scenarios.
        baseline: what was asked for; see :func:`aqmlab.results.baseline.comparisons`.
        ordered: whether somebody chose the order of the groups.
        always: whether runs have an answer where no queue and no sender is decided.
    """
    bases = {one.label for one, _ in comparisons(groups, baseline, ordered=ordered)}
    families = scenarios_of(groups)
    titles = family_titles([[one.first for one in own] for own in families])
    parts = [_settings(family) for family in families]
    if always and not any(some for _, some in parts):
        parts = [("setting", [list(family)]) for family in families]
    found = []
    for title, family, (thing, some) in zip(titles, families, parts, strict=True):
        for own in some:
            base = next((one for one in own if one.label in bases), None)
            base = base or next((one for one in own if is_droptail(one)), None)
            if (choice := choose(own, base)) is None:
                continue
            shown = [title] if len(families) > 1 else []
            if len(some) > 1:
                shown.append(_common(own, family))
            found.append(SettingAnswer(", ".join(filter(None, shown)), Answer(choice, thing)))
    return Answers(found) if found else None


def _settings(groups: Sequence[Group]) -> tuple[str, list[list[Group]]]:
    """What is decided, and the groups of a scenario by everything else; those with a choice."""
    for thing, without in (("queue", _without_queues), ("sender", _without_senders)):
        found: dict[str, list[Group]] = {}
        for one in groups:
            found.setdefault(json.dumps(without(one.first.scenario), sort_keys=True), []).append(
                one
            )
        several = [own for own in found.values() if len(own) > 1]
        if several:
            return thing, several
    return "", []


def _without_queues(value: Any) -> Any:  # noqa: ANN401 - whatever a scenario holds
    """A scenario without its queues, its seed and its title."""
    if isinstance(value, Mapping):
        hidden = ("discipline", "seed", "title")
        return {key: _without_queues(one) for key, one in value.items() if key not in hidden}
    if isinstance(value, list):
        return [_without_queues(one) for one in value]
    return value


def _without_senders(scenario: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever it holds
    """A scenario without its senders' stacks."""
    hidden = ("tcp", "transport", "quic")
    classes = [
        {key: one for key, one in entry.items() if key not in hidden}
        for entry in scenario.get("traffic", ())
    ]
    return {**scenario, "traffic": classes, "seed": None, "title": None}


def _common(groups: Sequence[Group], family: Sequence[Group]) -> str:
    """What the labels of a setting's groups share and other groups' do not."""
    parts = [one.label.split(", ") for one in groups]
    everywhere = [one.label.split(", ") for one in family]
    return ", ".join(
        part
        for part in parts[0]
        if all(part in other for other in parts) and not all(part in one for one in everywhere)
    )


def _bare(answer: Answer) -> list[str]:
    """The labels of an answer's queues without what the setting adds to them."""
    labels = [one.label.split(", ") for one in answer.choice.groups]
    common = set.intersection(*map(set, labels))
    return [
        (", ".join(part for part in parts if part not in common) or ", ".join(parts)).removeprefix(
            "queue = "
        )
        for parts in labels
    ]
