"""Was the warm-up long enough? The test of :func:`aqmlab.statistics.initialization_bias` on a run.

It looks at what was recorded of the measured span: the samples of the forward queue, and the
response times in the order in which the responses began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aqmlab.statistics import Floats, initialization_bias

if TYPE_CHECKING:
    from aqmlab.runs import Run

COLUMNS = ("warm_up_queue_z", "warm_up_responses_z")
"""Columns of the results: a standard normal number each if the warm-up was long enough."""
LEVEL = 0.01
"""A warning is given when such a number had at most this probability."""


def warm_up_columns(run: Run) -> dict[str, float | None]:
    """The test on what a run recorded; without records there is no column."""
    found: dict[str, float | None] = {}
    for name, series in zip(COLUMNS, (queue_series(run), response_series(run)), strict=True):
        if series is not None:
            found[name] = initialization_bias(series)
    return found


def queue_series(run: Run) -> Floats | None:
    """Packets in the forward queue, sample by sample, in the measured span."""
    table = run.queue
    if table is None:
        return None
    begin = float(run.summary["simulated_s"]) - float(run.summary["measured_s"])
    forward = pc.equal(table.column("direction").cast(pa.string()), "forward")
    chosen = table.filter(pc.and_(forward, pc.greater_equal(table.column("time_s"), begin)))
    series: Floats = chosen.column("packets").to_numpy().astype(float)
    return series


def response_series(run: Run) -> Floats | None:
    """Response times in the order in which the responses began."""
    table = run.responses
    if table is None:
        return None
    order = np.argsort(table.column("start_s").to_numpy(), kind="stable")
    # Their logarithms: one response of a minute would hide everything else.
    series: Floats = np.log(np.maximum(table.column("response_s").to_numpy()[order], 1e-6))
    return series
