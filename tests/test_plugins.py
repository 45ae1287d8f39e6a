"""Disciplines and congestion controls from outside do what the native ones do, byte for byte."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import aqmlab
import polars as pl
import pytest
from aqmlab import plugins
from aqmlab._util.plugin_sources import sources_of
from aqmlab.errors import AqmlabError, PluginError, ScenarioError
from aqmlab.scenario.catalog import Catalog
from aqmlab.scenario.scenario import Scenario
from aqmlab.validation.properties import Property, check_trace
from conftest import ROOT

HERE = Path(__file__).parent / "plugins"
WAYS = ("python", "numba", "c")
SHORT = [("measure.duration", "15 s"), ("measure.warm_up", "0 s")]
RED = 'min_th = "5 packets", max_th = "15 packets", limit = "60 packets"'


def compiled_c(source: Path, folder: Path) -> Path:
    """A shared object."""
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("NO C PLUG-IN RAN: no compiler cc")
    target = folder / f"lib{source.stem}.so"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-ffp-contract=off"]
    include = Path(plugins.__file__).parent
    subprocess.run(
        [compiler, *flags, f"-I{include}", "-o", target, source, "-lm"], check=True, timeout=60
    )
    return target


def written(what: str, way: str, folder: Path) -> str:
    """Loads an algorithm written in one of the ways; its name."""
    if way == "c":
        [name] = plugins.load(compiled_c(HERE / f"{what}.c", folder))
        return name
    file = HERE / f"{what}.py"
    if way == "numba":
        pytest.importorskip("numba", reason="NO NUMBA PLUG-IN RAN: no numba")
        text = file.read_text().replace("class Py", "@compiled\nclass Numba")
        known = "from aqmlab.plugins import"
        file = folder / f"{what}_numba.py"
        file.write_text(text.replace(known, f"{known} compiled\n{known}", 1))
    [name] = plugins.load(file)
    return name


def tables(run: aqmlab.Run) -> dict[str, bytes]:
    """Everything that the engine wrote."""
    return {file.name: file.read_bytes() for file in sorted(run.path.glob("*.parquet"))}


def same(native: Scenario, other: Scenario, folder: Path) -> None:
    """Both give the same bytes."""
    one = aqmlab.run(native, out_dir=folder / "native")
    two = aqmlab.run(other, out_dir=folder / "other")
    mine, theirs = tables(one), tables(two)
    assert mine.keys() == theirs.keys()
    for name in mine:
        left, right = (pl.read_parquet(run.path / name) for run in (one, two))
        common = [column for column in left.columns if column in right.columns]
        assert left.select(common).equals(right.select(common)), name
    # A plug-in may always force a drop, so its counter is there.
    links = [json.dumps(run.summary["links"]).replace('"forced": 0, ', "") for run in (one, two)]
    assert links[0] == links[1]


def scenario(*overrides: tuple[str, str]) -> Scenario:
    return Scenario.load("scenarios/bulk.toml", [*SHORT, *overrides])


@pytest.mark.long_cases("numba")
@pytest.mark.parametrize("way", WAYS)
def test_red_is_the_native_one(way: str, tmp_path: Path) -> None:
    key = "topology.bottleneck.forward.discipline"
    name = written("red", way, tmp_path)
    native = scenario((key, f'{{ kind = "red", {RED} }}'))
    other = scenario((key, f'{{ kind = "plugin", name = "{name}", {RED} }}'))
    same(native, other, tmp_path)


@pytest.mark.long_cases("*-numba")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ecn", ["false", "true"])
def test_codel_is_the_native_one(way: str, ecn: str, tmp_path: Path) -> None:
    key = "topology.bottleneck.forward.discipline"
    name = written("codel", way, tmp_path)
    more = f'limit = "100 packets", ecn = {ecn}'
    native = scenario((key, f'{{ kind = "codel", {more} }}'))
    other = scenario((key, f'{{ kind = "plugin", name = "{name}", {more} }}'))
    same(native, other, tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_cubic_is_the_native_one(way: str, tmp_path: Path) -> None:
    name = written("cubic", way, tmp_path)
    # As Linux has it, SACKs open the window after reordering, which the file does not know.
    stack = 'profile = "linux", rack_rules = "rfc8985", congestion_control'
    native, other = (
        scenario(("traffic.transfers.tcp", f"{{ {stack} = {control} }}"))
        for control in ('"cubic"', f'{{ kind = "plugin", name = "{name}" }}')
    )
    same(native, other, tmp_path)


PLAIN = '''
from aqmlab.plugins import ADMIT, SIGNAL, Discipline, Packets, Variable, chance

class Above(Discipline):
    """Signals above a threshold.

    Parameters:
        above: what waits without a signal
    """

    above: Packets = 20
    p: float = 0.1
    seen: Variable[int] = 0

    def on_arrival(self, event):
        self.seen += 1
        return SIGNAL if event.packets > self.above and chance(event, self.p) else ADMIT
'''


def plain(folder: Path, text: str = PLAIN) -> Path:
    file = folder / "above.py"
    file.write_text(text)
    return file


def above(more: str = "") -> Scenario:
    key = "topology.bottleneck.forward.discipline"
    return scenario((key, f'{{ kind = "plugin", name = "above"{more} }}'))


def test_parameters_are_like_native_ones(tmp_path: Path) -> None:
    plugins.load(plain(tmp_path))
    data = above(', above = "7 packets"').data
    discipline = data["topology"]["bottleneck"]["forward"]["discipline"]
    assert discipline["above"] == "7 packets"
    assert discipline["p"] == 0.1
    with pytest.raises(ScenarioError, match=r"discipline\.above: found 'x'|above: found \"x\""):
        above(', above = "x"')
    with pytest.raises(ScenarioError, match=r"abov: unknown key; did you mean \"above\""):
        above(", abov = 3")
    [entry] = [entry for entry in Catalog.load().find("above") if entry.kind == "plugins"]
    assert [parameter["name"] for parameter in entry.parameters] == ["above", "p"]
    assert entry.parameters[0]["description"] == "what waits without a signal"


def test_a_scenario_alone_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit(9)")
    with pytest.raises(ScenarioError, match=r"name: found .*ghost"):
        scenario(("topology.bottleneck.forward.discipline", '{ kind = "plugin", name = "ghost" }'))


def test_a_source_is_kept_and_part_of_the_key(tmp_path: Path) -> None:
    plugins.load(plain(tmp_path))
    first = above()
    run = aqmlab.run(first, out_dir=tmp_path / "run")
    assert (run.path / "plugin-above.py").read_text() == PLAIN
    plugins.load(plain(tmp_path, PLAIN + "\n# another\n"))
    assert above().key != first.key
    with pytest.raises(ScenarioError, match="its source is another"):
        Scenario.from_toml(first.effective)


def test_an_exception_ends_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    file = plain(tmp_path, PLAIN.replace("self.seen += 1", "self.seen += 1 // (900 - self.seen)"))
    command = [sys.executable, "-m", "aqmlab", "run", "scenarios/bulk.toml", "--plugin", str(file)]
    key = "topology.bottleneck.forward.discipline"
    command += [
        "--set",
        f'{key}={{ kind = "plugin", name = "above" }}',
        "--out",
        str(tmp_path / "run"),
    ]
    text = file.read_text()
    file.write_text(text.replace("900 - self.seen", "900 - event.now % 901"))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2, done.stderr
    assert "plug-in above: on_arrival" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "above.py" in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["above.py"]


def test_an_answer_without_meaning_is_an_error(tmp_path: Path) -> None:
    plugins.load(plain(tmp_path, PLAIN.replace("return SIGNAL if", "return 7 if")))
    with pytest.raises(PluginError, match="plug-in above: on_arrival: returned 7"):
        aqmlab.run(above(), out_dir=tmp_path / "run")


def test_workers_get_the_source(tmp_path: Path) -> None:
    plugins.load(plain(tmp_path))
    packed = tmp_path / "scenario.pickle"
    packed.write_bytes(pickle.dumps(above()))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).key)"
    done = subprocess.run(
        [sys.executable, "-c", code, packed], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == above().key


def test_parameters_change_during_a_run(tmp_path: Path) -> None:
    plugins.load(plain(tmp_path))
    key = "bottleneck.forward.discipline.p"
    with aqmlab.Simulation(above(), runs_root=tmp_path) as simulation:
        simulation.run_until(5)
        simulation.set(key, "0.5")
        stepped = simulation.finish(tmp_path / "stepped")
    again = aqmlab.run(Scenario.load(stepped.path / "scenario.toml"), out_dir=tmp_path / "again")
    assert tables(stepped) == tables(again)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "found no plug-in"),
        ("raise ValueError('no')", "ValueError: no"),
        (PLAIN.replace("p: float", "p: str"), "found the type"),
        (PLAIN.replace("p: float", "ecn: float").replace("self.p", "1"), "none of kind"),
    ],
)
def test_what_is_no_plug_in_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(AqmlabError, match=message):
        plugins.load(plain(tmp_path, text))


def test_the_sources_of_a_scenario_are_those_that_it_names(tmp_path: Path) -> None:
    plugins.load(plain(tmp_path))
    assert [source.file for source in sources_of(above().effective)] == ["above.py"]
    assert sources_of(scenario().effective) == ()


def test_a_worked_trace_is_followed(tmp_path: Path) -> None:
    plugins.load(HERE / "red.py")
    text = (ROOT / "crates/aqm/tests/data/red.csv").read_text()
    trace = tmp_path / "red.csv"
    # Probabilities are those of the last arrival.
    trace.write_text(re.sub(r",0,0,(sent)?$", r",,,\1", text, flags=re.MULTILINE))
    settings = {"min_th": "2 packets", "max_th": "6 packets", "limit": "9 packets", "ecn": True}
    settings |= {"w_q": 0.25, "max_p": 0.2}

    def asked(**other: object) -> Property:
        return check_trace("discipline", "py-red", settings | other, trace, "4 Mbit/s")

    assert asked().holds, asked().found
    wrong = asked(max_p=0.3)
    assert not wrong.holds
    assert wrong.found.startswith("red.csv:7: p_b: found 0.0533935546875; expected 0.035595703125;")
    trace.write_text(trace.read_text().replace("true,500,6,3000,0.08", "true,500,6,3000,"))
    with pytest.raises(AqmlabError, match=r"red\.csv:8: random_draw: found fewer numbers"):
        asked()
    trace.write_text("time_s,event\n1,arrive\n")
    with pytest.raises(
        AqmlabError, match=r"found nothing that is expected; a column of avg, count"
    ):
        asked()
    trace.write_text("time_s,event,decision\n1,leave,\n")
    with pytest.raises(
        AqmlabError, match=r"red\.csv:2: event: found leave; expected one of arrive"
    ):
        asked()
    with pytest.raises(AqmlabError, match="found a congestion control"):
        check_trace("control", "py-cubic", {}, trace, "4 Mbit/s")


_WHOLE = ("--set", "min_th=5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rate", "5 Mbit/s"], "--rate: is the rate of --trace; give both"),
        (["--trace", "none.csv", *_WHOLE], "none.csv: there is no such trace file"),
        (["--trace", "trace.csv", "--rate", "fast", *_WHOLE], '--rate: found "fast"'),
        (["--set", "nosuch=1", *_WHOLE], "--set: nosuch: unknown key (allowed: "),
        ([], "--set: min_th: missing, and it has no default"),
    ],
)
def test_errors_of_a_check_name_the_option(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text("time_s,decision\n1,enqueue\n")
    done = subprocess.run(
        [sys.executable, "-m", "aqmlab", "check", HERE / "red.py", "--set", "max_th=15", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"aqmlab: {message}")


def test_a_scheduler_has_no_worked_trace(tmp_path: Path) -> None:
    plugins.load(HERE / "codel.py")
    trace = tmp_path / "trace.csv"
    trace.write_text("time_s,decision\n1,enqueue\n")
    with pytest.raises(AqmlabError, match="disciplines that judge arrivals"):
        check_trace("discipline", "py-codel", {}, trace, "4 Mbit/s")


def test_a_source_is_begun(tmp_path: Path) -> None:
    def call(*words: str | Path) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = call("-m", "aqmlab", "new", "source", "my-users")
    assert "vectors: python my_users.py" in made
    call("my_users.py")
    vectors = (tmp_path / "my_users.cvec").read_text()
    call("my_users.py")
    assert vectors == (tmp_path / "my_users.cvec").read_text()
    short = {"measure.warm_up": "5 s", "measure.duration": "15 s"}
    run = aqmlab.run(Scenario.load(tmp_path / "my_users.toml").with_overrides(short))
    connections = vectors.count("SEQ")
    assert 1500 < connections < 2100
    assert run.summary["responses"]["my-users"]["count"] > 300
    refused = subprocess.run(
        [sys.executable, "-m", "aqmlab", "new", "source", "other", "--language", "c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert refused.returncode == 2
    assert "--language: found c; sources are written in python" in refused.stderr


def compiled_rust(folder: Path) -> Path:
    """A shared object of a crate without dependencies, whose test passes."""
    if (cargo := shutil.which("cargo")) is None:
        pytest.skip("NO RUST PLUG-IN RAN: no cargo")
    environment = {key: text for key, text in os.environ.items() if not key.startswith("CARGO_")}
    for words in (["test"], ["build", "--release"]):
        subprocess.run(
            [cargo, *words, "--offline", "--quiet", "--target-dir", "target"],
            cwd=folder,
            env=environment,
            check=True,
            timeout=300,
            stdout=subprocess.DEVNULL,
        )
    return folder / "target" / "release" / f"lib{folder.name}.so"


@pytest.mark.long_cases("control-rust")
@pytest.mark.parametrize("language", ["python", "c", "rust"])
@pytest.mark.parametrize("kind", ["discipline", "control"])
def test_a_starting_point_works(kind: str, language: str, tmp_path: Path) -> None:
    aqmlab_command = [sys.executable, "-m", "aqmlab"]

    def call(*words: str) -> str:
        done = subprocess.run(
            [*aqmlab_command, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("new", kind, "my-own", "--language", language)
    plugin = "my_own.py"
    if language == "c":
        plugin = compiled_c(tmp_path / "my_own.c", tmp_path).name
    if language == "rust":
        plugin = str(compiled_rust(tmp_path / "my_own").relative_to(tmp_path))
    shown = call("check", plugin)
    assert shown.startswith("my-own\n")
    assert "FAILS" not in shown
    assert shown.count("holds: ") == (4 if kind == "discipline" else 2)
