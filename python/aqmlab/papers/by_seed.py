"""What differs from seed to seed in a paper's runs: ``[by_seed]`` of ``tables.toml``.

Traffic with a heavy tail carries another load with every seed, though its rates are the same. A
paper that states the load of each run needs rates by seed. A CSV file holds them, a line for each
seed and each combination of the ``keys``; :mod:`aqmlab.papers.calibration` finds them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aqmlab.errors import AqmlabError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aqmlab.scenario.scenario import Override

__all__ = ["BySeed", "Lines"]


Lines = dict[int, dict[str, str]]
"""The columns of a file's lines, by seed."""


@dataclass(frozen=True)
class BySeed:
    """Where the rates by seed are, and how they are found."""

    file: Path
    keys: tuple[str, ...]
    """Columns that a line and the row which it is for have in common."""
    load: str
    """The row's column with the load of each direction, in per cent of the link's rate."""
    exchanges: float | None
    """How many exchanges of each class begin in the measured span of a run, at least; None: the
    scenario says how long the span is."""
    uncongested: tuple[Override, ...]
    """What makes the network of a row one without congestion."""
    large_mb: float | None
    """Size of a response of which the file says when the first one begins; None: of none."""
    large_before_s: float
    """By when it begins in every run."""
    lines: Mapping[tuple[str, ...], Lines] = field(default_factory=dict)
    """What the file holds, by the values of the keys."""

    @classmethod
    def read(cls, spec: Mapping[str, Any], folder: Path) -> BySeed:
        """The table of ``tables.toml``, with the file if there is one."""
        file, keys = folder / spec["file"], tuple(spec["keys"])
        lines: dict[tuple[str, ...], Lines] = {}
        if file.exists():
            with file.open(encoding="utf-8", newline="") as text:
                for line in csv.DictReader(text):
                    of_keys = lines.setdefault(tuple(line[key] for key in keys), {})
                    of_keys[int(line["seed"])] = line
        return cls(
            file=file,
            keys=keys,
            load=spec["load"],
            exchanges=float(spec["exchanges"]) if "exchanges" in spec else None,
            uncongested=tuple(spec["uncongested"].items()),
            large_mb=float(spec["large_mb"]) if "large_mb" in spec else None,
            large_before_s=float(spec["large_before_s"]) if "large_mb" in spec else 0.0,
            lines=lines,
        )

    def key(self, row: Mapping[str, str]) -> tuple[str, ...]:
        """The values of the keys in a row."""
        return tuple(row[key] for key in self.keys)

    def of(self, row: Mapping[str, str]) -> Lines:
        """The lines of a row, by seed."""
        return self.lines.get(self.key(row), {})


def line_of(lines: Mapping[int, Mapping[str, str]], seed: int, row: str) -> Mapping[str, str]:
    """The line of a seed.

    Raises:
        AqmlabError: there is none.
    """
    if seed not in lines:
        raise AqmlabError(
            f"row {row}: found no rates for seed {seed}; there are some for seeds "
            f"{', '.join(map(str, sorted(lines))) or 'none'}: choose one of these, or let "
            "--calibrate find them"
        )
    return lines[seed]
