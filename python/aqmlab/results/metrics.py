"""Short names for the numbers of a summary that people ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from aqmlab.errors import AqmlabError

if TYPE_CHECKING:
    pass

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


from aqmlab._util.words import nearest

FORWARD = "links.bottleneck.forward"

METRICS: Mapping[str, str] = {
    "loss": f"{FORWARD}.loss_rate",
    "marked": f"{FORWARD}.mark_rate",
    "throughput": f"{FORWARD}.throughput_bps",
    "utilization": f"{FORWARD}.utilization",
    "queue": f"{FORWARD}.queue_mean_packets",
    "delay": f"{FORWARD}.queue_mean_s",
    "responses": "responses.all.count",
    "mean": "responses.all.mean_s",
    **{f"p{rank}": f"responses.all.p{rank}_s" for rank in (10, 25, 50, 75, 90, 95, 99)},
    **{f"le_{limit}s": f"responses.all.le_{limit}s" for limit in (1, 2, 3)},
    "gt_3s": "responses.all.gt_3s",
    "goodput": "flows.all.goodput_bps",
    "fairness": "flows.all.fairness_jain",
}
"""Keys of ``summary.json`` by short name: the forward bottleneck, all classes together."""


def metric_key(name: str) -> str:
    """The key of a metric, given by its short name or in full, such as ``responses.web.p50_s``."""
    if name in METRICS:
        return METRICS[name]
    if re.fullmatch(r"(links|responses|flows)(\.[\w -]+)+", name):
        return name
    raise AqmlabError(
        f'there is no metric "{name}"{nearest(name, METRICS)}; possible are {", ".join(METRICS)}, '
        "and keys of summary.json such as responses.web.p50_s"
    )


LEFT_OUT = ("scenario", "seed", "version")
"""Keys of a summary that are no results: what made the run."""


def flattened(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """The numbers of a summary by their path, such as ``responses.all.p50_s``."""
    return dict(_leaves({key: value for key, value in summary.items() if key not in LEFT_OUT}, ""))


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
