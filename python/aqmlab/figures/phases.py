"""What congestion controls are doing, as a coloured strip for each connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aqmlab.figures.axes import Axis
from aqmlab.figures.curves import Row, number
from aqmlab.figures.grammar import Channel, Chart, inline
from aqmlab.figures.theme import Look
from aqmlab.figures.tracing import Traced

__all__ = ["has_phases", "strip"]


_OF_ALL = {"", "slow-start", "avoidance"}
"""Phases that the window shows as well."""
_STRIPE = 1.5
"""Height of a connection's stripe, in lines of text."""


def has_phases(series: Mapping[str, Traced]) -> bool:
    """Whether a control has phases that the window does not show."""
    return any(not _OF_ALL.issuperset(one.phase) for one in series.values())


def strip(series: Mapping[str, Traced], look: Look, x: Axis, room: float) -> Chart:
    """A stripe for each connection, whose colour is the phase of its control."""
    rows = [row for name, one in series.items() for row in _spans(name, one)]
    phases = list(dict.fromkeys(str(row["phase"]) for row in rows))
    names = list(series)
    extent = 3.2 * look.size.text
    colour = look.colour(phases, "phase", legend=True)
    colour = colour.but(legend={**colour["legend"], "symbolType": "square"})
    height = _STRIPE * look.size.text * len(names)
    y = Channel(
        "series:N",
        sort=names,
        title="Phase",
        axis={"minExtent": extent, "labels": False, "ticks": False, "grid": False},
    )
    return (
        Chart(inline(rows), width=room, height=height)
        .mark("bar", height=0.9 * _STRIPE * look.size.text, clip=True)
        .encode(
            x=x.x("x"),
            x2="x2:Q",
            y=y,
            color=colour,
            tooltip=[
                Channel("series:N", title="connection"),
                Channel("phase:N", title="phase"),
                Channel("x:Q", title="from (s)", format=".4~g"),
                Channel("x2:Q", title="to (s)", format=".4~g"),
            ],
        )
    )


def _spans(name: str, one: Traced) -> Sequence[Row]:
    """The spans of a connection in which its control stays in a phase."""
    changes = np.flatnonzero(one.phase[1:] != one.phase[:-1]) + 1
    begins = np.r_[0, changes]
    ends = np.r_[changes, len(one.phase) - 1]
    return [
        {
            "series": name,
            "phase": str(one.phase[begin]),
            "x": number(float(one.time_s[begin])),
            "x2": number(float(one.time_s[end])),
        }
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        if one.phase[begin]
    ]
