"""Links that vary: traces from files, outages, delays, and what is refused."""

from __future__ import annotations

import runpy
from pathlib import Path

import aqmlab
import pytest
from aqmlab import AqmlabError, Scenario
from conftest import ROOT

TRACES = ROOT / "scenarios/traces"
CELLULAR = ROOT / "scenarios/cellular.toml"


def test_the_traces_are_what_their_generator_makes() -> None:
    """Byte for byte, so that anybody can make them again."""
    made = runpy.run_path(str(TRACES / "generate.py"))
    for name in ("lte", "wifi"):
        assert (TRACES / f"{name}.trace").read_text() == made["text"](made[name]())


def test_a_cellular_link_carries_what_its_trace_allows() -> None:
    """The trace becomes part of the scenario; the reverse link is out for half a second."""
    scenario = Scenario.load(CELLULAR).with_overrides({"measure.duration": "30 s"})
    run = aqmlab.run(scenario)
    assert len(run.scenario["topology"]["bottleneck"]["forward"]["trace"]["opportunities"]) > 20_000
    forward = run.summary["links"]["bottleneck"]["forward"]
    assert 0.3 < forward["utilization"] <= 1.0
    assert forward["throughput_bps"] < 13e6
    call = run.summary["flows"]["call"]
    assert call["datagram_gap_max_s"] > 0.5
    assert run.summary["quality"]["pages"]["page_load_p50_s"] > 0.3


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"rate": "20 Mbit/s"}, r"rate: found 20 Mbit/s; the mean rate of the trace is"),
        ({"trace.file": "nowhere.trace"}, r"trace\.file: found \"nowhere\.trace\", which cannot"),
        ({"trace.aggregate": "0"}, r"trace\.aggregate: found 0; it must be at least 1"),
    ],
)
def test_a_trace_that_does_not_fit_is_refused(overrides: dict[str, str], message: str) -> None:
    """One message, which names the field."""
    place = "topology.bottleneck."
    with pytest.raises(AqmlabError, match=message):
        Scenario.load(CELLULAR).with_overrides(
            {f"{place}{key}": value for key, value in overrides.items()}
        )


def test_a_line_that_is_no_number_is_named(tmp_path: Path) -> None:
    """With its file and line."""
    (tmp_path / "bad.trace").write_text("1\n2\nsoon\n")
    text = CELLULAR.read_text().replace("traces/lte.trace", "bad.trace")
    file = tmp_path / "scenario.toml"
    file.write_text(text)
    with pytest.raises(AqmlabError, match=r"bad\.trace.*line 3"):
        Scenario.load(file)
    (tmp_path / "bad.trace").write_text("1\n5\n2\n")
    with pytest.raises(AqmlabError, match="opportunities must ascend"):
        Scenario.load(file)
