"""The numbers of ``summary.json``: their keys, short names, labels, units and digits.

Every table, page and figure takes what it says of a number from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError

__all__ = [
    "FLOWS",
    "FORWARD",
    "LINK",
    "RESPONSES",
    "SHORT_NAMES",
    "Metric",
    "chosen",
    "described",
    "flattened",
    "look_up",
    "metric_key",
]


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

    def shown(self, value: float, sign: str = "") -> str:
        """A value of the summary in the metric's unit."""
        return f"{self.scale * value:{sign},.{self.decimals}f}"


LINK = (
    Metric("arrived_packets", "arrived", "packets", short="arrived"),
    Metric("loss_rate", "loss", "%", 100, 2, "loss %"),
    Metric("mark_rate", "marked", "%", 100, 2, "marked %"),
    Metric("throughput_bps", "throughput", "Mbit/s", 1e-6, 2, "Mbit/s"),
    Metric("utilization", "utilization", "%", 100, 1, "busy %"),
    Metric("queue_mean_packets", "mean queue", "packets", 1, 1, "queue mean"),
    Metric("queue_p95_packets", "95 % queue", "packets", short="p95"),
    Metric("queue_max_packets", "largest queue", "packets", short="max"),
    Metric("sojourn_mean_s", "mean queue", "ms", 1000, 1, "delay ms"),
)
"""Of one direction of a link."""
RESPONSES = (
    Metric("started", "started"),
    Metric("count", "ended", short="responses"),
    Metric("mean_s", "mean", "s", 1, 3, "mean s"),
    Metric("p10_s", "10 %", "s", 1, 3),
    Metric("p25_s", "25 %", "s", 1, 3),
    Metric("p50_s", "median", "s", 1, 3, "p50 s"),
    Metric("p75_s", "75 %", "s", 1, 3),
    Metric("p90_s", "90 %", "s", 1, 3, "p90 s"),
    Metric("p95_s", "95 %", "s", 1, 3),
    Metric("p99_s", "99 %", "s", 1, 3, "p99 s"),
    Metric("max_s", "slowest", "s", 1, 1, "max s"),
    Metric("le_1s", "≤ 1 s", "%", 100, 1, "<= 1 s %"),
    Metric("le_2s", "≤ 2 s", "%", 100, 1, "<= 2 s %"),
    Metric("le_3s", "≤ 3 s", "%", 100, 1, "<= 3 s %"),
    Metric("gt_3s", "> 3 s", "%", 100, 1, "> 3 s %"),
)
"""Of the responses of a class."""
FLOWS = (
    Metric("count", "connections", short="connections"),
    Metric("goodput_bps", "goodput", "Mbit/s", 1e-6, 3, "goodput Mbit/s"),
    Metric("fairness_jain", "Jain's index", "", 1, 3, "Jain"),
    Metric("retransmitted_syn", "SYN sent again", short="SYN again"),
    Metric("retransmitted_fin", "FIN sent again", short="FIN again"),
    Metric("retransmitted_data", "data sent again", short="data again"),
    Metric("timeouts", "timeouts", short="timeouts"),
)
"""Of the connections of a class."""

FORWARD = ("links", "bottleneck", "forward")
"""Where a summary describes the queue of the responses."""
_LINK_NAMES = {
    "loss": "loss_rate",
    "marked": "mark_rate",
    "throughput": "throughput_bps",
    "utilization": "utilization",
    "queue": "queue_mean_packets",
    "delay": "sojourn_mean_s",
}
_RESPONSE_NAMES = {
    "responses": "count",
    "mean": "mean_s",
    **{f"p{rank}": f"p{rank}_s" for rank in (10, 25, 50, 75, 90, 95, 99)},
    **{f"le_{limit}s": f"le_{limit}s" for limit in (1, 2, 3)},
    "gt_3s": "gt_3s",
}
_FLOW_NAMES = {"goodput": "goodput_bps", "fairness": "fairness_jain"}
SHORT_NAMES: Mapping[str, str] = {
    **{name: ".".join((*FORWARD, key)) for name, key in _LINK_NAMES.items()},
    **{name: f"responses.all.{key}" for name, key in _RESPONSE_NAMES.items()},
    **{name: f"flows.all.{key}" for name, key in _FLOW_NAMES.items()},
}
"""Keys of ``summary.json`` by short name: the forward bottleneck, all classes together."""


def metric_key(name: str) -> str:
    """The key of a metric, given by its short name or in full, such as ``responses.web.p50_s``."""
    if name in SHORT_NAMES:
        return SHORT_NAMES[name]
    if re.fullmatch(r"(links|responses|flows)(\.[\w -]+)+", name):
        return name
    raise AqmlabError(
        f'there is no metric "{name}"{nearest(name, SHORT_NAMES)}; possible are '
        f"{', '.join(SHORT_NAMES)}, and keys of summary.json such as responses.web.p50_s"
    )


def chosen(metrics: Sequence[Metric], *keys: str) -> list[Metric]:
    """Some of a table's metrics, in the order of the keys."""
    by_key = {metric.key: metric for metric in metrics}
    return [by_key[key] for key in keys]


def described(name: str) -> Metric | None:
    """What is known of a metric, given by its short name or its key; None: nothing."""
    path = SHORT_NAMES.get(name, name).split(".")
    tables = {"links": LINK, "responses": RESPONSES, "flows": FLOWS}
    found = (metric for metric in tables.get(path[0], RESPONSES) if metric.key == path[-1])
    return next(found, None)


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
        node = node.get(part) if isinstance(node, Mapping) else None
    return node
