"""Changes that wait for a phase of a congestion control."""

from __future__ import annotations

from pathlib import Path

import aqmlab as package
import pytest
from aqmlab import Scenario, ScenarioError
from conftest import Cli
from figure_runs import draw

BULK = """
[measure]
warm_up = "1 s"
duration = "5 s"
queue_sample = "20 ms"
flow_trace = {{ flows = 1 }}
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "20 Mbit/s"
discipline = "droptail-240"
[topology.bottleneck.forward]
{link}
[[traffic]]
name = "up"
kind = "bulk"
flows = 2
start_within = "0 s"
tcp = {{ profile = "linux", congestion_control = "bbr3" }}
rtt = {{ kind = "constant", rtt = "40 ms" }}
"""


def scenario(link: str) -> Scenario:
    """Two transfers of BBRv3, with more keys of the link."""
    return Scenario.from_toml(BULK.format(link=link))


def test_the_rate_changes_at_the_phase(tmp_path: Path) -> None:
    when = '{ flow = 1, phase = "probe-down", wait = "1 s" }'
    link = f'rate_changes = [{{ when = {when}, rate = "5 Mbit/s" }}]'
    run = package.run(scenario(link), seed=1, out_dir=tmp_path / "run")
    trace = run.flow_trace
    assert trace is not None
    phases = trace["phase"].to_pylist()
    begins = trace["time_s"].to_pylist()[phases.index("probe-down")]
    assert 0 < begins < 1.5
    mbit = run.summary["flows"]["up"]["goodput_bps"] / 1e6
    assert mbit == pytest.approx((5 * (5 - begins) + 20 * begins) / 5 * 1448 / 1538, rel=0.1)
    assert Scenario.load(tmp_path / "run/scenario.toml").effective == scenario(link).effective
    # The delay of its samples goes by the mean rate.
    assert draw.delay([run]).to_dict()


@pytest.mark.parametrize(
    ("change", "key", "message"),
    [
        ('when = { flow = 3, phase = "drain" }', "when.flow", "found 3; the scenario has 2 bulk"),
        ('when = { flow = 0, phase = "drain" }', "when.flow", "found 0; it must be at least 1"),
        ('when = { flow = 1, phase = "avoidance" }', "when.phase", "startup, drain, probe-down"),
        ('when = { flow = 1, phase = "dran" }', "when.phase", 'did you mean "drain"?'),
        ("when = { flow = 1 }", "when.phase", "missing"),
        ('when = { phase = "drain" }', "when.flow", "missing"),
        ('when = "drain"', "when", "expected a table"),
        ('when = { flow = 1, phase = "drain" }, at = "1 s"', "when", "found one beside at"),
        ("", "at", "a phase with when"),
        ('when = { flow = 1, phase = "drain", wait = "800 h" }', "when.wait", "at most 2592000 s"),
        ('when = { flow = 1, phase = "drain", evry = true }', "when.evry", '"every"'),
    ],
)
@pytest.mark.parametrize("what", ["rate", "delay", "loss"])
def test_a_wrong_moment_is_refused(what: str, change: str, key: str, message: str) -> None:
    value = {"rate": '"5 Mbit/s"', "delay": '"5 ms"', "loss": "0.1"}[what]
    entry = ", ".join(filter(None, [change, f"{what} = {value}"]))
    with pytest.raises(ScenarioError) as refused:
        scenario(f"{what}_changes = [{{ {entry} }}]")
    text = str(refused.value)
    assert f"{what}_changes.0.{key}: " in text
    assert message in text
    assert "\n" not in text


def test_a_kernel_shows_no_phases(aqmlab: Cli) -> None:
    link = 'rate_changes = [{ when = { flow = 1, phase = "drain" }, rate = "5 Mbit/s" }]'
    text = BULK.format(link=link).replace("flow_trace = { flows = 1 }\n", "")
    Path("waits.toml").write_text(text)
    live = ["run", "waits.toml", "--on", "live"]
    for words in (live, ["shell", "--scenario", "waits.toml", "true"]):
        answer = aqmlab(*words)
        assert answer.status == 2
        assert "found a change with when, but only a simulation sees the phases" in answer.err
