"""Where the time of responses goes, as stacked bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from aqmlab.errors import AqmlabError
from aqmlab.figures import curves, parameters
from aqmlab.figures.axes import linear, name_axis
from aqmlab.figures.compared import compared
from aqmlab.figures.findings import Finding, change, finding, is_single, shown
from aqmlab.figures.grammar import Channel, Chart, concat, inline
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.breakdown import (
    BANDS,
    Band,
    broken_down_classes,
    by_cause,
    check_breakdown,
    mean_times,
)
from aqmlab.results.configurations import (
    Configuration,
    Sources,
    configurations,
    seeds_in_words,
    values_of,
)
from aqmlab.results.metrics import ALL
from aqmlab.results.values import described, text_of

__all__ = ["why"]


_WHOLE = ""
"""The key of the whole time among those of causes."""
_SMALL = 0.02
"""Causes below this share in every bar are drawn together."""
_OTHERS = "other parts"
_MOST_COLOURS = 8
_MANY = 3
"""From so many values on, a numeric parameter of a sweep is the horizontal axis."""
_MOST_PLOTS = 12


@dataclass(frozen=True)
class _WhyBar:
    """A bar: its plot, its place there, and what it stands on."""

    plot: str
    place: str
    entry: Configuration
    band: str
    times: Mapping[str, float]
    """Mean milliseconds by cause, from the bottom."""


def why(
    runs: Sources,
    *,
    traffic: str | None = None,
    band: Literal["all", "slowest_50", "slowest_10", "slowest_1"] | None = None,
    x: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Where the time of responses goes, as stacked bars.

    Each bar is a mean response time, divided into what the responses waited for: distance, queues,
    timers, recovery. Without other options a plot shows each band: all responses, and the slowest
    50, 10 and 1 %. All plots share one axis. The title says what became of the slow ones, in
    seconds. For a sweep over numbers, or with --x, bars
    stand along a parameter, such as the load; they show one band. Bars of several seeds are means.
    The runs need measure.breakdown = true.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        traffic: Class of traffic. Default: all classes together. For classes with different
            applications, the default is the first class with web pages, or else the first class.
        band: Show only this band of responses, such as the slowest 10 % (slowest_10). Default: all
            bands; with --x, slowest_10.
        x: Draw the bars along this parameter. Default: one bar for each queue.
        look: Width and theme.
    """
    found = configurations(runs, look.names)
    check_breakdown(run for entry in found for run in entry.runs)
    classes = broken_down_classes([entry.group for entry in found], traffic)
    if not classes:
        raise AqmlabError("a class of traffic needs responses in every run; name other runs")
    chosen = traffic or (ALL if ALL in classes else classes[0])
    along = parameters.chosen(found, x) if x else _default_axis(found)
    of_class = "" if chosen == ALL else f" of {look.named(chosen)}"
    if along is None:
        found = compared(runs, look)
        bands = [band] if band else list(BANDS)
        bars = [
            _WhyBar(_band_title(name), entry.label, entry, name, _times(entry, chosen, name))
            for name in bands
            for entry in found
        ]
        drawn = f"where the mean response time{of_class} goes"
    else:
        one = band or "slowest_10"
        order = {text_of(value): k for k, value in enumerate(values_of(found, along))}
        others = parameters.needed(found, along, [])
        bars = [
            _WhyBar(
                described(entry.parameters, others),
                text_of(entry.parameters.get(along)),
                entry,
                one,
                _times(entry, chosen, one),
            )
            for entry in found
        ]
        bars.sort(key=lambda bar: order[bar.place])
        drawn = f"{_band_title(one)}: where the mean response time{of_class} goes, against {along}"
    heading = Heading(
        _title(bars, chosen),
        (f"{drawn}; {seeds_in_words(found)}",),
    )
    return _view(_folded(bars), heading, along, look).chart(look)


