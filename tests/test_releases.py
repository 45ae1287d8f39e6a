"""What released versions wrote, and what their users wrote for them, still works.

`tests/releases` has a folder for each release since 0.2, made by that release itself. A file that
cannot be read any more is a broken promise of docs/versioning.md.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import aqmlab as package
import pytest
from aqmlab import AqmlabError, Card, Run, Scenario, _native, figures
from aqmlab._util.deprecated import OLD_NAMES
from aqmlab.cards import scoring
from conftest import ROOT, Cli

RELEASES = sorted(path for path in (ROOT / "tests/releases").iterdir() if path.is_dir())
NAMES = [path.name for path in RELEASES]
WITH_PLUGINS = [path for path in RELEASES if (path / "red.py").exists()]
GOLDEN = ROOT / "tests/releases/golden.json"
RED = 'min_th = "5 packets", max_th = "15 packets", limit = "60 packets"'
DISCIPLINE = "topology.bottleneck.forward.discipline"
VERSION = re.compile(r"aqmlab (\S+), engine (\w+)")


def engine_of(release: Path) -> str:
    """The name of the engine of a release."""
    found = VERSION.match((release / "version.txt").read_text())
    assert found is not None
    assert found[1].startswith(f"{release.name}.")
    return found[2]


@pytest.fixture(params=RELEASES, ids=NAMES)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a release's files, to work with."""
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def numbers(summary: dict[str, Any]) -> str:
    """What a run measured: without the versions of what measured it."""
    return json.dumps({key: summary[key] for key in summary if "version" not in key})


def test_every_release_since_0_2_has_its_files() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    released = re.findall(r"^## \[(\d+\.\d+)\.\d+\]", changes, re.MULTILINE)
    assert sorted(set(released) - {"0.1"}) == NAMES
    page = (ROOT / "docs/versioning.md").read_text()
    assert all(f"| {name} |" in page for name in NAMES)


def test_the_page_of_versions_has_the_defaults_of_today() -> None:
    page = (ROOT / "docs/versioning.md").read_text()
    part = page.partition("## Upgrade from 0.3\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?`([\w-]+)`) \| (.*) \| (.*) \|$", part, re.MULTILINE)
    assert len(rows) == 8
    for key, of, name, before, now in rows:
        is_stack = of.startswith("the profile")
        path = "traffic.transfers.tcp" if is_stack else DISCIPLINE
        kind = "profile" if is_stack else "kind"
        value, _, condition = now.partition(", with ")
        for state, wanted in (("", value), (f", {key} = {before.strip('`')}", before)):
            text = f'{{ {kind} = "{name}"{state} }}'
            found = Scenario.load(ROOT / "scenarios/bulk.toml", [(path, text)]).effective
            # What follows from another key stands in no file.
            if not (condition and wanted == value):
                line = re.escape(f"{key} = {wanted.strip('`')}")
                assert re.search(rf"^{line}(\.0)?$", found, re.MULTILINE), (key, wanted)


def test_its_run_directory_is_whole(release: Path) -> None:
    run = Run.open(release / "run")
    assert (run.manifest is None) == (release.name == "0.2")  # 0.2 wrote no hashes of its files
    if run.manifest is not None:
        run.manifest.check_everything()
    assert run.metadata["versions"]["engine"] == engine_of(release)
    for table in (run.responses, run.flows, run.queue, run.distribution, run.sojourn):
        assert table is not None
        assert table.num_rows > 0
    fetches = run.summary["responses"]["fetches"]
    assert run.responses is not None
    of = [str(name) == "fetches" for name in run.responses.column("class").to_pylist()]
    assert sum(of) == fetches["count"] > 10
    assert run.scenario["seed"] == run.seed == 7


