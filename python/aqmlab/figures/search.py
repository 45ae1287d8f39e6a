"""A search for parameters: what was tried, the Pareto front, what was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aqmlab.figures.axes import Axis, linear, logarithmic
from aqmlab.figures.grammar import Channel, Chart, inline, layer
from aqmlab.figures.theme import Figure, Heading, Look

__all__ = ["TriedSetting", "search"]


_SPREAD = 20.0
"""From this ratio of the largest to the smallest value on an axis is logarithmic."""


@dataclass(frozen=True)
class TriedSetting:
    """A setting that was tried."""

    number: int
    values: Sequence[float]
    """One or two numbers, in the units of the axes."""
    is_feasible: bool
    is_on_front: bool


def search(
    points: Sequence[TriedSetting],
    untuned: Sequence[float],
    titles: Sequence[str],
    minimized: Sequence[bool],
    named: Mapping[str, int],
    subtitle: Sequence[str],
    *,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """A search with one goal over its settings in their order, or two goals with their front.

    Args:
        points: what was tried.
        untuned: the numbers of the untuned scenario.
        titles: what each number is, with its unit.
        minimized: whether each of them is to be small.
        named: numbers of the settings that were chosen, by what they are.
        subtitle: what is drawn.
        look: width and theme.
    """
    is_plane = len(titles) > 1
    rows = [_row(one, is_plane) for one in points]
    x, y = _axes(points, untuned, titles, minimized)
    chosen: list[dict[str, float | str]] = [
        {"name": "untuned", "x": untuned[0] if is_plane else 0, "y": untuned[-1]},
        *({**_row(one, is_plane), "name": name} for one in points if (name := _names(named, one))),
    ]
    curve = _front(points) if is_plane else _best_so_far(points, minimized[0])
    text = (
        "line: Pareto front of what holds the constraints; up and to the right is better"
        if is_plane
        else "line: the best so far that holds the constraints"
    )
    if not all(one.is_feasible for one in points):
        text += "; crosses: settings that miss a constraint"
    heading = Heading(_title(points, untuned, minimized, titles), (*subtitle, text))

    def build(room: float) -> Chart:
        size, colours = look.size, look.colours
        dots = (
            Chart(inline(rows), width=room, height=1.25 * size.height)
            .mark("point", filled=True, size=3.5 * size.text, opacity=0.75)
            .encode(
                x=x.x("x"),
                y=y.y("y"),
                color=Channel(
                    "state:N",
                    scale={
                        "domain": ["tried", "misses a constraint"],
                        "range": [look.stroke(5), colours.axis],
                    },
                    legend=None,
                ),
                shape=Channel(
                    "state:N",
                    scale={
                        "domain": ["tried", "misses a constraint"],
                        "range": ["circle", "cross"],
                    },
                    legend=None,
                ),
                tooltip=[Channel("number:Q", title="setting"), "x:Q", "y:Q"],
            )
        )
        line = (
            Chart(inline(curve))
            .mark(
                "line",
                # What lies between two corners of a front is no better than either.
                interpolate="step-before" if is_plane and not minimized[0] else "step-after",
                color=look.stroke(0),
                strokeWidth=1.2 * size.stroke,
            )
            .encode(x=x.x("x"), y=y.y("y"), order="order:Q")
        )
        names = [str(row["name"]) for row in chosen]
        colour = Channel(
            "name:N",
            sort=names,
            scale={
                "domain": names,
                "range": [colours.text, *map(look.stroke, range(1, len(names)))],
            },
            legend={"title": None, "symbolType": "diamond", "symbolStrokeWidth": 0},
        )
        picked = (
            Chart(inline(chosen))
            .mark("point", shape="diamond", filled=True, size=11 * size.text, opacity=1)
            .encode(x=x.x("x"), y=y.y("y"), color=colour, fill=colour)
        )
        drawn: Chart = layer(dots, line, picked).scales(color="independent")
        return drawn

    return Figure(heading, build).chart(look)


def _row(one: TriedSetting, is_plane: bool) -> dict[str, float | str]:
    """A setting as a row of a chart."""
    return {
        "number": one.number,
        "x": one.values[0] if is_plane else one.number + 1,
        "y": one.values[1] if is_plane else one.values[0],
        "state": "tried" if one.is_feasible else "misses a constraint",
    }


def _names(named: Mapping[str, int], one: TriedSetting) -> str:
    """What a setting was chosen as."""
    return " and ".join(name for name, number in named.items() if number == one.number)


def _axes(
    points: Sequence[TriedSetting],
    untuned: Sequence[float],
    titles: Sequence[str],
    minimized: Sequence[bool],
) -> tuple[Axis, Axis]:
    """Both axes; of two goals each runs so that up and to the right is better."""
    columns = [[one.values[place] for one in points] for place in range(len(titles))]
    axes = [
        _axis(title, [*column, untuned[place]], minimized[place] and len(titles) > 1)
        for place, (title, column) in enumerate(zip(titles, columns, strict=True))
    ]
    if len(axes) == 1:
        last = max((one.number + 1 for one in points), default=1)
        return linear("setting, in the order of the search; 0: untuned", [0, last]), axes[0]
    return axes[0], axes[1]


def _axis(title: str, values: Sequence[float], reverse: bool) -> Axis:
    """An axis for some values; of widely spread ones logarithmic."""
    low, high = min(values), max(values)
    if low > 0 and high > _SPREAD * low:
        found = logarithmic(title, [0.85 * low, 1.15 * high])
        return Axis(found.title, found.low, found.high, found.ticks, log=True, reverse=reverse)
    reach = 0.12 * (high - low or abs(high) or 1.0)
    floor = max(0.0, low - reach) if low >= 0 else low - reach
    return linear(title, [floor, high + reach], reverse=reverse)


def _front(points: Sequence[TriedSetting]) -> list[dict[str, float]]:
    """The corners of the front, along the first goal."""
    best = sorted((one.values for one in points if one.is_on_front), key=lambda pair: pair[0])
    return [{"x": x, "y": y, "order": order} for order, (x, y, *_) in enumerate(best)]


def _best_so_far(points: Sequence[TriedSetting], is_minimized: bool) -> list[dict[str, float]]:
    """How the best setting changed, step by step."""
    found: list[dict[str, float]] = []
    for one in points:
        value = one.values[0]
        if one.is_feasible and (
            not found or (value < found[-1]["y"] if is_minimized else value > found[-1]["y"])
        ):
            found.append({"x": one.number + 1, "y": value, "order": one.number})
    if found:
        last = max(one.number + 1 for one in points)
        found.append({"x": last, "y": found[-1]["y"], "order": last})
    return found


def _title(
    points: Sequence[TriedSetting],
    untuned: Sequence[float],
    minimized: Sequence[bool],
    titles: Sequence[str],
) -> str:
    """How many settings were tried, and how many beat the untuned scenario in every goal."""
    good = [
        one
        for one in points
        if one.is_feasible
        and all(
            value < before if small else value > before
            for value, before, small in zip(one.values, untuned, minimized, strict=True)
        )
    ]
    what = "in both goals" if len(titles) > 1 else f"in {titles[0].partition(' (')[0]}"
    return f"{len(good)} of {len(points)} settings beat the untuned scenario {what}"
