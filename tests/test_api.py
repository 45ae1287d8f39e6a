"""What ``import aqmlab`` offers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import aqmlab
import pytest
from aqmlab import AqmlabError, Run, Scenario, ScenarioError
from conftest import ROOT, SMALL

RED = {"kind": "red", "min_th": "5 packets", "max_th": "15 packets", "limit": "60 packets"}


RTT = {"kind": "constant", "rtt": "40 ms"}


def test_the_public_names() -> None:
    assert set(aqmlab.__all__) == {
        *("Scenario", "Run", "Simulation", "Sweep", "SweepSummary", "Difference", "Tuning", "Card"),
        *("run", "simulate", "sweep", "tune", "compare", "calibrate", "report", "evaluate"),
        *("Answers", "answer"),
        *("AqmlabError", "RunError", "ScenarioError"),
    }
    for name in aqmlab.__all__:
        assert getattr(aqmlab, name).__doc__
    assert aqmlab.__version__ == aqmlab._native.version()
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0)?", aqmlab.__version__)


@pytest.mark.long
def test_functions_stay_functions_when_packages_are_imported() -> None:
    code = (
        "import importlib, pathlib, aqmlab\n"
        "folder = pathlib.Path(aqmlab.__file__).parent\n"
        "for file in sorted(folder.rglob('*.py')):\n"
        "    parts = file.relative_to(folder).with_suffix('').parts\n"
        "    if parts[-1] not in ('__main__', '__init__'):\n"
        "        importlib.import_module('.'.join(('aqmlab', *parts)))\n"
        "    elif parts[-1] == '__init__' and len(parts) > 1:\n"
        "        importlib.import_module('.'.join(('aqmlab', *parts[:-1])))\n"
        "names = ('run', 'simulate', 'sweep', 'tune', 'compare', 'calibrate', 'report')\n"
        "print(all(callable(getattr(aqmlab, name)) for name in names))\n"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\n"


@pytest.mark.parametrize("file", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda f: f.stem)
def test_a_scenario_from_its_own_dictionary_is_the_same(file: Path) -> None:
    scenario = Scenario.load(file)
    assert Scenario.from_dict(scenario.data).effective == scenario.effective


def test_a_scenario_from_a_dictionary() -> None:
    content = {
        "title": 'a "title"',
        "load": None,
        "measure": {"warm_up": "1 s", "duration": "5 s", "record": []},
        "topology": {
            "kind": "dumbbell",
            "bottleneck": {"rate": "2 Mbit/s", "discipline": RED},
        },
        "traffic": [{"name": "long", "kind": "bulk", "flows": 2, "rtt": RTT}],
    }
    scenario = Scenario.from_dict(content, [("seed", "3")])
    assert (scenario.title, scenario.seed) == ('a "title"', 3)
    assert scenario.data["traffic"][0]["flows"] == 2
    with pytest.raises(ScenarioError, match="sed"):
        Scenario.from_dict({**content, "sed": 1})
    with pytest.raises(ScenarioError, match="cannot be a set"):
        Scenario.from_dict({**content, "title": {1}})


def test_several_seeds_give_several_runs() -> None:
    scenario = Scenario.from_toml(SMALL)
    shares: list[float] = []
    runs = aqmlab.run(scenario, seeds="1..3", out_dir="here", progress=shares.append)
    assert [run.seed for run in runs] == [1, 2, 3]
    assert {run.path.parent for run in runs} == {Path("here")}
    assert max(shares) == pytest.approx(1.0)
    again = aqmlab.run(scenario, seeds=[3, 1, 3], out_dir="here")
    assert [run.path for run in again] == [runs[2].path, runs[0].path]
    assert aqmlab.run(scenario, 2).summary == runs[1].summary
    with pytest.raises(AqmlabError, match="found seed and seeds"):
        aqmlab.run(scenario, 1, seeds=[1])  # type: ignore[call-overload]
    with pytest.raises(AqmlabError, match=r"expected 1\.\.3"):
        aqmlab.run(scenario, seeds="3..1")


def test_compared_and_reported() -> None:
    scenario = Scenario.from_toml(SMALL)
    red = scenario.with_overrides({"topology.bottleneck.discipline": RED})
    runs = [run for one in (scenario, red) for run in aqmlab.run(one, seeds=[1, 2])]
    found = {
        one.metric: one for one in aqmlab.compare([*runs[:2], *(run.path for run in runs[2:])])
    }
    assert found["p50_s"].basis == "2 pairs of runs"
    assert found["p50_s"].run == "red (5,15)"
    assert json.loads(json.dumps(found["p50_s"].to_json()))["class"] == "all"
    place = aqmlab.report([runs[0], runs[2].path], "page.md", title="Two queues")
    assert place.read_text().startswith("# Two queues")


def test_users_are_calibrated_once_for_all_seeds() -> None:
    text = SMALL.replace('rate = "30 /s"\n', "") + "\n"
    scenario = Scenario.from_toml("load = 0.5\n" + text)
    ready, [answer] = aqmlab.calibrate(scenario)
    assert answer.load == 0.5
    runs = aqmlab.run(scenario, seeds=[1, 2])
    rates = {run.scenario["traffic"][0]["rate"] for run in runs}
    assert rates == {ready.data["traffic"][0]["rate"]}


def test_an_old_option_is_refused_with_the_new_name() -> None:
    with pytest.raises(TypeError, match=r"sweep\(\): watcher is called progress"):
        aqmlab.sweep("sweep.toml", watcher=None)  # type: ignore[call-arg]


def test_a_run_is_opened_by_its_path() -> None:
    run = aqmlab.run(Scenario.from_toml(SMALL), out_dir="run")
    assert Run.open("run").summary == run.summary
