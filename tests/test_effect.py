"""What is set or varied takes effect, or is refused with the field that wins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from aqmlab import AqmlabError, Scenario, ScenarioError, Sweep
from aqmlab.scenario.vary import variations
from conftest import SMALL, Cli

BOTH = "topology.bottleneck.discipline"
OWN = "topology.bottleneck.reverse.discipline"
OFFICE = SMALL.replace(
    "[[traffic]]",
    """[topology.bottleneck.reverse]
rate = "1 Mbit/s"
discipline = { kind = "droptail", limit = "1000 packets" }

[[traffic]]
direction = "reverse"
""",
)
"""People who upload over a link whose upload has a queue of its own."""
DOWNLOAD = [("traffic.fetches.direction", "forward")]


def kinds(scenario: Scenario) -> list[str]:
    """The disciplines of both directions."""
    link = scenario.data["topology"]["bottleneck"]
    return [link[direction]["discipline"]["kind"] for direction in ("forward", "reverse")]


@pytest.mark.parametrize("extra", [[], [("traffic.fetches.direction", "both")]])
def test_what_does_not_reach_the_traffic_is_refused(extra: Sequence[tuple[str, str]]) -> None:
    """The message names what wins, and both ways out."""
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml(OFFICE, [*extra, (BOTH, "fq-codel")])
    assert str(caught.value) == (
        f"{BOTH}: does not change reverse, where {OWN} wins: "
        f"set {OWN}, or take discipline out of [topology.bottleneck.reverse]"
    )


@pytest.mark.parametrize(
    ("overrides", "wins"),
    [
        ([("topology.bottleneck.rate", "5 Mbit/s")], "topology.bottleneck.reverse.rate"),
        ([(f"{BOTH}.limit", "9 packets")], OWN),
        ([(OWN, "codel"), (BOTH, "fq-codel")], OWN),
        (
            [
                *DOWNLOAD,
                ("topology.bottleneck.forward", '{ rate = "1 Mbit/s" }'),
                ("topology.bottleneck.rate", "5 Mbit/s"),
            ],
            "topology.bottleneck.forward.rate",
        ),
    ],
)
def test_every_shared_key_is_looked_at(overrides: list[tuple[str, str]], wins: str) -> None:
    """Whole disciplines, their parameters, rates; in the file or in an earlier override."""
    with pytest.raises(ScenarioError, match=f"where {wins} wins"):
        Scenario.from_toml(OFFICE, overrides)


def test_with_overrides_is_no_way_round() -> None:
    """Python's way to vary a scenario."""
    office = Scenario.from_toml(OFFICE)
    with pytest.raises(ScenarioError, match=r"reverse\.discipline wins"):
        office.with_overrides({BOTH: "fq-codel"})
    assert kinds(office.with_overrides({OWN: "fq-codel"})) == ["droptail", "fq-codel"]


def test_a_later_word_about_the_direction_is_what_is_wanted() -> None:
    """Both are set, one after the other."""
    found = Scenario.from_toml(OFFICE, [(BOTH, "fq-codel"), (OWN, "codel")])
    assert kinds(found) == ["fq-codel", "codel"]
    assert found.outvoted == []
    found = Scenario.from_toml(OFFICE, [("topology.bottleneck.reverse", "{}"), (BOTH, "codel")])
    assert kinds(found) == ["codel", "codel"]


def test_a_direction_without_responses_may_keep_its_own() -> None:
    """Acknowledgements cross it; the scenario says which override stays out of it."""
    found = Scenario.from_toml(OFFICE, [*DOWNLOAD, (BOTH, "fq-codel")])
    assert kinds(found) == ["fq-codel", "droptail"]
    assert [str(entry) for entry in found.outvoted] == [
        f"{BOTH}: does not change reverse, where {OWN} wins"
    ]


