"""What a plug-in does wrong ends its run with one clear error, whatever it is written in."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aqmlab
import polars as pl
import pytest
from aqmlab import plugins
from aqmlab.errors import AqmlabError, PluginError, RunError, ScenarioError
from aqmlab.scenario.scenario import Scenario
from aqmlab.validation.properties import check
from conftest import ROOT, Cli
from test_plugins import compiled_c

WAYS = ("python", "numba", "c")
KEY = "topology.bottleneck.forward.discipline"
SHORT = [("measure.duration", "2 s"), ("measure.warm_up", "0 s")]

PYTHON = """
from aqmlab.plugins import ADMIT, SIGNAL, Discipline, Variable, chance, compiled

class Harm(Discipline):
    \"\"\"Does something wrong.\"\"\"

    p: float = 0.1
    ticks: Variable[int] = 0
    level: Variable[float] = 0.0
"""

C = """
#include <math.h>
#include <stdlib.h>
#include "aqmlab.h"

typedef struct { double p; int64_t ticks; double level; } Own;

__attribute__((unused)) static const AqmlabField FIELDS[] = {
    AQMLAB_OPTION(Own, p, AQMLAB_NUMBER, 0.1, ""),
    AQMLAB_STATE(Own, ticks, AQMLAB_INTEGER, 0),
    AQMLAB_STATE(Own, level, AQMLAB_NUMBER, 0),
};
"""

C_END = """
const AqmlabDiscipline *aqmlab_discipline(void) {
  static const AqmlabDiscipline PLUGIN = {
      .head = {AQMLAB_HEAD(AqmlabDiscipline, AqmlabEvent, Own), .name = "harm", .purpose = "",
               .fields = FIELDS, .field_count = sizeof FIELDS / sizeof *FIELDS},
      CALLBACKS
  };
  return &PLUGIN;
}
"""

ON_ARRIVAL = """
static int64_t on_arrival(void *own, AqmlabEvent *event) {
  BEGIN
  HOW
  return AQMLAB_ADMIT;
}
"""


def harm(way: str, folder: Path, python: str, c: str = "") -> None:
    """Loads a plug-in `harm` with callbacks that are written in one of the ways."""
    if way == "c":
        names = [part.split("(")[0].split()[-1] for part in c.split("static int64_t ")[1:]]
        listed = " ".join(f".{name} = {name}," for name in names)
        source = folder / "harm.c"
        unused = "(void)own; (void)event;"
        source.write_text(C + c.replace("BEGIN", unused) + C_END.replace("CALLBACKS", listed))
        plugins.load(compiled_c(source, folder))
        return
    if way == "numba":
        pytest.importorskip("numba", reason="NO NUMBA PLUG-IN RAN: no numba")
    text = PYTHON if way == "python" else PYTHON.replace("class Harm", "@compiled\nclass Harm")
    file = folder / "harm.py"
    file.write_text(text + python)
    plugins.load(file)


def scenario(more: str = "", *overrides: tuple[str, str]) -> Scenario:
    table = f'{{ kind = "plugin", name = "harm"{more} }}'
    return Scenario.load("scenarios/bulk.toml", [*SHORT, *overrides, (KEY, table)])


def fails(message: str, folder: Path) -> None:
    """A run of the plug-in ends with that message, and leaves nothing."""
    with pytest.raises(PluginError, match=message):
        aqmlab.run(scenario(), out_dir=folder / "run")
    assert not (folder / "run").exists()


TICKS = """
    def start(self, event):
        return 15_000_000

    def tick(self, event):
        self.ticks += 1
        return NEXT
