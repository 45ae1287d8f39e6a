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
    """The scenario as TOML.

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
[topology.bottleneck.{name}]
rate = "{rate.bps * slower:.0f} bit/s"
discipline = {present.discipline(side, rate.bps)}
"""
        for side, (name, rate) in enumerate(zip(("forward", "reverse"), found.rates, strict=True))
    )
    classes = "".join(
        f"""
[[traffic]]
name = "{file.name}"
kind = "vectors"
file = "{file.name}.cvec"
copies = 1
direction = "{file.direction}"
tcp = {{ profile = "linux", congestion_control = "{controls[file.is_long]}" }}
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
kind = "dumbbell"
{ways}{classes}{"".join(_background(found))}"""


def _background(found: Inferred) -> Iterator[str]:
    """What is not TCP: its mean rate and size, which answer nothing."""
    passed = found.passed
    for side, direction in enumerate(("forward", "reverse")):
        rate = 8 * passed.other[side] / passed.seconds
        if rate < _LEAST_BPS:
            continue
        size = min(1500, max(64, round(passed.other[side] / passed.packets[side])))
        yield f"""
[[traffic]]
name = "not-tcp-{direction}"
kind = "cbr"
flows = 1
rate = "{rate:.0f} bit/s"
packet = "{size} bytes"
direction = "{direction}"
rtt = {{ kind = "constant", rtt = "40 ms" }}
"""


def replayed(run: Run, rates_bps: tuple[float, float]) -> dict[str, float]:
    """What a replay measures, by the rules for captures; 0 for what it has no value of."""
    times = _responses(run)
    link = run.summary["links"]["bottleneck"]
    table = run.queue
    assert table is not None
    total = np.zeros(0)
    for name, rate in zip(("forward", "reverse"), rates_bps, strict=True):
        waits = 8 * table.filter(pc.field("direction") == name)["bytes"].to_numpy() / rate
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


def _responses(run: Run) -> np.ndarray:
    """Response times of connections that are not too long; turns without a silence are one."""
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
    found: np.ndarray = length[is_short]
    return found
