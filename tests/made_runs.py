"""Run directories of made-up numbers, for tests that need no engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from aqmlab.results.run import Run

if TYPE_CHECKING:
    from pathlib import Path

SIDE = {
    "arrived_packets": 100_000,
    "dropped_packets": 4_000,
    "marked_packets": 0,
    "departed_packets": 96_000,
    "loss_rate": 0.04,
    "mark_rate": 0.0,
    "throughput_bps": 9.3e6,
    "utilization": 0.985,
    "queue_mean_packets": 61.2,
    "queue_max_packets": 120,
    "queue_p95_packets": 110,
    "sojourn_mean_s": 0.04,
    "drops": {"early": 0, "overflow": 4_000},
    "marks": {"early": 0},
}


def made_run(
    folder: Path,
    *,
    label: str = "droptail 120",
    times: np.ndarray | None = None,
    queue: np.ndarray | None = None,
    title: str = "Web users",
) -> Run:
    """A run with these response times and queue samples (every 0.1 s, from 60 s on)."""
    folder.mkdir(parents=True)
    (folder / "scenario.toml").write_text(f"title = {title!r}\nseed = 1\n")
    if times is not None:
        pq.write_table(responses(times), folder / "responses.parquet")
    if queue is not None:
        pq.write_table(queue_samples(queue), folder / "queue.parquet")
    scenario = {"title": title, "seed": 1, "limit": folder.name}
    return Run(folder, label, summary(times), scenario, {"cpu_s": 0.25})


def summary(times: np.ndarray | None) -> dict[str, Any]:
    """What a summary says about these response times."""
    row: dict[str, Any] = {"count": 0}
    if times is not None:
        row = {"count": len(times), "mean_s": float(times.mean()), "p50_s": float(np.median(times))}
    return {
        "seed": 1,
        "measured_s": 240.0,
        "simulated_s": 300.0,
        "version": "0.0.0",
        "links": {"bottleneck": {"forward": {**SIDE}, "reverse": {**SIDE, "drops": {}}}},
        "responses": {"browsers": row, "all": row},
        "flows": {"browsers": {"count": row["count"]}, "all": {"count": row["count"]}},
    }


def responses(times: np.ndarray) -> pa.Table:
    """``responses.parquet`` as the engine writes it."""
    count = len(times)
    return pa.table(
        {
            "flow": np.arange(count, dtype="u8"),
            "class": pa.array(["browsers"] * count).dictionary_encode(),
            "start_s": np.linspace(60, 300, count),
            "response_s": times,
            "request_bytes": np.full(count, 300, "u8"),
            "response_bytes": np.full(count, 2000, "u8"),
            "client": np.zeros(count, "u4"),
            "server": np.zeros(count, "u4"),
        }
    )


def queue_samples(packets: np.ndarray) -> pa.Table:
    """``queue.parquet`` as the engine writes it, the reverse queue being empty."""
    count = len(packets)
    time = 60 + 0.1 * np.arange(count)
    return pa.table(
        {
            "link": pa.array(["bottleneck"] * 2 * count).dictionary_encode(),
            "direction": pa.array(["forward", "reverse"] * count).dictionary_encode(),
            "time_s": np.repeat(time, 2),
            "packets": np.stack([packets, np.zeros(count)], axis=1).ravel().astype("u4"),
            "bytes": np.zeros(2 * count, "u8"),
        }
    )
