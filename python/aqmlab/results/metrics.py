"""The numbers of ``summary.json``: their keys, short names, labels, units and digits.

The engine declares them. Every table, page and figure looks up here what it says of a number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab import _native
from aqmlab.results.bounds import UNBOUNDED, Bounds
from aqmlab.results.metric_groups import grouped

__all__ = [
    "ALL",
    "DATAGRAMS",
    "FLOWS",
    "GROUPED",
    "LINK",
    "OWN",
    "PROGRAM",
    "QUALITY",
    "RENAMED",
    "RESPONSES",
    "SHORT_NAMES",
    "TRANSFERS",
    "Metric",
    "bounds_of",
    "chosen",
    "compared",
    "described_in",
    "direction",
    "flattened",
    "known_keys",
    "look_up",
    "number",
    "of_version",
    "unit_in_summary",
]


ALL = "all"
"""Name of all classes of traffic together."""


@dataclass(frozen=True)
class Metric:
    """A number of a summary and how it is shown."""

    key: str
    """Last part of its path in ``summary.json``."""
    label: str
    unit: str = ""
    """The unit in which it is shown; empty: it has none."""
    scale: float = 1.0
    """What turns the summary's number into that unit."""
    decimals: int = 0
    short: str = ""
    """Head of its column on a terminal; empty: it is not shown there."""
    unless: str = ""
    """Key of a count; where it is not zero, the metric means nothing."""
    within: Bounds | None = None
    """The least and the largest value of the summary's number, if its unit does not imply them."""

    @property
    def head(self) -> str:
        """Label and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def change_head(self) -> str:
        """Label and unit of a change: a change of a share is one in points."""
        unit = "points" if self.is_share else self.unit
        return f"{self.label} ({unit})" if unit else self.label

    @property
    def is_share(self) -> bool:
        """Whether it is a share of something."""
        return self.unit == "%"

    @property
    def bounds(self) -> Bounds:
        """The least and the largest value of the summary's number; no metric is negative."""
        return self.within or (0.0, 1.0 if self.is_share else math.inf)

    def of(self, values: Mapping[str, Any]) -> float | None:
        """Its value among those of a class or of a link; None if it was not measured."""
        if self.unless and values.get(self.unless):
            return None
        return values.get(self.key)

    def shown(self, value: float, sign: str = "") -> str:
        """A value of the summary in the metric's unit."""
        return f"{self.scale * value:{sign},.{self.decimals}f}"

    def is_shown_as_zero(self, value: float) -> bool:
        """Whether a value rounds to zero in the metric's unit."""
        return not self.shown(value).strip("-0.,")


_SCHEMA: Mapping[str, Any] = json.loads(_native.result_schema())
"""What the engine says of its results."""


def _declared() -> dict[str, dict[str, dict[str, Any]]]:
    """What the engine says of its metrics: by section and last part of the key, in their order."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for section in _SCHEMA["sections"]:
        named = found.setdefault(section["key"].partition(".")[0], {})
        for metric in section["metrics"]:
            named.setdefault(metric["key"].rpartition(".")[2], metric)
    return {section: _in_order(named) for section, named in found.items()}


def _in_order(named: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Metrics in the order in which tables show them."""
    keys = list(named)
    for key, about in named.items():
        if after := about.get("after"):
            keys.remove(key)
            keys.insert(keys.index(after) + 1, key)
    return {key: named[key] for key in keys}


_DECLARED = _declared()


def _metric(section: str, key: str) -> Metric:
    """A metric as the engine declares it."""
    about = _DECLARED[section][key]
    unit, digits, within = about["shown_unit"], about["digits"], about["within"]
    return Metric(
        key,
        about["label"],
        "" if unit == "1" else unit,
        about["scale"],
        3 if digits is None else digits,
        about["head"],
        within=None if within is None else (within[0], within[1]),
    )


def _shown(section: str) -> tuple[Metric, ...]:
    """The metrics of a section that tables show."""
    named = _DECLARED[section].items()
    return tuple(_metric(section, key) for key, about in named if about["digits"] is not None)


def chosen(metrics: Sequence[Metric], *keys: str) -> list[Metric]:
    """Some of a table's metrics, in the order of the keys."""
    by_key = {metric.key: metric for metric in metrics}
    return [by_key[key] for key in keys]


LINK = _shown("links")
"""Of one direction of a link."""
RESPONSES = _shown("responses")
"""Of the responses of a class."""
_FLOWS = _shown("flows")
FLOWS = tuple(metric for metric in _FLOWS if not metric.key.startswith("datagram"))
"""Of the connections of a class."""
DATAGRAMS = tuple(metric for metric in _FLOWS if metric.key.startswith("datagram"))
"""Of the datagrams of a class."""
QUALITY = _shown("quality")
"""Of the applications of a class: what its users get."""


def _of_class(metric: Metric) -> Metric:
    """A metric of a class, some of which say nothing about datagrams."""
    if metric.key == "fairness_jain":
        return replace(metric, unless="datagrams_sent")
    if metric.key == "span_timeouts":
        return replace(metric, unless="datagrams_sent", short="timeouts")
    return metric


TRANSFERS = tuple(
    _of_class(metric)
    for metric in chosen(
        _FLOWS,
        "goodput_bps",
        "upload_goodput_bps",
        "fairness_jain",
        "span_timeouts",
        "rtt_p50_s",
        "rtt_p95_s",
        "datagram_loss_rate",
        "datagram_delay_p50_s",
        "datagram_delay_p95_s",
        "datagram_jitter_s",
    )
)
"""Of a class that gets no responses: bulk transfers, or datagrams."""