"""
TICKS_C = """
static int64_t start(void *own, AqmlabEvent *event) { BEGIN return 15000000; }
static int64_t tick(void *own, AqmlabEvent *event) {
  BEGIN
  ((Own *)own)->ticks += 1;
  return NEXT;
}
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_tick_that_is_not_in_the_future_is_an_error(way: str, tmp_path: Path) -> None:
    harm(way, tmp_path, TICKS.replace("NEXT", "15_000_000"), TICKS_C.replace("NEXT", "15000000"))
    fails(r"harm: tick: returned 15000000, which is not after now \(15000000\)", tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_ticks_go_on_and_end_with_a_negative_number(way: str, tmp_path: Path) -> None:
    text = TICKS.replace("NEXT", "-1 if self.ticks == 7 else event.now + 15_000_000")
    more = TICKS_C.replace("NEXT", "((Own *)own)->ticks == 7 ? -1 : event->now + 15000000")
    harm(way, tmp_path, text, more)
    with aqmlab.Simulation(scenario(), record=False) as simulation:
        simulation.run_until(0.05)
        assert simulation.links["bottleneck.forward"].variables["ticks"] == 3
        simulation.run_until(1)
        assert simulation.links["bottleneck.forward"].variables["ticks"] == 7


def test_ticks_end_with_none_and_need_a_start(tmp_path: Path) -> None:
    harm("python", tmp_path, TICKS.replace("return NEXT", "pass"))
    with aqmlab.Simulation(scenario(), record=False) as simulation:
        simulation.run_until(1)
        assert simulation.links["bottleneck.forward"].variables["ticks"] == 1
    harm("python", tmp_path, TICKS.replace("def start", "def other"))
    fails("harm: tick: is never due: there is no start", tmp_path)
    harm("python", tmp_path, TICKS.replace("return 15_000_000", "return 0"))
    fails(r"harm: start: returned 0, which is not after now \(0\)", tmp_path)


@pytest.mark.parametrize("way", ["python", "numba"])
def test_a_decision_without_a_return_is_an_error(way: str, tmp_path: Path) -> None:
    harm(way, tmp_path, "\n    def on_arrival(self, event):\n        self.ticks += 1\n")
    fails("on_arrival: returned None; return ADMIT, SIGNAL, DROP or FORCE", tmp_path)
    forgotten = "\n        if event.packets > 5:\n            return SIGNAL\n"
    harm(way, tmp_path, f"\n    def on_head(self, event):{forgotten}")
    fails("on_head: returned None; return ADMIT, SIGNAL, DROP or FORCE", tmp_path)
    harm(way, tmp_path, f"\n    def enqueue(self, event):{forgotten}")
    fails("enqueue: returned None; return the number of a queue, 0 to 65535", tmp_path)
    harm(way, tmp_path, f"\n    def dequeue(self, event):{forgotten}")
    fails("dequeue: returned None; return the number of a queue in which", tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_a_probability_that_is_no_number_is_an_error(way: str, tmp_path: Path) -> None:
    python = """
    def on_arrival(self, event):
        return SIGNAL if chance(event, self.level / self.level) else ADMIT
"""
    if way == "python":
        python = python.replace("self.level / self.level", "float('nan')")
    c = """
static int64_t on_arrival(void *own, AqmlabEvent *event) {
  BEGIN
  return aqmlab_chance(event, nan("")) ? AQMLAB_SIGNAL : AQMLAB_ADMIT;
}
"""
    harm(way, tmp_path, python, c)
    fails(r"(?i)harm: on_arrival[\s\S]*chance: found nan; expected a probability, 0 to 1", tmp_path)


COUNTS = """
    def on_arrival(self, event):
        HOW
        return SIGNAL if seen() > 400 else ADMIT
"""


@pytest.mark.parametrize(
    ("before", "how", "seen"),
    [
        ("count = 0", "global count; count += 1", "count"),
        ("", "Harm.count = getattr(Harm, 'count', 0) + 1", "Harm.count"),
        ("found = []", "found.append(event.flow)", "len(found)"),
    ],
)
def test_a_run_leaves_nothing_to_the_next(before: str, how: str, seen: str, tmp_path: Path) -> None:
    text = f"\n{before}\n{PYTHON}{COUNTS}".replace("HOW", how).replace("seen()", seen)
    (tmp_path / "harm.py").write_text(text)
    plugins.load(tmp_path / "harm.py")
    first, again = (aqmlab.run(scenario(), out_dir=tmp_path / name) for name in ("one", "two"))
    assert first.summary["links"] == again.summary["links"]
    assert first.summary["links"]["bottleneck"]["forward"]["dropped_packets"] > 0
    # Runs that are under way at the same time do not meet either.
    with (
        aqmlab.Simulation(scenario(), record=False) as one,
        aqmlab.Simulation(scenario(), record=False) as other,
    ):
        for time in (0.5, 1.0, 1.5, 2.0):
            one.run_until(time)
            other.run_until(time)
            assert one.links == other.links


HELPER = """
count = 0

def counted():
    global count
    count += 1
    return count
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("files", "line"),
    [
        (["helper_a.py"], "import helper_a as helper"),
        (["helper_b/__init__.py"], "import helper_b as helper"),
        (["helper_c/__init__.py", "helper_c/inner.py"], "from helper_c import inner as helper"),
        (["helper_d/inner.py"], "from helper_d import inner as helper"),
        (["helper_e/inner.py"], "import helper_e.inner; helper = helper_e.inner"),
        (["helper_f.py"], "LATER import helper_f as helper"),
        (["helper_g/inner.py"], "LATER from helper_g import inner as helper"),
        (["helper_h.py"], "import helper_h\nLATER import helper_h as helper"),
    ],
)
def test_a_run_leaves_nothing_in_modules_beside_the_plug_in(
    files: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the file imports them, or a callback, which stands behind LATER."""
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(HELPER)
    first, _, later = line.partition("LATER ")
    own = f"import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n{first}\n"
    counts = COUNTS.replace("HOW", later).replace("seen()", "helper.counted()")
    (tmp_path / "harm.py").write_text(f"{own}{PYTHON}{counts}")
    monkeypatch.setattr(sys, "path", [*sys.path])
    plugins.load(tmp_path / "harm.py")
    path = [*sys.path]
    runs = [aqmlab.run(scenario(), out_dir=tmp_path / f"r{number}") for number in range(3)]
    links = [run.summary["links"] for run in runs]
    assert links[0]["bottleneck"]["forward"]["dropped_packets"] > 0
    assert links[1:] == links[:1] * 2
    assert sys.path == path
    with (
        aqmlab.Simulation(scenario(), record=False) as one,
        aqmlab.Simulation(scenario(), record=False) as other,
    ):
        for time in (0.5, 1.0, 1.5, 2.0):
            one.run_until(time)
            other.run_until(time)
            assert one.links == other.links


def test_a_run_has_the_present_text_of_modules_beside_the_plug_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two texts of one second and one size: compiled files of Python would hide the second."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    counts = COUNTS.replace("HOW", "").replace("seen()", "event.packets + helper_text.MORE")
    (tmp_path / "harm.py").write_text(f"import helper_text\n{PYTHON}{counts}")
    lost: list[int] = []
    for more in ("000", "396", "000"):
        (tmp_path / "helper_text.py").write_text(f"MORE = int('{more}')\n")
        os.utime(tmp_path / "helper_text.py", (1e9, 1e9))
        if not lost:
            plugins.load(tmp_path / "harm.py")
        run = aqmlab.run(scenario(), out_dir=tmp_path / f"run{len(lost)}")
        lost.append(run.summary["links"]["bottleneck"]["forward"]["dropped_packets"])
    assert lost[0] == lost[2] < lost[1]
    assert not sys.dont_write_bytecode


def test_modules_of_the_program_and_of_other_folders_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plug-in does not import the program, or what is installed, once more."""
    folder, elsewhere = tmp_path / "own", tmp_path / "elsewhere"
    installed = folder / "venv/lib/site-packages"
    for place, name in (
        (folder, "of_program"),
        (elsewhere, "of_others"),
        (installed, "of_packages"),
        (folder, "of_plugin"),
    ):
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.py").write_text("")
    monkeypatch.setattr(sys, "path", [*map(str, (folder, elsewhere, installed)), *sys.path])
    importlib.import_module("of_program")
    lines = "import of_program, of_others, of_packages, of_plugin\n"
    (folder / "harm.py").write_text(f"{lines}{PYTHON}")
    plugins.load(folder / "harm.py")
    names = ("of_program", "of_others", "of_packages", "of_plugin")
    before = {name: sys.modules[name] for name in names}
    aqmlab.run(scenario(), out_dir=tmp_path / "run")
    same = [name for name in names if sys.modules[name] is before[name]]
    assert same == ["of_program", "of_others", "of_packages"]


def test_two_plug_ins_of_a_folder_share_what_they_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "helper_both.py").write_text("acks = 0\n")
    (tmp_path / "counting.py").write_text("""
import helper_both
from aqmlab.plugins import Control

class Counting(Control):
    \"\"\"Counts.\"\"\"

    def on_ack(self, event):
        helper_both.acks += 1
        event.cwnd = event.reno
""")
    callbacks = """
    def on_arrival(self, event):
        self.ticks = helper_both.acks
        return ADMIT
"""
    (tmp_path / "harm.py").write_text(f"import helper_both\n{PYTHON}{callbacks}")
    for name in ("counting", "harm"):
        plugins.load(tmp_path / f"{name}.py")
    stack = '{ profile = "linux", congestion_control = { kind = "plugin", name = "counting" } }'
    seen = []
    for _ in range(2):
        changed = scenario("", ("traffic.transfers.tcp", stack))
        with aqmlab.Simulation(changed, record=False) as run:
            run.run_until(2)
            seen.append(run.links["bottleneck.forward"].variables["ticks"])
    assert seen[0] > 100
    assert seen[1] == seen[0]


SWEEP = """
title = "limits"
scenario = "own.toml"
seeds = "1..2"
[[axes]]
name = "limit"
values = [10, 30]
[set]
"topology.bottleneck.forward.discipline" = '''
{ kind = "plugin", name = "harm", limit = "$limit packets" }'''
"""


def test_a_sweep_with_a_helper_module_is_the_same_with_any_number_of_jobs(
    aqmlab: Cli, elsewhere: Path
) -> None:
    """The plug-in's folder is not the present one."""
    folder = elsewhere / "queues"
    folder.mkdir()
    shorter = Scenario.load(ROOT / "scenarios/bulk.toml", SHORT)
    (elsewhere / "own.toml").write_text(shorter.effective)
    (elsewhere / "sweep.toml").write_text(SWEEP)
    (folder / "helper_sweep.py").write_text(HELPER)
    own = "import os, sys\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n"
    counts = COUNTS.replace("HOW", "").replace("seen()", "helper_sweep.counted() % 50 + 360")
    (folder / "harm.py").write_text(f"{own}import helper_sweep\n{PYTHON}{counts}")
    found = []
    for jobs in (1, 2):
        command = ("sweep", "sweep.toml", "--plugin", "queues/harm.py", "--jobs", jobs)
        answer = aqmlab(*command, "--out", f"r{jobs}", "--store", f"s{jobs}")
        assert answer.status == 0, answer.err
        found.append((elsewhere / f"r{jobs}/results.parquet").read_bytes())
    assert found[0] == found[1]


def test_two_plug_ins_of_a_file_share_their_module(tmp_path: Path) -> None:
    shared = """
from aqmlab.plugins import Control

class Counting(Control):
    \"\"\"Counts.\"\"\"

    def on_ack(self, event):
        Harm.acks = getattr(Harm, "acks", 0) + 1
        event.cwnd = event.reno
"""
    callbacks = """
    def on_arrival(self, event):
        self.ticks = getattr(Harm, "acks", 0)
        return ADMIT
"""
    harm("python", tmp_path, callbacks + shared)
    stack = '{ profile = "linux", congestion_control = { kind = "plugin", name = "counting" } }'
    with aqmlab.Simulation(scenario("", ("traffic.transfers.tcp", stack)), record=False) as run:
        run.run_until(2)
        assert run.links["bottleneck.forward"].variables["ticks"] > 100


def test_check_finds_what_outlives_a_run_and_ticks_that_end(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="NO NUMBA PLUG-IN RAN: no numba")

    def asked() -> dict[str, bool]:
        return {it.name: it.holds for it in check("discipline", "harm", {})}

    static = """
static long seen = 0;
static int64_t on_arrival(void *own, AqmlabEvent *event) {
  BEGIN
  return ++seen % 50 == 0 ? AQMLAB_SIGNAL : AQMLAB_ADMIT;
}
"""
    harm("c", tmp_path, "", static)
    assert not asked()["the same seed gives the same bytes, also after another run"]
    harm("python", tmp_path, TICKS.replace("return NEXT", "return event.now + 15_000_000"))
    found = asked()
    assert found["ticks go on to the end of the run"]
    assert all(found.values())
    harm("python", tmp_path, TICKS.replace("return NEXT", "pass"))
    assert not asked()["ticks go on to the end of the run"]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("self.level = float('nan')", "its variables: found level = NaN; expected a finite number"),
        ("self.level = float('inf')", "its variables: found level = inf; expected a finite number"),
        ("self.level = 'high'", "its variables: found level = 'high'; expected a finite number"),
        (
            "self.ticks = 10**30",
            r"its variables: found ticks = 10{30}; expected a whole number",
        ),
        ("self.p = 0.5", "its parameters: p was overwritten, which the scenario sets"),
    ],
)
def test_records_say_what_was(how: str, message: str, tmp_path: Path) -> None:
    callbacks = f"\n    def on_arrival(self, event):\n        {how}\n        return ADMIT\n"
    harm("python", tmp_path, callbacks)
    fails(f"plug-in harm: {message}", tmp_path)
    # As soon as a stepped run is looked at.
    with (
        aqmlab.Simulation(scenario(), record=False) as simulation,
        pytest.raises(PluginError, match=message),
    ):
        simulation.run_until(1)


