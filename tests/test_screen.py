"""The screens of results: whole in a window of any width, plain elsewhere."""

from __future__ import annotations

import io
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aqmlab._util import console
from aqmlab.cli import app as cli
from aqmlab.results.links import is_loaded
from aqmlab.results.metrics import LINK, RESPONSES, flattened
from conftest import ROOT, Cli
from rich.cells import cell_len
from screens import ESCAPES, on_terminal

STYLES = re.compile(r"\x1b\[[\d;]*m")
SHORT = ["--set", "measure.duration=2 s", "--set", "measure.warm_up=1 s"]
QUICK = ["quickstart.toml", *SHORT, "--set", "traffic.browsers.users=3000"]
CLASSES = ("through", "cross-1", "cross-2", "cross-3")
SETS = (f"traffic.{name}.rate=100 /s" for name in CLASSES)
PARKING = ["parking-lot.toml", *SHORT, *(word for one in SETS for word in ("--set", one))]
QUEUES = (
    'topology.bottleneck.discipline={ kind = "droptail", limit = "120 packets" }, pie, codel, '
    "fq-codel"
)
SWEEP = "scenarios/sweeps/thresholds.toml"


@dataclass(frozen=True)
class Finished:
    """Commands whose runs are done, and what they write into a pipe."""

    folder: Path
    calls: dict[str, list[str]]
    piped: dict[str, str]
    labels: list[str]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Finished]:
    folder = tmp_path_factory.mktemp("screens")
    calls = {
        "run quickstart": ["run", *QUICK],
        "run parking-lot": ["run", *PARKING],
        "run bulk": ["run", "scenarios/bulk.toml", *SHORT],
        "seeds": ["run", *QUICK, "--seeds", "1..6"],
        "compare": ["compare", *QUICK, "--vary", QUEUES],
        "compare seeds": ["compare", *QUICK, "--vary", QUEUES, "--seeds", "1..2"],
        "compare classes": ["compare", *PARKING, "--vary", "seed=1,2"],
        "sweep": ["sweep", SWEEP, *SHORT, "--seeds", "1..2"],
        "list": ["list", "disciplines"],
        "explain": ["explain", "red"],
        "reproduce": ["reproduce", "christiansen2000", "--finished", "--quick"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("AQMLAB_CACHE", str(cache))
        for name in ("quickstart.toml", "parking-lot.toml"):
            # Users are stated, which saves the calibration.
            text = (ROOT / "scenarios" / name).read_text()
            text = text.replace('file = "', f'file = "{ROOT}/scenarios/')
            Path(name).write_text(re.sub("^load = .*", "", text, flags=re.MULTILINE))
        piped = {name: captured(patch, call) for name, call in calls.items()}
        runs = sorted(str(file.parent) for file in Path("runs").glob("quickstart-*/summary.json"))
        calls["show"] = ["show", *runs]
        piped["show"] = captured(patch, calls["show"])
        compared = json.loads(captured(patch, [*calls["compare"], "--json"]))
        labels = [run["label"] for run in compared["runs"]]
        yield Finished(folder, calls, piped, labels)


def captured(patch: pytest.MonkeyPatch, call: list[str]) -> str:
    """What a call writes into a pipe."""
    with patch.context() as inner:
        stream = io.StringIO()
        inner.setattr(sys, "stdout", stream)
        assert cli.main(call) == 0, call
        return stream.getvalue()


def numbers(text: str) -> Counter[str]:
    """Everything between spaces that holds a digit."""
    return Counter(word for word in text.split() if re.search(r"\d", word))


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, 100, 120, 200])
def test_every_number_is_whole(
    finished: Finished, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished.folder)
    screens, _ = on_terminal(list(finished.calls.values()), columns, NO_COLOR="1")
    in_labels = numbers(" ".join(finished.labels))
    for (name, piped), shown in zip(finished.piped.items(), screens, strict=True):
        lost = numbers(piped) - numbers(shown)
        assert not lost.keys() - in_labels.keys(), f"{name}: {lost}\n{shown}"
        paths = ("run directory: ", "figure: ", "results: ")
        widest = [line for line in shown.splitlines() if not line.startswith(paths)]
        assert max(map(cell_len, widest)) <= columns, f"{name}\n{shown}"


@pytest.mark.long
def test_a_pipe_gets_everything_plain(finished: Finished) -> None:
    for name, text in finished.piped.items():
        assert "\x1b" not in text, name
        assert not re.search("[\u2500-\u257f…]", text), name


