"""Response times and bytes in intervals of time: made tables, counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aqmlab import Run
from aqmlab.errors import AqmlabError
from aqmlab.figures.kinds.over_time import arrived_bytes, mean_responses
from figure_runs import draw, rows, subtitle, title


def made(tables: dict[str, pa.Table], seed: int = 1) -> Run:
    """A run of four measured seconds from 60 s on, in memory."""
    summary: dict[str, Any] = {
        "seed": seed,
        "measured_s": 4.0,
        "simulated_s": 64.0,
        "links": {"bottleneck": {"forward": {}, "reverse": {}}},
    }
    scenario = {"title": "Web", "seed": seed}
    return Run(Path("none"), "droptail", summary, scenario, {}, tables=tables)


def responses(*start_and_took: tuple[float, float]) -> pa.Table:
    start, took = zip(*start_and_took, strict=True)
    return pa.table({"start_s": start, "response_s": took})


def packets(*arrivals: tuple[float, int, str]) -> pa.Table:
    times, sizes, directions = zip(*arrivals, strict=True)
    return pa.table(
        {
            "link": pa.array(["bottleneck"] * len(times)).dictionary_encode(),
            "direction": pa.array(directions).dictionary_encode(),
            "arrive_ns": np.array([round(1e9 * time) for time in times], "u8"),
            "size_bytes": np.array(sizes, "u4"),
        }
    )


RESPONSES = responses((59.5, 1.0), (60.0, 0.5), (60.2, 1.0), (61.0, 2.5), (50.0, 1.0))
"""They end at 60.5, 60.5, 61.2, 63.5 and, not measured, 51 s."""
PACKETS = packets(
    (60.0, 1500, "forward"),
    (60.5, 500, "forward"),
    (60.5, 40, "reverse"),
    (63.999, 1000, "forward"),
    (64.5, 700, "forward"),
)


def test_responses_count_where_they_end() -> None:
    run = made({"responses": RESPONSES})
    np.testing.assert_allclose(mean_responses(run, 1.0), [0.75, 1.0, np.nan, 2.5])
    np.testing.assert_allclose(mean_responses(run, 3.0), [2.5 / 3])  # the last is no whole one


def test_bytes_count_where_they_arrive_of_one_direction() -> None:
    run = made({"packets": PACKETS})
    assert arrived_bytes(run, 1.0, "bottleneck", "forward").tolist() == [2000, 0, 0, 1000]
    assert arrived_bytes(run, 0.5, "bottleneck", "reverse").tolist() == [0, 40, *[0] * 6]
    assert np.isnan(arrived_bytes(run, 1.0, "access", "forward")).all()


def test_a_figure_draws_them_and_says_how_they_vary() -> None:
    run = made({"responses": RESPONSES, "packets": PACKETS})
    chart = draw.over_time([run])
    drawn = [(row["x"], row["y"]) for row in rows(chart, "x", "y")]
    assert drawn == [(60.5, 0.75), (61.5, 1.0), (62.5, None), (63.5, 2.5)]
    assert "4 intervals" in subtitle(chart)
    chart = draw.over_time([run], of="bytes")
    assert [row["y"] for row in rows(chart, "x", "y")] == [2.0, 0.0, 0.0, 1.0]
    # Mean 750, standard deviation 829.2.
    assert "oefficient of variation of the bytes is 1.1" in title(chart)
    assert "at bottleneck, forward" in subtitle(chart)
    chart = draw.over_time([run], of="bytes", window_s=0.001)
    assert len(rows(chart, "x", "y")) == 1000
    assert "the first 1,000 of 4,000 intervals" in subtitle(chart).lower()


def test_what_is_missing_is_named() -> None:
    run = made({"responses": RESPONSES})
    with pytest.raises(AqmlabError, match=r'packets at bottleneck, forward .* add "packets" to'):
        draw.over_time([run], of="bytes")
    with pytest.raises(AqmlabError, match=r'add "responses" to measure\.record'):
        draw.over_time([made({"packets": PACKETS})])
    with pytest.raises(AqmlabError, match="or choose a shorter window_s"):
        draw.over_time([run], window_s=10)
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(AqmlabError, match=r"window_s: found .*; expected a time above 0"):
            draw.over_time([run], window_s=wrong)
