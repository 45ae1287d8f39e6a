"""A number of runs, by the name that people give it: a key of ``summary.json``, or a short name.

``p50`` is of all classes together, ``p50.web`` of one. ``queue.reverse`` is of the bottleneck's
reverse direction, ``queue.core-1.forward`` of another link's; ``queue`` alone stands for every
loaded direction. ``mos.calls`` is of the class ``calls``: what users of an application get is of
one class. ``calls_p999``, or ``metrics.calls_p999``, is a metric of one's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.bounds import UNBOUNDED, Bounds
from aqmlab.results.links import LinkDirection, Measured, links_of, main_link
from aqmlab.results.metric_groups import listed
from aqmlab.results.metrics import (
    GROUPED,
    OWN,
    RENAMED,
    SHORT_NAMES,
    Metric,
    described_in,
    number,
)

__all__ = ["Quantity"]


_KEY = re.compile(r"(links|wifi|responses|flows|quality|breakdown)(\.[\w -]+){2,}")
_DIRECTIONS = ("forward", "reverse", "down", "up")
_OWN = "metrics"
"""Where a summary has metrics of one's own."""


@dataclass(frozen=True)
class Quantity:
    """A number of runs.

    Example:
        >>> from aqmlab.results.quantity import Quantity
        >>> wait = Quantity.read("delay.forward")
        >>> wait.key, wait.unit
        ('links.bottleneck.forward.sojourn_mean_s', 'ms')
    """

    name: str
    """As it was asked for."""
    section: str
    """First part of its key."""
    place: str
    """Of what it is, such as ``all`` or ``bottleneck.forward``; empty: its name leaves it open."""
    last: str
    """Last part of its key."""
    own: Metric | None = None
    """What was said of it, where it is a metric of one's own."""

    @classmethod
    def read(cls, name: str) -> Quantity:
        """The number of a name; an error if there is none."""
        if _KEY.fullmatch(name):
            stem, _, last = name.rpartition(".")
            if (renamed := RENAMED.get(last)) is not None:
                raise AqmlabError(f'"{name}" is called {stem}.{renamed}')
            section, _, place = stem.partition(".")
            return cls(name, section, place, last)
        own = name.removeprefix(f"{_OWN}.")
        if own in OWN:
            return cls(name, _OWN, "", own, OWN[own])
        short, dot, place = name.partition(".")
        if short not in SHORT_NAMES:
            there = f"your own: {', '.join(OWN)}; " if OWN else ""
            raise AqmlabError(
                f'there is no metric "{name}"{nearest(name, [*OWN, *SHORT_NAMES])}; possible are '
                f"keys of summary.json such as responses.web.p50_s, and {there}{listed(GROUPED)}"
            )
        section, usual, *_, last = SHORT_NAMES[short].split(".")
        if section == "links" and dot:
            link, _, direction = place.rpartition(".")
            known = direction in _DIRECTIONS
            place = f"{link or 'bottleneck'}.{direction}" if known else ""
        found = cls(name, section, place or ("all" if usual == "all" else ""), last)
        if dot and not place:
            _ = found.key  # an error of a link
        return found

    @property
    def key(self) -> str:
        """Its path in ``summary.json``; an error if its name leaves its place open."""
        if self.section == _OWN:
            return f"{_OWN}.{self.last}"
        if self.place:
            return f"{self.section}.{self.place}.{self.last}"
        short = self.name.partition(".")[0]
        if self.section == "links":
            raise AqmlabError(
                f'"{self.name}" does not say of which link and direction; {short}.forward and '
                f"{short}.reverse are of the bottleneck, {short}.LINK.forward is of another link"
            )
        raise AqmlabError(
            f'"{self.name}" does not say of which class of traffic; {short}.CLASS is of one'
        )

    @property
    def is_of_every_link(self) -> bool:
        """Whether it is of links, and its name says of none of them."""
        return self.section == "links" and not self.place

    @property
    def column(self) -> str:
        """Its key, but its name where :attr:`is_of_every_link`; an error where that is neither."""
        return self.name if self.is_of_every_link else self.key

    @property
    def about(self) -> Metric | None:
        """What is known of it; None: the engine does not declare it."""
        return self.own or described_in(self.section, self.last)

    @property
    def is_known(self) -> bool:
        """Whether anybody declares it."""
        return self.about is not None

    @property
    def label(self) -> str:
        """What it is, in words; what is not declared is called by its key."""
        return self.last if self.about is None else self.about.label

    @property
    def unit(self) -> str:
        """The unit in which it is shown; empty: it has none."""
        return "" if self.about is None else self.about.unit

    @property
    def scale(self) -> float:
        """What turns the summary's number into that unit."""
        return 1.0 if self.about is None else self.about.scale

    @property
    def bounds(self) -> Bounds:
        """The least and the largest value of the summary's number."""
        return UNBOUNDED if self.about is None else self.about.bounds

    def of(self, run: Measured) -> float | None:
        """Its value in a run; None if it was not measured."""
        return number(run.summary, self.key)

    def at(self, one: LinkDirection) -> Quantity:
        """That of one direction of a link."""
        return replace(self, name=f"{self.name}.{one.name}", place=f"{one.link}.{one.direction}")

    def among(self, loaded: Iterable[LinkDirection]) -> list[Quantity]:
        """What it stands for where these directions of links are loaded."""
        return [self.at(one) for one in loaded] if self.is_of_every_link else [self]

    def busiest(self, runs: Sequence[Measured]) -> Quantity:
        """What it stands for in some runs: of links that of the direction with the most load."""
        if self.is_of_every_link:
            return self.at(main_link(runs))
        if self.section != "links" or "." in self.place:
            return self
        busy: dict[LinkDirection, float] = {}
        for run in runs:
            for at, values in links_of(run).items():
                if at.link == self.place:
                    busy[at] = busy.get(at, 0.0) + (values.get("utilization") or 0.0)
        if not busy:
            raise AqmlabError(f"{self.name}: the results have no link {self.place}")
        return self.at(max(busy, key=lambda at: busy[at]))
