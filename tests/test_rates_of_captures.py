"""Rates that captures show: of links that are known, from both places of a tap."""

from __future__ import annotations

from pathlib import Path

import pytest
from aqmlab.traffic.rates import is_behind, rates
from aqmlab.traffic.segments import loops, read_segments
from known_worlds import WORLDS, taken

pytestmark = pytest.mark.usefixtures("elsewhere")

SECONDS = 100
IDLE_UP = {"bulk-web", "video-call", "many-short", "light", "quic", "two-homes"}
"""Worlds whose upload is never full."""


@pytest.mark.parametrize("name", [name for name, one in WORLDS.items() if not one.changes])
def test_rates_are_proven_or_not_known(name: str) -> None:
    """A tap in the house: the download has passed its queue, the upload has not."""
    capture = taken(name, Path(), seconds=SECONDS).path / "capture.pcapng"
    down, up = rates(capture)
    right = WORLDS[name].rates
    assert down.is_proven
    assert down.bps == pytest.approx(right[0] * 1e6, rel=0.003)
    assert down.why.startswith("gaps of ")
    assert up.is_proven is (name not in IDLE_UP)
    if up.is_proven:
        assert up.bps == pytest.approx(right[1] * 1e6, rel=0.03)
    else:
        assert up.why == "never full, so its queue is not predicted"
        assert up.bps >= down.bps
    found = loops(read_segments(capture))
    assert is_behind(found, is_home=False)


def test_a_tap_before_the_queue_shows_what_is_acknowledged() -> None:
    """There the gaps are those of hosts and their access: 200 Mbit/s."""
    capture = taken("home", Path(), seconds=SECONDS, tap="bottleneck").path / "capture.pcapng"
    found = loops(read_segments(capture))
    assert not is_behind(found, is_home=False)
    assert not is_behind(found, is_home=True)
    down, up = rates(capture)
    assert (down.is_proven, up.is_proven) == (True, True)
    assert down.bps == pytest.approx(20e6, rel=0.005)
    assert up.bps == pytest.approx(5e6, rel=0.02)


def test_loops_hold_no_repetition(tmp_path: Path) -> None:
    """Data that are sent again have no loop: it would last as long as the repair."""
    capture = taken("many-short", tmp_path, seconds=60).path / "capture.pcapng"
    segments = read_segments(capture)
    found = loops(segments)
    assert len(found.loop_s) > 5000
    assert found.loop_s.min() >= 0
    down = found.excess_s[~found.is_home]
    assert (down < 0.002).mean() > 0.99
