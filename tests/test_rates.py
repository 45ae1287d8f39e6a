"""Each discipline's defaults at 1, 10 and 100 Mbit/s and 1 Gbit/s, under four CUBIC flows.

A default that is a target in time keeps it at every rate. One that is a length in packets fits some
rates, and a warning says so at the others.
"""

from pathlib import Path

import pytest
from aqmlab import Scenario, run

RATES = [1, 10, 100, 1000]
SECONDS = {1: 40, 10: 40, 100: 40, 1000: 50}
FLOWS, RTT_S = 4, 0.04

TARGETS_MS = {
    "cake": 5,
    "cobalt": 5,
    "codel": 5,
    "dualpi2": 15,
    "fq-codel": 5,
    "fq-pie": 15,
    "pie": 15,
}
"""The queueing delay that each one's page states."""

LENGTHS = {
    "avq": "limit = '9000 packets'",
    "choke": "",
    "drr": "",
    "pi": "limit = '9000 packets'",
    "rem": "limit = '9000 packets'",
    "rio": "limit = '9000 packets'",
    "rio-ps": "limit = '9000 packets'",
    "sfq": "",
}
"""Disciplines with a length as a default, and the key that they do not have one of."""
LEAST = {"avq": 0.85, "rio": 0.85}
"""What four flows take at least: AVQ and RIO signal several of them at once. The others: 0.9."""


def measured(kind: str, keys: str, rate: int, folder: Path) -> tuple[Scenario, float, float]:
    """The scenario, the link's utilization, and the mean delay in its queue in milliseconds."""
    half = SECONDS[rate] / 2
    scenario = Scenario.from_toml(f"""
        title = "Four flows"
        measure = {{ warm_up = "{half} s", duration = "{half} s", record = ["sojourn"] }}
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "{rate} Mbit/s"
        framing = "none"
        forward = {{ discipline = {{ kind = "{kind}"{", " if keys else ""}{keys} }} }}
        reverse = {{ discipline = {{ kind = "droptail", limit = "10000 packets" }} }}
        [[traffic]]
        name = "bulk"
        kind = "bulk"
        flows = {FLOWS}
        start_within = "1 s"
        tcp = {{ profile = "linux", ecn = true }}
        rtt = {{ kind = "constant", rtt = "{RTT_S} s" }}
    """)
    link = run(scenario, out_dir=folder / "run").summary["links"]["bottleneck"]["forward"]
    return scenario, link["utilization"], 1e3 * link["sojourn_mean_s"]


@pytest.mark.long_cases("*-1000")
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kind", TARGETS_MS)
def test_a_target_in_time_holds_at_every_rate(kind: str, rate: int, tmp_path: Path) -> None:
    """Twice the target at most, and two packets of each flow, which no AQM can do without."""
    scenario, utilization, delay_ms = measured(kind, "", rate, tmp_path)
    assert delay_ms < 2 * TARGETS_MS[kind] + 2 * FLOWS * 12 / rate, delay_ms
    assert utilization > 0.95, utilization
    assert scenario.notes == []


@pytest.mark.long_cases("*-1000")
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kind", LENGTHS)
def test_a_length_fits_the_rate_or_is_warned_of(kind: str, rate: int, tmp_path: Path) -> None:
    scenario, utilization, delay_ms = measured(kind, LENGTHS[kind], rate, tmp_path)
    fits = delay_ms < 500 and utilization > LEAST.get(kind, 0.9)
    warned = any(f"the default of {kind}" in note for note in scenario.notes)
    assert fits or warned, (utilization, delay_ms)
