"""Utilization against delay, with the Pareto front."""

from __future__ import annotations

import math

from aqmlab._util.words import listing
from aqmlab.figures import tradeoffs
from aqmlab.figures.compared import compared
from aqmlab.figures.findings import is_single
from aqmlab.figures.grammar import Chart, inline, layer
from aqmlab.figures.quantities import quantity
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.configurations import Sources, seeds_in_words

__all__ = ["utilization_delay"]


def utilization_delay(
    runs: Sources,
    *,
    delay: str = "delay",
    utilization: str = "utilization",
    link: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Utilization against delay, with the Pareto front.

    A dot for each configuration, with its 95 % intervals over the seeds. The line joins those that
    no other configuration beats: none has both less delay and more utilization. Delay runs from
    right to left, so that up and to the right is better.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        delay: Metric that should be small, such as p95; default: the mean queueing delay in the
            busiest direction of the link.
        utilization: Metric that should be large; default: the utilization in the busiest direction.
        link: Link; default: the busiest link.
        look: Width and theme.
    """
    found = compared(runs, look)
    cost, gain = quantity(delay, found, link), quantity(utilization, found, link)
    places = tradeoffs.placed(
        (entry.label, cost.values(entry), gain.values(entry)) for entry in found
    )
    x, y = tradeoffs.axes(places, cost.title, gain.title)
    names = [entry.label for entry in found]
    best = tradeoffs.front(places)
    corners = [
        {"x": one.mean[0], "y": one.mean[1], "order": number} for number, one in enumerate(best)
    ]
    bars = []
    for one in places:
        across, up = (
            of.of_values(column) for of, column in zip((cost, gain), one.points.T, strict=True)
        )
        # A side without an interval, such as equal values, has a bar of no length.
        left, right, low, high = (
            middle.mean if math.isnan(end) else end
            for middle in (across, up)
            for end in (middle.low, middle.high)
        )
        if (left, low) != (right, high):
            bars.append(
                {
                    "series": one.name, "x": across.mean, "y": up.mean,
                    "x0": max(left, x.low), "x1": right, "y0": low, "y1": high,
                }
            )  # fmt: skip
    heading = Heading(
        _title(places),
        (
            f"{gain.label} against {cost.words}; {seeds_in_words(found)}",
            "line: Pareto front of the means"
            + ("; bars: 95 % intervals of the mean over seeds" if bars else ""),
        ),
    )

    def build(room: float) -> Chart:
        line = (
            Chart(inline(corners), width=room, height=look.size.height)
            .mark(
                "line",
                interpolate="step-before",
                color=look.colours.soft,
                strokeDash=[4, 3],
                strokeWidth=look.size.stroke,
            )
            .encode(x=x.x("x"), y=y.y("y"), order="order:Q")
        )
        base = Chart(inline(bars)).encode(color=look.colour(names, legend=True))
        rule = base.mark("rule", strokeWidth=0.8 * look.size.stroke, opacity=0.7, clip=True)
        across = rule.encode(x=x.x("x0"), x2="x1:Q", y=y.y("y"))
        up = rule.encode(x=x.x("x"), y=y.y("y0"), y2="y1:Q")
        return layer(line, across, up, tradeoffs.names_at(places, names, look, x, y))

    return Figure(heading, build, margin=5.4).chart(look)


def _title(places: list[tradeoffs.Place]) -> str:
    """What is on the front, as far as the seeds tell."""
    best = [one.name for one in tradeoffs.front(places)]
    single = is_single([one.cost for one in places])
    if len(best) == len(places):
        text = "None is better in both ways" if len(places) > 1 else f"Only {best[0]} was run"
    elif len(best) == 1:
        text = f"{best[0]} is best in both ways"
    else:
        text = f"On the Pareto front: {listing(best, 'and')}"
    if single:
        return f"{text} (one seed)"
    near = [one.name for one in tradeoffs.possibly_on_front(places)]
    return f"{text}; not clearly worse: {', '.join(near)}" if near else text
