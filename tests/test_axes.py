"""What axes say is what was run: labels of ten sets of values, read out of the drawn picture."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from aqmlab.figures.files import svg
from aqmlab.results.run import Run
from figure_runs import axes, draw
from made_runs import made_run, summary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SETS = {
    "linear, even": (["10 Mbit/s", "20 Mbit/s", "30 Mbit/s"], ["10", "20", "30"]),
    "linear, few digits": (
        ["8 Mbit/s", "15 Mbit/s", "25 Mbit/s", "45 Mbit/s"],
        ["8", "15", "25", "45"],
    ),
    "linear, halves": (["0.5", "1", "1.5", "2.5", "4"], ["0.5", "1", "1.5", "2.5", "4"]),
    "linear, three digits": (["125 ms", "250 ms", "375 ms"], ["125", "250", "375"]),
    "logarithmic, decades": (["1 ms", "10 ms", "100 ms"], ["1", "10", "100"]),
    "logarithmic, few digits": (
        ["3 ms", "15 ms", "25 ms", "45 ms", "350 ms"],
        ["3", "15", "25", "45", "350"],
    ),
    "shares": (["0.001", "0.0025", "0.005", "0.0075"], ["0.001", "0.0025", "0.005", "0.0075"]),
    "per cent": (["12.5 %", "25 %", "37.5 %"], ["12.5", "25", "37.5"]),
    "sizes": (
        ["12345 bytes", "23456 bytes", "45678 bytes"],
        ["12,345", "23,456", "45,678"],
    ),
    "times": (["1.25 s", "7.5 s", "13.75 s"], ["1.25", "7.5", "13.75"]),
}
TIMES = np.linspace(0.1, 2, 50)


def with_values(folder: Path, values: Sequence[str]) -> list[Run]:
    """A run for each value of a parameter."""
    runs = []
    for number, value in enumerate(values):
        made_run(folder / str(number), times=TIMES * (1 + number))
        scenario = {"title": "Values", "seed": 1, "knob": value}
        numbers = summary(TIMES * (1 + number))
        runs.append(Run(folder / str(number), f"knob {value}", numbers, scenario, {"cpu_s": 0.25}))
    return runs


@pytest.mark.parametrize("name", SETS)
def test_the_values_of_a_parameter_are_the_labels_of_its_axis(name: str, tmp_path: Path) -> None:
    values, expected = SETS[name]
    picture = svg(draw.parameter(with_values(tmp_path, values), x="knob", metric="p50").to_dict())
    labels = [[label.text for label in labels] for labels in axes(picture)]
    assert expected in labels, labels


def test_no_axis_of_throughput_begins_below_zero(tmp_path: Path) -> None:
    runs = with_values(tmp_path, ["1", "2"])
    for run, bps in zip(runs, (0.0, 50e6), strict=True):
        side = run.summary["links"]["bottleneck"]["forward"]
        side["throughput_bps"] = bps
    picture = svg(draw.throughput_delay(runs).to_dict())
    labels = [label.text for labels in axes(picture) for label in labels]
    assert not [text for text in labels if text.startswith(("-", "\u2212"))], labels


def test_more_runs_than_colours_differ_in_shape(tmp_path: Path) -> None:
    values = [str(number) for number in range(1, 12)]
    picture = svg(draw.throughput_delay(with_values(tmp_path, values)).to_dict())
    legend = re.search(r'class="mark-group role-legend".*', picture, re.DOTALL)
    assert legend is not None
    symbols = re.findall(
        r'role-legend-symbol" pointer-events="none"><path transform="[^"]*" d="([^"]*)"'
        r'[^>]*?fill="([^"]*)"',
        legend[0],
    )
    assert len(symbols) == len(values), symbols
    assert len(set(symbols)) == len(values)