PROGRAM = (Metric("time_s", "Time", "s", decimals=2),)
"""Of a program on a live link: its own time, from its start to its end."""

_MORE_IS_BETTER = frozenset(
    key
    for named in _DECLARED.values()
    for key, about in named.items()
    if about.get("better") == "more"
)
"""Last parts of the keys of what users like to grow."""


@dataclass(frozen=True)
class OwnMetric(Metric):
    """A metric of one's own: a number of any size, in the unit that its definition names."""

    better: str = ""
    """``less``, ``more``, or nothing: nobody said so."""

    @property
    def is_share(self) -> bool:
        """Whether its number is a fraction that is shown in per cent: it is in its unit."""
        return False

    def shown(self, value: float, sign: str = "") -> str:
        """Four digits: nobody knows how large it is."""
        return f"{value:{sign},.4g}"

    def is_shown_as_zero(self, value: float) -> bool:
        """Whether it is zero."""
        return value == 0


OWN: dict[str, OwnMetric] = {}
"""Metrics of one's own by name, as :mod:`aqmlab.results.own_metrics` has them."""


def direction(key: str, change: float) -> str:
    """Whether a change of a number, given by the last part of its key, is better or worse.

    Nothing where nobody said what is better.
    """
    declared = "more" if key in _MORE_IS_BETTER else "less"
    wanted = OWN[key].better if key in OWN else declared
    return ("better" if (change > 0) == (wanted == "more") else "worse") if wanted else ""


_PATHS = {
    "links": "links.LINK.DIRECTION",
    "responses": "responses.all",
    "flows": "flows.all",
    "quality": "quality.CLASS",
}
"""Where the metrics of a section are whose name does not say of what they are."""
SHORT_NAMES: Mapping[str, str] = {
    about["name"]: f"{path}.{key}"
    for section, path in _PATHS.items()
    for key, about in _DECLARED[section].items()
    if about["name"]
}
"""Keys of ``summary.json`` by short name; :mod:`aqmlab.results.quantity` reads names."""


GROUPED: Mapping[str, Sequence[str]] = grouped(SHORT_NAMES)
"""The short names by what they measure."""


RENAMED: Mapping[str, str] = _SCHEMA["renamed"]
"""Keys of ``summary.json`` of version 1 of the results, and what they are called."""


def known_keys(section: str) -> list[str]:
    """What the engine measures of links, responses, flows or quality: last parts of keys."""
    return list(_DECLARED[section])


def compared(key: str) -> Metric:
    """What is known of a number that comparisons are about."""
    if key in OWN:
        return OWN[key]
    [metric, *_] = chosen((*TRANSFERS, *RESPONSES, *QUALITY, *PROGRAM, *LINK), key)
    return metric


def described_in(section: str, last: str) -> Metric | None:
    """What is known of a metric, given by the first and last part of its key; None: nothing."""
    if section == "metrics":
        return OWN.get(last)
    return _metric(section, last) if last in _DECLARED.get(section, {}) else None


def unit_in_summary(section: str, last: str) -> str:
    """The unit of a number in ``summary.json``; of a share "share", empty: it has none."""
    about = _DECLARED.get(section, {}).get(last)
    if about is None:
        return ""
    if about["shown_unit"] == "%":
        return "share"
    return "" if about["unit"] == "1" else str(about["unit"])


def bounds_of(key: str) -> Bounds:
    """The least and the largest value of a metric, given by its key.

    Numbers that the engine does not declare may have any.
    """
    section, *_, last = key.split(".")
    found = described_in(section, last)
    return UNBOUNDED if found is None else found.bounds


_LEFT_OUT = ("scenario", "seed", "version")
"""Keys of a summary that are no results: what made the run."""


def flattened(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """The numbers of a summary by their path, such as ``responses.all.p50_s``."""
    found: dict[str, float | None] = {}
    _gather({key: summary[key] for key in summary if key not in _LEFT_OUT}, "", found)
    return found


def _gather(node: Mapping[str, Any], path: str, found: dict[str, float | None]) -> None:
    """Adds the numbers below a path; thousands of runs have hundreds each."""
    for key, value in node.items():
        kind = type(value)
        if kind is float or kind is int or value is None:
            found[path + key] = value
        elif kind is dict or isinstance(value, Mapping):
            _gather(value, f"{path}{key}.", found)
        elif isinstance(value, int | float) and kind is not bool:
            found[path + key] = value


def number(summary: Mapping[str, Any], key: str) -> float | None:
    """What :func:`flattened` has at a key, found without flattening the summary."""
    return _number({name: summary[name] for name in summary if name not in _LEFT_OUT}, key)


def _number(node: Mapping[str, Any], key: str) -> float | None:
    """The number at a path. Names of classes and links may have dots."""
    if key in node:
        return flattened({"": node[key]}).get("")
    for name, inner in node.items():
        if isinstance(inner, Mapping) and key.startswith(f"{name}."):
            found = _number(inner, key[len(name) + 1 :])
            if found is not None:
                return found
    return None


def look_up(node: Any, path: Iterable[str]) -> Any:  # noqa: ANN401 - whatever JSON holds
    """What lies at a path of nested tables, or None."""
    for part in path:
        # What was read of JSON is a dict, and thousands of runs are looked into.
        node = node.get(part) if type(node) is dict or isinstance(node, Mapping) else None
    return node


def of_version(node: Any, version: int) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A summary that was written as that version of the results, with the keys of the present one.

    Version 1 differs in names alone.
    """
    if version == _native.results_version() or not isinstance(node, Mapping):
        return node
    return {RENAMED.get(key, key): of_version(value, version) for key, value in node.items()}
