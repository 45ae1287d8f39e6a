"""A metric over two parameters."""

from __future__ import annotations

from aqmlab.errors import AqmlabError
from aqmlab.figures import parameters
from aqmlab.figures.axes import name_axis
from aqmlab.figures.findings import Finding, finding, shown
from aqmlab.figures.grammar import Channel, Chart, inline, layer
from aqmlab.figures.quantities import Plotted, usual
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.configurations import (
    Configuration,
    Sources,
    configurations,
    seeds_in_words,
    values_of,
)
from aqmlab.results.values import text_of

__all__ = ["heat_map"]


def heat_map(
    runs: Sources,
    *,
    metric: str | None = None,
    x: str | None = None,
    y: str | None = None,
    link: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """A metric over two parameters, as colours and numbers.

    A field is the mean over the seeds. Parameters are the variables of a sweep, or the fields in
    which the scenarios of the runs differ. The two parameters of the map must distinguish all runs.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        metric: Metric, such as p95, delay or loss, or a key of summary.json. Default: the median
            response time, or the mean queueing delay if there are no responses.
        x: Parameter on the horizontal axis; default: the numeric parameter with the most values.
        y: Parameter on the vertical axis; default: the numeric parameter with the most values,
            except --x.
        link: Link; default: the busiest link.
        look: Width and theme.
    """
    found = configurations(runs, look.names)
    of = usual(metric, found, link)
    known = of.measured(found)
    up = parameters.chosen(known, y) if y else None
    across = (
        parameters.chosen(known, x) if x else parameters.default_axis(known, but=[up] if up else [])
    )
    up = up or parameters.default_axis(known, but=[across])
    if across == up:
        raise AqmlabError(f"x and y: found {up} for both; a map takes two parameters")
    rows = _fields(known, of, across, up)
    said = finding([Finding(entry.label, of.values(entry)) for entry in known], of.words, of.unit)
    heading = Heading(said, (f"{of.title} over {across} and {up}; means; {seeds_in_words(known)}",))
    orders = {name: [text_of(v) for v in values_of(known, name)] for name in (across, up)}
    numbers = [float(str(row["value"])) for row in rows]
    middle = (min(numbers) + max(numbers)) / 2

    def build(room: float) -> Chart:
        height = min(look.size.height * 1.5, 2.6 * look.size.text * max(len(orders[up]), 2))
        axis = name_axis(orders[across], room, look.size.text)
        base = Chart(inline(rows), width=room, height=height).encode(
            x=Channel(
                "x:N",
                title=across,
                sort=orders[across],
                axis=axis,
            ),
            y=Channel("y:N", title=up, sort=orders[up][::-1]),
        )
        colour = Channel(
            "value:Q",
            scale={"range": list(look.colours.scheme), "domain": [min(numbers), max(numbers)]},
            legend=None,
        )
        fields = base.mark("rect", stroke=look.colours.background, strokeWidth=1).encode(
            color=colour
        )
        # Words stand out from their field: it is light below the middle in a light theme.
        texts = base.mark("text", fontSize=look.size.text).encode(
            text="shown:N",
            color={
                "condition": {
                    "test": f"datum.value > {middle}",
                    "value": look.colours.background,
                },
                "value": look.colours.text,
            },
        )
        return layer(fields, texts)

    return Figure(heading, build, margin=7).chart(look)


def _fields(
    known: list[Configuration], of: Plotted, across: str, up: str
) -> list[dict[str, float | str]]:
    """The map's fields; an error if several configurations share one."""
    rows: dict[tuple[str, str], dict[str, float | str]] = {}
    for entry in known:
        at = (
            text_of(entry.parameters.get(across)),
            text_of(entry.parameters.get(up)),
        )
        if at in rows:
            others = [name for name in parameters.named(known) if name not in (across, up)]
            raise AqmlabError(
                f"several configurations have {across} {at[0]} and {up} {at[1]}: they differ in "
                f"{', '.join(others)} too; choose others of them as x and y, or name fewer runs"
            )
        estimate = of.estimate(entry)
        assert estimate is not None, "only what was measured is drawn"
        rows[at] = {"x": at[0], "y": at[1], "value": estimate.mean, "shown": shown(estimate.mean)}
    return list(rows.values())
