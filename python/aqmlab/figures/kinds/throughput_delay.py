"""Throughput against delay, with ellipses."""

from __future__ import annotations

from aqmlab.figures import tradeoffs
from aqmlab.figures.compared import compared
from aqmlab.figures.findings import finding
from aqmlab.figures.grammar import Chart, inline, layer
from aqmlab.figures.quantities import quantity
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.configurations import Sources, seeds_in_words

__all__ = ["throughput_delay"]


def throughput_delay(
    runs: Sources,
    *,
    delay: str = "delay",
    throughput: str = "throughput",
    link: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Throughput against delay, with 1-sigma ellipses.

    As Winstein and Balakrishnan draw it (SIGCOMM 2013), over the seeds: a dot for the mean, the
    ellipse of one standard deviation around it, and delay from right to left, so that up and to the
    right is better. An ellipse needs at least three seeds.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        delay: Metric that should be small, such as p95; default: the mean queueing delay in the
            busiest direction of the link.
        throughput: Metric that should be large, such as goodput; default: the throughput in the
            busiest direction.
        link: Link; default: the busiest link.
        look: Width and theme.
    """
    found = compared(runs, look)
    cost, gain = quantity(delay, found, link), quantity(throughput, found, link)
    places = tradeoffs.placed(
        (entry.label, cost.values(entry), gain.values(entry)) for entry in found
    )
    x, y = tradeoffs.axes(places, cost.title, gain.title)
    names = [entry.label for entry in found]
    corners = [row for one in places for row in tradeoffs.ellipse(one)]
    one_by_one = [
        {"series": one.name, "x": float(a), "y": float(b)} for one in places for a, b in one.points
    ]
    notes = (
        "dots: means; ellipses: one standard deviation over the seeds"
        if corners
        else ("dots: means; an ellipse takes three seeds")
    )
    heading = Heading(
        finding([one.cost for one in places], cost.words, cost.unit),
        (f"{gain.label} against {cost.words}; {seeds_in_words(found)}", notes),
    )

    def build(room: float) -> Chart:
        base = Chart(width=room, height=look.size.height).encode(
            color=look.colour(names, legend=True)
        )
        seeds = base.mark("point", size=1.5 * look.size.text, opacity=0.5, filled=True).encode(
            x=x.x("x"), y=y.y("y"), shape=look.shape(names, legend=True)
        )
        outlines = base.mark(
            "line", interpolate="linear-closed", strokeWidth=look.size.stroke, clip=True
        ).encode(x=x.x("x"), y=y.y("y"), order="order:Q")
        layers = [
            seeds.properties(data=inline(one_by_one)),
            outlines.properties(data=inline(corners)),
            tradeoffs.names_at(places, names, look, x, y),
        ]
        return layer(*layers)

    return Figure(heading, build).chart(look)
