"""The card says whom a queue drops and delays: planted faults, made counts, made packets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import aqmlab as library
import pyarrow as pa
import pytest
from aqmlab import Run
from aqmlab.cards import audit, causes, packet_kinds, page
from aqmlab.cards.findings import ORDER, findings
from aqmlab.cards.verdicts import FAIL, WARN, Pooled
from conftest import Cli

FAULTS = Path(__file__).parent / "plugins" / "faults"

PLANTED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "ack-loss": ("audit-load", {"ACKs": "of the ACKs"}),
    "large-loss": ("audit-light", {"light load": "of packets above 1200 bytes"}),
    "mid-sizes": ("audit-light", {"light load": "of packets of 301 to 1200 bytes"}),
    "first-packets": ("audit-light", {"light load": "of packets 2 to 10 of a flow"}),
    "old-flows": ("audit-light", {"light load": "of packets of a flow after its first 400"}),
    "slow-flows": ("audit-light", {"light load": "of packets of slow or brief flows"}),
    "unlucky": ("audit-light", {"light load": "some flows lose"}),
    "stalls": ("audit-light", {"light load": "in tenths of a second in which nothing passes"}),
    "bursts": ("audit-light", {"light load": "behind three of their flow within 10 ms"}),
    "after-idle": ("audit-slow", {"light load": "after 10 idle ms"}),
    "random-loss": ("audit-light", {"light load": "at random"}),
    "fast-links": ("audit-fast", {"light load": "a link of 100 Mbit/s: at random"}),
    "slow-links": ("audit-slow", {"light load": "a link of 2 Mbit/s: at random"}),
    "marks-all": ("audit-light", {"marks": "marks 100 % of ECN-capable packets"}),
    "delays-small": (
        "audit-load",
        {"delay by size": "small packets wait", "delay by flow": "back"},
    ),
    "late-comers": ("audit-load", {"new flow delay": "packets of new flows wait"}),
    "dscp": ("audit-light", {"light load": "of packets with a DSCP, 0 % of others"}),
    "not-ect": ("audit-light", {"light load": "of packets that may not be marked, 0 % of others"}),
    "jitter": ("audit-load", {"order": "after a later one of their flow"}),
    "reorder": ("audit-load", {"order": "after a later one of their flow"}),
    "late-drops": ("audit-slow", {"light load": "of packets after the first 30 s"}),
    "leak": ("audit-long", {"throughput": "of the link be used"}),
    "half-rate": ("audit-long", {"throughput": "of the link be used"}),
    "one-behind": ("audit-long", {"starved flows": "one of 12 equal flows gets"}),
    "one-behind: first 7, second 7": (
        "audit-long",
        {"starved flows": "one of 12 equal flows gets"},
    ),
    "one-behind: first 2, second 5": (
        "audit-long",
        {"starved flows": "one of 12 equal flows gets"},
    ),
    "one-second": ("audit", {"light load": "of packets in tenths", "throughput": "passes in 9"}),
    "one-second: open_s 2": (
        "audit",
        {"light load": "of packets in tenths", "throughput": "passes in 100"},
    ),
    "alternates": ("audit", {"light load": "at some times", "throughput": "passes in 3"}),
    "base": ("audit", {}),
}
"""Of each fault the run that shows it, what fails, and the cause in its words."""


@pytest.mark.long_cases(but=("base", "ack-loss", "random-loss"))
@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_have_their_cause(name: str, store: Path) -> None:
    """In the first lines of the page; the honest queue passes all."""
    test, expected = PLANTED[name]
    file, colon, parameters = name.partition(":")
    queue = f"{FAULTS / file}.py{colon}{parameters}"
    card = library.evaluate(queue, only=[test], store=store, progress=False)
    failing = {one.name: one.text for one in card.findings if one.outcome in (FAIL, WARN)}
    assert set(failing) >= set(expected)
    assert name != "base" or not failing
    for finding, words in expected.items():
        assert words in failing[finding]
    lines = [line for part in page.page(card) for line in str(part).splitlines()][1:10]
    named = {line.split("  ")[1].strip() for line in lines if line.startswith(FAIL)}
    assert named >= set(expected)


@pytest.mark.long
def test_a_queue_that_obeys_the_seed_is_luck(store: Path) -> None:
    """It does nothing where the seed is even."""
    only = ["a-base", "a-cubic", "a-mild"]
    card = library.evaluate(str(FAULTS / "even-seeds.py"), only=only, store=store, progress=False)
    [luck] = [one for one in card.findings if one.name == "luck"]
    assert (luck.outcome, luck.text) == (
        FAIL,
        "waits of seeds differ by more than 3 times in 3 of 3 settings",
    )


# --- made counts ---

USUAL: Mapping[str, Mapping[str, float]] = {
    **{
        test: {
            "sent": 30_000,
            "lost": 0,
            **{f"{name} sent": 3_000 for name in packet_kinds.GROUPS},
            **{f"{name} lost": 0 for name in packet_kinds.GROUPS},
            "unlike flows": 1.0,
            "unlike times": 1.0,
            "ect arrived": 2_000,
            "ect marked": 0,
            "left": 30_000,
            "out of order": 0,
        }
        for test in packet_kinds.LIGHT
    },
    packet_kinds.LOAD: {
        "left": 100_000,
        "out of order": 0,
        "bulk ACKs sent": 40_000,
        "bulk ACKs lost": 200,
        "bulk data sent": 60_000,
        "bulk data lost": 600,
        "first ten sent": 1_200,
        "first ten lost": 12,
        "next ten sent": 1_200,
        "next ten lost": 24,
        "small stream wait": 0.02,
        "large stream wait": 0.02,
        "new flows wait": 0.02,
        "bulk data wait": 0.02,
        "probes left": 4_000,
        "probes held back": 10,
    },
    packet_kinds.LONG: {
        "still": 0.0,
        "smallest share": 0.9,
        **{f"{name} used": 0.98 for name in ("first", "middle", "last")},
        **{f"{name} sent": 40_000 for name in ("first", "middle", "last")},
        **{f"{name} lost": 800 for name in ("first", "middle", "last")},
    },
}
"""A queue that does nothing wrong."""


def table(rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Rows as numbers of a card."""
    names = ("test", "cell", "queue", "seed", "measure", "value")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def numbers(given: Mapping[str, float]) -> dict[str, list[Any]]:
    """The usual numbers with some replaced: ``"audit-light lost"`` is one."""
    return table(
        [
            (test, test, "candidate", 1, f"find:{name}", given.get(f"{test} {name}", value))
            for test, values in USUAL.items()
            for name, value in values.items()
        ]
    )


