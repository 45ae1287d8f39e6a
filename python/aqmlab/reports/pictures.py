"""Figures of :mod:`aqmlab.figures` in a report: those that its runs have something for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from html import escape

from aqmlab._util.pool import OnProgress
from aqmlab.errors import AqmlabError
from aqmlab.figures.files import svg
from aqmlab.figures.grammar import Chart
from aqmlab.figures.kinds.cdf import cdf
from aqmlab.figures.kinds.classes import classes
from aqmlab.figures.kinds.delay import delay
from aqmlab.figures.kinds.fairness import fairness
from aqmlab.figures.kinds.flows import flows
from aqmlab.figures.kinds.throughput_delay import throughput_delay
from aqmlab.figures.kinds.why import why
from aqmlab.figures.theme import THEMES, Look
from aqmlab.results.breakdown import has_breakdown
from aqmlab.results.families import families
from aqmlab.results.run import Run

__all__ = ["MOST_CONFIGURATIONS", "ReportPicture", "drawn", "pictures"]


MOST_CONFIGURATIONS = 8
"""Reports of more have no pictures: as many as there are colours."""


_Drawing = tuple[str, Callable[..., Chart]]
"""The name of a figure, and what draws it."""


@dataclass(frozen=True)
class ReportPicture:
    """A figure."""

    name: str
    """Such as ``throughput-delay``."""
    title: str
    """What it says."""
    still: str
    """It as SVG, on white."""
    inline: str
    """It as a part of a page, in the page's colours."""


def pictures(
    runs: Sequence[Run], configurations: int, progress: OnProgress = lambda _: None
) -> list[ReportPicture]:
    """The figures of some runs.

    None of more than :data:`MOST_CONFIGURATIONS`, nor of runs of different scenarios, which are
    not to be compared.
    """
    if configurations > MOST_CONFIGURATIONS or len(families(runs)) > 1:
        return []
    found = []
    fitting = [*_fitting(runs, configurations)]
    for number, (name, draw) in enumerate(fitting):
        progress(number / len(fitting))
        with suppress(AqmlabError):  # recorded, but nothing that the figure could show
            found.append(drawn(name, draw, runs))
    return found


def drawn(name: str, draw: Callable[..., Chart], runs: Sequence[Run]) -> ReportPicture:
    """A figure of some runs; an error if they have nothing that it could show."""
    spec = draw(runs, look=Look(theme="page")).to_dict()
    picture, title = svg(spec), " ".join(spec["title"]["text"])
    return ReportPicture(name, title, _on_white(picture), _inline(name, title, picture))


def _on_white(picture: str) -> str:
    """A figure in the light theme, from its drawing in the colours of a page."""
    light, own = THEMES["light"], THEMES["page"]
    names = {getattr(own, key): getattr(light, key) for key in ("text", "soft", "grid", "axis")}
    names |= zip(own.series, light.series, strict=True)
    coloured = "|".join(map(re.escape, names))
    picture = re.sub(rf'(?<==")(?:{coloured})(?=")', lambda found: names[found[0]], picture)
    paper = rf'\g<0><rect width="\1" height="\2" fill="{light.background}"/>'
    return re.sub(r'^<svg [^>]*viewBox="0 0 (\S+) (\S+)">', paper, picture)


def _fitting(runs: Sequence[Run], configurations: int) -> Iterator[_Drawing]:
    """Names of figures, and what draws them, for which the runs have what they need."""

    def recorded(table: str) -> bool:
        return any(run.has(table) for run in runs)

    if recorded("queue"):
        yield "delay", delay
    if recorded("sojourn"):
        yield "wait", partial(cdf, of="delay")
    if all(map(has_breakdown, runs)):
        yield "why", why
    if configurations > 1:
        yield "throughput-delay", throughput_delay
    if max(len(run.scenario.get("traffic", ())) for run in runs) > 1:
        yield "classes", classes
    if recorded("flow_trace"):
        yield "flows", flows
        yield "fairness", fairness


def _inline(name: str, title: str, picture: str) -> str:
    """A figure inside a page: named, with identifiers that no other figure has."""
    # Its marks are not pictures of their own: the title says what it shows.
    picture = re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", picture)
    for what in ('id="part', "#part"):
        picture = picture.replace(what, what.replace("part", f"{name}-part"))
    return picture.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
