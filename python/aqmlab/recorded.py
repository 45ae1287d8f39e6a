"""Numbers that a summary lacks and a run's recorded responses give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from aqmlab.scoreboard import Rank

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


@dataclass(frozen=True)
class Distribution:
    """How long the responses of a class took in one run."""

    times_s: np.ndarray
    """Response times, rising."""
    shares: np.ndarray
    """The share of responses that took at most that long, for each of the times."""

    @classmethod
    def of(cls, run: Run, name: str) -> Distribution | None:
        """Of a traffic class, or of ``all``; None where the run did not record responses."""
        table = run.responses
        if table is None:
            return None
        if name != "all":
            table = table.filter(pc.equal(table["class"], name))
        times = np.sort(table["response_s"].to_numpy())
        if len(times) == 0:
            return None
        return cls(times, np.arange(1, len(times) + 1) / len(times))

    def share(self, time_s: float) -> float:
        """The share of responses that took at most this long."""
        index = int(np.searchsorted(self.times_s, time_s, side="right"))
        return float(self.shares[index - 1]) if index else 0.0

    def time_s(self, share: float) -> float:
        """The shortest time within which at least this share of the responses ended."""
        index = int(np.searchsorted(self.shares, share))
        return float(self.times_s[min(index, len(self.times_s) - 1)])

    def rank(self, time_s: float, points: float) -> Rank:
        """Where a time lies, and how far apart so many points of rank around it are."""
        share, half = self.share(time_s), points / 200
        return Rank(100 * share, self.time_s(share + half) - self.time_s(share - half))


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
