"""Links that have names: each is a link, each number has a source, and the commands take them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.scenario.link_files import link_names
from aqmlab.scenario.named_links import named_link
from aqmlab.scenario.scenario import Scenario
from conftest import ROOT, Cli

QUICK = ("--set", "measure.warm_up=1 s", "--set", "measure.duration=1 s")


def numbers_of(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """The keys of a bottleneck that hold numbers."""
    for key, value in table.items():
        if key in ("forward", "reverse"):
            yield from numbers_of(value, f"{key}.")
        elif any(sign.isdigit() for sign in str(value)):
            yield before + key


@pytest.mark.parametrize("name", link_names())
def test_every_link_is_a_link_and_every_number_has_a_source(name: str) -> None:
    link = named_link(name)
    scenario = link.scenario()
    assert scenario.data["traffic"][0]["rtt"]["rtt"] == link.rtt
    assert scenario.notes == []
    assert {*numbers_of(link.bottleneck), "rtt"} == {*link.sources}
    assert all(len(source) > 5 for source in link.sources.values())


def test_rates_are_those_that_testers_publish() -> None:
    assert named_link("3g").rates_bps == (750e3, 250e3)
    assert named_link("slow-4g").rates_bps == (1.6e6, 750e3)
    assert named_link("lte").rates_bps == (12e6, 12e6)
    assert named_link("leo").rtt_s == 0.044


@pytest.mark.parametrize("name", ["leo", "cellular", "policed", "shaped", "home-wifi", "4g-train"])
def test_init_writes_a_scenario_that_runs(aqmlab: Cli, name: str) -> None:
    answer = aqmlab("init", "--link", name, "--kind", "lab")
    assert (answer.status, answer.err) == (0, "")
    written = Scenario.load(f"{name}.toml").data["topology"]["bottleneck"]
    assert written == named_link(name).scenario().data["topology"]["bottleneck"]
    run = aqmlab("run", f"{name}.toml", *QUICK)
    assert (run.status, run.err) == (0, "")


def test_run_gives_a_scenario_another_link(aqmlab: Cli) -> None:
    changed = ("--set", "topology.bottleneck.forward.loss=0.001")
    answer = aqmlab("run", ROOT / "scenarios/bulk.toml", "--link", "geo", *QUICK, *changed)
    assert (answer.status, answer.err) == (0, "")
    [folder] = Path("runs").iterdir()
    scenario = Scenario.load(folder / "scenario.toml").data
    assert scenario["topology"]["bottleneck"]["forward"]["rate"] == "18.75 Mbit/s"
    assert scenario["topology"]["bottleneck"]["forward"]["loss"] == 0.001
    assert scenario["traffic"][0]["rtt"]["rtt"] == "629 ms"


def test_list_and_explain_know_links(aqmlab: Cli) -> None:
    assert {*json.loads(aqmlab("list", "links", "--json").out)} == {*link_names()}
    said = aqmlab("explain", "policed").out
    assert "SIGCOMM 2016" in said
    assert "250 kB" in said
    assert "Firefox: Regular 3G" in aqmlab("explain", "3g").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["init", "--link", "dls"], '--link: found "dls"; expected one of'),
        (["init", "--link", "dsl", "--rate", "20"], "--rate: found one beside --link"),
        (["init", "--link", "dsl", "--kind", "isp"], "--link: found one beside --kind isp"),
        (
            ["run", "scenarios/parking-lot.toml", "--link", "dsl"],
            '--link: found "dsl" for a topology of the kind "parking-lot"',
        ),
        (["shell", "--link", "dsl", "--rate", "20"], "--rate: found one beside --link"),
        (
            ["shell", "--link", "dsl", "--scenario", "scenarios/bulk.toml"],
            "--link: found one beside --scenario",
        ),
        (["shell", "--link", "dls"], '--link: found "dls"; expected one of'),
    ],
)
def test_what_contradicts_a_link_is_refused(aqmlab: Cli, words: list[str], message: str) -> None:
    answer = aqmlab(*words)
    assert answer.status == 2
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_a_link_that_is_unknown_names_the_nearest() -> None:
    with pytest.raises(AqmlabError, match='did you mean "policed"'):
        named_link("policd")
