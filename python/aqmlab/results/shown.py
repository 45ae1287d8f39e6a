"""Which rows and columns tables show of runs: those in which something was measured.

A table about queues has a row for each loaded direction of a link (see
:func:`~aqmlab.results.links.loaded_links`), one about users a column for each number that some of
its rows have. Traffic that gets responses is shown by its response times, bulk transfers by
goodput, fairness and round trips, datagrams by loss, delay and jitter. Applications have
figures of their own: page load times, stalls, opinion scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from aqmlab.results.groups import Group, transfer_classes
from aqmlab.results.links import LinkDirection, links_of, loaded_links
from aqmlab.results.metrics import ALL, LINK, QUALITY, RESPONSES, TRANSFERS, Metric, chosen, look_up
from aqmlab.results.statistics import Estimate

__all__ = [
    "Shown",
    "change_in_words",
    "datagram_rows",
    "idle_links",
    "in_words",
    "link_rows",
    "quality_rows",
    "response_rows",
    "seeds_in_words",
    "transfer_rows",
]


_LINK = chosen(
    LINK,
    "loss_rate",
    "mark_rate",
    "throughput_bps",
    "utilization",
    "queue_mean_packets",
    "sojourn_mean_s",
    "sojourn_p99_s",
)
_RESPONSES = chosen(RESPONSES, "count", "p50_s", "p90_s", "p99_s", "le_1s", "le_2s", "gt_3s")


@dataclass(frozen=True)
class Shown:
    """A table: what stands in its rows and columns."""

    corners: tuple[str, ...]
    """Heads of the columns that name a row, such as run and link."""
    metrics: tuple[Metric, ...]
    """The other columns: those in which some row has a number."""
    rows: tuple[tuple[tuple[str, ...], Mapping[str, Estimate | None]], ...]
    """Names of each row, and its numbers over the seeds by the key of their metric."""


def link_rows(groups: Sequence[Group]) -> Shown:
    """A row for each group and each direction of a link that is loaded in any of their runs."""
    loaded = loaded_links([run for group in groups for run in group.runs])
    rows = [
        ((group.label, str(at)), _numbers(group, at.path, _LINK))
        for group in groups
        for at in loaded
        if at in links_of(group.first)
    ]
    marks = any(found and found.mean for _, values in rows if (found := values["mark_rate"]))
    return _shown(("run", "link"), [m for m in _LINK if marks or m.key != "mark_rate"], rows)


def idle_links(groups: Sequence[Group]) -> list[LinkDirection]:
    """The directions of links that :func:`link_rows` leaves out."""
    runs = [run for group in groups for run in group.runs]
    loaded = loaded_links(runs)
    return list(dict.fromkeys(at for run in runs for at in links_of(run) if at not in loaded))


def response_rows(groups: Sequence[Group]) -> Shown:
    """A row for each group, and each class if there is traffic without responses beside it."""
    others = transfer_classes(groups)
    served = [name for group in groups for name in _served(group) if name not in others]
    alike = all(ALL in group.classes for group in groups)
    names = dict.fromkeys(served) if others or not alike else [ALL] if served else []
    rows = [
        ((group.label, name), _numbers(group, ("responses", name), _RESPONSES))
        for group in groups
        for name in names
    ]
    if not others and alike:
        return _shown(("run",), _RESPONSES, [(label[:1], values) for label, values in rows])
    return _shown(("run", "class"), _RESPONSES, rows)


def _served(group: Group) -> list[str]:
    """Classes that get responses; the one that headlines speak of comes first."""
    found = (run.summary.get("responses", {}) for run in group.runs)
    every = [name for one in found for name, row in one.items() if name != ALL and row.get("count")]
    return [*(name for name in group.classes if name in every), *every]


def quality_rows(groups: Sequence[Group]) -> list[Shown]:
    """Of each kind of application, a row for each group and each class of it."""
    runs = [run for group in groups for run in group.runs]
    kinds: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(name for run in runs for name in run.summary.get("quality", {})):
        found = (look_up(run.summary, ("quality", name)) or {} for run in runs)
        kinds.setdefault(tuple(dict.fromkeys(key for one in found for key in one)), []).append(name)
    shown = [metric for metric in QUALITY if metric.short]
    return [
        _shown(
            ("run", "class"),
            shown,
            [
                ((group.label, name), _numbers(group, ("quality", name), shown))
                for group in groups
                for name in names
            ],
        )
        for names in kinds.values()
    ]


def transfer_rows(groups: Sequence[Group]) -> Shown:
    """A row for each group and each class of bulk transfers."""
    datagrams = _datagram_classes(groups)
    return _flow_rows(groups, [n for n in transfer_classes(groups) if n not in datagrams])


def datagram_rows(groups: Sequence[Group]) -> Shown:
    """A row for each group and each class of datagrams."""
    return _flow_rows(groups, _datagram_classes(groups))


def _datagram_classes(groups: Sequence[Group]) -> list[str]:
    """Classes that get no responses and send datagrams in some run."""
    runs = [run for group in groups for run in group.runs]
    return [
        name
        for name in transfer_classes(groups)
        if any(look_up(run.summary, ("flows", name, "datagrams_sent")) for run in runs)
    ]


def _flow_rows(groups: Sequence[Group], names: Sequence[str]) -> Shown:
    """A row for each group and each of some classes that get no responses."""
    rows = [
        ((group.label, name), _numbers(group, ("flows", name), TRANSFERS))
        for group in groups
        for name in names
    ]
    return _shown(("run", "class"), TRANSFERS, rows)


def _numbers(
    group: Group, path: Sequence[str], metrics: Iterable[Metric]
) -> dict[str, Estimate | None]:
    """Numbers at a place of the summaries by their key."""
    return {metric.key: group.number(path, metric) for metric in metrics}


def _shown(
    corners: tuple[str, ...],
    metrics: Iterable[Metric],
    rows: Sequence[tuple[tuple[str, ...], Mapping[str, Estimate | None]]],
) -> Shown:
    """The table with the columns in which some row has a number."""
    used = [m for m in metrics if any(values.get(m.key) is not None for _, values in rows)]
    return Shown(corners, tuple(used), tuple(rows))


def in_words(found: Estimate, write: Callable[[float], str]) -> str:
    """A mean with its interval, for a table.

    Half of the interval follows ``±``; where one side is more than twice as long as the other, both
    ends are written. Equal values have a note instead.

    Args:
        found: the mean and its interval.
        write: a number in the metric's unit.
    """
    mean = write(found.mean)
    if math.isnan(found.low):
        return f"{mean} ({found.note})" if found.note else mean
    ends = write(found.low), write(found.high)
    if found.is_lopsided and ends != (mean, mean):
        return f"{mean} ({ends[0]} to {ends[1]})"
    half = write(found.half_width)
    if not any(digit in half for digit in "123456789"):
        half = f"<{half[:-1]}1"  # it varies, by less than is written
    return f"{mean} ± {half}"


def change_in_words(found: Estimate, write: Callable[[float], str]) -> str:
    """A difference with the ends of its interval; of equal ones it says so."""
    middle, low, high = (write(value) for value in (found.mean, found.low, found.high))
    if math.isnan(found.low):
        return f"{middle} ({found.note})" if found.note else middle
    return f"{middle} ({low} to {high})"


def seeds_in_words(groups: Sequence[Group]) -> str:
    """How many seeds are behind each row of a table."""
    counts = sorted({len(group.runs) for group in groups})
    if counts == [1]:
        return "one seed each"
    if len(counts) == 1:
        return f"{counts[0]} seeds each"
    return f"{counts[0]} to {counts[-1]} seeds each"
