"""The numbers of ``summary.json``: their keys, short names, labels, units and digits.

Every table, page and figure takes what it says of a number from here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab import _native
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.bounds import UNBOUNDED, Bounds

__all__ = [
    "ALL",
    "DATAGRAMS",
    "FLOWS",
    "LINK",
    "QUALITY",
    "RENAMED",
    "RESPONSES",
    "SHORT_NAMES",
    "TRANSFERS",
    "Metric",
    "bounds_of",
    "chosen",
    "compared",
    "described",
    "flattened",
    "is_of_every_link",
    "known_keys",
    "look_up",
    "metric_key",
    "metric_keys",
    "of_version",
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
        return _BOUNDS.get(self.key, (0.0, 1.0 if self.is_share else math.inf))

    def of(self, values: Mapping[str, Any]) -> float | None:
        """Its value among those of a class or of a link; None if it was not measured."""
        if self.unless and values.get(self.unless):
            return None
        return values.get(self.key)

    def shown(self, value: float, sign: str = "") -> str:
        """A value of the summary in the metric's unit."""
        return f"{self.scale * value:{sign},.{self.decimals}f}"


_BOUNDS: Mapping[str, Bounds] = {
    "fairness_jain": (0.0, 1.0),
    "mos_mean": (1.0, 4.5),
    "mos_min": (1.0, 4.5),
    "r_factor_mean": (0.0, 100.0),
}
"""Of metrics whose unit does not imply them."""


def _declared() -> dict[str, dict[str, Any]]:
    """What the engine says of its metrics: by section, then by the last part of the key."""
    found: dict[str, dict[str, Any]] = {}
    for section in json.loads(_native.result_schema())["sections"]:
        named = found.setdefault(section["key"].partition(".")[0], {})
        for metric in section["metrics"]:
            named.setdefault(metric["key"].rpartition(".")[2], metric)
    return found


_DECLARED = _declared()


def _metric(section: str, key: str, decimals: int = 0, short: str = "") -> Metric:
    """A metric as the engine declares it, shown with so many decimals."""
    about = _DECLARED[section][key]
    unit = about["shown_unit"]
    unit = "" if unit == "1" else unit
    return Metric(key, about["label"], unit, about["scale"], decimals, short)


