"""Numbers that a summary lacks and a run's recorded responses give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from aqmlab.runs import Run

TIMES_S = (0.1, 0.2, 0.35, 0.4, 0.7, 1.0, 2.0, 5.0, 10.0, 20.0, 28.0)
"""Response times whose share of faster responses is given: where claims of the papers look."""
LARGE_BYTES = 25_000
"""Responses above it count as large: the 25 KB of Weigle et al. 2005."""


def numbers(run: Run) -> Mapping[str, Any]:
    """A run's summary; with recorded responses also ``recorded``: see :func:`of_responses`.

    Responses are counted as in the summary: those that end in the measured span.
    """
    if run.responses is None:
        return run.summary
    classes = {"all": run.responses}
    for name in run.classes:
        classes[name] = run.responses.filter(pc.equal(run.responses["class"], name))
    of_classes = {name: of_responses(table) for name, table in classes.items()}
    return {**run.summary, "recorded": of_classes}


def of_responses(table: pa.Table) -> dict[str, Any]:
    """What some responses give.

    ``mean_bytes`` of a response; ``goodput_bps``, the mean over responses of size over response
    time; ``le.100ms`` and so on, the share that took at most that long; ``large``: the same for
    those of more than :data:`LARGE_BYTES`, with their ``share`` among all.
    """
    size = table["response_bytes"].to_numpy()
    time = table["response_s"].to_numpy()
    large = size > LARGE_BYTES
    return {
        **of_exchanges(size, time),
        "large": {**of_exchanges(size[large], time[large]), "share": mean(large)},
    }


def of_exchanges(size: np.ndarray, time: np.ndarray) -> dict[str, Any]:
    """Mean size, mean goodput and shares within some times."""
    return {
        "mean_bytes": mean(size),
        "goodput_bps": mean(8 * size / time),
        "le": {f"{1000 * limit:.0f}ms": mean(time <= limit) for limit in TIMES_S},
    }


def mean(values: np.ndarray) -> float | None:
    """The mean; None of nothing."""
    return float(np.mean(values)) if len(values) else None
