"""``measure.response_time``: from when on a connection's first exchange counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
import pytest
from aqmlab import Scenario, ScenarioError
from aqmlab.engine.execute import execute
from conftest import SMALL

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

LOSSY = SMALL.replace('rate = "2 Mbit/s"', 'rate = "2 Mbit/s"\nloss = 0.08')
"""One packet of twelve is lost, and so is one SYN of twelve."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """The responses of the same run, by what their times begin with, and its connections."""
    folder = tmp_path_factory.mktemp("times")
    file = folder / "small.toml"
    file.write_text(LOSSY)
    found = {}
    for begin in ("connect", "last-syn", "request"):
        text = {"measure.response_time": begin, "measure.duration": "120 s"}
        one = execute(Scenario.load(file).with_overrides(text), folder / begin)
        assert one.responses is not None
        assert one.flows is not None
        found[begin] = one.responses.sort_by("flow")
        found["flows"] = one.flows
    return found


def times(table: pa.Table) -> np.ndarray:
    """Response times by the serial number of their connection."""
    return np.asarray(table["response_s"].to_numpy())


def test_the_traffic_is_the_same(tables: dict[str, pa.Table]) -> None:
    for begin in ("last-syn", "request"):
        assert tables[begin]["flow"].equals(tables["connect"]["flow"])
        first, other = (
            tables[one]["start_s"].to_numpy() + times(tables[one]) for one in ("connect", begin)
        )
        assert np.abs(first - other).max() < 1e-9


def test_from_the_last_syn_the_timers_of_syns_are_left_out(tables: dict[str, pa.Table]) -> None:
    """Timers of SYNs expire after 1, 2, 4 s and so on: what is left out is a sum of these."""
    waited = times(tables["connect"]) - times(tables["last-syn"])
    flows = tables["flows"]
    unsent = set(flows.filter(pc.equal(flows["retransmitted_syn"], 0))["flow"].to_pylist())
    first = np.array([flow in unsent for flow in tables["connect"]["flow"].to_pylist()])
    assert np.count_nonzero(first) > 2000
    assert not np.any(waited[first] > 1e-6)
    assert np.count_nonzero(waited > 1e-6) > 100
    assert {round(float(one), 6) for one in waited} <= {0.0, 1.0, 3.0, 7.0, 15.0, 31.0}


def test_from_the_request_the_handshake_is_left_out(tables: dict[str, pa.Table]) -> None:
    """A handshake takes a round trip of 20 to 100 ms behind the last SYN, or longer in queues."""
    handshake = times(tables["last-syn"]) - times(tables["request"])
    assert handshake.min() >= 0.020
    assert 0.060 < np.median(handshake) < 0.150


def test_a_breakdown_divides_all_that_a_user_waits(small: Path) -> None:
    text = {"measure.response_time": "request", "measure.breakdown": "true"}
    with pytest.raises(ScenarioError, match=r"measure.response_time: found another than connect"):
        Scenario.load(small).with_overrides(text)
