"""Distributions of times over a whole run, which every run keeps whether or not it records rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

    from aqmlab.runs import Run

Of = Literal["response", "flow"]
"""What is distributed: response times, or durations of connections."""

RESOLUTION = 1e-3
"""Relative width of the bins in which the engine counts."""
LIMIT = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")


@dataclass(frozen=True)
class Distribution(Mapping[str, float | None]):
    """How many there were of each length; as a mapping, the share within a time: ``le["200ms"]``.

    Times are known to :data:`RESOLUTION`.
    """

    below_s: np.ndarray
    """Ends of the bins that hold something, in seconds, rising."""
    count: np.ndarray
    """How many there are in each bin."""

    @classmethod
    def of_run(cls, run: Run, what: Of, traffic_class: str | None = None) -> Distribution:
        """A class's distribution in a run; None: all classes together."""
        table = run.distribution
        if table is None:
            raise KeyError(f"{run.path}: holds no distribution.parquet")
        chosen = pc.equal(table["of"], what)
        if traffic_class is not None:
            chosen = pc.and_(chosen, pc.equal(table["class"], traffic_class))
        return cls.of_table(table.filter(chosen))

    @classmethod
    def of_table(cls, table: pa.Table) -> Distribution:
        """From rows of ``distribution.parquet``; bins of several classes are added up."""
        below, index = np.unique(table["below_s"].to_numpy(), return_inverse=True)
        count = np.bincount(index, weights=table["count"].to_numpy(), minlength=len(below))
        return cls(below, count.astype(np.int64))

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.count.sum())

    def share_within(self, time_s: float) -> float | None:
        """Share of those that took at most a time; None of nothing.

        The bin of the time itself is counted whole, so the time is exact to a bin's width.
        """
        if not self.total:
            return None
        bins = int(np.searchsorted(self.below_s, time_s * (1 + RESOLUTION) + 1e-6, side="right"))
        return float(self.count[:bins].sum() / self.total)

    def __getitem__(self, limit: str) -> float | None:
        """The share within a time such as "200ms" or "1.5s"."""
        match = LIMIT.fullmatch(limit)
        if match is None:
            raise KeyError(limit)
        return self.share_within(float(match[1]) * {"ms": 1e-3, "s": 1.0}[match[2]])

    def __iter__(self) -> Iterator[str]:
        """The ends of the bins, as limits."""
        return (f"{below:.6f}s" for below in self.below_s)

    def __len__(self) -> int:
        """Number of bins."""
        return len(self.below_s)
