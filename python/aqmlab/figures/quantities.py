"""Numbers of runs as figures show them: words, unit, values by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.figures.findings import Values
from aqmlab.results.configurations import Configuration, chosen_links
from aqmlab.results.directions import placed
from aqmlab.results.links import LinkDirection
from aqmlab.results.metrics import SHORT_NAMES, bounds_of, described_in, metric_key
from aqmlab.results.statistics import Estimate, Floats, estimate

__all__ = ["Quantity", "by_class", "of_link", "quantity", "usual"]


_LINK_NAMES = {
    name: key.rpartition(".")[2] for name, key in SHORT_NAMES.items() if key.startswith("links.")
}


@dataclass(frozen=True)
class Quantity:
    """A number of ``summary.json``."""

    key: str
    """Its path."""
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
        label = self.label[0].upper() + self.label[1:]
        return f"{label} ({self.unit})" if self.unit else label

    @property
    def words(self) -> str:
        """What it is, for a sentence."""
        return f"{self.label} {self.place}".strip()

    def values(self, entry: Configuration) -> Values:
        """Its values in a entry's runs, where it was measured."""
        found = entry.group.values(self.key)
        return {seed: self.scale * value for seed, value in found.items()}

    def estimate(self, entry: Configuration) -> Estimate | None:
        """Its mean over the seeds; None if no run measured it."""
        found = list(self.values(entry).values())
        return self.of_values(found) if found else None

    def of_values(self, values: Sequence[float] | Floats) -> Estimate:
        """The mean of some of its values, one for each seed."""
        low, high = bounds_of(self.key)
        return estimate(values, bounds=(self.scale * low, self.scale * high))

    def measured(self, found: Sequence[Configuration]) -> list[Configuration]:
        """The configurations that measured it; an error if none did."""
        known = [entry for entry in found if self.values(entry)]
        if not known:
            raise AqmlabError(f"no run measured {self.key}; `aqmlab show` lists what there is")
        return known


def quantity(name: str, found: Sequence[Configuration], link: str | None = None) -> Quantity:
    """A metric by its short name or its key.

    Short names of links, such as ``delay``, are of the busiest loaded direction of the runs.
    """
    if name in _LINK_NAMES:
        return of_link(_LINK_NAMES[name], chosen_links(found, link)[0], found[0].runs[0].scenario)
    key = metric_key(name)
    section, *middle, last = key.split(".")
    label, unit, scale = _declared(section, last)
    place = " ".join(middle)
    where = {"all": "", "": ""}.get(place, f"of {place}")
    if section == "links":
        where = placed(LinkDirection(*middle), found[0].runs[0].scenario)
    elif section == "responses" and last.startswith(("p", "m")):
        label = _LONG.get(last, f"{label} response time")
    return Quantity(key, _lower(label), where, unit, scale)


def usual(metric: str | None, found: Sequence[Configuration], link: str | None = None) -> Quantity:
    """A metric; by default the median response time, without responses the mean queueing delay."""
    if metric is not None:
        return quantity(metric, found, link)
    times = quantity("p50", found, link)
    served = any(times.values(entry) for entry in found)
    return times if served else quantity("delay", found, link)


def by_class(metric: str | None, found: Sequence[Configuration]) -> dict[str, Quantity]:
    """A metric of each class of traffic that has measured it, maybe of none.

    The default is the median response time, or goodput where no class has responses.
    """
    for name in [metric] if metric else ["p50", "goodput"]:
        key = SHORT_NAMES.get(name) or metric_key(name)
        section, last = key.partition(".")[0], key.rpartition(".")[2]
        if section not in ("responses", "flows"):
            raise AqmlabError(
                f"metric: found {name}, which is of links; expected one of classes, such as p95"
            )
        known = dict.fromkeys(one for entry in found for one in entry.runs[0].classes)
        of = {one: quantity(f"{section}.{one}.{last}", found) for one in known}
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


def of_link(key: str, at: LinkDirection, scenario: Mapping[str, Any]) -> Quantity:
    """A number of one direction of a link; times are in milliseconds."""
    label, unit, scale = _declared("links", key)
    if key.startswith("sojourn_"):
        rank = key.removeprefix("sojourn_").removesuffix("_s")
        label = "mean queueing delay" if rank == "mean" else f"{rank} of the queueing delay"
        unit, scale = "ms", 1e3
    full = f"links.{at[0]}.{at[1]}.{key}"
    return Quantity(full, _lower(label), placed(at, scenario), unit, scale)


def _lower(label: str) -> str:
    """A label inside a sentence; names keep their capitals."""
    first = label.split(" ", 1)[0]
    return (
        label
        if first[1:].lower() != first[1:] or first == "Jain's"
        else label[0].lower() + label[1:]
    )


def _declared(section: str, key: str) -> tuple[str, str, float]:
    """Label, unit and factor of a metric; the key itself where nothing is declared."""
    about = described_in(section, key)
    return (key, "", 1.0) if about is None else (about.label, about.unit, about.scale)
