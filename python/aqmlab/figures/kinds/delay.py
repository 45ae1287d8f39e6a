"""Queueing delay over time."""

from __future__ import annotations

from aqmlab.figures import queues
from aqmlab.figures.compared import compared
from aqmlab.figures.grammar import Chart
from aqmlab.figures.theme import Look
from aqmlab.results.configurations import Sources

__all__ = ["delay"]


def delay(
    runs: Sources,
    *,
    link: str | None = None,
    direction: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Queueing delay over time.

    Each loaded direction of a link has a plot. The delay is an estimate: the bytes in the queue
    over the rate of the link, from the samples of queue.parquet. For one run the line is the mean
    of short intervals, and the band reaches from their smallest to their largest sample. For
    several seeds line and band are the mean and its 95 % interval. The title states the mean of the
    curve, the subtitle the exact mean over all packets. They differ where some flows go first.
    Curves of very different height get plots of their own on one axis, which is logarithmic beyond
    a factor of ten.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        link: Link; default: all loaded links.
        direction: Direction of the link; default: all loaded directions.
        look: Width and theme.
    """
    return queues.view(compared(runs, look), look, link, direction).chart(look)
