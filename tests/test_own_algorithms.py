"""Algorithms of one's own: declared with quantities, called by their names, read without code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import aqmlab
import pytest
from aqmlab import Run, plugins
from aqmlab.errors import AqmlabError, PluginError
from aqmlab.results.configurations import configurations
from aqmlab.results.labels import distinguish
from aqmlab.scenario.catalog import Catalog
from aqmlab.scenario.scenario import Scenario

DISCIPLINE = '''from aqmlab.plugins import ADMIT, Bytes, Discipline, Packets, Rate, Time, Variable


class MyAqm(Discipline):
    """Admits everything.

    Parameters:
        target: what it aims at
    """

    target: Time = "5 ms"
    quantum: Bytes = "1500 bytes"
    speed: Rate = "2 Mbit/s"
    above: Packets = "2.5 packets"
    since: Variable[Time] = -1

    def on_arrival(self, event):
        return ADMIT
'''
CONTROL = '''from aqmlab.plugins import Control


class MyControl(Control):
    """Keeps a share of the window after a loss."""

    beta: float = 0.7

    def on_loss(self, event):
        event.ssthresh = self.beta * event.base
'''
QUEUE = "topology.bottleneck.forward.discipline"
TCP = "traffic.transfers.tcp"
SHORT = [("measure.duration", "2 s"), ("measure.warm_up", "1 s")]


def kept(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def runs(folder: Path) -> list[Path]:
    """Runs with plug-ins: a discipline twice, a control twice, and none."""
    plugins.load(kept(folder, "my_aqm.py", DISCIPLINE))
    plugins.load(kept(folder, "my_control.py", CONTROL))
    control = '{{ profile = "linux", congestion_control = {} }}'
    settings = {
        "a": (QUEUE, '{ kind = "plugin", name = "my-aqm" }'),
        "b": (QUEUE, '{ kind = "plugin", name = "my-aqm", target = "10 ms", ecn = true }'),
        "c": (TCP, control.format('{ kind = "plugin", name = "my-control" }')),
        "d": (TCP, control.format('{ kind = "plugin", name = "my-control", beta = 0.5 }')),
        "e": (TCP, control.format('"cubic"')),
    }
    base = Scenario.load("scenarios/bulk.toml", SHORT)
    for name, setting in settings.items():
        aqmlab.run(base.with_overrides([setting]), out_dir=folder / name)
    return [folder / name for name in settings]


def called(*words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which has loaded nothing."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_runs_are_read_without_the_code(tmp_path: Path) -> None:
    """Name, parameters with units and labels are in the run directory."""
    made = runs(tmp_path)
    code = (
        "import json, sys, aqmlab\n"
        "from aqmlab.results.labels import distinguish\n"
        "found = [aqmlab.Run.open(path) for path in sys.argv[1:]]\n"
        "queue = found[1].scenario['topology']['bottleneck']['forward']['discipline']\n"
        "labels = [run.label for run in distinguish(found[:2]) + distinguish(found[2:])]\n"
        "print(json.dumps([queue, labels]))"
    )
    done = called("-c", code, *made, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    queue, labels = json.loads(done.stdout)
    here = Run.open(made[1]).scenario["topology"]["bottleneck"]["forward"]["discipline"]
    assert queue == here
    assert queue["target"] == "10 ms"
    assert queue["quantum"] == "1500 bytes"
    assert queue["speed"] == "2 Mbit/s"
    assert queue["above"] == "2.5 packets"
    assert labels == [
        "my-aqm",
        "my-aqm ECN (target 10 ms)",
        "droptail 100, my-control",
        "droptail 100, my-control (beta 0.5)",
        "droptail 100, cubic",
    ]


@pytest.mark.long
def test_commands_read_runs_without_the_code(tmp_path: Path) -> None:
    """To run one again takes the code: one line says so."""
    made = [path.name for path in runs(tmp_path)[:2]]
    shown = {
        ("show", made[0]): "drop-tail queue: my-aqm,",
        ("compare", *made): "my-aqm ECN (target 10 ms)",
        ("plot", "delay", *made): "figure: delay.svg",
        ("report", *made): "report: report.html",
    }
    for words, expected in shown.items():
        done = called("-m", "aqmlab", *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout + done.stderr
    assert "my-aqm ECN (target 10 ms)" in (tmp_path / "delay.svg").read_text()
    assert "my-aqm ECN (target 10 ms)" in (tmp_path / "report.html").read_text()
    again = called("-m", "aqmlab", "run", f"{made[0]}/scenario.toml", folder=tmp_path)
    assert again.returncode == 2
    assert again.stderr.count("\n") == 1
    assert "--plugin FILE" in again.stderr
    copy = f"{made[0]}/plugin-my_aqm.py"
    done = called(
        *("-m", "aqmlab", "run", f"{made[0]}/scenario.toml", "--plugin", copy, "--out", "again"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert Run.open(tmp_path / "again").summary == Run.open(tmp_path / made[0]).summary


@pytest.mark.long
def test_a_sweep_is_read_without_the_code(tmp_path: Path) -> None:
    plugin = kept(tmp_path, "my_aqm.py", DISCIPLINE)
    (tmp_path / "sweep.toml").write_text(
        'scenario = "scenarios/bulk.toml"\nseeds = "1..2"\n'
        '[set]\n"measure.warm_up" = "1 s"\n"measure.duration" = "2 s"\n'
        '[[axes]]\nname = "queue"\n[axes.variants]\n'
        f'pie = {{ "{QUEUE}" = "pie" }}\n'
        f'mine = {{ "{QUEUE}" = {{ kind = "plugin", name = "my-aqm" }} }}\n'
    )
    (tmp_path / "scenarios").symlink_to(Path("scenarios").resolve())
    sweep = ("-m", "aqmlab", "sweep", "sweep.toml")
    made = called(*sweep, "--plugin", plugin.name, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    for words in (
        ("store", "check"),
        ("plot", "utilization-delay", "runs/sweeps/sweep"),
        ("report", "runs/sweeps/sweep"),
    ):
        done = called("-m", "aqmlab", *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "no plug-in" not in done.stderr
    assert ">mine<" in (tmp_path / "utilization-delay.svg").read_text()
    assert "my-aqm" in (tmp_path / "report.html").read_text()
    refused = called(*sweep, folder=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "--plugin FILE" in refused.stderr


def test_versions_of_a_source_have_labels_of_their_own(tmp_path: Path) -> None:
    """Two runs whose plug-ins differ in their code alone are told apart by its hash."""
    made = []
    for name, text in (("one", CONTROL), ("two", f"{CONTROL}\n# another\n")):
        plugins.load(kept(tmp_path, "my_control.py", text))
        table = (
            '{ profile = "linux", congestion_control = { kind = "plugin", name = "my-control" } }'
        )
        scenario = Scenario.load("scenarios/bulk.toml", [*SHORT, (TCP, table)])
        made.append(aqmlab.run(scenario, out_dir=tmp_path / name))
    labels = [run.label for run in distinguish(made)]
    hashes = [run.metadata["plugins"][0]["sha256"] for run in made]
    assert labels == [f"droptail 100, source {one[:8]}" for one in hashes]


def test_figures_name_algorithms(tmp_path: Path) -> None:
    """Not by fields of their tables or the hashes of their sources."""
    made = [Run.open(path) for path in runs(tmp_path)]

    def asked(*chosen: Run) -> dict[str, list[object]]:
        found = configurations([run.path for run in chosen])
        return {name: [entry.parameters[name] for entry in found] for name in found[0].parameters}

    assert asked(*made[2:]) == {
        "congestion_control": ["my-control", "my-control (beta 0.5)", "cubic"]
    }
    assert asked(*made[2:4]) == {"beta": [0.7, 0.5]}
    plugins.load(kept(tmp_path, "other.py", DISCIPLINE.replace("MyAqm", "OtherAqm")))
    table = '{ kind = "plugin", name = "other-aqm" }'
    other = Scenario.load("scenarios/bulk.toml", [*SHORT, (QUEUE, table)])
    third = aqmlab.run(other, out_dir=tmp_path / "f")
    assert asked(made[0], third) == {"discipline": ["my-aqm", "other-aqm"]}


def test_a_control_is_named_with_its_class() -> None:
    """Not as a word of another table: ``bbr kind cubic``."""
    classes = [
        '{ name = "NAME", kind = "bulk", flows = 1, rtt = { kind = "constant", rtt = "9 ms" }, '
        'tcp = { profile = "linux", congestion_control = "CONTROL" } }'.replace("NAME", name)
        for name in ("bbr", "other")
    ]
    labels = []
    for control in ("bbr3", "cubic"):
        both = (
            classes[0].replace("CONTROL", control),
            classes[1].replace("CONTROL", "cubic"),
        )
        scenario = Scenario.load("scenarios/bulk.toml", [("traffic", f"[{', '.join(both)}]")])
        links = {"bottleneck": {"forward": {"utilization": 0.9}}}
        labels.append(Run.in_memory(scenario.data, {"links": links}, path=control))
    found = [run.label for run in distinguish(labels)]
    assert found == ["droptail 100, bbr: bbr3", "droptail 100, bbr: cubic"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"5 ms"', '"5 Mbit/s"', r'MyAqm\.target: found "5 Mbit/s"; expected text such as "50 ms"'),
        ('"5 ms"', "0.005", r"MyAqm\.target: found 0\.005; expected whole nanoseconds or text"),
        ('"5 ms"', "-5", r"MyAqm\.target: found -5; expected no less than 0"),
        ('"2 Mbit/s"', "10**30", r"MyAqm\.speed: found 10+; expected whole bits per second"),
        ("-1", '"never"', r'MyAqm\.since: found "never"; expected text such as'),
        ("MyAqm", "Red", r'Red: name: found "red", which is a built-in queue .*"my-red"'),
        ("MyAqm", "Cubic", r'found "cubic", which is a built-in congestion control'),
        ("MyAqm", "A" * 100_000, r'my_aqm\.py: name: found "a{1,60}\.\.\."; expected at most 60'),
    ],
)
def test_what_a_class_declares_is_checked(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = kept(tmp_path, "my_aqm.py", DISCIPLINE.replace(old, new))
    with pytest.raises(AqmlabError, match=message) as raised:
        plugins.load(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert len(str(raised.value)) < 400 + len(str(file))


def test_quantities_are_numbers_in_the_class(tmp_path: Path) -> None:
    plugins.load(kept(tmp_path, "my_aqm.py", DISCIPLINE.replace('"5 ms"', "5e6")))
    [entry] = [one for one in Catalog.load().find("my-aqm") if one.kind == "plugins"]
    assert {one["name"]: one["default"] for one in entry.parameters} == {
        "target": "5 ms",
        "quantum": "1500 bytes",
        "speed": "2 Mbit/s",
        "above": "2.5 packets",
    }


def test_two_classes_of_one_name_are_refused(tmp_path: Path) -> None:
    text = DISCIPLINE + '\n\nclass Other(MyAqm):\n    plugin_name = "my-aqm"\n'
    with pytest.raises(AqmlabError, match=r"MyAqm and Other: are both called 'my-aqm'"):
        plugins.load(kept(tmp_path, "my_aqm.py", text))
    kept(tmp_path, "one.py", DISCIPLINE)
    kept(tmp_path, "two.py", f"{DISCIPLINE}\n# another\n")
    done = called(
        *("-m", "aqmlab", "explain", "my-aqm", "--plugin", "one.py", "--plugin", "two.py"),
        folder=tmp_path,
    )
    assert done.returncode == 2
    assert "one.py and two.py: both have a plug-in called my-aqm" in done.stderr


@pytest.mark.parametrize(
    ("text", "lines", "reason"),
    [
        (
            "import no_such_module\n",
            [
                "Traceback (most recent call last):",
                ", line 1, in <module>",
                "import no_such_module",
            ],
            "ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("def broken(\n", [", line 1", "def broken("], "SyntaxError: '(' was never closed"),
        ("raise SystemExit(3)\n", [", line 1, in <module>"], "SystemExit: 3"),
    ],
)
def test_a_file_that_does_not_load_shows_its_own_traceback(
    text: str, lines: list[str], reason: str, tmp_path: Path
) -> None:
    file = kept(tmp_path, "mine.py", text)
    with pytest.raises(PluginError) as raised:
        plugins.load(file)
    first, _, traceback = str(raised.value).partition("\n")
    assert first == f"{file}: cannot be loaded: {reason}"
    assert "aqmlab/plugins" not in traceback
    assert f'File "{file}"' in traceback
    assert all(line in traceback for line in lines)
    done = called("-m", "aqmlab", "explain", "x", "--plugin", "mine.py", folder=tmp_path)
    assert done.returncode == 2
    *shown, last = done.stderr.splitlines()
    assert last == f"aqmlab: --plugin: mine.py: cannot be loaded: {reason}"
    assert len(shown) == len(traceback.splitlines())


@pytest.mark.parametrize("name", ["red", "cubic", "dcn-24", "plugin"])
def test_a_built_in_name_is_not_begun(name: str, tmp_path: Path) -> None:
    for kind in ("discipline", "control"):
        done = called("-m", "aqmlab", "new", kind, name, folder=tmp_path)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert f'NAME: found "{name}", which is a ' in done.stderr
        assert f'such as "my-{name}"' in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_long_name_is_not_begun(tmp_path: Path) -> None:
    done = called("-m", "aqmlab", "new", "discipline", "a" * 100_000, folder=tmp_path)
    assert done.returncode == 2
    assert "expected at most 60 small letters" in done.stderr
    assert len(done.stderr) < 200


def test_importing_aqmlab_is_enough(tmp_path: Path) -> None:
    """And it costs nothing until it is used."""
    code = (
        "import sys, aqmlab\nassert 'aqmlab.plugins' not in sys.modules\n"
        "print(aqmlab.plugins.ADMIT, 'plugins' in dir(aqmlab))"
    )
    assert called("-c", code, folder=tmp_path).stdout == "0 True\n"
