"""What runs recorded, in one figure."""

from __future__ import annotations

from aqmlab.errors import AqmlabError
from aqmlab.figures import queues
from aqmlab.figures.compared import compared
from aqmlab.figures.distributions import Selection, Tail, views
from aqmlab.figures.grammar import Chart, hconcat, vconcat
from aqmlab.figures.theme import Figure, Heading, Look, finish
from aqmlab.results.configurations import Sources

__all__ = ["comparison"]


def comparison(
    runs: Sources,
    *,
    limit_s: float | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Response times, and queueing delay over time.

    Distribution and tail of the response times, and the queueing delay below: what `aqmlab compare`
    draws, as far as the runs recorded it.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        limit_s: End of the time axis in seconds; default: chosen from the data.
        look: Width and theme.
    """
    found = compared(runs, look)
    have_responses = any(
        values.get("count")
        for entry in found
        for run in entry.runs
        for values in run.summary.get("responses", {}).values()
    )
    tails: tuple[Tail, ...] = ("cdf", "ccdf")
    times = views(found, look, tails, Selection(limit_s=limit_s)) if have_responses else []
    sampled = any(run.has("queue") for entry in found for run in entry.runs)
    over_time = [queues.view(found, look)] if sampled else []
    parts: list[Figure] = [*times, *over_time]
    if not parts:
        raise AqmlabError(
            'no run has responses or queue samples: add "queue" to measure.record and run again'
        )
    names = [entry.label for entry in found]
    title = " and ".join(names) if len(names) < 3 else f"{len(names)} configurations"
    notes = [note for one in parts for note in one.heading.subtitle[1:]]

    side = look.width != "column" and len(times) == len(tails)

    def build(room: float) -> Chart:
        # Two plots beside each other have a second axis and a gap.
        each = (room - 6 * look.size.text) / 2 if side else room
        plots = [_titled(one, each, look) for one in times]
        rows: list[Chart] = [hconcat(*plots, spacing=2 * look.size.text)] if side else plots
        rows += [_titled(one, room, look) for one in over_time]
        drawn: Chart = vconcat(*rows, spacing=1.6 * look.size.text)
        together: Chart = drawn.scales(color="shared")
        return together

    heading = Heading(title, tuple(dict.fromkeys(notes)))
    return finish(build, look, heading, margin=7.5 if side else 6)


def _titled(one: Figure, room: float, look: Look) -> Chart:
    """A part of the figure under its own finding."""
    part: Chart = one.build(room).properties(title=one.heading.within(look, room))
    return part
