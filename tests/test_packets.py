"""The table of every packet: it balances behind each queue, and its size is said before the run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from aqmlab import Run, Scenario, _native, run
from aqmlab.engine import packet_table
from aqmlab.errors import AqmlabError
from conftest import SMALL, Cli

GONE = ("left", "marked", "wire")
KEPT = (*GONE, "waiting")
PRESETS = sorted(json.loads(_native.catalog())["presets"])
"""Queues with all their values; of each discipline there is one."""


def recorded(overrides: dict[str, object]) -> Run:
    """A small run with packets, from its first moment on."""
    scenario = Scenario.from_toml(SMALL).with_overrides(
        {"measure.warm_up": "0 s", "measure.duration": "10 s", "measure.record": ["packets"],
         **overrides}
    )  # fmt: skip
    found = run(scenario, progress=False)
    assert isinstance(found, Run)
    return found


@pytest.mark.parametrize("queue", PRESETS)
def test_rows_balance_behind_each_queue(queue: str) -> None:
    made = recorded({"topology.bottleneck.forward.discipline": queue})
    rows = made.packets
    assert rows is not None
    for way, link in made.summary["links"]["bottleneck"].items():
        own = rows.filter(pc.equal(rows.column("direction"), way))
        assert own.num_rows == link["arrived_packets"]
        outcomes = own.column("outcome").cast(pa.string())
        dropped = own.filter(pc.invert(pc.is_in(outcomes, pa.array(KEPT))))
        reasons = dropped.column("outcome").cast(pa.string()).value_counts().to_pylist()
        counts = {one["values"]: one["counts"] for one in reasons}
        assert counts == {reason: count for reason, count in link["drops"].items() if count}
        marked = pc.sum(pc.equal(outcomes, "marked")).as_py() or 0
        assert marked == link["marked_packets"]
        gone = pc.is_in(outcomes, pa.array(GONE))
        assert pc.equal(pc.is_valid(own.column("wait_ns")), gone).combine_chunks().false_count == 0
        # The bins of sojourn.parquet hold the same waits.
        waits = np.sort(own.column("wait_ns").drop_null().to_numpy()) / 1e9
        assert made.sojourn is not None
        bins = made.sojourn.filter(pc.equal(made.sojourn.column("direction"), way))
        below = np.searchsorted(waits, bins.column("below_s").to_numpy() - 1e-12)
        assert below.tolist() == np.cumsum(bins.column("count").to_numpy()).tolist()


def test_the_size_is_said_before_the_run(aqmlab: Cli, small: Path) -> None:
    answer = aqmlab("run", small, "--set", 'measure.record=["packets"]')
    assert answer.status == 0
    [line] = [line for line in answer.err.splitlines() if "packets.parquet" in line]
    assert line == "aqmlab: packets.parquet: at most about 10,000 rows, 150 kB"
    made = Run.open(next(Path("runs").iterdir()))
    assert 5_000 < made.rows("packets") < 10_000
    again = aqmlab("run", small, "--set", 'measure.record=["packets"]')
    assert "packets.parquet" not in again.err, "it is there"


def test_a_table_that_is_too_large_is_refused(aqmlab: Cli, small: Path) -> None:
    settings = {
        "measure.duration": "1 h",
        "topology.bottleneck.rate": "1 Gbit/s",
        "measure.record": ["packets"],
        "topology.bottleneck.discipline": "droptail-240",
    }
    options = [word for name, value in settings.items() for word in
               ("--set", f"{name}={value}".replace("'", '"'))]  # fmt: skip
    answer = aqmlab("run", small, *options)
    assert answer.status == 2
    assert answer.err == (
        "aqmlab: measure.record: packets.parquet has at most about 900.0 million rows, 13.5 GB, "
        "and its limit is 2 GB; shorten measure.duration\n"
    )
    assert not Path("runs").exists()


def test_a_full_disk_is_seen_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario.from_toml(SMALL).with_overrides({"measure.record": ["packets"]})
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(AqmlabError, match=r"150 kB, and /\S+ has 1 kB left; shorten"):
        packet_table.check([scenario], Path("runs/new"))
    assert packet_table.check([Scenario.from_toml(SMALL)], Path("runs/new")) is None


def test_the_engine_names_the_links_of_an_estimate() -> None:
    scenario = Scenario.load("scenarios/office.toml", [("measure.record", '["packets"]')])
    size = packet_table.estimate(scenario)
    assert size is not None
    rates = {
        (link, way): rate
        for index in range(len(scenario.data["traffic"]))
        for link, way, rate in _native.loaded_links(scenario.effective, index)
    }
    assert rates == {("bottleneck", "forward"): 50e6, ("bottleneck", "reverse"): 10e6}
    assert size.rows == pytest.approx(60e6 * 180 / 8000 * 2)