def test_commands_read_its_run(release: Path, aqmlab: Cli) -> None:
    shown = aqmlab("show", release / "run", "--json")
    assert (shown.status, shown.err) == (0, "")
    written = json.loads((release / "run/summary.json").read_text())
    link = "links", "bottleneck", "forward", "departed_packets"
    found = json.loads(shown.out)
    for key in link:
        found, written = found[key], written[key]
    assert found == written
    aqmlab("run", release / "scenario.toml", "--seed", 8, "--out", "today")
    for command in (
        ("show", release / "run"),
        ("compare", release / "run", "today", "-o", "compare.svg"),
        ("plot", "delay", release / "run", "-o", "delay.svg"),
        ("plot", "cdf", release / "run", "today", "-o", "cdf.svg"),
        ("report", release / "run", "-o", "report.html"),
    ):
        answer = aqmlab(*command)
        assert answer.status == 0, answer.err
        assert "warning" not in answer.err
    assert "Pages and a download" in Path("report.html").read_text()


def test_its_scenario_is_the_same_scenario(release: Path, aqmlab: Cli) -> None:
    """What the file of a user says, and the effective scenario, which spells out every default."""
    for file in ("scenario.toml", "run/scenario.toml"):
        answer = aqmlab("run", release / file, "--out", "again", "--json")
        assert answer.status == 0, answer.err
        links = json.loads(answer.out)["links"]
        assert links["bottleneck"]["forward"]["departed_packets"] > 100
        shutil.rmtree("again")


def test_its_sweep_goes_on(release: Path, aqmlab: Cli) -> None:
    """Its results and the runs of its store are read; runs of another engine are made again."""
    results = aqmlab("show", release / "results", "--json")
    assert results.status == 0, results.err
    assert len(json.loads(results.out)) == 4
    store = release / "store"
    before = {path.name for path in store.glob("??/*")}
    checked = aqmlab("store", "check", "--store", store)
    assert checked.status == 0, checked.out + checked.err
    made = aqmlab("sweep", release / "sweep.toml", "--out", release / "results", "--store", store)
    assert made.status == 0, made.err
    assert "droptail_60" in made.out
    now = {path.name for path in store.glob("??/*")}
    same = engine_of(release) == _native.engine()
    assert now == before if same else len(now) == 2 * len(before)


@pytest.mark.parametrize("folder", WITH_PLUGINS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("language", ["python", "c"])
def test_its_plugins_do_what_they_did(
    folder: Path, language: str, aqmlab: Cli, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "old")
    file = tmp_path / "old" / "red.py"
    if language == "c":
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("NO C PLUG-IN OF A RELEASE WAS TRIED: there is no C compiler (cc)")
        file = tmp_path / "old" / "red.so"
        command = [compiler, "-O2", "-shared", "-fPIC", "-ffp-contract=off", "-I.", "-o"]
        subprocess.run([*command, "red.so", "red.c", "-lm"], cwd=file.parent, check=True)
    name = {"python": "py-red", "c": "c-red"}[language]
    queues = {"native": f'{{ kind = "red", {RED} }}'}
    queues["plugin"] = f'{{ kind = "plugin", name = "{name}", {RED} }}'
    links = {}
    for what, queue in queues.items():
        loaded = ("--plugin", file) if what == "plugin" else ()
        scenario = folder / "scenario.toml"
        answer = aqmlab("run", scenario, *loaded, "--set", f"{DISCIPLINE}={queue}", "--out", what)
        assert answer.status == 0, answer.err
        found = Run.open(what).summary["links"]
        # A plug-in may always force a drop, so its counter is there.
        links[what] = json.dumps(found).replace('"forced": 0, ', "")
    assert links["plugin"] == links["native"]
    # Its results are read without the plug-in.
    old = Run.open(folder / "plugin")
    assert (old.path / "plugin-red.py").read_bytes() == (folder / "red.py").read_bytes()
    if engine_of(folder) == _native.engine():
        assert json.dumps(old.summary["links"]) == json.dumps(Run.open("plugin").summary["links"])


@pytest.mark.parametrize("folder", WITH_PLUGINS, ids=lambda folder: folder.name)
def test_its_card_is_a_reference_or_says_what_to_do(folder: Path) -> None:
    file = folder / "card/card.json"
    if json.loads(file.read_text())["card"] == scoring.VERSION:
        card = Card.load(file)
        assert (card.kind, card.name, card.tier) == ("queue", "codel", "quick")
        assert card.compare(card).count("same") > 0
        return
    with pytest.raises(AqmlabError, match=r"card of version \d+, .* make it again") as said:
        Card.load(file)
    assert "\n" not in str(said.value)


def test_an_engine_keeps_its_results(aqmlab: Cli) -> None:
    """A name of an engine stands for its results.

    golden.json has a hash of them for each engine that was released. With AQMLAB_REWRITE=1 in the
    environment this test adds the present one: a step of a release.
    """
    golden: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text())
    made: dict[str, str] = {}
    for release in RELEASES:
        answer = aqmlab("run", release / "scenario.toml", "--out", release.name, "--json")
        made[release.name] = _hash(json.loads(answer.out))
    present = _native.engine()
    if os.environ.get("AQMLAB_REWRITE") == "1":
        golden[present] = golden.get(present, {}) | made
        GOLDEN.write_text(json.dumps(golden, indent=2, sort_keys=True) + "\n")
    for release in RELEASES:
        summary = json.loads((release / "run/summary.json").read_text())
        assert golden[engine_of(release)][release.name] == _hash(summary)
    if present in golden:
        assert golden[present] == made, f"the engine {present} has other results than it had"