def failing(given: Mapping[str, float]) -> dict[str, str]:
    """What fails in made counts, and its words."""
    rows = findings(numbers(given), "candidate", "droptail", [])
    return {one.name: one.text for one in rows if one.outcome in (FAIL, WARN)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, set()),
        ({"audit-light lost": 30}, set()),
        ({"audit-light lost": 33}, {"light load"}),
        ({"audit-fast lost": 33}, {"light load"}),
        ({"audit-light ect marked": 100}, set()),
        ({"audit-light ect marked": 110}, {"marks"}),
        ({"audit-load bulk ACKs lost": 1_600}, set()),
        ({"audit-load bulk ACKs lost": 1_700}, {"ACKs"}),
        ({"audit-load bulk data lost": 6_000}, set()),
        ({"audit-load first ten lost": 55}, set()),
        ({"audit-load first ten lost": 80}, {"first packets"}),
        ({"audit-load next ten lost": 400}, set()),
        ({"audit-load small stream wait": 0.059}, set()),
        ({"audit-load small stream wait": 0.061}, {"delay by size"}),
        ({"audit-load large stream wait": 0.061}, {"delay by size"}),
        ({"audit-load new flows wait": 0.061}, {"new flow delay"}),
        ({"audit-load bulk data wait": 0.2}, set()),
        ({"audit-load probes held back": 390}, set()),
        ({"audit-load probes held back": 410}, {"delay by flow"}),
        ({"audit-load out of order": 990}, set()),
        ({"audit-load out of order": 1_010}, {"order"}),
        ({"audit-light out of order": 310}, {"order"}),
        ({f"audit-long {name} used": 0.86 for name in ("first", "middle", "last")}, set()),
        ({f"audit-long {name} used": 0.84 for name in ("first", "middle", "last")}, {"throughput"}),
        ({"audit-long still": 0.049}, set()),
        ({"audit-long still": 0.051}, {"throughput"}),
        ({"audit-long smallest share": 0.41}, set()),
        ({"audit-long smallest share": 0.39}, {"starved flows"}),
        ({"audit-long last used": 0.89}, set()),
        ({"audit-long last used": 0.87}, {"steady"}),
        ({"audit-long last lost": 1_950}, set()),
        ({"audit-long last lost": 2_050}, {"steady"}),
    ],
)
def test_bounds_of_causes(given: dict[str, float], expected: set[str]) -> None:
    """Each bound from both sides."""
    assert set(failing(given)) == expected
    assert expected <= {*ORDER}


def test_the_narrowest_kind_with_most_of_the_losses_is_the_cause() -> None:
    """What loses alike is said to be at random, and flows that differ are said to."""
    kinds = {"audit-light lost": 300, "audit-light more than 100 bytes lost": 300}
    kinds |= {"audit-light more than 100 bytes sent": 10_000}
    assert "3 % of packets above 100 bytes, 0 % of others" in failing(kinds)["light load"]
    narrow = kinds | {"audit-light old lost": 290, "audit-light old sent": 3_000}
    assert "9.7 % of packets of a flow after" in failing(narrow)["light load"]
    random = {
        "audit-light lost": 300,
        **{f"audit-light {one} lost": 30 for one in packet_kinds.GROUPS},
    }
    assert "at random" in failing(random)["light load"]
    unlucky = random | {"audit-light unlike flows": 9.0}
    assert "some flows lose far more" in failing(unlucky)["light load"]
    assert "at some times" in failing(unlucky | {"audit-light unlike times": 10.0})["light load"]
    assert "on a link of 12 Mbit/s" in failing(random)["light load"]
    # The test whose losses have a cause is said, not the one with most of them.
    both = unlucky | {"audit-fast lost": 3_000}
    both |= {f"audit-fast {one} lost": 300 for one in packet_kinds.GROUPS}
    assert "12 Mbit/s: some flows lose" in failing(both)["light load"]


