"""Tails of distributions."""

from __future__ import annotations

from aqmlab.figures.compared import compared
from aqmlab.figures.distributions import Of, Selection, view
from aqmlab.figures.grammar import Chart
from aqmlab.figures.theme import Look
from aqmlab.results.configurations import Sources

__all__ = ["ccdf"]


def ccdf(
    runs: Sources,
    *,
    of: Of = "response",
    traffic: str | None = None,
    link: str | None = None,
    direction: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Tail of response times, durations or queueing delays.

    The share that took a time or longer, of responses, connections or packets in a queue, on
    logarithmic axes, down to single values at the end of the tail. Bands are those of ``cdf``;
    parts below a tenth of their curve are left out.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        of: Response times (response), durations of connections (flow), or queueing delays of
            packets (delay).
        traffic: Class of traffic; default: all classes together.
        link: Link; default: all loaded links.
        direction: Direction of the link; default: all loaded directions.
        look: Width and theme.
    """
    return view(compared(runs, look), look, "ccdf", Selection(of, traffic, link, direction)).chart(
        look
    )