def _hash(summary: dict[str, Any]) -> str:
    return hashlib.sha256(numbers(summary).encode()).hexdigest()[:16]


def test_an_old_name_warns_for_one_minor_version() -> None:
    present = tuple(map(int, package.__version__.split(".")[:2]))
    assert OLD_NAMES
    for dotted, last in OLD_NAMES.items():
        module, _, name = dotted.rpartition(".")
        with pytest.warns(DeprecationWarning, match=f"{dotted} is called {module}.") as said:
            found = getattr(importlib.import_module(module), name)
        assert said[0].filename == __file__, "it names the line that has the old name"
        assert callable(found)
        assert f"after {last}" in str(said[0].message)
        ends = tuple(map(int, last.split(".")))
        assert present <= ends, f"{dotted}: its time is over; remove it"
        assert ends[1] - present[1] <= 1
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        getattr(figures, "nonsense")  # noqa: B009 - the name is the point


@pytest.mark.parametrize("name", NAMES)
def test_its_python_names_are_there(name: str) -> None:
    """Those of the last release at least warn; an older one may be gone with its last warning."""
    modules = json.loads((ROOT / "tests/releases/names.json").read_text())[name]
    assert set(modules) == {"aqmlab", "aqmlab.figures"}
    for module, names in modules.items():
        present = importlib.import_module(module)
        there = {each for each in names if each in present.__all__}
        warned = {each for each in names if f"{module}.{each}" in OLD_NAMES}
        if name == NAMES[-1]:
            assert there | warned == set(names), f"{module}: {set(names) - there - warned}"
        assert there


def keys(node: Any, place: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """Every path of keys of a summary."""
    if not isinstance(node, dict):
        return {place}
    return {path for key, below in node.items() for path in keys(below, (*place, key))}


def test_its_numbers_and_columns_have_their_names(release: Path, aqmlab: Cli) -> None:
    """`Run` translates what has another name; nothing else of an earlier version is lost."""
    assert aqmlab("run", release / "run/scenario.toml", "--out", "today").status == 0
    before, today = Run.open(release / "run"), Run.open("today")
    # A reason for which nothing was dropped in the other run has no counter there.
    lost = {
        path
        for path in keys(before.summary) - keys(today.summary)
        if "version" not in path[0] and not {"drops", "marks"} & set(path)
    }
    assert lost == set()
    for table in ("responses", "flows", "queue"):
        earlier, now = before.read(table), today.read(table)
        assert earlier is not None
        assert now is not None
        assert set(earlier.column_names) <= set(now.column_names), table


def test_results_of_a_newer_version_are_refused(release: Path, aqmlab: Cli) -> None:
    file = release / "run/metadata.json"
    metadata = json.loads(file.read_text())
    newer = _native.results_version() + 1
    file.write_text(json.dumps({**metadata, "results_version": newer}))
    answer = aqmlab("show", release / "run")
    assert (answer.status, answer.out) == (2, "")
    assert f"holds results of version {newer}; " in answer.err
    assert answer.err.count("\n") == 1