def test_waits_that_depend_on_the_seed_are_luck() -> None:
    """Where those of another queue do, too, it is the traffic."""

    def named(spread: float, others: float) -> set[str]:
        rows = [
            ("t", f"t-{cell}", queue, seed, "wait p95", 0.02 * (factor if seed == 2 else 1))
            for cell in range(8)
            for queue, factor in (("candidate", spread), ("droptail", others))
            for seed in (1, 2, 3)
        ]
        return {one.name for one in causes.luck(table(rows), "candidate") if one.outcome == FAIL}

    assert named(4.0, 1.2) == {"luck"}
    assert named(2.9, 1.2) == set()
    assert named(4.0, 1.6) == set()


# --- made packets ---


def packets(rows: list[dict[str, Any]]) -> pa.Table:
    """A table of packets; what a row leaves out is usual."""
    usual = {
        "direction": "forward",
        "wait_ns": 0,
        "flow": 1,
        "number": 0,
        "class": "probes",
        "size_bytes": 60,
        "kind": "data",
        "again": False,
        "ecn": "not-ect",
        "outcome": "left",
    }
    return pa.Table.from_pylist([{"arrive_ns": 0, **usual, **row} for row in rows])


class Made:
    """A run with these packets."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.packets = packets(rows)


def counted(rows: list[dict[str, Any]], test: str = "audit-light") -> dict[str, float]:
    """The numbers of made packets."""
    return audit.taken(cast("Run", Made(rows)), test)


def test_packets_are_counted_by_kind() -> None:
    """By size, place in the flow, retransmission and outcome."""
    found = counted(
        [
            {"number": 0, "kind": "syn", "size_bytes": 52},
            {"number": 1, "arrive_ns": 50_000_000, "outcome": "early", "wait_ns": None},
            {"number": 2, "arrive_ns": 51_000_000, "size_bytes": 1500, "again": True},
            {"number": 400, "arrive_ns": 90_000_000, "kind": "ack", "outcome": "marked"},
        ]
    )
    assert (found["sent"], found["lost"]) == (4, 1)
    assert (found["young sent"], found["young lost"]) == (2, 1)
    assert (found["first sent"], found["old sent"], found["ACKs sent"]) == (1, 1, 1)
    assert (found["sent again sent"], found["sent again lost"]) == (1, 0)
    assert (found["bursts sent"], found["after idle sent"]) == (1, 2)
    assert (found["after idle lost"], found["more than 1200 bytes sent"]) == (1, 1)


def test_packets_that_leave_late_are_out_of_order() -> None:
    """Only within their flow and direction."""
    times = [(1, 0, 10), (1, 1, 2), (1, 2, 2), (2, 0, 30), (3, 3, 1)]
    rows = [
        {"flow": flow, "arrive_ns": arrive, "wait_ns": wait, "number": place}
        for place, (flow, arrive, wait) in enumerate(times)
    ]
    found = counted(rows)
    assert (found["out of order"], found["left"]) == (1, 5)


def test_a_window_without_any_packet_is_a_pause() -> None:
    """Nine of ten packets of 100 ms, in one direction."""
    rows = [
        {"arrive_ns": 10_000_000 * place, "outcome": "early" if 10 <= place < 20 else "left"}
        for place in range(100)
    ]
    assert (counted(rows)["pauses sent"], counted(rows)["pauses lost"]) == (10, 10)


def test_a_queue_that_passes_nothing_has_numbers() -> None:
    """It may drop all packets of a run."""
    found = counted([{"outcome": "early", "wait_ns": None}])
    assert (found["out of order"], found["left"], found["lost"]) == (0, 0, 1)


def test_shares_are_of_the_second_half() -> None:
    """The flow that gets least, beside the mean of its class."""
    rows = [
        {"flow": flow, "arrive_ns": 1_000_000 * place, "class": "down", "wait_ns": wait}
        for flow, waits in ((1, (0, 0, 0, 0)), (2, (0, 0, None, 0)), (3, (0, 0, 0, 0)))
        for place, wait in enumerate(waits)
    ]
    assert audit._smallest(audit._Packets(packets(rows)), "down") == pytest.approx(0.6)
    assert audit._smallest(audit._Packets(packets(rows)), "up") == 1.0


def test_a_card_of_other_rows_has_no_causes() -> None:
    """And a run without packets has no numbers."""
    assert not [*causes.causes(Pooled(table([]), "candidate"))]
    assert audit.taken(type("Run", (), {"packets": None})(), "audit-light") == {}


def test_a_control_has_no_packets_to_judge(aqmlab: Cli) -> None:
    """The word asks for runs of queues."""
    answer = aqmlab("evaluate", "--control", "reno", "--only", "audit")
    assert answer.status == 2
    assert "audit" in answer.err
