"""What is said beside the numbers of a program behind a queue, so that nobody misreads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aqmlab.shell.link import Link, Span
from aqmlab.shell.notes import idle_users, notes, refusals, trust, ways_out

FLOWS = {
    "count": 0,
    "still_open": 0,
    "goodput_bps": 0.0,
    "upload_goodput_bps": 0.0,
    "datagrams_sent": 0,
}


def run(*reasons: str, upload_bps: float = 0.0, missed: Sequence[Mapping[str, Any]] = ()) -> Any:
    """A run of a program that moved nothing, beside an upload; `missed` is what it asked for."""
    flows = {"program": FLOWS, "upload": {**FLOWS, "goodput_bps": upload_bps}, "all": FLOWS}
    summary = {
        "flows": flows,
        "responses": {name: {"count": 0} for name in flows},
        "live": {"program": {"not_reached": missed, "time_s": 0.3}},
    }
    return SimpleNamespace(summary=summary, invalid=list(reasons))


@pytest.mark.parametrize(
    ("queue", "buffer", "expected"),
    [
        # 20/2 Mbit/s and 30 ms: 50 packets down, 5 up.
        ("droptail", None, ["5 full packets of the upload"]),
        ("droptail", "250 ms", []),
        ("droptail", "9 packets", ["9 full packets of the download", "9 full packets of the up"]),
        ("droptail", "20 kB", []),
        ("fq-codel", None, []),
    ],
)
def test_a_buffer_that_holds_hardly_anything_is_named(
    queue: str, buffer: str | None, expected: list[str]
) -> None:
    link = Link(20e6, 2e6, rtt_s=0.03, queue_down=queue, queue_up=queue, buffer=buffer)
    found = list(notes({queue: link.scenario("curl", 1, Span(5.0))}))
    assert len(found) == len(expected)
    for note, words in zip(found, expected, strict=True):
        assert note.startswith(f"note: {queue} has room for {words}")
        assert "--buffer '250 ms'" in note


def test_users_that_moved_nothing_are_named() -> None:
    idle = run()
    assert idle_users(idle) == ["upload"]
    assert trust(idle) == "valid, but upload beside the program moved nothing"
    assert trust(run(upload_bps=1e6)) == "valid"
    assert trust(run("it rained", "it snowed")) == "INVALID: it rained; it snowed"


def test_an_invalid_run_has_a_way_out() -> None:
    assert ways_out([run()]) == []
    again, longer = ways_out([run(), run("it rained")])
    assert "--repeat 3" in again
    assert "longer program" in longer
    slow = run("it rained")
    slow.summary["live"]["program"]["time_s"] = 30.0
    assert ways_out([slow]) == [again]


def test_a_program_that_asks_itself_is_shown_the_way_out() -> None:
    [line] = refusals(run(), ["curl", "http://127.0.0.1:8080/"])
    assert "127.0.0.1 is the program's own; --net host reaches" in line
    assert refusals(run(), ["curl", "http://1127.0.0.1/"]) == []
    assert refusals(run(), ["sleep", "1"]) == []


@pytest.mark.parametrize(
    ("place", "needs", "line"),
    [
        (
            "100.64.0.1:9999",
            "host",
            "host.aqmlab:9999: --net host reaches this machine's port 9999",
        ),
        ("100.64.0.1:9999", None, "host.aqmlab:9999: nothing listens there"),
        ("100.64.0.3:80", None, "test.aqmlab:80: nothing listens there"),
        ("192.168.1.1:22", "host", "192.168.1.1:22: --net host reaches private networks"),
        ("8.8.8.8:443", "all", "8.8.8.8:443: --net all reaches public addresses"),
    ],
)
def test_a_place_in_vain_has_a_way_out(place: str, needs: str | None, line: str) -> None:
    entry = {"place": place, "is_tcp": True, "count": 1, "refused": True, "needs": needs}
    assert refusals(run(missed=[entry]), ["curl"]) == [f"  refused  {line}"]


def test_names_and_many_places_are_short() -> None:
    asked = {"place": "100.64.0.1:53", "is_tcp": False, "count": 4, "needs": "all"}
    [line] = refusals(run(missed=[asked]), ["curl"])
    assert line.startswith("  names    4 name look-ups got no answer; if the program needs names,")
    elsewhere = {**asked, "place": "8.8.8.8:443", "is_tcp": True, "count": 1}
    lines = refusals(run(missed=[asked, elsewhere]), ["curl"])
    assert [line.split()[0] for line in lines] == ["refused", "names"]
    silent = {"is_tcp": True, "count": 1, "refused": False, "needs": None}
    many = [{**silent, "place": f"8.8.8.8:{port}"} for port in range(9)]
    lines = refusals(run(missed=many), ["curl"])
    assert lines[0] == "  refused  8.8.8.8:0: no answer"
    assert lines[-1].split() == ["4", "more", "places"]
