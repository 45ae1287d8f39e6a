"""Tables and figures of what a source of traffic asks for."""

from __future__ import annotations

import numpy as np

from aqmlab._util.table import TableModel
from aqmlab.figures.curves import CURVE_POINTS
from aqmlab.figures.grammar import Channel, Chart, concat, inline, vconcat
from aqmlab.figures.theme import Look, configured
from aqmlab.traffic.describe import PROBABILITIES, Described, Description, Memory

__all__ = ["COLUMNS", "describe_figure", "describe_tables", "logscale"]


_LOGARITHMIC = {"request", "response", "round-trip time", "time between connections"}
"""What is drawn as a complementary distribution on logarithmic axes."""
COLUMNS = 3
"""Plots beside each other."""
_LOOK = Look()
_WIDTH, _HEIGHT = 380, 260
"""Size of a plot in pixels."""


def describe_tables(description: Description) -> list[TableModel]:
    """What a class is, for a terminal."""
    title = f"{description.name} ({description.kind}, {description.population})"
    facts = TableModel(title, [f"in {_number(description.seconds)} s"], ["number"])
    found = description.to_json()
    for name, value in (
        ("connections", found["connections"]),
        ("connections refused", found["refused"]),
        ("exchanges", found["exchanges"]),
        ("connections with several exchanges, %", _percent(found["persistent_connections"])),
        ("request bytes", found["request_bytes"]),
        ("response bytes", found["response_bytes"]),
        ("request packets", found["request_packets"]),
        ("response packets", found["response_packets"]),
        ("datagrams", found["datagrams"]),
        ("datagram bytes", found["datagram_bytes"]),
    ):
        if value:
            facts.add_row(name, value if isinstance(value, str) else f"{value:,.0f}")
    for memory in description.memories:
        if memory.hurst is not None:
            scales = memory.scales_s[memory.fitted]
            name = f"Hurst parameter: {memory.name}, {scales[0]:.3g} s to {scales[-1]:.3g} s"
            facts.add_row(name, f"{memory.hurst:.2f} ± {2 * (memory.standard_error or 0):.2f}")

    heads = (f"p{100 * probability:g}" for probability in PROBABILITIES)
    shown = TableModel("", ["distribution"], ["mean", *heads, "max", "tail index"])
    for quantity in description.quantities:
        tail = quantity.tail
        shown.add_row(
            f"{quantity.name}, {quantity.unit}" if quantity.unit else quantity.name,
            _number(float(np.mean(quantity.values))),
            *(_number(value) for value in quantity.quantiles),
            _number(float(np.max(quantity.values))),
            f"{tail[0]:.2f} ± {2 * tail[1]:.2f}" if tail else "",
        )
    return [facts, shown]


def _percent(share: float | None) -> str:
    """A share as a percentage; nothing for none."""
    return f"{100 * share:.1f}" if share else ""


def _number(value: float) -> str:
    """Four digits, or all of a large whole number."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def describe_figure(descriptions: list[Description]) -> Chart:
    """Several plots for each class: distributions on logarithmic axes, and the logscale diagram."""
    rows = []
    for description in descriptions:
        views: list[Chart] = [
            _distribution(quantity)
            for quantity in description.quantities
            if quantity.name in _LOGARITHMIC and np.any(quantity.values > 0)
        ]
        if description.memories:
            views.append(logscale(description.memories))
        if views:
            title = f"{description.name} ({description.kind}, {description.population})"
            row = concat(*views, columns=COLUMNS, title=title)
            # The legend stands at the plot that it belongs to.
            rows.append(row.scales(color="independent"))
    return configured(vconcat(*rows).scales(color="independent"), _LOOK)


def _distribution(quantity: Described) -> Chart:
    """Share of values that are larger, on logarithmic axes."""
    values = np.sort(quantity.values[quantity.values > 0])
    # Evenly spaced in the logarithm of the share: the tail is what the figure is for.
    ranks = np.unique(len(values) - np.geomspace(1, len(values), CURVE_POINTS).round().astype(int))
    points = [
        {"value": float(values[rank]), "share": float((len(values) - rank) / len(values))}
        for rank in ranks
    ]
    unit = f", {quantity.unit}" if quantity.unit else ""
    chart: Chart = (
        Chart(inline(points), width=_WIDTH, height=_HEIGHT)
        .mark("line", color=_LOOK.stroke(0), interpolate="step-before")
        .encode(
            x=Channel(
                "value:Q",
                title=quantity.name + unit,
                scale={"type": "log"},
                axis={"labelOverlap": "greedy", "format": "~s"},
            ),
            y=Channel("share:Q", title="share that is at least as large", scale={"type": "log"}),
        )
    )
    return chart


def logscale(memories: list[Memory]) -> Chart:
    """Energy of the Haar wavelet's coefficients by time scale, and the lines fitted to it."""
    points, lines = [], []
    for memory in memories:
        hurst = "" if memory.hurst is None else f", H {memory.hurst:.2f}"
        name = memory.name + hurst
        height = np.log2(np.maximum(memory.energies, 1e-300) / memory.energies[0])
        shown = memory.energies > 0
        points += [
            {"series": name, "scale": float(scale), "energy": float(value)}
            for scale, value in zip(memory.scales_s[shown], height[shown], strict=True)
        ]
        if memory.hurst is not None:
            scales = memory.scales_s[memory.fitted]
            slope = 2 * memory.hurst - 1
            octave = np.log2(scales)
            middle = np.average(height[memory.fitted], weights=memory.coefficients[memory.fitted])
            centre = np.average(octave, weights=memory.coefficients[memory.fitted])
            lines += [
                {"series": name, "scale": float(scales[k]), "energy": float(value)}
                for k, value in ((k, middle + slope * (octave[k] - centre)) for k in (0, -1))
            ]
    colour = Channel("series:N", scale={"range": list(_LOOK.colours.series)})
    x = Channel("scale:Q", title="time scale, s", scale={"type": "log"})
    y = Channel("energy:Q", title="log2 of the energy")
    dots = Chart(inline(points)).mark("point", filled=True).encode(x=x, y=y, color=colour)
    fits = Chart(inline(lines)).mark("line").encode(x=x, y=y, color=colour)
    chart: Chart = (dots + fits).properties(
        width=_WIDTH, height=_HEIGHT, title="Memory: the steeper, the longer"
    )
    return chart
