"""Which queues matter: the directions of links that carry load, drop or mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

__all__ = [
    "BUSY",
    "LOAD_KEYS",
    "LinkDirection",
    "Measured",
    "is_loaded",
    "links_of",
    "loaded_links",
    "main_link",
]


BUSY = 0.2
"""A direction that is busy for a larger share of the measured time is loaded."""


LOAD_KEYS = ("utilization", "loss_rate", "mark_rate", "sojourn_mean_s")
"""What shows how loaded a direction is."""


class Measured(Protocol):
    """A run, or whatever else has a summary."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """``summary.json``."""


class LinkDirection(NamedTuple):
    """One direction of a link, which has a queue of its own."""

    link: str
    """Name of the link, such as ``bottleneck``."""
    direction: str
    """``forward`` (of the bottleneck: from the servers to the clients) or ``reverse``."""

    def __str__(self) -> str:
        """Both names; what people read is in :mod:`aqmlab.results.directions`."""
        return f"{self.link} {self.direction}"

    @property
    def name(self) -> str:
        """What names of metrics call it: of the bottleneck its direction says enough."""
        return self.direction if self.link == "bottleneck" else f"{self.link}.{self.direction}"

    @property
    def path(self) -> tuple[str, str, str]:
        """Where a summary describes it."""
        return ("links", self.link, self.direction)


def links_of(run: Measured) -> dict[LinkDirection, Mapping[str, Any]]:
    """What a run measured of every direction of every link, in the order of its summary."""
    return {
        LinkDirection(link, direction): values
        for link, directions in run.summary.get("links", {}).items()
        for direction, values in directions.items()
    }


def is_loaded(values: Mapping[str, Any]) -> bool:
    """Whether a direction is busy for more than :data:`BUSY` of the time, or drops or marks.

    Args:
        values: what a summary says of the direction.
    """
    signals = ("loss_rate", "mark_rate")
    return (values.get("utilization") or 0.0) > BUSY or any(values.get(key) for key in signals)


def loaded_links(runs: Sequence[Measured]) -> list[LinkDirection]:
    """The directions that are loaded in any of the runs, in the order of their summaries.

    Where none is, the busiest one; empty for runs without links.
    """
    found = [at for run in runs for at, values in links_of(run).items() if is_loaded(values)]
    return list(dict.fromkeys(found)) or _by_load(runs)[:1]


def main_link(runs: Sequence[Measured]) -> LinkDirection:
    """The direction with the most load over all of the runs: it is busy for longest.

    Of equally busy ones it is that whose packets wait longest, then the first.
    """
    return _by_load(runs)[0]


def _by_load(runs: Sequence[Measured]) -> list[LinkDirection]:
    """Every direction, the most loaded one first."""
    load: dict[LinkDirection, tuple[float, float]] = {}
    for at, values in (pair for run in runs for pair in links_of(run).items()):
        busy, wait = load.get(at, (0.0, 0.0))
        load[at] = (
            busy + (values.get("utilization") or 0.0),
            wait + (values.get("sojourn_mean_s") or 0.0),
        )
    return sorted(load, key=lambda at: load[at], reverse=True)
