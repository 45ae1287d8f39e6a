"""Airtime shares of a Wi-Fi, as stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from aqmlab.errors import AqmlabError
from aqmlab.figures import curves
from aqmlab.figures.axes import linear, name_axis
from aqmlab.figures.compared import compared
from aqmlab.figures.findings import Finding, finding
from aqmlab.figures.grammar import Channel, Chart, inline
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.configurations import Configuration, Sources, seeds_in_words

__all__ = ["airtime"]


_WAYS = ("down", "up")


@dataclass(frozen=True)
class _AirtimeBar:
    """A bar, and the share of each kind of station in percent, by seed."""

    label: str
    shares: Mapping[str, Mapping[int, float]]


def airtime(
    runs: Sources,
    *,
    way: Literal["both", "down", "up"] = "both",
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Airtime shares of a Wi-Fi, as stacked bars.

    Each bar is a configuration: the share of the time in which something of a kind of station is on
    the air, from the access point or from the station. What is left is silence between
    transmissions. Packets that collide count twice. Bars of several seeds are means. The runs need
    topology.wifi.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        way: Show only what the access point sends (down), only what the stations send (up), or
            both.
        look: Width and theme.
    """
    found = compared(runs, look)
    ways = _WAYS if way == "both" else (way,)
    bars = [_AirtimeBar(entry.label, _shares(entry, ways, look)) for entry in found]
    names = list(dict.fromkeys(name for bar in bars for name in bar.shares))
    sent = {"both": "", "down": " of what the access point sends", "up": " of what stations send"}
    heading = Heading(
        _title(bars, names), (f"share of the time on the air{sent[way]}; {seeds_in_words(found)}",)
    )
    labels = [bar.label for bar in bars]
    rows = [row for bar in bars for row in _rows(bar)]
    y = linear("time on the air (%)", [float(str(row["high"])) for row in rows], zero=True)
    legend = {"title": None, "symbolType": "square", "symbolStrokeWidth": 0}

    def build(room: float) -> Chart:
        drawn: Chart = (
            Chart(inline(rows), width=room, height=look.size.height)
            .mark("bar")
            .encode(
                x=Channel(
                    "place:N",
                    title=None,
                    sort=labels,
                    axis=name_axis(labels, room, look.size.text),
                ),
                y=y.y("low"),
                y2="high:Q",
                color=look.colour(names, of="stations", legend=True).but(legend=legend),
                tooltip=[
                    Channel("place:N", title="runs"),
                    Channel("stations:N", title="stations"),
                    Channel("share:Q", title="%", format=".4~g"),
                ],
            )
        )
        return drawn

    return Figure(heading, build).chart(look)


def _shares(entry: Configuration, ways: Sequence[str], look: Look) -> dict[str, dict[int, float]]:
    """The share of each kind of station in percent, by seed."""
    shares: dict[str, dict[int, float]] = {}
    for run in entry.runs:
        wifi: Mapping[str, Any] | None = run.summary.get("wifi")
        if wifi is None:
            raise AqmlabError(f"{run.path}: found no Wi-Fi; the scenario needs topology.wifi")
        for name, of in wifi.items():
            share = sum(float(of[way]["airtime_share"]) for way in ways)
            shares.setdefault(look.named(name), {})[run.seed] = 100 * share
    return shares


def _rows(bar: _AirtimeBar) -> list[curves.Row]:
    """The pieces of a bar, from the bottom."""
    found: list[curves.Row] = []
    low = 0.0
    for name, values in bar.shares.items():
        share = fmean(values.values())
        row: curves.Row = {"place": bar.label, "stations": name, "share": share}
        found.append({**row, "low": low, "high": low + share})
        low += share
    return found


def _title(bars: Sequence[_AirtimeBar], names: Sequence[str]) -> str:
    """What becomes of the kind of station that changes most, or who has the most."""
    if len(bars) == 1:
        said = [Finding(name, values) for name, values in bars[0].shares.items()]
        return finding(said, "time on the air", "%", is_change=False)

    def means(name: str) -> list[float]:
        return [fmean(bar.shares[name].values()) for bar in bars if name in bar.shares]

    most = max(names, key=lambda name: max(means(name)) - min(means(name)))
    said = [Finding(bar.label, bar.shares.get(most, {})) for bar in bars]
    return finding(said, f"time of {most} on the air", "%")
