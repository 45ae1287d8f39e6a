"""Numbers of runs as figures show them: words, unit, values by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab._util.words import capital
from aqmlab.errors import AqmlabError
from aqmlab.figures.findings import Values
from aqmlab.results.configurations import Configuration, chosen_links
from aqmlab.results.directions import placed
from aqmlab.results.links import LinkDirection
from aqmlab.results.metrics import ALL
from aqmlab.results.quantity import Quantity
from aqmlab.results.statistics import Estimate, Floats, estimate

__all__ = ["Plotted", "by_class", "of_link", "quantity", "usual"]


@dataclass(frozen=True)
class Plotted:
    """A number of runs as figures show it."""

    number: Quantity
    label: str
    """What it is."""
    place: str
    """Of what it is: a link, a class; empty: of all."""
    unit: str
    scale: float
    """What turns the summary's number into the unit."""

    @property
    def title(self) -> str:
        """What it is, for an axis; the subtitle says of what."""
        own = self.number.own is not None
        label = self.label if own else capital(self.label)
        return f"{label} ({self.unit})" if self.unit else label

    @property
    def words(self) -> str:
        """What it is, for a sentence."""
        return f"{self.label} {self.place}".strip()

    def values(self, entry: Configuration) -> Values:
        """Its values in a entry's runs, where it was measured."""
        found = entry.group.values(self.number.key)
        return {seed: self.scale * value for seed, value in found.items()}

    def estimate(self, entry: Configuration) -> Estimate | None:
        """Its mean over the seeds; None if no run measured it."""
        found = list(self.values(entry).values())
        return self.of_values(found) if found else None

    def of_values(self, values: Sequence[float] | Floats) -> Estimate:
        """The mean of some of its values, one for each seed."""
        low, high = self.number.bounds
        return estimate(values, bounds=(self.scale * low, self.scale * high))

    def measured(self, found: Sequence[Configuration]) -> list[Configuration]:
        """The configurations that measured it; an error if none did."""
        known = [entry for entry in found if self.values(entry)]
        if not known:
            raise AqmlabError(
                f"no run measured {self.number.key}; `aqmlab show` lists what there is"
            )
        return known


def quantity(name: str, found: Sequence[Configuration], link: str | None = None) -> Plotted:
    """A metric by its short name or its key.

    Short names of links, such as ``delay``, are of the busiest loaded direction of the runs.
    """
    asked = Quantity.read(name)
    if asked.is_of_every_link:
        return of_link(asked.last, chosen_links(found, link)[0], found[0].runs[0].scenario)
    place, label = " ".join(asked.key.split(".")[1:-1]), asked.label
    where = "" if place == ALL else f"of {place}"
    if asked.own is not None:
        return Plotted(asked, asked.label, "", asked.unit, asked.scale)
    if asked.section == "links":
        where = placed(LinkDirection(*asked.place.split(".")), found[0].runs[0].scenario)
    elif asked.section == "responses" and asked.last.startswith(("p", "m")):
        label = _LONG.get(asked.last, f"{label} response time")
    return Plotted(asked, _lower(label), where, asked.unit, asked.scale)


def usual(metric: str | None, found: Sequence[Configuration], link: str | None = None) -> Plotted:
    """A metric; by default the median response time, without responses the mean queueing delay."""
    if metric is not None:
        return quantity(metric, found, link)
    times = quantity("p50", found, link)
    served = any(times.values(entry) for entry in found)
    return times if served else quantity("delay", found, link)


def by_class(metric: str | None, found: Sequence[Configuration]) -> dict[str, Plotted]:
    """A metric of each class of traffic that has measured it, maybe of none.

    The default is the median response time, or goodput where no class has responses.
    """
    for name in [metric] if metric else ["p50", "goodput"]:
        asked = Quantity.read(name)
        if asked.section not in ("responses", "flows"):
            raise AqmlabError(
                f"metric: found {name}, which is of links; expected one of classes, such as p95"
            )
        known = dict.fromkeys(one for entry in found for one in entry.runs[0].classes)
        of = {one: quantity(f"{asked.section}.{one}.{asked.last}", found) for one in known}
        measured = {one: q for one, q in of.items() if any(q.values(entry) for entry in found)}
        if measured:
            return measured
    return {}


_LONG = {
    "p50_s": "median response time",
    "mean_s": "mean response time",
    "max_s": "longest response time",
    **{f"p{rank}_s": f"{rank}th percentile of response times" for rank in (10, 25, 75, 90, 95, 99)},
}


def of_link(key: str, at: LinkDirection, scenario: Mapping[str, Any]) -> Plotted:
    """A number of one direction of a link; times are in milliseconds."""
    number = Quantity.read(".".join((*at.path, key)))
    label, unit, scale = number.label, number.unit, number.scale
    if key.startswith("sojourn_"):
        rank = key.removeprefix("sojourn_").removesuffix("_s")
        label = "mean queueing delay" if rank == "mean" else f"{rank} of the queueing delay"
        unit, scale = "ms", 1e3
    return Plotted(number, _lower(label), placed(at, scenario), unit, scale)


def _lower(label: str) -> str:
    """A label inside a sentence; names keep their capitals."""
    first = label.split(" ", 1)[0]
    return (
        label
        if first[1:].lower() != first[1:] or first == "Jain's"
        else label[0].lower() + label[1:]
    )
