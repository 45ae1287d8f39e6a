"""The text of a scenario is read once for all that looks at it before the engine does."""

from __future__ import annotations

import pytest
from aqmlab import Scenario
from aqmlab.errors import ScenarioError
from aqmlab.scenario.content import content
from conftest import ROOT


def test_all_variations_of_a_scenario_are_read_once() -> None:
    content.cache_clear()
    scenario = Scenario.load(ROOT / "scenarios/cellular.toml")
    for discipline in ("codel", "fq-codel"):
        varied = scenario.with_overrides({"discipline": discipline, "seed": 2})
        assert varied.data["topology"]["bottleneck"]["forward"]["discipline"]["kind"] == discipline
    assert content.cache_info().misses == 1


def test_what_is_no_toml_has_no_content() -> None:
    assert content("title = ") == {}
    with pytest.raises(ScenarioError, match="line 1, column 9: not TOML"):
        Scenario.from_toml("title = ")


def test_a_scenario_without_new_users_stays_as_it_is() -> None:
    scenario = Scenario.load(ROOT / "scenarios/quickstart.toml")
    assert scenario.with_populations({}) is scenario