def _default_axis(found: Sequence[Configuration]) -> str | None:
    """The numeric parameter of a sweep with several values; None if there is none."""
    if not all(entry.is_swept for entry in found) or len(found) < _MANY:
        return None
    names = dict.fromkeys(name for entry in found for name in entry.parameters)
    numeric = [name for name in names if parameters.is_number(found, name)]
    longest = max(numeric, key=lambda name: len(values_of(found, name)), default=None)
    return longest if longest and len(values_of(found, longest)) >= _MANY else None


def _band_title(band: str) -> str:
    """A band above its plot."""
    return "all responses" if band == ALL else BANDS[band]


def _times(entry: Configuration, traffic: str, band: str) -> dict[str, float]:
    """The mean milliseconds of each cause."""
    parts = {key: one.mean for key, one in mean_times(entry.group, traffic, band).items()}
    parts.pop("response", None)
    return {cause.name: 1e3 * time for cause, time in by_cause(parts).items()}


def _folded(bars: Sequence[_WhyBar]) -> list[_WhyBar]:
    """The bars with as many causes as there are colours; the smallest are drawn together."""
    shares: dict[str, float] = {}
    for bar in bars:
        whole = sum(bar.times.values())
        for name, time in bar.times.items():
            shares[name] = max(shares.get(name, 0.0), time / whole if whole else 0.0)
    ranked = sorted((name for name in shares if name != _OTHERS), key=lambda name: -shares[name])
    kept = {name for name in ranked[: _MOST_COLOURS - 1] if shares[name] >= _SMALL}
    folded = []
    for bar in bars:
        times = {name: bar.times.get(name, 0.0) for name in shares if name in kept}
        rest = sum(bar.times.values()) - sum(times.values())
        more = {_OTHERS: rest} if len(kept) < len(shares) else {}
        folded.append(_WhyBar(bar.plot, bar.place, bar.entry, bar.band, {**times, **more}))
    return folded


def _view(bars: Sequence[_WhyBar], heading: Heading, along: str | None, look: Look) -> Figure:
    """The plots beside each other."""
    causes = list(dict.fromkeys(name for bar in bars for name in bar.times))
    plots = list(dict.fromkeys(bar.plot for bar in bars))
    if len(plots) > _MOST_PLOTS:
        raise AqmlabError(
            f"the runs need {len(plots)} plots, and a figure has at most {_MOST_PLOTS}; keep some "
            "with --where NAME=VALUE"
        )
    columns = min(len(plots), 2 if look.width == "column" else 4 if along is None else 3)
    most = max(sum(bar.times.values()) for bar in bars)

    def build(room: float) -> Chart:
        # Widths are whole: rounded up they would not fit, so the first plots take what is left.
        each, left = divmod(math.floor(room - (columns - 1) * 1.2 * look.size.text), columns)
        drawn = [
            _plot(
                [bar for bar in bars if bar.plot == plot],
                causes,
                look,
                (each + (number % columns < left), look.size.height),
                (along, most),
                is_first=number % columns == 0,
            ).properties(title={"text": plot, "frame": "group"})
            for number, plot in enumerate(plots)
        ]
        if len(drawn) == 1:
            return drawn[0]
        return concat(*drawn, columns=columns, spacing=look.size.text)

    return Figure(heading, build)