def test_a_key_that_reaches_neither_direction_is_refused() -> None:
    """Whatever the traffic is."""
    both = [*DOWNLOAD, ("topology.bottleneck.forward.discipline", "codel")]
    with pytest.raises(ScenarioError, match=r"forward\.discipline wins"):
        Scenario.from_toml(OFFICE, [*both, (BOTH, "fq-codel")])


def test_links_of_a_network_have_directions_too() -> None:
    """Each is called by its name."""
    network = SMALL.partition("[topology]")[0] + (
        '[topology]\nkind = "network"\n'
        "[topology.links.wire]\n"
        'rate = "2 Mbit/s"\ndiscipline = "droptail-240"\n'
        '[topology.links.wire.forward]\ndiscipline = "codel"\n'
        '[topology.paths.all]\nlinks = ["wire"]\n[[traffic]]' + SMALL.partition("[[traffic]]")[2]
    )
    assert Scenario.from_toml(network).title
    with pytest.raises(ScenarioError, match=r"wire\.forward\.discipline wins"):
        Scenario.from_toml(network, [("topology.links.wire.discipline", "fq-codel")])


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "office.toml", "--vary", f"{BOTH}=droptail-240,fq-codel"),
        ("run", "office.toml", "--set", f"{BOTH}=fq-codel"),
        ("sweep", "sweep.toml"),
        ("sweep", "plain.toml", "--set", f"{BOTH}=fq-codel"),
    ],
)
def test_every_command_refuses_it(aqmlab: Cli, arguments: tuple[str, ...]) -> None:
    """Before a single run is made."""
    Path("office.toml").write_text(OFFICE)
    axis = '[[axes]]\nname = "queue"\nfield = "{}"\nvalues = ["droptail-240", "fq-codel"]\n'
    Path("sweep.toml").write_text('scenario = "office.toml"\n' + axis.format(BOTH))
    Path("plain.toml").write_text('scenario = "office.toml"\n' + axis.format(OWN))
    answer = aqmlab(*arguments)
    assert answer.status == 2
    assert f"{OWN} wins" in answer.err
    assert not Path("runs").exists()


def test_a_command_says_what_stays_as_it_was(aqmlab: Cli) -> None:
    """Where the override is not refused."""
    text = OFFICE.replace('direction = "reverse"', "")
    Path("office.toml").write_text(text)
    answer = aqmlab("compare", "office.toml", "--vary", f"{BOTH}=droptail-240,fq-codel")
    assert answer.status == 0
    assert answer.err.count(f"{BOTH}: does not change reverse, where {OWN} wins") == 1


def test_values_without_a_difference_are_refused(small: Path) -> None:
    """Two rows of a comparison are two scenarios."""
    base = Scenario.load(small)
    with pytest.raises(AqmlabError, match="are the same scenario"):
        variations(base, [f'{BOTH}=droptail-240,{{ preset = "droptail-240" }}'])
    with pytest.raises(AqmlabError, match="seed=1, seed=3 and seed=2, seed=3 are the same"):
        variations(base, ["seed=1,2", "seed=3"])
    assert len(variations(base, ["seed=1,2", f"{BOTH}=droptail-24,droptail-240"])) == 4


def test_a_sweep_refuses_what_takes_its_axes_away(small: Path) -> None:
    """In every run the same value would stand where an axis varies."""
    Path("sweep.toml").write_text(
        f'scenario = "{small.name}"\n[[axes]]\nfield = "{BOTH}.limit"\nvalues = [5, 9]\n'
    )
    sweep = Sweep.load("sweep.toml")
    with pytest.raises(AqmlabError, match=r"replaces topology.*limit in every run"):
        sweep.with_overrides([(BOTH, "fq-codel")])
    assert sweep.with_overrides([("seed", "3")]).overrides == (("seed", "3"),)
    with Path("sweep.toml").open("a") as file:
        file.write(f'[[axes]]\nname = "queue"\nfield = "{BOTH}"\nvalues = ["codel", "pie"]\n')
    with pytest.raises(AqmlabError, match="give each axis a field of its own"):
        Sweep.load("sweep.toml")
