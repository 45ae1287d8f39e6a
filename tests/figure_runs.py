"""Real runs with everything recorded, and what can be read off a figure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from aqmlab.engine.execute import execute
from aqmlab.figures import kinds
from aqmlab.scenario.scenario import Scenario
from conftest import SMALL
from report_runs import DROPTAIL, RED, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from aqmlab.results.run import Run

draw = SimpleNamespace(**{name.replace("-", "_"): kinds.kind(name).draw for name in kinds.names()})
"""What draws each kind: `figures` without Altair, whose checks take longer than drawing."""

THIRD = """
[[traffic]]
name = "transfers"
kind = "bulk"
flows = 3
start_within = "1 s"
rtt = { kind = "constant", rtt = "60 ms" }
"""


def figure_runs(
    folder: Path, queues: Sequence[str] = (DROPTAIL, RED), seeds: Sequence[int] = (1, 2, 3)
) -> list[Run]:
    """A run for each queue and seed; fetches, pages and endless transfers share 2 Mbit/s."""
    text = SMALL + SECOND + THIRD
    return [
        execute(
            Scenario.from_toml(text).with_overrides(
                [
                    ("topology.bottleneck.forward.discipline", queue),
                    ("seed", str(seed)),
                    ("measure.breakdown", "true"),
                    ("measure.record", '["responses", "flows", "queue", "sojourn"]'),
                    (
                        "measure.flow_trace",
                        '{ flows = 3, period = "100 ms", min_response = "1 MB" }',
                    ),
                ]
            ),
            folder / f"q{number}-s{seed}",
        )
        for number, queue in enumerate(queues)
        for seed in seeds
    ]


def rows(chart: Any, *keys: str) -> list[dict[str, Any]]:
    """The data behind a chart's marks: all rows that have some keys."""

    spec = chart.to_dict()
    every = [row for rows in spec["datasets"].values() for row in rows]
    return [row for row in every if set(keys) <= row.keys()]


def data_of(chart: Any, view: Any) -> list[dict[str, Any]]:
    """The data of a part of a chart."""
    found: list[dict[str, Any]] = chart.to_dict()["datasets"][view["data"]["name"]]
    return found


def title(chart: Any) -> str:
    """What a chart says."""
    return " ".join(chart.to_dict()["title"]["text"])


def subtitle(chart: Any) -> str:
    """What a chart says that it draws."""
    return " ".join(chart.to_dict()["title"]["subtitle"])


@dataclass(frozen=True)
class Label:
    """A tick's label: its place on its axis, its text, its size."""

    x: float
    y: float
    text: str
    size: float
    slanted: bool


_AXIS = re.compile(r'class="mark-text role-axis-label"[^>]*>(.*?)</g>', re.DOTALL)
_TEXT = re.compile(
    r'<text text-anchor="\w+" transform="translate\(([-\d.]+),([-\d.]+)\)([^"]*)"[^>]*'
    r'font-size="([\d.]+)px"([^>]*)>([^<]*)</text>'
)


def axes(svg: str) -> list[list[Label]]:
    """The labels of each axis of an SVG, as far as they are shown."""
    found = []
    for axis in _AXIS.findall(svg):
        labels = [
            Label(float(x), float(y), text, float(size), "rotate" in turned)
            for x, y, turned, size, more, text in _TEXT.findall(axis)
            if text and 'opacity="0"' not in more
        ]
        if labels:
            found.append(labels)
    return found


def colliding(labels: Sequence[Label]) -> list[tuple[str, str]]:
    """Neighbouring labels of an axis that touch each other."""
    across = len({label.y for label in labels}) == 1
    ordered = sorted(labels, key=lambda label: label.x if across else label.y)
    return [
        (first.text, second.text)
        for first, second in pairwise(ordered)
        if (
            second.x - first.x
            < first.size * (1.8 if first.slanted else 0.27 * len(first.text + second.text))
            if across
            else second.y - first.y < 0.9 * first.size
        )
    ]
