"""Numbers that a summary lacks and a run's recorded responses give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from aqmlab.distributions import Distribution

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from aqmlab.runs import Run

LARGE_BYTES = 25_000
"""Responses above it count as large: the 25 KB of Weigle et al. 2005."""


def numbers(run: Run) -> Mapping[str, Any]:
    """A run's summary with ``recorded``, by class and ``all``.

    ``le.100ms``, ``le.1.5s``: the share of the responses that took at most that long;
    ``flow.le``: the same for durations of connections. With recorded responses also what
    :func:`of_responses` gives. All are counted as in the summary: those that end in the measured
    span. A run that keeps no distribution, a live one, has its summary only.
    """
    if run.distribution is None:
        return run.summary
    return {
        **run.summary,
        "recorded": {name: of_class(run, name) for name in ("all", *run.classes)},
    }


def of_class(run: Run, name: str) -> dict[str, Any]:
    """The numbers of one class, or of ``all``."""
    chosen = None if name == "all" else name
    found: dict[str, Any] = {
        "le": Distribution.of_run(run, "response", chosen),
        "flow": {"le": Distribution.of_run(run, "flow", chosen)},
    }
    table = run.responses
    if table is not None:
        of_these = table if chosen is None else table.filter(pc.equal(table["class"], name))
        found |= of_responses(of_these)
    return found


def of_responses(table: pa.Table) -> dict[str, Any]:
    """What some recorded responses give.

    ``mean_bytes`` of a response; ``goodput_bps``, the mean over responses of size over response
    time; ``large``: the same for those of more than :data:`LARGE_BYTES`, with their ``count``,
    their ``share`` among all and ``le``.
    """
    size = table["response_bytes"].to_numpy()
    time = table["response_s"].to_numpy()
    large = size > LARGE_BYTES
    return {
        **of_exchanges(size, time),
        "large": {
            **of_exchanges(size[large], time[large]),
            "le": Distribution.exact(np.sort(time[large])),
            "count": int(np.sum(large)),
            "share": mean(large),
        },
    }


def of_exchanges(size: np.ndarray, time: np.ndarray) -> dict[str, Any]:
    """Mean size and mean goodput."""
    return {"mean_bytes": mean(size), "goodput_bps": mean(8 * size / time)}


def mean(values: np.ndarray) -> float | None:
    """The mean; None of nothing."""
    return float(np.mean(values)) if len(values) else None
