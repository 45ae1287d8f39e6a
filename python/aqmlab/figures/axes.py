"""Axes: where they begin and end, and their ticks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab.figures.grammar import Channel

__all__ = ["Axis", "limit_above", "linear", "logarithmic", "name_axis", "ticks_between"]


_STEPS = (1, 2, 5)
_DIGITS = 12
"""Significant digits of a tick: all that a parameter has, fewer than binary fractions show."""
_DECADES = 2
"""Logarithmic axes of fewer decades have ticks between the powers of ten."""


@dataclass(frozen=True)
class Axis:
    """One of a chart's axes: title, ends, ticks."""

    title: str
    low: float
    high: float
    ticks: tuple[float, ...]
    """At least two."""
    log: bool = False
    reverse: bool = False
    """Whether it runs from right to left."""

    def lines(self, room: float, font: float) -> str | list[str]:
        """Its title; lines of it where the font is too large for an axis of such a length."""
        letters = max(1, int(room / (0.6 * font)))
        lines = textwrap.wrap(self.title, letters, break_long_words=False)
        return lines if len(lines) > 1 else self.title

    def scale(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - what Altair takes
        """Its scale."""
        options: dict[str, Any] = {"domain": [self.low, self.high], "nice": False, **more}
        if self.log:
            options["type"] = "log"
        else:
            options["zero"] = False
        if self.reverse:
            options["reverse"] = True
        return dict(**options)

    def axis(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - what Altair takes
        """Its ticks."""
        options = {"values": list(self.ticks), "format": _format(self.ticks), **more}
        return dict(**options)

    def x(self, field: str, **more: Any) -> Channel:  # noqa: ANN401 - what Altair takes
        """It as the horizontal axis of a field."""
        axis = self.axis(labelOverlap="greedy", labelFlush=False, **more)
        return Channel(f"{field}:Q", title=self.title, scale=self.scale(), axis=axis)

    def y(self, field: str, **more: Any) -> Channel:  # noqa: ANN401 - what Altair takes
        """It as the vertical axis of a field."""
        return Channel(f"{field}:Q", title=self.title, scale=self.scale(), axis=self.axis(**more))


def linear(
    title: str,
    values: Iterable[float],
    *,
    count: int = 5,
    zero: bool = False,
    tight: bool = False,
    reverse: bool = False,
) -> Axis:
    """A linear axis for some values.

    Args:
        title: What it measures, with its unit.
        values: What it has to show.
        count: About how many ticks.
        zero: Whether it begins at zero.
        tight: Whether it ends with the values; else at a tick.
        reverse: Whether it runs from right to left.
    """
    low, high = _ends(values)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        reach = abs(high) / 2 or 0.5
        low, high = (0.0, high * 1.25) if zero and high > 0 else (low - reach, high + reach)
    if not tight:
        step = _step(high - low, count)
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(title, low, high, ticks_between(low, high, count), reverse=reverse)


def logarithmic(title: str, values: Iterable[float]) -> Axis:
    """A logarithmic axis for some values, all above zero."""
    low, high = _ends(values)
    if high < 2 * low:
        low, high = low / 1.5, high * 1.5
    steps = _STEPS if high < 10**_DECADES * low else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = 1 if last - first < 8 else 2
    ticks = tuple(
        float(f"{step}e{power}")
        for power in range(first, last + 1, every)
        for step in steps
        if low <= float(f"{step}e{power}") <= high
    )
    if len(ticks) < 2:
        ticks = ticks_between(low, high, 4)
    return Axis(title, low, high, ticks, log=True)


def ticks_between(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Round numbers between two, about so many, at least two."""
    step = _step(high - low, max(count, 3))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(float(f"{k * step:.12g}") for k in range(first, last + 1))


def name_axis(names: Sequence[str], width: float, font: float) -> dict[str, Any]:
    """A horizontal axis of names, which are slanted where they do not fit beside each other."""
    each = width / max(len(names), 1)
    if max(map(len, names), default=0) * 0.56 * font < each - 0.5 * font:
        return {"labelAngle": 0, "labelOverlap": False}
    return {"labelAngle": -30, "labelAlign": "right", "labelOverlap": False, "labelLimit": width}


def limit_above(value: float) -> float:
    """The smallest end of an axis with two digits that is not below a value."""
    power = 10.0 ** (math.floor(math.log10(value)) - 1)
    for step in (10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100):
        if step * power >= value * (1 - 1e-9):
            return float(f"{step * power:.12g}")
    return value


def _step(span: float, count: int) -> float:
    """The round distance of ticks of which about so many, at least two, fit into a span."""
    rough = span / max(count, 3)
    power = 10.0 ** math.floor(math.log10(rough))
    # Of the round numbers the one next to it, on the scale of ratios; a third of the span at most.
    candidates = [step * power for step in (1, 2, 5, 10)]
    allowed = [step for step in candidates if step <= span / 3 * (1 + 1e-9)] or candidates[:1]
    return min(allowed, key=lambda step: abs(math.log(step / rough)))


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """The smallest and the largest of what is a number."""
    found = [value for value in values if math.isfinite(value)]
    return (min(found), max(found)) if found else (0.0, 1.0)


def _format(ticks: Sequence[float]) -> str:
    """How the ticks are written: all their digits, without exponents, thousands with a comma.

    Without a precision of its own, the renderer takes one from the distance of regular ticks, and
    rounds the values of a parameter by it.
    """
    return f",.{_DIGITS}~r" if max(map(abs, ticks), default=0) >= 1e4 else f".{_DIGITS}~r"
