"""The sequence diagram of one response: its segments between client and server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from aqmlab.errors import AqmlabError
from aqmlab.figures import curves
from aqmlab.figures.grammar import Channel, Chart, inline, layer
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.breakdown import part
from aqmlab.results.events import Events, Trip
from aqmlab.results.story import Story
from aqmlab.results.why import in_words, spent

__all__ = ["sequence"]


_PATH, _OTHER, _LOST = "on the path", "other segments", "lost"
_LANES = {"client": 0.0, "server": 1.0}
_WORTH = 0.04
"""Waits and gaps below this share of the time have no words."""
_MOST_TRIPS = 4000


def sequence(
    story: Story,
    events: Events,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """The segments of a response between client and server, and what it waited for at each end.

    Time runs downwards. Bold segments are the critical path, thick bars are waits on it, crosses
    are packets that were lost.

    Args:
        story: the response.
        events: its events.
        look: Width and theme.
    """
    trips = events.trips()
    if len(trips) > _MOST_TRIPS:
        raise AqmlabError(
            f"response: found {len(trips):,} segments; a sequence diagram has at most "
            f"{_MOST_TRIPS:,}"
        )
    whole = (events.end_ns - events.start_ns) / 1e9
    shares = spent({key: float(time) for key, time in story.parts.items()}, story.response_ns)
    most = " and ".join(f"{100 * one.share:.0f}\u00a0% {one.doing}" for one in shares[:2])
    heading = Heading(
        f"Response {story.number:,} of {look.named(story.run.label)} takes {in_words(whole)}: "
        f"{most}",
        ("time runs downwards; bold segments and bars, which are waits, are the critical path",),
    )
    return Figure(heading, lambda room: _drawn(trips, events, look, room)).chart(look)


def _drawn(trips: Sequence[Trip], events: Events, look: Look, room: float) -> Chart:
    """Lanes, segments, waits and words."""
    whole = (events.end_ns - events.start_ns) / 1e6
    size, colours = look.size, look.colours
    height = min(3.2 * size.height, max(1.4 * size.height, 1.6 * size.text * len(trips)))
    y = Channel(
        "time:Q",
        title="time (ms)",
        scale={"domain": [whole, 0], "nice": False},
        axis={"tickCount": 8, "format": ",.0f" if whole >= 20 else ",.1f"},
    )
    x = Channel("x:Q", title=None, scale={"domain": [-0.75, 1.75], "nice": False}, axis=None)
    kinds = [_PATH, _OTHER, _LOST]
    colour = Channel(
        "kind:N",
        sort=kinds,
        scale={"domain": kinds, "range": [look.stroke(0), colours.axis, look.stroke(1)]},
        legend={"title": None, "offset": 2.4 * size.text},
    )
    lanes = (
        Chart(inline([{"x": at, "from": 0, "time": whole} for at in _LANES.values()]))
        .mark("rule", color=colours.axis)
        .encode(x=x, y=Channel("from:Q", scale={"domain": [whole, 0]}), y2="time:Q")
    )
    names = (
        Chart(inline([{"x": at, "time": 0, "text": end} for end, at in _LANES.items()]))
        .mark("text", dy=-size.text, fontSize=size.text, fontWeight="bold", color=colours.text)
        .encode(x=x, y=y, text="text:N")
    )
    rows = [row for number, trip in enumerate(trips) for row in _line(trip, number, events)]
    base = Chart(inline(rows))
    lines = base.mark("line").encode(
        x=x,
        y=y,
        color=colour,
        detail="number:N",
        order="place:Q",
        strokeWidth=Channel("width:Q", scale={"domain": [1, 2], "range": [0.6, 2]}, legend=None),
        tooltip=[Channel("segment:N"), Channel("kind:N"), Channel("time:Q")],
    )
    crosses = (
        Chart(inline([row for row in rows if row["lost_here"]]))
        .mark("text", text="✕", fontSize=1.3 * size.text, fontWeight="bold")
        .encode(x=x, y=y, color=colour)
    )
    bars = (
        Chart(inline(_waits(events)))
        .mark("bar", color=look.stroke(4), width=0.5 * size.text)
        .encode(
            x=x,
            y=Channel("from:Q", scale={"domain": [whole, 0]}),
            y2="to:Q",
            tooltip=[Channel("text:N", title="wait")],
        )
    )
    words = _words(trips, events, height, size.text)
    layers: list[Chart] = [lanes, names, lines, crosses, bars]
    sides: tuple[tuple[str, Literal["left", "right"]], ...] = (
        ("left", "right"),
        ("right", "left"),
    )
    for side, align in sides:
        chosen = [row for row in words if row["side"] == side]
        layers.append(
            Chart(inline(chosen))
            .mark(
                "text",
                align=align,
                dx=-size.text if side == "left" else size.text,
                fontSize=0.92 * size.text,
                color=colours.text,
            )
            .encode(x=x, y=y, text="text:N")
        )
    return layer(*layers).properties(width=room, height=height)


def _line(trip: Trip, number: int, events: Events) -> list[curves.Row]:
    """A segment as a line from lane to lane, or to where it was lost."""
    begin, end = _LANES[trip.sent.sender], 1 - _LANES[trip.sent.sender]
    kind = _LOST if trip.dropped else _PATH if trip.is_on_path else _OTHER
    last = trip.dropped or trip.arrived
    until = last.time_ns if last is not None else events.end_ns
    if trip.dropped is not None:
        end = begin + (end - begin) / 2
    elif trip.arrived is None:
        end = begin + (end - begin) * 0.9
    return [
        {
            "x": x,
            "time": (time - events.start_ns) / 1e6,
            "number": number,
            "place": place,
            "kind": kind,
            "segment": trip.sent.segment,
            "width": 2 if trip.is_on_path else 1,
            "lost_here": place == 1 and trip.dropped is not None,
        }
        for place, (x, time) in enumerate([(begin, trip.sent.time_ns), (end, until)])
    ]


def _waits(events: Events) -> list[curves.Row]:
    """The waits at the ends as bars."""
    return [
        {
            "x": _LANES[end],
            "from": (begin - events.start_ns) / 1e6,
            "to": (until - events.start_ns) / 1e6,
            "text": part(key).label,
        }
        for end, begin, until, key in events.waits()
    ]


def _words(
    trips: Sequence[Trip], events: Events, height: float, text: float
) -> list[dict[str, object]]:
    """Words beside the lanes: long waits, losses and segments, as far as there is room."""
    whole = events.end_ns - events.start_ns
    wanted: list[tuple[int, int, str, str]] = []
    for end, begin, until, key in events.waits():
        if until - begin >= _WORTH * whole:
            named = f"{part(key).label}, {in_words((until - begin) / 1e9)}"
            wanted.append((0, (begin + until) // 2, end, named))
    for trip in trips:
        again = " again" if trip.sent.again else ""
        if trip.dropped is not None:
            named = f"{trip.sent.segment}{again} lost"
            wanted.append((1, trip.sent.time_ns, trip.sent.sender, named))
        else:
            rank = 2 if trip.sent.again else 3 if trip.is_on_path else 4
            named = f"{trip.sent.segment}{again}"
            wanted.append((rank, trip.sent.time_ns, trip.sent.sender, named))
    taken: dict[str, list[float]] = {end: [] for end in _LANES}
    found: list[dict[str, object]] = []
    for _, time, end, named in sorted(wanted, key=lambda one: one[:2]):
        at = (time - events.start_ns) / whole * height
        if all(abs(at - other) >= 1.15 * text for other in taken[end]):
            taken[end].append(at)
            found.append(
                {
                    "x": _LANES[end],
                    "time": (time - events.start_ns) / 1e6,
                    "text": named,
                    "side": "left" if end == "client" else "right",
                }
            )
    return found
