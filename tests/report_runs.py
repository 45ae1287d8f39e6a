"""Real runs of a small scenario with two classes of traffic, for the tests of reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.engine.execute import execute
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario
from conftest import SMALL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SECOND = """
[[traffic]]
name = "pages"
kind = "poisson"
rate = "10 /s"
request = { kind = "constant", size = "400 bytes" }
response = { kind = "constant", size = "12 kB" }
rtt = { kind = "uniform", min = "20 ms", max = "100 ms" }
"""
DROPTAIL = '{ kind = "droptail", limit = "20 packets" }'
RED = '{ kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets" }'
QUEUES = (DROPTAIL, RED)


def real_runs(
    folder: Path,
    queues: Sequence[str] = QUEUES,
    seeds: Sequence[int] = (1,),
    title: str = "Small fetches over a slow link",
    record: str = '["responses", "flows", "queue"]',
) -> list[Run]:
    """A run for each queue and seed, in folders named after their numbers."""
    return [
        execute(
            Scenario.from_toml(SMALL + SECOND).with_overrides(
                [
                    ("topology.bottleneck.discipline", queue),
                    ("seed", str(seed)),
                    ("title", title),
                    ("measure.record", record),
                ]
            ),
            folder / f"q{number}-s{seed}",
        )
        for number, queue in enumerate(queues)
        for seed in seeds
    ]
