"""Numbers that a summary lacks and a run's recorded responses give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aqmlab._util.lazy import np, pa, pc
from aqmlab.results.distributions import Distribution, Of

if TYPE_CHECKING:
    from aqmlab.results.run import Run

__all__ = ["bands", "exchanges", "numbers", "of_connections", "of_responses"]


_LARGE_BYTES = 25_000
"""Responses above it count as large: the 25 KB of Weigle et al. 2005."""
_SMALL_BYTES = 16_000
"""Responses below it count as small: section 6 of Christiansen et al. 2000."""
_WINDOW_BYTES = 2880
"""Responses of which :func:`exchanges` looks for bands are not longer: the initial window there."""
_BANDS_S = (0.5, 6.0)
"""Where bands are looked for: Figure 21 there."""
_BIN_S = 0.1
"""Width of the bins in which bands are found."""
_TIMER_S = 0.5
"""Granularity of the retransmission timer there."""
_KINDS = ("syn", "fin", "data")
"""What a connection can send again."""


def numbers(run: Run) -> Mapping[str, Any]:
    """A run's summary with ``recorded``, by class and ``all``; ``web_*`` is all classes so named.

    ``le.100ms``, ``le.1.5s``: the share of the responses that took at most that long;
    ``flow.le``: the same for durations of connections. With recorded responses also what
    :func:`of_responses` gives, with recorded connections ``retransmitted``: what
    :func:`of_connections` gives; with both ``exchanges``: what :func:`exchanges` gives. All are
    counted as in the summary: those that end in the measured span. A run that keeps no
    distribution, a live one, has its summary only.
    """
    if run.distribution is None:
        return run.summary
    return {
        **run.summary,
        "recorded": _ByClass(run),
    }


@dataclass
class _ByClass(Mapping[str, dict[str, Any]]):
    """The numbers of each class, of ``all``, and of the classes of a pattern with a star.

    Computed when they are asked for, once.
    """

    run: Run
    _found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The numbers of some classes."""
        if name not in self._found:
            chosen = [known for known in self.run.classes if fnmatchcase(known, name)]
            if name != "all" and not chosen:
                raise KeyError(name)
            self._found[name] = _of_classes(self.run, None if name == "all" else chosen)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        """``all`` and the classes."""
        return iter(("all", *self.run.classes))

    def __len__(self) -> int:
        """How many these are."""
        return 1 + len(self.run.classes)


def _of_classes(run: Run, chosen: Sequence[str] | None) -> dict[str, Any]:
    """The numbers of some classes together; None: of all."""
    found: dict[str, Any] = {
        "le": _distribution(run, "response", chosen),
        "flow": {"le": _distribution(run, "flow", chosen)},
    }
    if run.responses is not None:
        found |= of_responses(_of_traffic_classes(run.responses, chosen))
    if run.flows is not None:
        flows = _of_traffic_classes(run.flows, chosen)
        found["retransmitted"] = of_connections(flows)
        if run.responses is not None:
            found["exchanges"] = exchanges(_of_traffic_classes(run.responses, chosen), flows)
    return found


def _distribution(run: Run, what: Of, chosen: Sequence[str] | None) -> Distribution:
    """How times of some classes together are distributed; None: those of all."""
    if chosen is None:
        return Distribution.of_run(run, what)
    return Distribution.together([Distribution.of_run(run, what, name) for name in chosen])


def _of_traffic_classes(table: pa.Table, names: Sequence[str] | None) -> pa.Table:
    """The rows of some classes; None: all."""
    if names is None:
        return table
    return table.filter(pc.is_in(table["class"], pa.array(names)))


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


def exchanges(responses: pa.Table, flows: pa.Table) -> Mapping[str, Any]:
    """What the response times of some connections give.

    ``p50_s.1921-2400``: the median of those of 1921 to 2400 bytes of which nothing was sent again.
    ``bands``, of those of at most :data:`_WINDOW_BYTES` of which something was: ``count`` of the
    :func:`bands`, and ``off_timer_s``, by how much two neighbours are at most further apart than a
    multiple of :data:`_TIMER_S`, or less far; None of fewer than two.
    """
    return _Exchanges(responses, flows)


