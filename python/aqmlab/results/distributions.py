"""Distributions of times over a whole run, which every run keeps whether or not it records rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aqmlab._util.lazy import np, pa, pc
from aqmlab.results.terms import Rank

if TYPE_CHECKING:
    from aqmlab.results.run import Run

__all__ = ["Distribution", "Of", "is_exact", "rows_with"]


Of = Literal["response", "flow"]
"""What is distributed: response times, or durations of connections."""

_RESOLUTION = 1e-3
"""Relative width of the bins in which the engine counts."""
_ROWS: Mapping[Of, tuple[str, str]] = {
    "response": ("responses", "response_s"),
    "flow": ("flows", "duration_s"),
}
"""The table of recorded rows, and its column that holds the times."""
_MOST_EXACT = 1_000_000
"""Rows of a run up to which they are taken one by one: more would fill the memory, and show no more
than bins of a thousandth."""
_LIMIT = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")


def is_exact(run: Run, what: Of = "response") -> bool:
    """Whether a run's times are taken from its recorded rows, not from its bins."""
    table, _ = _ROWS[what]
    return run.has(table) and (run.distribution is None or run.rows(table) <= _MOST_EXACT)


@dataclass(frozen=True)
class Distribution(Mapping[str, float | None]):
    """How many there were of each length; as a mapping, the share within a time: ``le["200ms"]``.

    Times are known to :data:`_RESOLUTION`.
    """

    below_s: np.ndarray
    """Ends of the bins that hold something, in seconds, rising; the times themselves if exact."""
    count: np.ndarray
    """How many there are in each bin."""

    @classmethod
    def of_run(cls, run: Run, what: Of, traffic_class: str | None = None) -> Distribution:
        """A class's distribution in a run; None: all classes together."""
        table = run.distribution
        if table is None:
            raise KeyError(f"{run.path}: holds no distribution.parquet")
        chosen = rows_with(table["of"], what)
        if traffic_class is not None:
            chosen &= rows_with(table["class"], traffic_class)
        ends, counts = (table[name].to_numpy()[chosen] for name in ("below_s", "count"))
        return cls.together([cls(ends, counts)])

    @classmethod
    def known_of(cls, run: Run, what: Of) -> Distribution:
        """What a run tells: of its recorded rows if it :func:`is_exact`, else from its bins."""
        if is_exact(run, what):
            table, column = _ROWS[what]
            rows = run.read(table, [column])
            assert rows is not None
            return cls.exact(np.sort(rows.column(column).to_numpy()))
        return cls.together([]) if run.distribution is None else cls.of_run(run, what)

    @classmethod
    def exact(cls, times_s: np.ndarray) -> Distribution:
        """Of ascending times, unchanged."""
        last = np.flatnonzero(np.r_[times_s[1:] != times_s[:-1], True][: len(times_s)])
        return cls(times_s[last], np.diff(np.r_[-1, last]))

    @classmethod
    def together(cls, parts: Sequence[Distribution]) -> Distribution:
        """Several distributions added up."""
        ends = np.concatenate([np.empty(0), *(part.below_s for part in parts)])
        counts = np.concatenate([np.empty(0), *(part.count for part in parts)])
        below, index = np.unique(ends, return_inverse=True)
        count = np.bincount(index, weights=counts, minlength=len(below))
        return cls(below, count.astype(np.int64))

    @classmethod
    def of_table(cls, table: pa.Table) -> Distribution:
        """From rows of ``distribution.parquet``; bins of several classes are added up."""
        return cls.together([cls(table["below_s"].to_numpy(), table["count"].to_numpy())])

    def shares(self, times_s: np.ndarray) -> np.ndarray:
        """The share up to each of some times, ends of bins; there must be something."""
        up_to = np.r_[0, np.cumsum(self.count)]
        return np.asarray(up_to[np.searchsorted(self.below_s, times_s, side="right")] / self.total)

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
        bins = int(np.searchsorted(self.below_s, time_s * (1 + _RESOLUTION) + 1e-6, side="right"))
        return float(self.count[:bins].sum() / self.total)

    def time_s(self, share: float) -> float:
        """The shortest time within which at least this share ended: the end of its bin."""
        bins = int(np.searchsorted(np.cumsum(self.count), share * self.total))
        return float(self.below_s[min(bins, len(self.below_s) - 1)])

    def rank(self, time_s: float, points: float) -> Rank | None:
        """Where a time lies, and how far apart so many points around it are; None of nothing."""
        share, half = self.share_within(time_s), points / 200
        if share is None:
            return None
        return Rank(100 * share, self.time_s(share + half) - self.time_s(share - half))

    def __getitem__(self, limit: str) -> float | None:
        """The share within a time such as "200ms" or "1.5s"."""
        match = _LIMIT.fullmatch(limit)
        if match is None:
            raise KeyError(limit)
        return self.share_within(float(match[1]) * {"ms": 1e-3, "s": 1.0}[match[2]])

    def __iter__(self) -> Iterator[str]:
        """The ends of the bins, as limits."""
        return (f"{below:.6f}s" for below in self.below_s)

    def __len__(self) -> int:
        """Number of bins."""
        return len(self.below_s)


def rows_with(column: pa.ChunkedArray, word: str) -> np.ndarray:
    """In which rows of a column this word stands.

    Columns of words have dictionaries, which need no pyarrow.compute: it takes long to import.
    """
    if not pa.types.is_dictionary(column.type):
        return np.asarray(pc.equal(column, word))
    # Each word is compared once, however many rows have it: there may be thousands of runs.
    found = [
        np.array([known == word for known in chunk.dictionary.to_pylist()], dtype=bool)[
            chunk.indices.to_numpy()
        ]
        for chunk in column.chunks
    ]
    return np.concatenate([np.empty(0, dtype=bool), *found])
