"""Distributions up to each time."""

from __future__ import annotations

from aqmlab.figures.compared import compared
from aqmlab.figures.distributions import Of, Selection, view
from aqmlab.figures.grammar import Chart
from aqmlab.figures.theme import Look
from aqmlab.results.configurations import Sources

__all__ = ["cdf"]


def cdf(
    runs: Sources,
    *,
    of: Of = "response",
    traffic: str | None = None,
    link: str | None = None,
    direction: str | None = None,
    limit_s: float | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Distribution of response times, durations or delays.

    The share that took at most a time, of responses, connections or packets in a queue: exact where
    rows were recorded, else to the width of the bins that every run keeps. Bands are 95 % intervals
    of the mean over the seeds. For one run that recorded its responses they come from blocks of its
    measured time. The time axis ends at a round number above the time within which 90 % of the
    slowest curve lie. It is logarithmic where the curves are of unlike size.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        of: Response times (response), durations of connections (flow), or queueing delays of
            packets (delay).
        traffic: Class of traffic; default: all classes together.
        link: Link; default: all loaded links.
        direction: Direction of the link; default: all loaded directions.
        limit_s: End of the time axis in seconds; default: chosen from the data.
        look: Width and theme.
    """
    return view(
        compared(runs, look), look, "cdf", Selection(of, traffic, link, direction, limit_s)
    ).chart(look)