@pytest.mark.long
def test_numbers_of_the_summary_are_shown(finished: Finished, aqmlab: Cli) -> None:
    for file in finished.folder.glob("runs/quickstart-*/summary.json"):
        summary = json.loads(file.read_text())
        words = numbers(aqmlab("show", file.parent).out)
        for metric in RESPONSES:
            value = summary["responses"]["browsers"][metric.key]
            assert not metric.short or value is None or metric.shown(value) in words
        for values in filter(is_loaded, summary["links"]["bottleneck"].values()):
            assert all(metric.shown(values[metric.key]) in words for metric in LINK if metric.short)


def rows(text: str) -> list[dict[str, str]]:
    """Tab-separated values."""
    head, *lines = (line.split("\t") for line in text.splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


@pytest.mark.long
@pytest.mark.parametrize("name", ["run quickstart", "seeds", "show", "compare"])
def test_tab_separated_values_are_those_of_the_summary(
    finished: Finished, aqmlab: Cli, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(finished.folder)
    found = rows(aqmlab(*finished.calls[name], "--tsv").out)
    assert found
    for row in found:
        values = flattened(json.loads(Path(row["path"], "summary.json").read_text()))
        assert values.keys() <= row.keys()
        assert all(row[key] == ("" if values[key] is None else str(values[key])) for key in values)
    assert len({row["label"] for row in found}) == len(found)


@pytest.mark.long
def test_a_sweep_as_tab_separated_values(
    finished: Finished, aqmlab: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished.folder)
    found = rows(aqmlab(*finished.calls["sweep"], "--tsv").out)
    points = json.loads(aqmlab(*finished.calls["sweep"], "--json").out)["points"]
    assert len(found) == len(points) == 8
    for row, point in zip(found, points, strict=True):
        assert row["queue"] == point["variables"]["queue"]
        wanted = point["estimates"]["p50"]
        for end, name in (("", "mean"), (".low", "low"), (".high", "high")):
            assert float(row[f"responses.all.p50_s{end}"]) == wanted[name]


@pytest.mark.parametrize("name", ["run", "compare", "sweep", "show"])
def test_one_format_at_a_time(aqmlab: Cli, name: str) -> None:
    answer = aqmlab(name, "x.toml", "--json", "--tsv")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == "aqmlab: --json and --tsv: found both; give one of them\n"


@pytest.mark.parametrize("unwanted", ["", "1"])
def test_a_terminal_has_styles_unless_they_are_unwanted(small: Path, unwanted: str) -> None:
    calls: list[list[object]] = [
        ["run", small, "--set", "measure.duration=200 s"],
        ["explain", "red"],
    ]
    out, err = on_terminal(calls, 80, NO_COLOR=unwanted)
    assert bool(ESCAPES.search("".join(out))) is not bool(unwanted)
    assert bool(STYLES.search("".join(out) + err)) is not bool(unwanted)


def test_progress_in_a_pipe_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "LINE_EVERY_S", 10.0)
    clock = iter([0.0, 1.0, 2.0, 9.9, 10.0, 10.0, 15.0, 20.0, 20.0])
    monkeypatch.setattr(console, "monotonic", lambda: next(clock))
    with console.Progress("running") as progress:
        for name, done in (
            ("a", 0.25),
            ("b", 1.0),
            ("a", 0.5),
            ("a", 0.75),
            ("a", 0.76),
            ("a\x1b[2J", 0.5),
        ):
            progress.update(name, done)
    assert capsys.readouterr().err.splitlines() == [
        "aqmlab: running: a 75%, 1 finished",
        r"aqmlab: running: a 76%, a\u001b[2J 50%, 1 finished",
    ]


def test_progress_names_a_few(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    with console.Progress("running") as progress:
        for name in "abcde":
            progress.update(name, 0.5)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "aqmlab: running: a 50%, b 50%, c 50%, 2 more"


def test_lines_of_progress_name_fields_and_seeds(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    varied = "topology.bottleneck.discipline.limit=10 packets,20 packets"
    assert cli.main(["compare", str(small), "--vary", varied, "--seeds", "1..2"]) == 0
    printed = capsys.readouterr().err
    assert re.search(r"^aqmlab: running: .*limit = 10 packets, seed 2", printed, re.MULTILINE)
    sweep = small.with_name("limits.toml")
    axis = 'field = "discipline.limit"\nvalues = ["10 packets", "30 packets"]\n'
    sweep.write_text(f'scenario = "small.toml"\nseeds = "1..2"\n[[axes]]\n{axis}')
    assert cli.main(["sweep", str(sweep)]) == 0
    printed = capsys.readouterr().err
    assert re.search(r"^aqmlab: sweep: .*limit = 30 packets, seed 1", printed, re.MULTILINE)
    assert not re.search(r"[0-9a-f]{8}", printed)