def bands(times_s: np.ndarray) -> np.ndarray:
    """The middles of the bands into which some times fall.

    A band is a peak of the histogram within :data:`_BANDS_S` (bins of :data:`_BIN_S`) with at least
    1 % of the times there that stands out from the valleys beside it by at least half of its
    height.
    """
    low, high = _BANDS_S
    edges = np.linspace(low, high, 1 + round((high - low) / _BIN_S))
    counts, _ = np.histogram(times_s, bins=edges)
    enough = max(1.0, 0.01 * counts.sum())
    peaks = np.array(
        [at for at, out in _peaks(counts) if counts[at] >= enough and out >= counts[at] / 2], int
    )
    middles: np.ndarray = (edges[peaks] + edges[peaks + 1]) / 2
    return middles


def _peaks(counts: np.ndarray) -> Iterator[tuple[int, int]]:
    """The local maxima and their prominences; a flat top stands at its middle, no peak at an end.

    Prominence: how far one must go down at least to reach something higher, or an end.
    """
    tops = np.flatnonzero(np.diff(counts, prepend=counts[0] + 1))  # where a run of equals begins
    ends = np.append(tops[1:], len(counts))
    for top, end in zip(tops[1:-1], ends[1:-1], strict=True):
        height = counts[top]
        if counts[top - 1] > height or counts[end] > height:
            continue
        before, behind = counts[:top][::-1], counts[end:]
        lowest = [
            np.min(side[: np.argmax(side > height)] if np.any(side > height) else side)
            for side in (before, behind)
        ]
        yield int(top + end - 1) // 2, int(height - max(lowest))


def _off_timer(middles_s: np.ndarray) -> float | None:
    """Largest difference between a distance of neighbours and a multiple of the timer's period."""
    periods = np.diff(middles_s) / _TIMER_S
    away = _TIMER_S * np.abs(periods - np.round(periods))
    return float(np.max(away)) if len(away) else None


@dataclass(frozen=True)
class _Exchanges(Mapping[str, Any]):
    """Response times beside what was sent again; computed when they are asked for."""

    responses: pa.Table
    flows: pa.Table

    @cached_property
    def _columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Response size, response time and whether anything was sent again, per response."""
        again = [f"retransmitted_{kind}" for kind in _KINDS]
        joined = self.responses.select(["flow", "response_s", "response_bytes"]).join(
            self.flows.select(["flow", *again]), keys="flow", join_type="inner"
        )
        size, time, *sent = (
            joined[name].to_numpy() for name in ("response_bytes", "response_s", *again)
        )
        return size, time, np.any(np.array(sent) > 0, axis=0)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - medians or counts
        """Medians by size, or what the bands are."""
        if name not in self:
            raise KeyError(name)
        size, time, again = self._columns
        if name == "p50_s":
            return _Medians(size[~again], time[~again])
        middles = bands(time[again & (size <= _WINDOW_BYTES)])
        return {"count": len(middles), "off_timer_s": _off_timer(middles)}

    def __contains__(self, name: object) -> bool:
        """Whether it is one of its names."""
        return name in {"p50_s", "bands"}

    def __iter__(self) -> Iterator[str]:
        """Its names."""
        return iter(("p50_s", "bands"))

    def __len__(self) -> int:
        """Number of its names."""
        return 2


@dataclass(frozen=True)
class _Medians(Mapping[str, float | None]):
    """Median response times by response size: ``p50_s["1921-2400"]``."""

    sizes: np.ndarray
    times_s: np.ndarray

    def __getitem__(self, span: str) -> float | None:
        """The median of those of ``FIRST-LAST`` bytes; None of nothing."""
        first, _, last = span.partition("-")
        if not (first.isdecimal() and last.isdecimal()):
            raise KeyError(span)
        chosen = self.times_s[(self.sizes >= int(first)) & (self.sizes <= int(last))]
        return float(np.median(chosen)) if len(chosen) else None

    def __iter__(self) -> Iterator[str]:
        """The sizes that occur."""
        return (f"{size}-{size}" for size in np.unique(self.sizes))

    def __len__(self) -> int:
        """Number of sizes that occur."""
        return len(np.unique(self.sizes))


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