@pytest.mark.parametrize("way", ["numba", "c"])
@pytest.mark.parametrize(
    ("python", "c", "message"),
    [
        ("self.level = 0.0 / self.level", '((Own *)own)->level = nan("");', "found level = NaN"),
        ("self.p = 0.5", "((Own *)own)->p = 0.5;", "its parameters: p was overwritten"),
    ],
)
def test_records_of_compiled_code_say_what_was(
    way: str, python: str, c: str, message: str, tmp_path: Path
) -> None:
    more = ON_ARRIVAL.replace("HOW", c)
    callbacks = f"\n    def on_arrival(self, event):\n        {python}\n        return ADMIT\n"
    harm(way, tmp_path, callbacks, more)
    fails(message, tmp_path)


def test_a_control_keeps_its_parameters(tmp_path: Path) -> None:
    (tmp_path / "harm.py").write_text("""
from aqmlab.plugins import Control

class Harmful(Control):
    \"\"\"Changes what the scenario says.\"\"\"

    beta: float = 0.5

    def on_ack(self, event):
        self.beta = 0.9
        event.cwnd = event.reno
""")
    plugins.load(tmp_path / "harm.py")
    stack = '{ profile = "linux", congestion_control = { kind = "plugin", name = "harmful" } }'
    wrong = Scenario.load("scenarios/bulk.toml", [*SHORT, ("traffic.transfers.tcp", stack)])
    with pytest.raises(PluginError, match="harmful: its parameters: beta was overwritten"):
        aqmlab.run(wrong, out_dir=tmp_path / "run")


