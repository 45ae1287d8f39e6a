"""Runs with a breakdown of made-up response times, for tests that need no engine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario
from conftest import SMALL

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS = (
    *("propagation_handshake", "propagation_exchange", "propagation_slow_start"),
    *("propagation_congestion_avoidance", "propagation_receive_window", "propagation_recovery"),
    *("transmission_hosts", "wait_hosts", "syn_timeout", "timeout", "tail_loss_probe"),
    *("handshake_probe_timeout", "probe_timeout"),
    *("reordering_timer", "recovery_before_timer", "recovery_behind_timer", "recovery_fast"),
    *("delayed_ack", "pacing", "application", "hold_up", "other_timer", "carried_over"),
)
"""The parts that every network has, in the order of the engine."""
SIDES = ("forward", "reverse")
RESPONSES = 200
_MEANS = {
    "propagation_handshake": 80,
    "propagation_exchange": 80,
    "propagation_slow_start": 60,
    "delayed_ack": 4,
    "application": 0.01,
    "wait_bottleneck_reverse": 0.2,
    "transmission_bottleneck_forward": 7,
}
"""Mean milliseconds of some parts of every response."""


def breakdown_table(queue_ms: float, timer_share: float, seed: int) -> pa.Table:
    """``breakdown.parquet``: every response waits in the queue, some wait for timers."""
    random = np.random.default_rng(seed)
    keys = [*PARTS]
    keys += [f"{what}_bottleneck_{side}" for side in SIDES for what in ("wait", "transmission")]
    means = {**_MEANS, "wait_bottleneck_forward": queue_ms}
    parts = {key: np.zeros(RESPONSES, "u8") for key in keys}
    for key, mean in means.items():
        parts[key] = random.exponential(1e6 * mean, RESPONSES).astype("u8")
    lost = random.random(RESPONSES) < timer_share
    parts["timeout"] = np.where(lost, 1_000_000_000, 0).astype("u8")
    parts["syn_timeout"] = np.where(lost & (random.random(RESPONSES) < 0.3), 3_000_000_000, 0)
    times = sum(column.astype("u8") for column in parts.values())

    def words(word: str) -> pa.Array:
        return pa.array([word if one else "" for one in lost]).dictionary_encode()

    return pa.table(
        {
            "flow": np.arange(RESPONSES, dtype="u8"),
            "class": pa.array(["fetches"] * RESPONSES).dictionary_encode(),
            "start_s": np.linspace(2, 22, RESPONSES),
            "client": np.zeros(RESPONSES, "u4"),
            "server": np.zeros(RESPONSES, "u4"),
            "response_bytes": np.full(RESPONSES, 2345, "u8"),
            "response_ns": times,
            **{f"{key}_ns": column.astype("u8") for key, column in parts.items()},
            "trips_handshake": np.full(RESPONSES, 2, "u4"),
            "trips_exchange": np.full(RESPONSES, 2, "u4"),
            "trips_slow_start": np.full(RESPONSES, 4, "u4"),
            "syn_timeouts": (parts["syn_timeout"] > 0).astype("u4"),
            "timeouts": lost.astype("u4"),
            "losses": lost.astype("u4"),
            "first_copies_arrived": np.zeros(RESPONSES, "u4"),
            "loss_s": np.where(lost, 1.0, 0.0),
            "loss_segment": words("data"),
            "loss_link": words("bottleneck"),
            "loss_direction": words("forward"),
            "loss_reason": words("early"),
        }
    )


def _band(table: pa.Table, share: float) -> dict[str, Any]:
    """A band of the summary."""
    times = table["response_ns"].to_numpy()
    chosen = np.argsort(times)[::-1][: math.ceil(share * len(times))]

    def mean(column: str) -> float:
        return float(table[column].to_numpy()[chosen].mean()) / 1e9

    lost = float((table["loss_s"].to_numpy()[chosen] > 0).mean())
    return {
        "count": len(chosen),
        "response_s": mean("response_ns"),
        **{f"{key}_s": mean(f"{key}_ns") for key in PARTS},
        "trips": 6.0,
        "lost_share": lost,
        "links": {
            "bottleneck": {
                side: {
                    "wait_s": mean(f"wait_bottleneck_{side}_ns"),
                    "ring_s": 0.0,
                    "transmission_s": mean(f"transmission_bottleneck_{side}_ns"),
                    "lost_share": {"early": lost} if side == "forward" else {},
                }
                for side in SIDES
            }
        },
    }


def broken_down(label: str, queue_ms: float, timer_share: float, seed: int = 1) -> Run:
    """A run in memory whose queue and timers take some time."""
    table = breakdown_table(queue_ms, timer_share, seed)
    bands = {"all": 1.0, "slowest_50": 0.5, "slowest_10": 0.1, "slowest_1": 0.01}
    found = {band: _band(table, share) for band, share in bands.items()}
    side = {"utilization": 0.9, "loss_rate": 0.02, "sojourn_mean_s": 0.01}
    row = {"count": RESPONSES, "started": RESPONSES}
    summary = {
        "seed": seed,
        "version": "0",
        "links": {"bottleneck": {"forward": side, "reverse": {"utilization": 0.01}}},
        "responses": {"fetches": row, "all": row},
        "flows": {"fetches": {}, "all": {}},
        "breakdown": {"fetches": found, "all": found},
    }
    limit = "20 packets" if label.startswith("droptail") else f"{len(label)} packets"
    queue = f'{{ kind = "droptail", limit = "{limit}" }}'
    scenario = Scenario.from_toml(SMALL).with_overrides(
        [("topology.bottleneck.discipline", queue), ("seed", str(seed))]
    )
    return Run.in_memory(
        scenario.data,
        summary,
        {"breakdown": table},
        label=label,
        path=f"runs/{label}-{seed}",
    )


def two_queues(seeds: Sequence[int] = (1,)) -> list[Run]:
    """Drop-tail with a long queue, RED with many time-outs."""
    return [
        broken_down(label, queue_ms, share, seed)
        for label, queue_ms, share in (("droptail 20", 200, 0.05), ("red (5,15)", 90, 0.15))
        for seed in seeds
    ]
