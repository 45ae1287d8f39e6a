"""A capture's applications as a scenario behind any queue, and what a replay of it measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from aqmlab._util.lazy import np
from aqmlab.scenario.quantities import FRAME_BITS, time_text
from aqmlab.scenario.scenario import inline
from aqmlab.traffic.replay import sized
from aqmlab.traffic.turns import LONGEST_S, SILENT_S

if TYPE_CHECKING:
    from aqmlab.results.run import Run
    from aqmlab.traffic.inferred import Inferred, VectorFile
    from aqmlab.traffic.rates import Rate

__all__ = ["Present", "played_scenario", "replayed"]


_LEAST_BPS = 1000.0
"""A smaller load is left out."""


@dataclass(frozen=True)
class Present:
    """The queue that was there."""

    kind: str
    buffers_s: tuple[float, float]
    """The longest wait down and up, if it is drop-tail."""

    def discipline(self, side: int, rate_bps: float) -> str:
        """Of one direction, as TOML."""
        return _discipline(self.kind, self.buffers_s[side], rate_bps)


def _discipline(name: str, buffer_s: float, rate_bps: float) -> str:
    """A queue as TOML; drop-tail and RED get what the link needs."""
    chosen = sized(name, max(2, math.ceil(buffer_s * rate_bps / FRAME_BITS)))
    return chosen if chosen.startswith("{") else inline(chosen)


def played_scenario(
    found: Inferred,
    files: Sequence[VectorFile],
    queue: Present | str,
    *,
    warm_up_s: float,
    controls: tuple[str, str],
    slower: float = 1.0,
    seed: int = 1,
) -> str:
    """The scenario as TOML. Each host at home has a path of its own.

    Args:
        found: what is read off the capture.
        files: vectors, beside the scenario.
        queue: the present queue, or any other in both directions.
        warm_up_s: what is replayed and not counted.
        controls: congestion control of connections, and of those with long transfers.
        slower: factor on both rates.
        seed: of all draws.
    """
    present = queue if isinstance(queue, Present) else Present(queue, (0.1, 0.1))
    ways = "".join(
        f"""
[topology.links.bottleneck.{name}]
rate = "{rate.at(np.zeros(1))[0] * slower:.0f} bit/s"
{_changes(rate, slower)}discipline = {present.discipline(side, rate.bps)}
"""
        for side, (name, rate) in enumerate(zip(("forward", "reverse"), found.rates, strict=True))
    )
    hosts = {0, *(file.host for file in files)}
    paths = "".join(
        f"""
[topology.paths.host-{host + 1}]
links = ["bottleneck"]
"""
        for host in sorted(hosts)
    )
    classes = "".join(
        f"""
[[traffic]]
name = "{file.name}"
kind = "vectors"
file = "{file.name}.cvec"
copies = 1
path = "host-{file.host + 1}"
direction = "{file.direction}"
{_transport(file.transport, controls[file.is_long])}
rtt = {{ kind = "vector" }}
"""
        for file in files
    )
    return f"""\
title = {inline(f"Replay of {found.capture.name}")}
seed = {seed}

[measure]
warm_up = "{time_text(warm_up_s)}"
duration = "{time_text(max(found.seconds - warm_up_s, 1.0))}"
queue_sample = "100 ms"
record = ["responses", "flows", "queue"]

[topology]
kind = "network"
hosts = {{ clients = 1, servers = 10 }}
{paths}{ways}{classes}{"".join(_background(found))}"""


def _changes(rate: Rate, slower: float) -> str:
    """The line that says how a rate varies; nothing for one that does not."""
    if rate.series is None:
        return ""
    rows = (
        f'{{ at = "{at:.3f} s", rate = "{max(bps * slower, _LEAST_BPS):.0f} bit/s" }}'
        for at, bps in zip(*(one.tolist()[1:] for one in rate.series), strict=True)
    )
    return f"rate_changes = [{', '.join(rows)}]\n"


def _transport(transport: str, control: str) -> str:
    """The lines of a class that say how its connections send."""
    if transport == "tcp":
        return f'tcp = {{ profile = "linux", congestion_control = "{control}" }}'
    return f"""\
windows = false
transport = "quic"
quic = {{ congestion_control = "{control}" }}"""


def _background(found: Inferred) -> Iterator[str]:
    """What is neither TCP nor QUIC: its mean rate and size, which answer nothing."""
    passed = found.passed
    for side, direction in enumerate(("forward", "reverse")):
        rate = 8 * passed.other[side] / passed.seconds
        if rate < _LEAST_BPS:
            continue
        size = min(1500, max(64, round(passed.other[side] / passed.packets[side])))
        yield f"""
[[traffic]]
name = "other-{direction}"
kind = "cbr"
flows = 1
rate = "{rate:.0f} bit/s"
packet = "{size} bytes"
path = "host-1"
direction = "{direction}"
rtt = {{ kind = "constant", rtt = "40 ms" }}
"""


def replayed(
    run: Run, rates: tuple[Rate, Rate], warm_up_s: float, slower: float = 1.0
) -> dict[str, float]:
    """What a replay measures, by the rules for captures; 0 for what it has no value of."""
    times = _responses(run, warm_up_s)
    link = run.summary["links"]["bottleneck"]
    table = run.queue
    assert table is not None
    total = np.zeros(0)
    for name, rate in zip(("forward", "reverse"), rates, strict=True):
        mine = table.filter(pc.field("direction") == name)
        bps = slower * rate.at(mine["time_s"].to_numpy())
        waits = 8 * mine["bytes"].to_numpy() / bps
        total = waits if not len(total) else total[: len(waits)] + waits[: len(total)]
    found = {
        "t50": float(np.quantile(times, 0.5)) if len(times) else 0.0,
        "t90": float(np.quantile(times, 0.9)) if len(times) else 0.0,
        "delay": float(np.quantile(total, 0.95)) if len(total) else 0.0,
        "responses": float(len(times)),
    }
    for key, name in (("down", "forward"), ("up", "reverse")):
        found[f"delay_{key}"] = float(link[name]["sojourn_p95_s"] or 0.0)
        found[f"load_{key}"] = float(link[name]["throughput_bps"])
    return found


def _responses(run: Run, warm_up_s: float) -> np.ndarray:
    """Response times of connections that are not too long; turns without a silence are one.

    As in the capture what began in the warm-up does not count.
    """
    responses, flows = run.responses, run.flows
    if responses is None or flows is None or not len(responses):
        return np.zeros(0)
    lasted = dict(zip(flows["flow"].to_pylist(), flows["duration_s"].to_pylist(), strict=True))
    flow = responses["flow"].to_numpy()
    begin = responses["start_s"].to_numpy()
    end = begin + responses["response_s"].to_numpy()
    order = np.lexsort((begin, flow))
    flow, begin, end = flow[order], begin[order], end[order]
    is_new = np.ones(len(flow), dtype=bool)
    is_new[1:] = (flow[1:] != flow[:-1]) | (begin[1:] - end[:-1] >= SILENT_S)
    heads = np.flatnonzero(is_new)
    length = np.maximum.reduceat(end, heads) - begin[heads]
    is_short = np.array([lasted.get(one, math.inf) < LONGEST_S for one in flow[heads].tolist()])
    found: np.ndarray = length[is_short & (begin[heads] >= warm_up_s)]
    return found