def test_an_object_does_not_set_its_parameters_itself(tmp_path: Path) -> None:
    harm("python", tmp_path, "\n    def __init__(self):\n        self.p = 0.5\n")
    fails("__init__ sets the parameter p, which a scenario sets", tmp_path)


@pytest.mark.parametrize(
    ("c", "message"),
    [
        ("return 0;", "aqmlab_discipline: returned a null pointer; expected a description"),
        (".record_size = 1ull << 60", r"record_size: found 1152921504606846976; expected at most"),
        (".field_count = 1ull << 40", r"field_count and fields: found 1099511627776 at"),
        (".fields = 0, .field_count = 3", "field_count and fields: found 3 at 0x0"),
        (".abi = 1", r"abi, size, event_size and field_size: found \[1"),
    ],
)
def test_a_description_without_meaning_is_refused(c: str, message: str, tmp_path: Path) -> None:
    end = C_END.replace("CALLBACKS", "")
    if c.startswith("."):
        end = '#pragma GCC diagnostic ignored "-Woverride-init"\n' + end
        given = {part.split("=")[0].strip() for part in c.split(", ")}
        own = ".fields = FIELDS, .field_count = sizeof FIELDS / sizeof *FIELDS"
        end = end.replace(own, c if ".fields" in given else f".fields = FIELDS, {c}")
        if ".field_count" not in given:
            end = end.replace(f", {c}", f", .field_count = 1, {c}")
    else:
        end = f"const AqmlabDiscipline *aqmlab_discipline(void) {{ (void)FIELDS; {c} }}"
    (tmp_path / "harm.c").write_text(C + end)
    file = compiled_c(tmp_path / "harm.c", tmp_path)
    with pytest.raises(AqmlabError, match=message) as caught:
        plugins.load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "/aqmlab-" not in str(caught.value)


