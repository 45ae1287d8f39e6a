"""Pictures of a card: scores by area, and wait against goodput."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from aqmlab.cards.card import Card
from aqmlab.cards.kinds import QUEUE
from aqmlab.cards.page import beside
from aqmlab.cards.scoring import CONSTANTS, Area, Test
from aqmlab.figures.files import svg
from aqmlab.figures.grammar import Channel, Chart, inline, layer
from aqmlab.figures.theme import THEMES, Theme, ThemeName

__all__ = ["areas_svg", "waits_svg"]


_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

_WAITS_HEIGHT = 220
_LETTERS = 10
"""Size of the names of tests in pixels; a letter is about 0.6 of it wide."""
_SPOTS: tuple[tuple[Literal["left", "right"], int, int], ...] = (
    ("left", 7, 3),
    ("right", -7, 3),
    ("left", 5, -8),
    ("left", 5, 14),
    ("right", -5, -8),
    ("right", -5, 14),
)
"""Where the name of a point may stand: its end that is at the point, and how far it is right of the
point and below. The first that is free is taken, and the first where none is."""


def areas_svg(card: Card, width: int = 420, colours_of: ThemeName = "page") -> str:
    """Scores of the candidate with their intervals, and those of the baselines, by area."""
    theme = THEMES[colours_of]
    names = [area.name for area in card.areas if area.score is not None]
    rows = _scores("candidate", card.areas)
    others = beside(card)
    for baseline in others:
        rows += _scores(baseline, card.areas_of(baseline))
    low, high = CONSTANTS["lowest_score"], CONSTANTS["highest_score"]
    x = Channel(
        "score:Q",
        scale={"domain": [low, high]},
        axis={"values": [-1, -0.5, 0, 0.5, 1]},
        title="score: 0 drop-tail, 1 deployed queues"
        if card.about is QUEUE
        else "score: 1 is CUBIC",
    )
    y = Channel("area:N", sort=names, title=None)
    colours = {
        "domain": ["candidate", *others],
        "range": [theme.text, *theme.series[: len(others)]],
    }
    shapes = {
        "domain": ["candidate", *others],
        "range": ["circle", *["square", "triangle-up", "diamond", "cross", "triangle-down"] * 4][
            : len(others) + 1
        ],
    }
    data = inline(rows)
    zero = (
        Chart(inline([{"score": 0.0}, {"score": 1.0}]))
        .mark("rule", color=theme.axis, strokeDash=[3, 3])
        .encode(x="score:Q")
    )
    spans = (
        Chart(data)
        .keep("datum.queue === 'candidate' && isValid(datum.low)")
        .mark("rule", strokeWidth=3, color=theme.text)
        .encode(x=Channel("low:Q"), x2="high:Q", y=y)
    )
    points = (
        Chart(data)
        .mark("point", filled=True, size=70, opacity=0.9)
        .encode(
            x=x,
            y=y,
            color=Channel("queue:N", scale=colours, title=None),
            shape=Channel("queue:N", scale=shapes, title=None),
        )
    )
    chart = layer(zero, spans, points).properties(width=width, height=30 * max(1, len(names)))
    return _drawn(chart, theme)


def _scores(queue: str, areas: Sequence[Area]) -> list[dict[str, Any]]:
    """The scores of a queue as rows."""
    return [
        {
            "queue": queue,
            "area": area.name,
            "score": area.score.mean,
            "low": None if math.isnan(area.score.low) else area.score.low,
            "high": None if math.isnan(area.score.high) else area.score.high,
        }
        for area in areas
        if area.score is not None
    ]


def waits_svg(card: Card, width: int = 420, colours_of: ThemeName = "page") -> str:
    """Wait against goodput over the tests that measure both: from drop-tail to the candidate.

    Empty if no test measures both.
    """
    theme = THEMES[colours_of]
    pairs = []
    start, middle = ("drop-tail", "baselines' median")
    if card.about is not QUEUE:
        start, middle = card.about.called, ""
    for test in card.tests:
        found = _pair(test, start, middle)
        if found is not None:
            pairs += found
    if not pairs:
        return ""
    looks = {
        start: (theme.axis, "square"),
        middle: (theme.series[0], "diamond"),
        "candidate": (theme.text, "circle"),
    }
    domain = [name for name in looks if name]
    colours = {"domain": domain, "range": [looks[name][0] for name in domain]}
    shapes = {"domain": domain, "range": [looks[name][1] for name in domain]}
    waits, rates = ([pair[name] for pair in pairs] for name in ("wait", "goodput"))
    across = [min(waits) / 1.2, max(waits) * 1.2]
    up = [min(rates) - 3, max(rates) + 3]
    decades = math.log(across[1] / across[0])
    right = [math.log(wait / across[0]) / decades for wait in waits]
    down = [(up[1] - rate) / (up[1] - up[0]) for rate in rates]
    _place(pairs, right, down, width)
    data = inline(pairs)
    x = Channel(
        "wait:Q",
        scale={"type": "log", "domain": across},
        axis={"labelOverlap": "greedy", "labelSeparation": 8},
        title="wait p95 (ms)",
    )
    y = Channel("goodput:Q", scale={"domain": up}, title=f"goodput (% of {start}'s)")
    lines = (
        Chart(data)
        .keep("datum.place !== 1")
        .mark("line", color=theme.axis, strokeWidth=1)
        .encode(x=x, y=y, detail="test:N", order="place:Q")
    )
    points = (
        Chart(data)
        .mark("point", filled=True, size=60)
        .encode(
            x=x,
            y=y,
            color=Channel("queue:N", scale=colours, title=None),
            shape=Channel("queue:N", scale=shapes, title=None),
        )
    )
    words = [
        Chart(data)
        .keep(f"datum.spot === {spot}")
        .mark("text", align=end, dx=right, dy=below, color=theme.text, fontSize=_LETTERS)
        .encode(x=x, y=y, text="test:N")
        for spot, (end, right, below) in enumerate(_SPOTS)
    ]
    chart = layer(lines, points, *words).properties(width=width, height=_WAITS_HEIGHT)
    return _drawn(chart, theme)


def _place(
    pairs: Sequence[dict[str, Any]], across: Sequence[float], down: Sequence[float], width: int
) -> None:
    """Gives the candidate's points a ``spot`` for their name, where it covers no name and no point.

    ``across`` and ``down`` are shares of the plot.
    """
    points = [
        (pair, width * x, _WAITS_HEIGHT * y) for pair, x, y in zip(pairs, across, down, strict=True)
    ]
    taken = [(x - 4, y - 4, x + 4, y + 4) for _, x, y in points]
    for pair, x, y in points:
        if pair["queue"] != "candidate":
            continue
        long = 0.6 * _LETTERS * len(pair["test"])
        boxes = []
        for end, right, below in _SPOTS:
            left = x + right - (long if end == "right" else 0)
            boxes.append((left, y + below - _LETTERS + 1, left + long, y + below + 2))
        free = (
            spot
            for spot, box in enumerate(boxes)
            if box[0] >= 0 and box[2] <= width and not any(_meet(box, other) for other in taken)
        )
        pair["spot"] = next(free, 0)
        taken.append(boxes[pair["spot"]])


def _meet(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two boxes (left, top, right, bottom) overlap."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _pair(test: Test, start: str, middle: str) -> list[dict[str, Any]] | None:
    """The points of a test; None if it lacks a wait or a goodput."""
    waits = [one for one in test.measures if one.measure.measure == "wait p95"]
    rates = [one for one in test.measures if one.measure.measure == "goodput"]
    if not waits or not rates:
        return None
    wait, rate = waits[0], rates[0]
    first = (start, wait.droptail, rate.droptail)
    if not middle:
        first = (start, wait.reference, rate.reference)
    places = (
        first,
        (middle, wait.reference, rate.reference),
        ("candidate", wait.candidate, rate.candidate),
    )
    return [
        {
            "test": test.id,
            "queue": name,
            "wait": 1e3 * seconds,
            "goodput": 100 * bps / first[2],
            "place": place,
        }
        for place, (name, seconds, bps) in enumerate(places)
        if name
    ]


def _drawn(chart: Chart, theme: Theme) -> str:
    """A chart as SVG."""
    config = {
        "font": _FONT,
        "background": "transparent",
        "view": {"stroke": None},
        "axis": {
            "labelColor": theme.text,
            "titleColor": theme.text,
            "gridColor": theme.grid,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
        },
        "legend": {
            "orient": "bottom",
            "columns": 3,
            "labelColor": theme.text,
            "labelFontSize": 11,
            "columnPadding": 18,
        },
    }
    return svg(chart.properties(config=config).to_dict())