def _plot(
    bars: Sequence[_WhyBar],
    causes: Sequence[str],
    look: Look,
    size: tuple[float, float],
    axis: tuple[str | None, float],
    *,
    is_first: bool,
) -> Chart:
    """Bars of one plot, on the axis of all: of the first in a row it has labels and a title."""
    along, most = axis
    places = list(dict.fromkeys(bar.place for bar in bars))
    unit, scale = ("s", 1e-3) if most >= 2e3 else ("ms", 1.0)
    y = linear(f"response time ({unit})", [scale * most], count=4, zero=True)
    rows = [row for bar in bars for row in _rows(bar, scale)]
    # A legend for bars, in as many columns as there is room for.
    label = (max(map(len, causes)) * 0.55 + 3.5) * look.size.text
    legend = {
        "title": None,
        "symbolType": "square",
        "symbolStrokeWidth": 0,
        "columns": max(1, int(look.size.total / label)),
    }
    colour = look.colour(causes, of="cause", legend=True).but(legend=legend)
    base = Chart(inline(rows), width=size[0], height=size[1])
    # Labels that nobody sees keep the plots of a row at one height.
    up = y.y("low") if is_first else y.y("low", labelOpacity=0, labelLimit=1).but(title=None)
    drawn: Chart = base.mark("bar").encode(
        x=Channel(
            "place:N",
            title=along,
            sort=places,
            axis=name_axis(places, size[0], look.size.text),
        ),
        y=up,
        y2="high:Q",
        color=colour,
        tooltip=[
            Channel("place:N", title=along or "runs"),
            Channel("cause:N", title="part"),
            Channel("time:Q", title=unit, format=".4~g"),
            Channel("share:Q", title="share", format=".0%"),
        ],
    )
    return drawn


def _rows(bar: _WhyBar, scale: float) -> list[curves.Row]:
    """The pieces of a bar, from the bottom."""
    found: list[curves.Row] = []
    whole, low = sum(bar.times.values()), 0.0
    for cause, time in bar.times.items():
        found.append(
            {
                "place": bar.place,
                "cause": cause,
                "low": low,
                "high": low + scale * time,
                "time": scale * time,
                "share": time / whole if whole else 0.0,
            }
        )
        low += scale * time
    return found


def _title(bars: Sequence[_WhyBar], traffic: str) -> str:
    """What became of slow responses, in seconds, and where most of it was."""
    band = "slowest_10" if any(bar.band == "slowest_10" for bar in bars) else bars[0].band
    found = [bar for bar in bars if bar.band == band]
    spent = [_spent(bar, traffic) for bar in found]
    label = {bar.entry.label for bar in found}
    said = [
        Finding(
            bar.entry.label if len(label) == len(found) else f"{bar.plot} {bar.place}".strip(),
            times.get(_WHOLE, {}),
        )
        for bar, times in zip(found, spent, strict=True)
    ]
    whose = "all responses" if band == ALL else f"the {BANDS[band]}"
    text = finding(said, f"mean response time of {whose}", "s")
    known = [one for one in range(len(said)) if said[one].values]
    if not known:
        return text
    ranked = sorted(known, key=lambda one: said[one].mean)
    first, last = (known[0], known[1]) if len(known) == 2 else (ranked[0], ranked[-1])
    if first != last and not (
        is_single([said[first], said[last]]) or change(said[first], said[last]).clear
    ):
        return text
    means = [{key: fmean(one.values()) for key, one in spent[k].items()} for k in (first, last)]
    names = [key for key in dict.fromkeys([*means[0], *means[1]]) if key != _WHOLE]
    if first == last:
        most = max(names, key=lambda key: means[0].get(key, 0.0))
        return f"{text}; most of it: {most}, {shown(means[0][most])} s"
    most = max(names, key=lambda key: abs(means[1].get(key, 0.0) - means[0].get(key, 0.0)))
    before, after = (shown(one.get(most, 0.0)) for one in means)
    return f"{text}; most of it: {most}, {before} to {after} s"


def _spent(bar: _WhyBar, traffic: str) -> dict[str, dict[int, float]]:
    """The seconds of each cause by seed, and of the whole."""
    found: dict[str, dict[int, float]] = {}
    for run in bar.entry.runs:
        band = Band.of(run.summary, traffic, bar.band)
        if band is None or not band.response_s:
            continue
        found.setdefault(_WHOLE, {})[run.seed] = band.response_s
        for cause, time in by_cause(band.parts).items():
            found.setdefault(cause.name, {})[run.seed] = time
    for values in found.values():
        for seed in found[_WHOLE]:
            values.setdefault(seed, 0.0)
    return found