LINK = (
    _metric("links", "arrived_packets", short="arrived"),
    _metric("links", "loss_rate", 2, "loss %"),
    _metric("links", "mark_rate", 2, "marked %"),
    _metric("links", "throughput_bps", 2, "Mbit/s"),
    _metric("links", "utilization", 1, "busy %"),
    _metric("links", "queue_mean_packets", 1, "queue mean"),
    _metric("links", "queue_p95_packets", short="queue p95"),
    _metric("links", "queue_max_packets", short="queue max"),
    _metric("links", "sojourn_mean_s", 1, "delay mean ms"),
    _metric("links", "sojourn_p50_s", 1),
    _metric("links", "sojourn_p99_s", 1, "delay p99 ms"),
    _metric("links", "sojourn_max_s", 1),
)
"""Of one direction of a link."""
RESPONSES = (
    _metric("responses", "started"),
    _metric("responses", "count", short="responses"),
    _metric("responses", "mean_s", 3, "mean s"),
    _metric("responses", "p10_s", 3),
    _metric("responses", "p25_s", 3),
    _metric("responses", "p50_s", 3, "p50 s"),
    _metric("responses", "p75_s", 3),
    _metric("responses", "p90_s", 3, "p90 s"),
    _metric("responses", "p95_s", 3),
    _metric("responses", "p99_s", 3, "p99 s"),
    _metric("responses", "max_s", 1, "max s"),
    _metric("responses", "le_1s", 1, "<= 1 s %"),
    _metric("responses", "le_2s", 1, "<= 2 s %"),
    _metric("responses", "le_3s", 1, "<= 3 s %"),
    _metric("responses", "gt_3s", 1, "> 3 s %"),
)
"""Of the responses of a class."""
FLOWS = (
    _metric("flows", "count", short="connections"),
    _metric("flows", "still_open", short="open"),
    _metric("flows", "goodput_bps", 3, "goodput Mbit/s"),
    _metric("flows", "fairness_jain", 3, "Jain"),
    _metric("flows", "retransmitted_syn", short="SYN again"),
    _metric("flows", "retransmitted_fin", short="FIN again"),
    _metric("flows", "retransmitted_data", short="data again"),
    _metric("flows", "closed_timeouts", short="timeouts"),
    _metric("flows", "span_retransmitted_data", short="data again in span"),
    _metric("flows", "span_timeouts", short="timeouts in span"),
    _metric("flows", "rtt_min_s", 1),
    _metric("flows", "rtt_p50_s", 1, "RTT p50 ms"),
    _metric("flows", "rtt_p95_s", 1, "RTT p95 ms"),
    _metric("flows", "rtt_increase_p95_s", 1),
    _metric("flows", "cwnd_mean_bytes", 1, "cwnd kB"),
)
"""Of the connections of a class."""
DATAGRAMS = (
    _metric("flows", "datagrams_sent", short="sent"),
    _metric("flows", "datagram_loss_rate", 2, "loss %"),
    _metric("flows", "datagram_delay_p50_s", 1, "delay p50 ms"),
    _metric("flows", "datagram_delay_p95_s", 1, "delay p95 ms"),
    _metric("flows", "datagram_delay_p99_s", 1, "delay p99 ms"),
    _metric("flows", "datagram_jitter_s", 2, "jitter ms"),
    _metric("flows", "datagram_ipdv_p99_s", 2, "IPDV p99 ms"),
    _metric("flows", "datagram_gap_max_s", 1, "longest gap ms"),
    _metric("flows", "datagram_loss_run_max", short="lost in a row"),
)
"""Of the datagrams of a class."""
TRANSFERS = (
    _metric("flows", "goodput_bps", 3, "goodput Mbit/s"),
    replace(_metric("flows", "fairness_jain", 3, "Jain"), unless="datagrams_sent"),
    replace(_metric("flows", "span_timeouts", short="timeouts"), unless="datagrams_sent"),
    _metric("flows", "rtt_p50_s", 1, "RTT p50 ms"),
    _metric("flows", "rtt_p95_s", 1, "RTT p95 ms"),
    _metric("flows", "datagram_loss_rate", 2, "loss %"),
    _metric("flows", "datagram_delay_p50_s", 1, "delay p50 ms"),
    _metric("flows", "datagram_delay_p95_s", 1, "delay p95 ms"),
    _metric("flows", "datagram_jitter_s", 2, "jitter ms"),
)
"""Of a class that gets no responses: bulk transfers, or datagrams."""

QUALITY = (
    _metric("quality", "page_load_p50_s", 2, "page load p50 s"),
    _metric("quality", "page_load_p75_s", 2),
    _metric("quality", "page_load_p95_s", 2, "page load p95 s"),
    _metric("quality", "throughput_p5_bps", 2, "user p5 Mbit/s"),
    _metric("quality", "throughput_p50_bps", 2, "user p50 Mbit/s"),
    _metric("quality", "throughput_p95_bps", 2),
    _metric("quality", "stall_ratio", 2, "stalled %"),
    _metric("quality", "stalls"),
    _metric("quality", "startup_delay_mean_s", 2, "start-up s"),
    _metric("quality", "mos_mean", 2, "MOS"),
    _metric("quality", "mos_min", 2, "lowest MOS"),
    _metric("quality", "r_factor_mean", 1),
    _metric("quality", "mouth_to_ear_mean_s", 1, "mouth to ear ms"),
    _metric("quality", "playout_loss_rate", 2, "lost or late %"),
    _metric("quality", "frame_delay_p50_s", 1, "frame p50 ms"),
    _metric("quality", "frame_delay_p95_s", 1),
    _metric("quality", "frame_delay_p99_s", 1, "frame p99 ms"),
    _metric("quality", "late_frame_share", 2, "late frames %"),
    _metric("quality", "freeze_ratio", 2, "frozen %"),
    _metric("quality", "bitrate_mean_bps", 2, "video Mbit/s"),
    _metric("quality", "switches_per_min", 2, "switches/min"),
    _metric("quality", "input_delay_p50_s", 1, "input p50 ms"),
    _metric("quality", "input_delay_p95_s", 1),
    _metric("quality", "input_delay_p99_s", 1, "input p99 ms"),
    _metric("quality", "input_gt_60ms", 2),
    _metric("quality", "input_gt_100ms", 2, "> 100 ms %"),
)
"""Of the applications of a class: what its users get."""

