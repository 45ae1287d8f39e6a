"""Runs that are wanted: what is found is not made, what is missing is made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from aqmlab import AqmlabError, Run, RunError, Scenario
from aqmlab.engine.batch import Batch
from aqmlab.engine.commit import nothing
from aqmlab.engine.store import Store
from conftest import SMALL

BASE = Scenario.from_toml(SMALL)


class Pool:
    """Notes what it is asked for; a run takes its seed in seconds, and seed 4 fails."""

    jobs = 2

    def __init__(self) -> None:
        self.probed: list[int] = []
        self.made: list[int] = []

    def probe(self, scenarios: Sequence[Scenario]) -> list[float]:
        self.probed = [one.seed for one in scenarios]
        return [float(seed) for seed in self.probed]

    def run(
        self,
        scenarios: Sequence[Scenario],
        store: Store,  # noqa: ARG002 - nothing is written
        progress: Callable[[int, float], None],
        take: Callable[[Run], Any],  # noqa: ARG002 - there are no runs
    ) -> list[Any]:
        self.made = [one.seed for one in scenarios]
        for index in range(len(scenarios)):
            progress(index, 0.5)
            progress(index, 1.0)
        return [RunError("no room") if seed == 4 else -seed for seed in self.made]


def of_seeds(seeds: Sequence[int], store: Path, known: Sequence[str] = ()) -> Batch[int, str]:
    """The runs of some seeds, called by these."""
    return Batch(
        {f"key {seed}": seed for seed in seeds},
        BASE.with_seed,
        Store(store),
        lambda key: key.upper() if key in known else None,
    )


def test_what_is_found_is_not_made(tmp_path: Path) -> None:
    batch = of_seeds(range(1, 6), tmp_path, ["key 2", "key 5"])
    assert batch.found == {"key 2": "KEY 2", "key 5": "KEY 5"}
    assert batch.missing == {"key 1": 1, "key 3": 3, "key 4": 4}
    pool = Pool()
    shares: list[float] = []
    each: list[tuple[int, float]] = []
    made = batch.make(pool, nothing, shares.append, lambda seed, done: each.append((seed, done)))
    assert pool.made == [1, 3, 4]
    assert [*made] == ["key 1", "key 3", "key 4"]
    assert [*map(str, made.values())] == ["-1", "-3", "no room"]
    assert each == [(seed, done) for seed in (1, 3, 4) for done in (0.5, 1.0)]
    assert shares == pytest.approx([number / 6 for number in range(1, 7)])
    assert shares[-1] == 1.0


def test_nobody_is_asked_for_nothing(tmp_path: Path) -> None:
    """Nor is a folder wanted that could be written to."""
    pool = Pool()
    (tmp_path / "store").write_text("a file")
    assert of_seeds([1], tmp_path / "store", ["key 1"]).make(pool, nothing, print) == {}
    assert pool.made == []
    with pytest.raises(AqmlabError, match="store"):
        of_seeds([1], tmp_path / "store")


@pytest.mark.parametrize(
    ("count", "probed", "seconds"), [(1, [1], 1.0), (2, [1, 2], 1.5), (9, [1, 4, 7], 18.0)]
)
def test_a_few_runs_tell_how_long_all_take(
    tmp_path: Path, count: int, probed: list[int], seconds: float
) -> None:
    """They are spread over all of them, of which two are made at a time."""
    pool = Pool()
    assert of_seeds(range(1, count + 1), tmp_path).seconds(pool) == seconds
    assert pool.probed == probed


def test_a_scenario_is_made_when_it_is_needed(tmp_path: Path) -> None:
    """Thousands of them at a time would fill the memory."""
    asked: list[int] = []

    def scenario_of(seed: int) -> Scenario:
        asked.append(seed)
        return BASE.with_seed(seed)

    wanted = {f"key {seed}": seed for seed in range(1, 100)}
    batch: Batch[int, str] = Batch(wanted, scenario_of, Store(tmp_path), lambda _: None)
    assert asked == []
    batch.seconds(Pool())
    assert asked == [1, 34, 67]
