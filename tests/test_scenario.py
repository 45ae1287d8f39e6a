"""Scenarios: reading, overriding, keys, errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from aqmlab import AqmlabError, Scenario, ScenarioError, Sweep
from aqmlab._util import files
from aqmlab.papers.paper import Paper
from aqmlab.scenario import vary
from aqmlab.scenario.catalog import scenario_files
from conftest import ROOT, SMALL
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("file", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda f: f.stem)
def test_every_shipped_scenario_is_right_and_complete(file: Path) -> None:
    scenario = Scenario.load(file)
    assert scenario.title
    again = Scenario.from_toml(scenario.effective)
    assert again.effective == scenario.effective


def test_overrides_reach_the_effective_scenario() -> None:
    scenario = Scenario.from_toml(SMALL).with_overrides(
        {
            "seed": 7,
            "topology.bottleneck.discipline": {
                "kind": "red",
                "min_th": "5 packets",
                "max_th": "15 packets",
                "limit": "60 packets",
                "ecn": True,
            },
            "measure.record": ["queue"],
            "traffic.fetches.response": {"kind": "empirical", "cdf": [[100, 0.5], (2e3, 1.0)]},
            "traffic.fetches.rate": "40 /s",
        }
    )
    assert scenario.seed == 7
    forward = scenario.data["topology"]["bottleneck"]["forward"]["discipline"]
    assert (forward["kind"], forward["max_th"], forward["ecn"]) == ("red", "15 packets", True)
    assert scenario.data["measure"]["record"] == ["queue"]
    [traffic] = scenario.data["traffic"]
    assert traffic["rate"] == "40 /s"
    assert traffic["response"]["cdf"] == [[100.0, 0.5], [2000.0, 1.0]]


def test_an_override_of_no_meaning() -> None:
    with pytest.raises(ScenarioError, match="cannot be a set"):
        Scenario.from_toml(SMALL).with_overrides({"seed": {1}})


def test_keys_differ_exactly_when_results_may() -> None:
    scenario = Scenario.from_toml(SMALL)
    same = Scenario.from_toml(SMALL + "# a remark\n")
    other_seed = scenario.with_overrides({"seed": 2})
    assert scenario.key == same.key == Scenario.from_toml(scenario.effective).key
    assert scenario.key != other_seed.key


def test_an_error_names_the_field() -> None:
    with pytest.raises(ScenarioError, match=r"^topology\.bottleneck\.rate: .*-2 Mbit/s"):
        Scenario.from_toml(SMALL.replace('"2 Mbit/s"', '"-2 Mbit/s"'))
    with pytest.raises(ValueError, match=r"traffic\.fetches\.rate"):
        Scenario.from_toml(SMALL, [("traffic.fetches.rate", "30")])


def test_files_that_are_no_scenarios(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(SMALL)
    (tmp_path / "bytes.toml").write_bytes(b"title = '\xff'")
    with (tmp_path / "long.toml").open("wb") as file:
        file.truncate(10 * 2**30)
    for name, reason in {
        "quik.toml": r"no such scenario file; did you mean .*quick\.toml\?",
        "nowhere.toml": "no such scenario file$",
        "bytes.toml": "not UTF-8",
        "long.toml": "longer than 16 MiB",
        ".": "is a folder",
    }.items():
        with pytest.raises(AqmlabError, match=reason):
            Scenario.load(tmp_path / name)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file.txt"
    files.write_text(target, "text")
    assert target.read_text() == "text"
    with pytest.raises(AqmlabError, match="cannot be written"):
        files.write_text(target / "below", "text")
    assert [entry.name for entry in target.parent.iterdir()] == ["file.txt"]


VALUES = st.lists(
    st.sampled_from(["60 packets", "1.5", "[1, 2]", '{kind = "a, b", c = [1, {d = 2}]}', "'x,y'"]),
    min_size=1,
)


@given(VALUES)
def test_vary_splits_only_between_values(values: list[str]) -> None:
    assert vary.split(",".join(values)) == values


def test_vary_combines() -> None:
    combined = vary.combinations(["a=1,2", "b={x=[3,4]}"])
    assert combined == [[("a", "1"), ("b", "{x=[3,4]}")], [("a", "2"), ("b", "{x=[3,4]}")]]
    assert vary.combinations([]) == [[]]
    for wrong in ("a=1,,2", "a=", "a"):
        with pytest.raises(AqmlabError, match="--vary"):
            vary.combinations([wrong])


def test_shipped_files_are_found_from_everywhere() -> None:
    scenario = Scenario.load("scenarios/quickstart.toml")
    assert scenario.effective == Scenario.load(ROOT / "scenarios" / "quickstart.toml").effective
    listed = scenario_files()
    assert Path("scenarios/quickstart.toml") in listed
    assert all(Scenario.load(file).title for file in listed)
    assert Sweep.load("scenarios/sweeps/thresholds.toml").points
    assert Paper.load("christiansen2000").tables
    Path("scenarios").mkdir()
    Path("scenarios/quickstart.toml").write_text(SMALL)
    assert Scenario.load("scenarios/quickstart.toml").title == "Small fetches over a slow link"
    with pytest.raises(AqmlabError, match=r"scenarios/nowhere\.toml: there is no such"):
        Scenario.load("scenarios/nowhere.toml")