_LINK_NAMES = {
    "loss": "loss_rate",
    "marked": "mark_rate",
    "throughput": "throughput_bps",
    "utilization": "utilization",
    "queue": "queue_mean_packets",
    "delay": "sojourn_mean_s",
    **{
        f"delay_{rank}": f"sojourn_{rank}_s" for rank in ("p50", "p90", "p95", "p99", "p999", "max")
    },
}
_RESPONSE_NAMES = {
    "responses": "count",
    "mean": "mean_s",
    **{f"p{rank}": f"p{rank}_s" for rank in (10, 25, 50, 75, 90, 95, 99)},
    **{f"le_{limit}s": f"le_{limit}s" for limit in (1, 2, 3)},
    "gt_3s": "gt_3s",
}
_FLOW_NAMES = {
    "goodput": "goodput_bps",
    "fairness": "fairness_jain",
    "rtt": "rtt_mean_s",
    "srtt": "srtt_mean_s",
    **{f"rtt_{rank}": f"rtt_{rank}_s" for rank in ("min", "p50", "p95", "p99", "idle")},
    **{f"rtt_increase_{rank}": f"rtt_increase_{rank}_s" for rank in ("p50", "p95")},
    "cwnd": "cwnd_mean_bytes",
    "datagram_loss": "datagram_loss_rate",
    "datagram_delay": "datagram_delay_mean_s",
    **{f"datagram_delay_{rank}": f"datagram_delay_{rank}_s" for rank in ("p50", "p95", "p99")},
    "jitter": "datagram_jitter_s",
    **{f"ipdv_{rank}": f"datagram_ipdv_{rank}_s" for rank in ("p50", "p95", "p99")},
    "gap": "datagram_gap_max_s",
}
_QUALITY_NAMES = {
    **{f"page_load_{rank}": f"page_load_{rank}_s" for rank in ("p50", "p75", "p95")},
    **{f"user_throughput_{rank}": f"throughput_{rank}_bps" for rank in ("p5", "p50", "p95")},
    "stall_ratio": "stall_ratio",
    "bitrate": "bitrate_mean_bps",
    "mos": "mos_mean",
    "mos_min": "mos_min",
    **{f"frame_delay_{rank}": f"frame_delay_{rank}_s" for rank in ("p50", "p95", "p99")},
    "freeze_ratio": "freeze_ratio",
    **{f"input_delay_{rank}": f"input_delay_{rank}_s" for rank in ("p50", "p95", "p99")},
}
_CLASS_NAMES: Mapping[str, tuple[str, str]] = {
    **{name: ("responses", key) for name, key in _RESPONSE_NAMES.items()},
    **{name: ("flows", key) for name, key in _FLOW_NAMES.items()},
}
SHORT_NAMES: Mapping[str, str] = {
    **{name: f"links.LINK.DIRECTION.{key}" for name, key in _LINK_NAMES.items()},
    **{name: f"{part}.all.{key}" for name, (part, key) in _CLASS_NAMES.items()},
    **{name: f"quality.CLASS.{key}" for name, key in _QUALITY_NAMES.items()},
}
"""Keys of ``summary.json`` by short name.

``p50`` is of all classes together, ``p50.web`` of one. ``queue.reverse`` is of the bottleneck's
reverse direction, ``queue.core-1.forward`` of another link's; ``queue`` alone stands for every
loaded direction (see :func:`metric_keys`). ``mos.calls`` is of the class ``calls``: what users
of an application get is of one class.
"""


RENAMED: Mapping[str, str] = json.loads(_native.result_schema())["renamed"]
"""Keys of ``summary.json`` of version 1 of the results, and what they are called."""