def test_what_is_no_shared_object_is_named_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "libharm.so").write_bytes(b"\x7fELF nothing")
    with pytest.raises(AqmlabError) as caught:
        plugins.load(tmp_path / "libharm.so")
    assert str(caught.value).count("libharm.so") == 1
    assert str(caught.value).startswith(f"{tmp_path / 'libharm.so'}: ")


@pytest.mark.parametrize(
    ("how", "name"), [("*(volatile int *)0 = 1;", "SIGSEGV"), ("abort();", "SIGABRT")]
)
def test_a_crash_names_the_plug_in(how: str, name: str, tmp_path: Path) -> None:
    harm("c", tmp_path, "", ON_ARRIVAL.replace("HOW", how))
    file = tmp_path / "libharm.so"
    code = (
        "import sys, aqmlab; from aqmlab import plugins; plugins.load(sys.argv[1]); "
        "aqmlab.run(aqmlab.Scenario.load('scenarios/bulk.toml', "
        f"[('{KEY}', '{{ kind = \"plugin\", name = \"harm\" }}')]), out_dir=sys.argv[2])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, file, tmp_path / "run"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -getattr(signal, name)
    assert f"aqmlab: plug-in harm: on_arrival: ended the process by {name} ({file})" in done.stderr


def test_a_simulation_is_used_by_one_thread_at_a_time() -> None:
    base = Scenario.load("scenarios/bulk.toml", [("measure.duration", "10 min")])
    with aqmlab.Simulation(base, record=False) as simulation, ThreadPoolExecutor(1) as other:
        running = other.submit(simulation.run_until, 500)

        def meddle() -> None:
            while not running.done():
                simulation.step(1e-9)

        with pytest.raises(RunError, match="the simulation is in use: by another thread"):
            meddle()
        running.result()


def test_times_and_seeds_without_meaning_are_refused() -> None:
    base = Scenario.load("scenarios/bulk.toml", SHORT)
    with aqmlab.Simulation(base, record=False) as simulation:
        with pytest.raises(AqmlabError, match="time: found more seconds than a float can hold"):
            simulation.run_until(10**400)
        with pytest.raises(AqmlabError, match="time: found None; expected seconds, or a text"):
            simulation.step(None)  # type: ignore[arg-type]
    for seed in ("x", 1.5, True):
        with pytest.raises(ScenarioError, match=f"seed: found {seed!r}; expected a whole number"):
            aqmlab.Simulation(base, seed=seed, record=False)  # type: ignore[arg-type]


ENDINGS = [("os._exit(0)", "ended with status 0"), ("os.abort()", "was ended by SIGABRT")]


def command(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """A command with the plug-in, in its folder."""
    return subprocess.run(
        [sys.executable, "-m", "aqmlab", *words, "--plugin", "harm.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.long
@pytest.mark.parametrize(("how", "message"), ENDINGS)
def test_a_plug_in_that_ends_its_process_fails_its_runs_alone(
    how: str, message: str, tmp_path: Path
) -> None:
    callbacks = f"""
    def on_arrival(self, event):
        if self.p > 0.5:
            import os
            {how}
        return ADMIT
"""
    harm("python", tmp_path, callbacks)
    (tmp_path / "base.toml").write_text(scenario().effective)
    (tmp_path / "sweep.toml").write_text(f"""
scenario = "base.toml"
[[axes]]
field = "{KEY}.p"
values = [0.1, 0.9]
""")
    done = command(tmp_path, "sweep", "sweep.toml", "--jobs", "1")
    assert done.returncode == 1, done.stderr
    found = done.stdout + done.stderr
    assert f"{message}, 3 times over; its plug-in may have ended it: harm.py" in " ".join(
        found.split()
    )
    table = pl.read_parquet(tmp_path / "runs/sweeps/sweep/results.parquet")
    assert table["error"].is_null().to_list() == [True, False]
    for words in (
        ["run", "base.toml", "--set", f"{KEY}.p=0.9"],
        ["run", "base.toml", "--set", f"{KEY}.p=0.9", "--seeds", "1..2"],
        ["compare", "base.toml", "--vary", f"{KEY}.p=0.8,0.9"],
    ):
        done = command(tmp_path, *words)
        assert done.returncode > 0, (words, done.stdout, done.stderr)
        assert message in done.stderr
    assert not [*(tmp_path / "runs").glob("base-*")]
    assert command(tmp_path, "run", "base.toml").returncode == 0
