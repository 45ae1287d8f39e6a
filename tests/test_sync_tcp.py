"""What Sync-TCP does to a queue (Weigle, Jeffay, Smith 2005), against Reno in the same runs."""

from pathlib import Path

import aqmlab
import pytest

SCENARIO = Path(__file__).parents[1] / "scenarios" / "sync-tcp-long.toml"


def links(tmp_path: Path, control: str, direction: str) -> list[dict[str, float]]:
    """The loaded directions of the bottleneck, with a congestion control."""
    overrides = [("traffic.transfers.direction", direction)]
    if control != "sync-tcp":  # the scenario's own, with its parameters
        overrides.append(("traffic.transfers.tcp.congestion_control", control))
    scenario = aqmlab.Scenario.load(SCENARIO, overrides)
    run = aqmlab.run(scenario, out_dir=tmp_path / control)
    both = run.summary["links"]["bottleneck"].values()
    return [link for link in both if link["utilization"] > 0.5]


@pytest.mark.parametrize(("direction", "loaded"), [("both", 2), ("forward", 1)])
def test_twenty_long_transfers_queue_and_lose_less_than_with_reno(
    tmp_path: Path, direction: str, loaded: int
) -> None:
    """Each loaded direction queues less; both together queue and lose less than three quarters.

    Two loaded directions share what they can hold back: which of them has the longer queue is
    chance, the sum of the two is not.
    """
    reno, sync = (links(tmp_path, control, direction) for control in ("reno", "sync-tcp"))
    assert len(reno) == len(sync) == loaded
    for before, after in zip(reno, sync, strict=True):
        assert after["queue_mean_packets"] < before["queue_mean_packets"]
    for metric in ("queue_mean_packets", "dropped_packets"):
        total = sum(link[metric] for link in reno)
        assert sum(link[metric] for link in sync) < 0.75 * total