def metric_key(name: str) -> str:
    """The key of a metric, given by its short name or in full, such as ``responses.web.p50_s``."""
    if re.fullmatch(r"(links|responses|flows|quality)(\.[\w -]+){2,}", name):
        stem, _, last = name.rpartition(".")
        if (renamed := RENAMED.get(last)) is not None:
            raise AqmlabError(f'"{name}" is called {stem}.{renamed}')
        return name
    short, dot, place = name.partition(".")
    if short in _CLASS_NAMES:
        part, key = _CLASS_NAMES[short]
        return f"{part}.{place or 'all'}.{key}"
    if short in _QUALITY_NAMES:
        if not place:
            raise AqmlabError(
                f'"{name}" does not say of which class of traffic; {short}.CLASS is of one'
            )
        return f"quality.{place}.{_QUALITY_NAMES[short]}"
    if short in _LINK_NAMES and dot:
        link, _, direction = place.rpartition(".")
        if direction in _DIRECTIONS:
            return f"links.{link or 'bottleneck'}.{direction}.{_LINK_NAMES[short]}"
    if short in _LINK_NAMES:
        raise AqmlabError(
            f'"{name}" does not say of which link and direction; {short}.forward and '
            f"{short}.reverse are of the bottleneck, {short}.LINK.forward is of another link"
        )
    raise AqmlabError(
        f'there is no metric "{name}"{nearest(name, SHORT_NAMES)}; possible are '
        f"{', '.join(SHORT_NAMES)}, and keys of summary.json such as responses.web.p50_s"
    )


_DIRECTIONS = ("forward", "reverse")


def known_keys(section: str) -> list[str]:
    """What the engine measures of links, responses, flows or quality: last parts of keys."""
    return list(_DECLARED[section])


def is_of_every_link(name: str) -> bool:
    """Whether it is the short name of a metric of links that names none of them."""
    return name in _LINK_NAMES


def metric_keys(name: str, loaded: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The keys that a name stands for, by names that say which link and direction they are of.

    Args:
        name: a short name or a key.
        loaded: the loaded links and their directions, for which a name without them stands.
    """
    if not is_of_every_link(name):
        return {name: metric_key(name)}
    places = (
        direction if link == "bottleneck" else f"{link}.{direction}" for link, direction in loaded
    )
    return {f"{name}.{place}": metric_key(f"{name}.{place}") for place in places}


def chosen(metrics: Sequence[Metric], *keys: str) -> list[Metric]:
    """Some of a table's metrics, in the order of the keys."""
    by_key = {metric.key: metric for metric in metrics}
    return [by_key[key] for key in keys]


def compared(key: str) -> Metric:
    """What is known of a number that comparisons are about."""
    [metric, *_] = chosen((*TRANSFERS, *RESPONSES, *QUALITY), key)
    return metric


def described(name: str) -> Metric | None:
    """What is known of a metric, given by its short name or its key; None: nothing."""
    path = (SHORT_NAMES.get(name) or metric_key(name)).split(".")
    tables = {
        "links": LINK,
        "responses": RESPONSES,
        "flows": (*FLOWS, *DATAGRAMS),
        "quality": QUALITY,
    }
    found = (metric for metric in tables.get(path[0], RESPONSES) if metric.key == path[-1])
    if (metric := next(found, None)) is not None:
        return metric
    if path[-1] in _DECLARED.get(path[0], {}):
        return _metric(path[0], path[-1], decimals=3)
    return None


def bounds_of(key: str) -> Bounds:
    """The least and the largest value of a metric, given by its key.

    Numbers that the engine does not declare may have any.
    """
    section, *_, last = key.split(".")
    return _metric(section, last).bounds if last in _DECLARED.get(section, {}) else UNBOUNDED


_LEFT_OUT = ("scenario", "seed", "version")
"""Keys of a summary that are no results: what made the run."""


def flattened(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """The numbers of a summary by their path, such as ``responses.all.p50_s``."""
    return dict(_leaves({key: summary[key] for key in summary if key not in _LEFT_OUT}, ""))


def _leaves(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, float | None]]:
    for key, value in node.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{key}.")
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield f"{path}{key}", value


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
