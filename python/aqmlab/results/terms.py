"""Numbers of a run's summary as papers count them: sums of keys, percentiles, tolerances."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aqmlab.errors import AqmlabError

__all__ = ["SLACK", "Percentile", "Rank", "Term", "Tolerance", "number_at", "total"]


_PERCENTILE = re.compile(r"(responses|flows)\.([^.]+)\.(?:duration_)?p(\d\d)_s")
"""The key of a percentile of response times or of connections' durations."""


SLACK = 1e-9
"""Rounding of floating-point differences that a tolerance forgives."""


@dataclass(frozen=True)
class Term:
    """One summand of a column: a key of ``summary.json`` times a factor."""

    key: str
    """Path in the summary, such as ``links.bottleneck.forward.loss_rate``."""
    factor: float = 1.0
    """Converts the key's unit into the column's."""
    per: str | None = None
    """Path of a divisor, such as ``measured_s``."""
    empty: float | None = None
    """What the key counts as where nothing was measured; None: that is an error."""

    def value(self, summary: Mapping[str, Any]) -> float:
        """The summand's value in one run."""
        value = self.factor * number_at(summary, self.key, self.empty)
        return value / number_at(summary, self.per) if self.per else value


def number_at(summary: Mapping[str, Any], path: str, empty: float | None = None) -> float:
    """The number at a dotted path of a summary; an error names the whole path.

    Where nothing was measured it is ``empty``, or an error.
    """
    node: Any = summary
    for part in path.split("."):
        if not isinstance(node, Mapping) or part not in node:
            raise AqmlabError(f"the summary has no key {path}")
        node = node[part]
    if node is None:
        node = empty
    if node is None:
        name = path.partition("@")[0]  # behind it stands the hash of a metric of one's own
        raise AqmlabError(f"the summary's {name} is empty: nothing was measured")
    return float(node)


def total(terms: Iterable[Term], summary: Mapping[str, Any]) -> float:
    """The sum of some terms in one run."""
    return sum(term.value(summary) for term in terms)


@dataclass(frozen=True)
class Tolerance:
    """How far ours may lie from the published number; one satisfied bound is enough."""

    relative: float | None = None
    """Largest difference as a fraction of the published number."""
    absolute: float | None = None
    """Largest difference in the column's unit."""
    rank: float | None = None
    """Of a percentile, where the distribution is flat: largest difference of ranks, in points."""

    def bound(self, published: float) -> float:
        """The largest difference from a published number."""
        relative = 0.0 if self.relative is None else self.relative * abs(published)
        return max(relative, self.absolute or 0.0)

    def admits(self, ours: float, published: float) -> bool:
        """Whether ours is close enough."""
        return abs(ours - published) <= self.bound(published) + SLACK

    def __str__(self) -> str:
        parts = [] if self.relative is None else [f"±{100 * self.relative:g} %"]
        if self.absolute is not None:
            parts.append(f"±{self.absolute:g}")
        if self.rank is not None:
            parts.append(f"±{self.rank:g} points of rank")
        return " or ".join(parts)


@dataclass(frozen=True)
class Percentile:
    """What a share of a class's responses, or of its connections, takes at most."""

    what: Literal["response", "flow"]
    """Response times, or durations of connections."""
    traffic_class: str | None
    """None: all classes together."""
    rank: float
    """The share, in per cent."""

    @classmethod
    def named(cls, key: str) -> Percentile:
        """The percentile that a key of ``summary.json`` is."""
        found = _PERCENTILE.fullmatch(key)
        if found is None:
            raise ValueError(f"{key} is no percentile such as responses.all.p50_s: it has no rank")
        what, name, rank = found.groups()
        return cls(
            "response" if what == "responses" else "flow",
            None if name == "all" else name,
            float(rank),
        )


@dataclass(frozen=True)
class Rank:
    """Where a published percentile lies among ours of one run."""

    at: float
    """Share of ours that took at most the published time, in per cent."""
    span_s: float
    """What the tolerance of rank is in time: in our distribution, from the rank half of it below
    that share to the rank half of it above."""
