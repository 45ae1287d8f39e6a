"""Short names for the numbers of a summary that people ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aqmlab._util.fields import nearest
from aqmlab.errors import AqmlabError

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
