"""Numbers that a summary lacks and a run's recorded responses give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aqmlab._util.lazy import np, pc
from aqmlab.results.distributions import Distribution

if TYPE_CHECKING:
    import pyarrow as pa

    from aqmlab.results.run import Run

__all__ = ["numbers", "of_connections", "of_responses"]


_LARGE_BYTES = 25_000
"""Responses above it count as large: the 25 KB of Weigle et al. 2005."""
_SMALL_BYTES = 16_000
"""Responses below it count as small: section 6 of Christiansen et al. 2000."""
_KINDS = ("syn", "fin", "data")
"""What a connection can send again."""


def numbers(run: Run) -> Mapping[str, Any]:
    """A run's summary with ``recorded``, by class and ``all``.

    ``le.100ms``, ``le.1.5s``: the share of the responses that took at most that long;
    ``flow.le``: the same for durations of connections. With recorded responses also what
    :func:`of_responses` gives, with recorded connections ``retransmitted``: what
    :func:`of_connections` gives. All are counted as in the summary: those that end in the measured
    span. A run that keeps no distribution, a live one, has its summary only.
    """
    if run.distribution is None:
        return run.summary
    return {
        **run.summary,
        "recorded": {name: _of_class(run, name) for name in ("all", *run.classes)},
    }


def _of_class(run: Run, name: str) -> dict[str, Any]:
    """The numbers of one class, or of ``all``."""
    chosen = None if name == "all" else name
    found: dict[str, Any] = {
        "le": Distribution.of_run(run, "response", chosen),
        "flow": {"le": Distribution.of_run(run, "flow", chosen)},
    }
    if run.responses is not None:
        found |= of_responses(_of_traffic_class(run.responses, chosen))
    if run.flows is not None:
        found["retransmitted"] = of_connections(_of_traffic_class(run.flows, chosen))
    return found


def _of_traffic_class(table: pa.Table, name: str | None) -> pa.Table:
    """The rows of one class; None: all."""
    return table if name is None else table.filter(pc.equal(table["class"], name))


def of_responses(table: pa.Table) -> dict[str, Any]:
    """What some recorded responses give.

    ``mean_bytes`` and ``max_bytes`` of a response; ``size_le.1420``, the share of those of at most
    so many bytes; ``goodput_bps``, the mean over responses of size over response time; ``large``:
    the same for those of more than :data:`_LARGE_BYTES`, with their ``count``, ``share`` among all
    and ``le``.
    """
    size = table["response_bytes"].to_numpy()
    time = table["response_s"].to_numpy()
    large = size > _LARGE_BYTES
    return {
        **_of_exchanges(size, time),
        "max_bytes": int(np.max(size, initial=0)),
        "size_le": _Sizes(np.sort(size)),
        "large": {
            **_of_exchanges(size[large], time[large]),
            "le": Distribution.exact(np.sort(time[large])),
            "count": int(np.sum(large)),
            "share": _mean(large),
        },
    }


def of_connections(table: pa.Table) -> dict[str, Any]:
    """What some recorded connections give, by what they sent again.

    ``none``, ``syn``, ``fin``, ``data``, ``several`` kinds or ``any``: ``p25_s``, ``p45_s``,
    ``p50_s`` and ``p95_s`` of their durations. ``small_without_timeout``: of those that sent
    something again and whose response is below :data:`_SMALL_BYTES`, the share without a time-out.
    """
    sent_again = np.array([table[f"retransmitted_{kind}"].to_numpy() > 0 for kind in _KINDS])
    kinds = sent_again.sum(axis=0)
    chosen = {"none": kinds == 0, "several": kinds > 1, "any": kinds > 0}
    chosen |= {kind: sent_again[i] & (kinds == 1) for i, kind in enumerate(_KINDS)}
    duration = table["duration_s"].to_numpy()
    small = chosen["any"] & (table["response_bytes"].to_numpy() < _SMALL_BYTES)
    return {
        **{name: _quantiles(duration[rows]) for name, rows in chosen.items()},
        "small_without_timeout": _mean(table["timeouts"].to_numpy()[small] == 0),
    }


def _quantiles(times_s: np.ndarray) -> dict[str, float | None]:
    """The quantiles that claims look at; None of nothing."""
    shares = {"p25_s": 0.25, "p45_s": 0.45, "p50_s": 0.5, "p95_s": 0.95}
    if not len(times_s):
        return dict.fromkeys(shares)
    return dict(zip(shares, np.quantile(times_s, list(shares.values())).tolist(), strict=True))


@dataclass(frozen=True)
class _Sizes(Mapping[str, float | None]):
    """The share of responses of at most so many bytes: ``size_le["1420"]``."""

    sizes: np.ndarray
    """Ascending, in bytes."""

    def __getitem__(self, limit: str) -> float | None:
        """The share of those of at most ``limit`` bytes; None of nothing."""
        if not limit.isdecimal():
            raise KeyError(limit)
        if not len(self.sizes):
            return None
        return float(np.searchsorted(self.sizes, int(limit), side="right") / len(self.sizes))

    def __iter__(self) -> Iterator[str]:
        """The sizes that occur, as limits."""
        return (str(size) for size in np.unique(self.sizes))

    def __len__(self) -> int:
        """Number of sizes that occur."""
        return len(np.unique(self.sizes))


def _of_exchanges(size: np.ndarray, time: np.ndarray) -> dict[str, Any]:
    """Mean size and mean goodput."""
    return {"mean_bytes": _mean(size), "goodput_bps": _mean(8 * size / time)}


def _mean(values: np.ndarray) -> float | None:
    """The mean; None of nothing."""
    return float(np.mean(values)) if len(values) else None
