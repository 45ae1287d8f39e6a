"""Rates over time as people hold them: what a link makes of each, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from aqmlab.errors import ScenarioError
from aqmlab.scenario.scenario import Scenario
from aqmlab.scenario.traces import mean_rate_bps, opportunities

pytestmark = pytest.mark.usefixtures("elsewhere")

PAIRS = "0.0\t4.0\n0.5\t8.0\n1.0\t2.0\n1.5\t6.0\n"
COLUMNS = "time_s,down_kbit,up_kbit\n0,4000,400\n1,8000,800\n2,2000,200\n3,6000,600\n"


def link(bottleneck: str, **texts: str) -> Scenario:
    """A transfer over a link; `texts` are files beside the scenario, by stem."""
    for stem, text in texts.items():
        Path(f"{stem}.txt").write_text(text, encoding="utf-8")
    return Scenario.from_toml(f"""
title = "a trace"
[measure]
duration = "5 s"
[topology]
kind = "dumbbell"
[topology.bottleneck]
discipline = "droptail-24"
{bottleneck}
[[traffic]]
kind = "bulk"
flows = 1
tcp = "linux"
rtt = {{ kind = "constant", rtt = "30 ms" }}
""")


def mbit(scenario: Scenario, direction: str) -> float:
    """A direction's rate."""
    stamps = scenario.data["topology"]["bottleneck"][direction]["trace"]["opportunities"]
    return mean_rate_bps(stamps) / 1e6


@pytest.mark.parametrize("separator", ["\t", " ", ","])
def test_seconds_and_mbit_are_a_trace(separator: str) -> None:
    text = PAIRS.replace("\t", separator)
    scenario = link('trace = { file = "cooked.txt" }', cooked=text)
    both = scenario.data["topology"]["bottleneck"]
    assert mbit(scenario, "forward") == pytest.approx(5, rel=0.01)
    assert both["forward"]["rate"] == both["reverse"]["rate"]
    stamps = both["forward"]["trace"]["opportunities"]
    assert stamps[-1] == 2000
    # 4 Mbit/s for half a second are 2 Mbit, 167 packets of 12 kbit; 8 Mbit/s are twice as many.
    assert sum(at <= 500 for at in stamps) == pytest.approx(167, abs=1)
    assert sum(500 < at <= 1000 for at in stamps) == pytest.approx(333, abs=2)


def test_a_table_has_a_column_for_each_direction() -> None:
    scenario = link('trace = { file = "lte.txt", aggregate = 2 }', lte=COLUMNS)
    assert mbit(scenario, "forward") == pytest.approx(5, rel=0.01)
    assert mbit(scenario, "reverse") == pytest.approx(0.5, rel=0.01)
    assert scenario.data["topology"]["bottleneck"]["forward"]["trace"]["aggregate"] == 2


def test_a_rate_that_is_left_out_is_the_mean() -> None:
    traces = {"plain": "1\n2\n3\n4\n", "marked": "\ufeff1\n2\n"}
    for stem, text in traces.items():
        scenario = link(f'trace = {{ file = "{stem}.txt" }}', **{stem: text})
        assert scenario.data["topology"]["bottleneck"]["forward"]["rate"] == "12 Mbit/s"
    scenario = link("trace = { opportunities = [1, 2, 4] }")
    assert scenario.data["topology"]["bottleneck"]["forward"]["rate"] == "9 Mbit/s"


def test_an_override_of_the_file_brings_its_own_rate() -> None:
    scenario = link('trace = { file = "one.txt" }', one="1\n2\n", other=PAIRS)
    other = scenario.with_overrides({"trace.file": "other.txt"})
    assert mbit(other, "forward") == pytest.approx(5, rel=0.01)


def test_a_rate_that_is_given_has_to_be_the_mean() -> None:
    with pytest.raises(ScenarioError, match=r"the mean rate of the trace is 4\.998 Mbit/s"):
        link('rate = "9 Mbit/s"\ntrace = { file = "cooked.txt" }', cooked=PAIRS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 4\n0 8\n", "where 0 s follows 0 s"),
        ("0 4\n1 fast\n", "where line 2 is .*expected seconds and Mbit/s"),
        ("0 4\n", "fewer than two rows"),
        ("time,signal\n0,5\n1,5\n", "whose header is"),
        ("time,a_mbps,b_mbps\n0,5,5\n1,5,5\n", "a_mbps and b_mbps; expected one for forward"),
        ("time,down_mbps,up_mbps\n0,5,5\n1,,5\n", "where line 3"),
        ("0 0\n1 0\n", "carries 0 packets"),
        ("1\nx\n", "where line 2"),
        ("\n", "no line"),
    ],
)
def test_what_is_no_trace_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        link('trace = { file = "wrong.txt" }', wrong=text)
    assert str(caught.value).startswith('topology.bottleneck.forward.trace.file: found "wrong.txt"')


def test_every_row_counts() -> None:
    stamps = opportunities(PAIRS, "forward")
    assert stamps == sorted(stamps)
    assert len(stamps) == round(10e6 / 12_000)
