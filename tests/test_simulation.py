"""Runs that are stepped and changed from outside: the same files as in one go."""

import random
from pathlib import Path

import aqmlab
import numpy as np
import pytest
from aqmlab import AqmlabError, Scenario, ScenarioError, Simulation
from aqmlab.figures.queues import delays
from aqmlab.results.links import LinkDirection

SHORT = {"measure.warm_up": "1 s", "measure.duration": "4 s"}
LIMIT = "bottleneck.forward.discipline.limit"


@pytest.fixture
def bulk() -> Scenario:
    return Scenario.load("scenarios/bulk.toml").with_overrides(SHORT)


def files(run: aqmlab.Run) -> dict[str, bytes]:
    """What a run directory holds, except the times of the machine."""
    timed = {"metadata.json", "manifest.json"}
    return {path.name: path.read_bytes() for path in run.path.iterdir() if path.name not in timed}


def test_steps_give_the_run_in_one_go(bulk: Scenario, tmp_path: Path) -> None:
    whole = aqmlab.run(bulk, out_dir=tmp_path / "whole")
    draws = random.Random(1)
    with Simulation(bulk, runs_root=tmp_path) as sim:
        while sim.time < sim.end:
            sim.step(draws.expovariate(20))
        stepped = sim.finish()
    assert stepped.metadata["key"] == whole.metadata["key"]
    assert files(stepped) == files(whole)


def test_changes_become_part_of_the_scenario(bulk: Scenario, tmp_path: Path) -> None:
    with Simulation(bulk, seed=3, runs_root=tmp_path) as sim:
        sim.run_until("2 s")
        sim.set(LIMIT, "20 packets")
        sim.set(LIMIT, "20 packets")
        sim.run_until(3)
        sim.set("bottleneck.forward.rate", "3 Mbit/s")
        sim.set("traffic.transfers.flows", 4)
        stepped = sim.finish()
    assert [(change["at"], change["key"]) for change in stepped.scenario["changes"]] == [
        ("2 s", LIMIT),
        ("3 s", "bottleneck.forward.rate"),
        ("3 s", "traffic.transfers.flows"),
    ]
    again = aqmlab.run(Scenario.load(stepped.path / "scenario.toml"), out_dir=tmp_path / "again")
    assert files(again) == files(stepped)
    assert again.metadata["key"] == stepped.metadata["key"]
    assert list(tmp_path.glob(".*")) == []


def test_steps_add_up(bulk: Scenario) -> None:
    sim = Simulation(bulk, record=False)
    names = ("arrived_packets", "departed_packets", "dropped_packets")
    sums = dict.fromkeys(names, 0)
    while sim.time < sim.end:
        sim.step("100 ms")
        link = sim.links["bottleneck.forward"]
        for name in names:
            sums[name] += getattr(link, name)
    assert link.step_s == pytest.approx(0.1)
    arrived, departed, dropped = sums.values()
    assert arrived - departed - dropped == link.backlog_packets
    assert 0.9 < link.throughput_bps / 10e6 < 1.0
    # What waits takes its time: 1500 bytes and 38 of framing each, and the packet on the wire.
    assert link.delay_s == pytest.approx(link.backlog_packets * 1538 * 8 / 10e6, rel=0.2)
    assert len(sim.flows) == 8
    table = sim.flow_table()
    assert table.num_rows == 8
    assert set(table["class_name"].to_pylist()) == {"transfers"}
    received = sum(table["received_bytes"].to_pylist())
    assert received * 8 / link.step_s == pytest.approx(link.throughput_bps, rel=0.2)
    assert all(flow.rtt_s is not None and flow.rtt_s > 0.1 for flow in sim.flows)


def test_a_smaller_target_makes_a_shorter_queue(bulk: Scenario) -> None:
    codel = bulk.with_overrides({"topology.bottleneck.forward.discipline": "codel"})
    sim = Simulation(codel.with_overrides({"measure.duration": "60 s"}), record=False)

    def mean_delay(until: float) -> float:
        delays = []
        while sim.time < until:
            sim.step(0.05)
            delays.append(sim.links["bottleneck.forward"].delay_s)
        return sum(delays) / len(delays)

    sim.set("bottleneck.forward.discipline.target", "30 ms")
    mean_delay(10)
    long = mean_delay(30)
    sim.set("bottleneck.forward.discipline.target", "2 ms")
    mean_delay(40)
    assert mean_delay(60) < long / 2


def test_nothing_stays_of_what_is_given_up(bulk: Scenario, tmp_path: Path) -> None:
    with Simulation(bulk, runs_root=tmp_path) as sim:
        sim.run_until(1)
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_is_named(bulk: Scenario, tmp_path: Path) -> None:
    sim = Simulation(bulk, record=False)
    with pytest.raises(ScenarioError, match=r'found "bottleneck\.forward\.limit".*did you mean'):
        sim.set("bottleneck.forward.limit", "5 packets")
    with pytest.raises(ScenarioError, match=r'^bottleneck\.forward\.rate: found "much"'):
        sim.set("bottleneck.forward.rate", "much")
    with pytest.raises(AqmlabError, match='time: found "soon"; expected a time'):
        sim.run_until("soon")
    with pytest.raises(AqmlabError, match="time: found -1; expected at least 0 s"):
        sim.step(-1)
    with pytest.raises(AqmlabError, match="made with record=False"):
        sim.finish()
    assert LIMIT in sim.changeable
    taken = tmp_path / "taken"
    taken.mkdir()
    with (
        Simulation(bulk, runs_root=tmp_path) as other,
        pytest.raises(AqmlabError, match="already exists"),
    ):
        other.finish(taken)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            'at = "9 s", key = "bottleneck.forward.rate", value = "1 Mbit/s"',
            "changes.0.at: found 9 s",
        ),
        ('at = "1 s", key = "bottleneck.rate", value = "1 Mbit/s"', "changes.0.key: found"),
        (
            'at = "1 s", key = "bottleneck.forward.rate", value = "0 bit/s"',
            "changes.0.value: found 0",
        ),
        (
            'at = "1 s", key = "traffic.transfers.flows", value = 8',
            "which traffic.transfers.flows is",
        ),
        ('at = "1 s", key = "traffic.transfers.flows", value = [8]', "changes.0.value: found"),
    ],
)
def test_a_scenario_with_a_wrong_change_is_refused(
    bulk: Scenario, change: str, message: str
) -> None:
    with pytest.raises(ScenarioError) as error:
        bulk.with_overrides([("changes", f"[{{ {change} }}]")])
    assert message in str(error.value)
    assert str(error.value).startswith("changes.0.")


def test_a_changed_rate_counts_in_figures(bulk: Scenario, tmp_path: Path) -> None:
    changed = bulk.with_overrides(
        {
            "changes": [{"at": "3 s", "key": "bottleneck.forward.rate", "value": "2 Mbit/s"}],
            "measure.queue_sample": "1 s",
        }
    )
    run = aqmlab.run(changed, out_dir=tmp_path / "run")
    found = delays(run, LinkDirection("bottleneck", "forward"))
    assert found is not None
    assert run.queue is not None
    times, late = found
    waiting = [row["bytes"] for row in run.queue.to_pylist() if row["direction"] == "forward"]
    last = late[times >= 3]
    assert last == pytest.approx(8e3 * np.array(waiting)[times >= 3] / 2e6)
    assert last.min() > 100
