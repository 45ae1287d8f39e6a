"""Short paths of fields: one rule wherever a field is named."""

from __future__ import annotations

import json
from pathlib import Path

import aqmlab as package
import pytest
from aqmlab import _native
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario import short, vary
from conftest import SMALL, Cli
from test_cli import one_line

NETWORK = """
title = "Two links"
[measure]
warm_up = "1 s"
duration = "2 s"
[topology]
kind = "network"
[topology.links.radio]
rate = "5 Mbit/s"
discipline = "fq-codel"
{wire}
[topology.paths.down]
links = [{links}]
[[traffic]]
kind = "bulk"
flows = 1
rtt = {{ kind = "constant", rtt = "20 ms" }}
"""
WIRE = '[topology.links.wire]\nrate = "8 Mbit/s"\ndiscipline = "fq-codel"'
CHANGE = """
[[changes]]
at = "3 s"
key = "{key}"
value = "9 packets"
"""


def test_the_keys_are_those_of_scenarios_and_links() -> None:
    assert list(json.loads(_native.schema())["properties"]) == list(short.TOP)
    assert short.is_short("discipline.target")
    assert short.is_short("rate")
    assert not short.is_short("seed")
    assert not short.is_short("limit")


@pytest.mark.parametrize(
    ("path", "full"),
    [
        ("discipline", "topology.bottleneck.discipline"),
        ("discipline.limit", "topology.bottleneck.discipline.limit"),
        ("forward.rate", "topology.bottleneck.forward.rate"),
        ("topology.bottleneck.rate", "topology.bottleneck.rate"),
        ("traffic.fetches.rate", "traffic.fetches.rate"),
        ("limit", "limit"),
    ],
)
def test_a_short_path_is_one_of_the_bottleneck(path: str, full: str) -> None:
    assert short.full_path(SMALL, path) == full


def test_a_short_path_is_one_of_the_only_link() -> None:
    one = package.Scenario.from_toml(NETWORK.format(wire="", links='"radio"'))
    found = one.with_overrides({"discipline": "pie"})
    assert found.data["topology"]["links"]["radio"]["forward"]["discipline"]["kind"] == "pie"
    assert found.overrides == (("topology.links.radio.discipline", "pie"),)
    two = package.Scenario.from_toml(NETWORK.format(wire=WIRE, links='"radio", "wire"'))
    with pytest.raises(ScenarioError) as error:
        two.with_overrides({"discipline": "pie"})
    assert str(error.value) == (
        "discipline: is short for a field of several links; expected "
        "topology.links.radio.discipline, topology.links.wire.discipline"
    )


def test_slips_are_seen() -> None:
    with pytest.raises(ScenarioError, match=r'disciplin: there is no .* mean "discipline"\?'):
        package.Scenario.from_toml(SMALL, [("disciplin", "pie")])


def test_every_option_takes_them(aqmlab: Cli, small: Path) -> None:
    """The runs are those of the full paths."""
    full = "topology.bottleneck.discipline"
    expected = aqmlab("run", small, "--set", f"{full}=pie", "--out", "full")
    found = aqmlab("run", small, "--set", "discipline=pie", "--out", "short")
    assert found.out == expected.out.replace("directory: full", "directory: short")
    a = aqmlab("compare", small, "--vary", f"{full}=pie,fq-codel", "--json")
    b = aqmlab("compare", small, "--vary", "discipline=pie,fq-codel", "--json")
    assert (a.status, a.out) == (0, b.out)
    assert b.err == ""


def test_axes_and_settings_of_sweeps_take_them(aqmlab: Cli, small: Path) -> None:
    text = (
        f'scenario = "{small.name}"\nset = {{ rate = "1 Mbit/s" }}\n'
        '[[axes]]\nfield = "discipline"\nvalues = ["pie", "fq-codel"]\n'
    )
    Path("queues.toml").write_text(text)
    plan = package.Sweep.load("queues.toml")
    assert [point.label for point in plan.points] == ["discipline = pie", "discipline = fq-codel"]
    first = plan.scenario_of(plan.points[0]).data["topology"]["bottleneck"]["forward"]
    assert (first["discipline"]["kind"], first["rate"]) == ("pie", "1 Mbit/s")
    answer = aqmlab("sweep", "queues.toml", "--set", "topology.bottleneck.discipline=red")
    assert answer.status == 2
    assert "replaces discipline in every run, which axes.0 varies" in one_line(answer.err)
    both = '[[axes]]\nname = "limit"\nfield = "topology.bottleneck.discipline"\nvalues = ["pie"]\n'
    Path("queues.toml").write_text(text + both)
    with pytest.raises(AqmlabError, match=r"varies discipline, which axes\.limit replaces"):
        package.Sweep.load("queues.toml")


def test_changes_take_the_end_of_a_key() -> None:
    """The effective scenario spells it out: both ways to write it are the same run."""
    short_key = "forward.discipline.limit"
    small = package.Scenario.from_toml(SMALL + CHANGE.format(key=short_key))
    full = "bottleneck.forward.discipline.limit"
    assert small.data["changes"][0]["key"] == full
    assert small.key == package.Scenario.from_toml(SMALL + CHANGE.format(key=full)).key
    with pytest.raises(ScenarioError) as error:
        package.Scenario.from_toml(SMALL + CHANGE.format(key="discipline.limit"))
    assert str(error.value) == (
        'changes.0.key: found "discipline.limit", which is short for several; expected '
        "bottleneck.forward.discipline.limit, bottleneck.reverse.discipline.limit"
    )
    with package.Simulation(package.Scenario.from_toml(SMALL)) as simulation:
        simulation.run_until(3.0)
        simulation.set(short_key, "9 packets")
        assert simulation.finish("stepped").scenario == small.data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('discipline={kind="red"', 'found "{kind="red"", where the brace { is not closed'),
        ("discipline=pie,{kind=pie", 'found "pie,{kind=pie", where the brace { is not closed'),
        ("a=[1,2", 'found "[1,2", where the bracket [ is not closed'),
        ('a="b', 'found ""b", where the quotation mark " is not closed'),
    ],
)
@pytest.mark.parametrize("option", ["--set", "--vary"])
def test_what_is_not_closed_is_named(option: str, text: str, message: str) -> None:
    with pytest.raises(AqmlabError) as error:
        vary.assignment(text, option)
    assert str(error.value) == f"{option} {text.partition('=')[0]}: {message}"


def test_plain_text_may_have_any_character() -> None:
    for text in ("title=It's {fine", "title=a [b", "a={b = '{'}", "a=[1,2],'['"):
        assert vary.assignment(text, "--set")[1] == text.partition("=")[2]
