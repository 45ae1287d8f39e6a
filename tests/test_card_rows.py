"""Tests of the card in other worlds: what is run there, what counts, what the page says."""

from __future__ import annotations

import dataclasses
import re

import pytest
from aqmlab.cards.candidates import named
from aqmlab.cards.generator import scenario_of
from aqmlab.cards.suites import Measure
from conftest import ROOT

from lab import card_rows
from lab.card_rows import Difference
from lab.peers import ns3


@pytest.fixture(autouse=True)
def _checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named from there."""
    monkeypatch.chdir(ROOT)


ONE = Difference("ns-3", "a-base", "codel", "wait p95 ms", -1.0, -0.5, is_ratio=True, counts=True)


def test_ten_tests_of_the_card_run_in_both_worlds() -> None:
    tests, worlds = card_rows.load()
    assert len(tests) == 10
    assert [*worlds] == ["ns-3", "live"]
    for cell in tests.values():
        for world in worlds.values():
            for queue in ("droptail", *world.queues):
                scenario = scenario_of(cell, named(queue))
                assert str(ns3.options(scenario.data)["discipline"]).startswith("ns3::")
                stacks = {
                    str(one["tcp"]) for one in card_rows.kernel_scenario(scenario).data["traffic"]
                }
                assert len(stacks) == 1, "the kernel has one stack"


def test_senders_are_those_of_the_scenario() -> None:
    tests, _ = card_rows.load()
    options = ns3.options(scenario_of(tests["a-udp-tcp"], named("pie")).data)
    assert options["senders"] == "TcpNewReno/0.1/0/1/0,datagrams/0.1/0/1/8000000"
    assert options["scaling"] == 1
    options = ns3.options(scenario_of(tests["a-flows-fair"], named("pie")).data)
    assert options["senders"] == "TcpCubic/0.05/0/1/0,TcpCubic/0.05/10/1/0"
    assert str(options["settings"]).startswith("MaxSize=41p")


@pytest.mark.parametrize(
    ("test", "formula", "expected"),
    [
        ("a-base", "link sojourn_p95_s", 0.05),
        ("a-udp-tcp", "share tcp 0.2", 0.5),
        ("a-rtt-fair", "ratio i ii", 0.25),
        ("a-flows-fair", "jain", 25 / 34),
    ],
)
def test_the_cards_numbers_are_those_of_what_ns3_prints(
    test: str, formula: str, expected: float
) -> None:
    tests, _ = card_rows.load()
    scenario = scenario_of(tests[test], named("codel"))
    printed = {"wait_p95_s": 0.05, "goodput_bps_of_0": 1e6, "goodput_bps_of_1": 4e6}
    found = card_rows.number_of(Measure(test, "n", "F", "", formula), scenario, printed)
    assert found == pytest.approx(expected)


def test_a_difference_counts_if_it_matters() -> None:
    assert ONE.same is True
    assert ONE.shown == "-63 % / -39 %"
    other = dataclasses.replace(ONE, theirs=0.1)
    assert other.same is False
    assert other.shown.startswith("**")
    small = dataclasses.replace(other, counts=False)
    assert small.same is None
    assert small.shown.startswith("(")
    assert dataclasses.replace(ONE, theirs=None, counts=False).shown == "invalid"
    shares = dataclasses.replace(ONE, is_ratio=False, ours=0.25, theirs=0.5)
    assert shares.shown == "+0.25 / +0.50"


def test_the_page_shows_its_file() -> None:
    found = card_rows.read(card_rows.DATA)
    tests, worlds = card_rows.load()
    wanted = {
        (world.name, test, queue)
        for world in worlds.values()
        for test in tests
        for queue in world.queues
        if test not in world.without
    }
    assert {(one.world, one.test, one.queue) for one in found} == wanted
    page = card_rows.PAGE.read_text()
    assert card_rows.with_section(page, found) == page, "make card-rows writes it anew"
    assert card_rows.section(found) in page


def test_the_guide_counts_the_differences() -> None:
    stated = re.findall(r"(\d+ of \d+) differences have", card_rows.PAGE.read_text())
    guide = (ROOT / "docs/evaluate.md").read_text()
    assert len(stated) == 2
    for count in stated:
        assert count in guide
