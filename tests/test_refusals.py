"""What is refused before any work: places that cannot be written, inputs that are no files."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aqmlab import _native
from aqmlab._util import files
from aqmlab.engine import schedulers
from aqmlab.errors import AqmlabError
from conftest import ROOT, SMALL, Cli
from test_cli import TWO_QUEUES, entries, one_line

NOWHERE = "/proc/nowhere"
"""A folder that nobody can make, not even root."""


@pytest.fixture
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine must not be asked to run anything."""

    def run(*_: object) -> str:
        raise AssertionError

    monkeypatch.setattr(_native, "run", run)


@pytest.mark.usefixtures("no_runs")
@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["run", "small.toml", "--out", f"{NOWHERE}/run"], f"{NOWHERE}/run"),
        (["run", "small.toml", "--out", "taken/run"], "taken/run"),
        (["run", "small.toml", "--seeds", "1..2", "--out", NOWHERE], NOWHERE),
        (["compare", "small.toml", "--vary", TWO_QUEUES, "--out", NOWHERE], NOWHERE),
        (["compare", "small.toml", "--vary", TWO_QUEUES, "-o", f"{NOWHERE}.svg"], f"{NOWHERE}.svg"),
        (["sweep", "sweep.toml", "--out", NOWHERE], NOWHERE),
        (["sweep", "sweep.toml", "--store", NOWHERE], NOWHERE),
        (["sweep", "sweep.toml", "--store", "taken"], "taken"),
        (["reproduce", "christiansen2000", "--quick", "--out", NOWHERE], NOWHERE),
        (["traffic", "describe", "small.toml", "-o", f"{NOWHERE}.svg"], f"{NOWHERE}.svg"),
    ],
)
def test_unwritable_places_are_refused_before_the_first_run(
    aqmlab: Cli, small: Path, arguments: list[str], place: str
) -> None:
    Path("sweep.toml").write_text(
        'scenario = "small.toml"\nseeds = "1..2"\n[[axes]]\nfield = "traffic.fetches.rate"\n'
        'values = ["20 /s", "30 /s"]\n'
    )
    Path("taken").touch()
    before = entries(small.parent)
    answer = aqmlab(*arguments)
    assert (answer.status, answer.out) == (2, "")
    last = answer.err.splitlines()[-1]
    assert f"aqmlab: {place}" in last
    assert "cannot be written: " in last
    assert entries(small.parent) == before


@pytest.mark.parametrize("place", ["pipe", "folder.svg", "null"])
def test_only_files_are_overwritten(aqmlab: Cli, small: Path, place: str) -> None:
    """A device that took the place of an output would be gone afterwards."""
    os.mkfifo("pipe")
    Path("folder.svg").mkdir()
    Path("null").symlink_to("/dev/null")
    aqmlab("run", small, "--out", "run")
    before = Path(place).lstat()
    kind = ["--format", "html"] if "." not in place else []
    answer = aqmlab("report", "run", "-o", place, *kind)
    assert answer.status == 2
    assert one_line(answer.err).startswith(f"{place}: ")
    assert (Path(place).lstat().st_mode, Path(place).lstat().st_ino) == (
        before.st_mode,
        before.st_ino,
    )


def test_a_place_that_can_be_written_stays_as_it_was(tmp_path: Path) -> None:
    files.check_output_folder(tmp_path / "a" / "b")
    files.check_output_folder(tmp_path)
    files.check_output_file(tmp_path / "a.svg")
    (tmp_path / "b.svg").write_text("x")
    files.check_output_file(tmp_path / "b.svg")
    assert entries(tmp_path) == ["b.svg"]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def local_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(path))


@pytest.mark.parametrize("make", [pipe, device, local_socket, Path.mkdir])
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "odd"],
        ["calibrate", "odd"],
        ["sweep", "odd"],
        ["sweep", "of-odd.toml"],
        ["traffic", "describe", "odd.toml"],
        ["traffic", "describe", "odd.cvec"],
        ["traffic", "describe", "odd.pcap"],
        ["traffic", "from-capture", "odd.pcap", "-o", "out.cvec"],
        ["check", "odd.py"],
        ["run", "small.toml", "--plugin", "odd.py"],
        ["run", "small.toml", "--set", 'traffic.fetches.rtt={kind="pairs", file="odd"}'],
        ["run", "named.toml"],
        ["run", "small.toml", "--set", 'traffic.fetches={kind = "vectors", file = "odd.cvec"}'],
    ],
    ids=" ".join,
)
def test_inputs_that_are_no_files_are_refused(
    aqmlab: Cli, small: Path, make: Callable[[Path], None], arguments: list[str]
) -> None:
    """Without opening them: a reader of a pipe would wait for its writer without end."""
    for name in ("odd", "odd.toml", "odd.cvec", "odd.pcap", "odd.py"):
        make(Path(name))
    Path("of-odd.toml").write_text('scenario = "odd"\n')
    rtt = 'rtt = { kind = "uniform", min = "20 ms", max = "100 ms" }'
    assert rtt in SMALL
    Path("named.toml").write_text(SMALL.replace(rtt, 'rtt = {kind = "empirical", file = "odd"}'))
    kinds: dict[Callable[[Path], None], str] = {pipe: "a pipe", device: "a device"}
    what = {**kinds, local_socket: "a socket"}.get(make, "a folder")
    answer = aqmlab(*arguments)
    assert (answer.status, answer.out) == (2, "")
    message = one_line(answer.err)
    assert f"is {what}" in message
    assert "odd" in message
    if any("fetches" in word for word in arguments) or "named.toml" in arguments:
        assert message.startswith("traffic.fetches.")
        assert ".file: found" in message or "fetches.file" in message
    assert small.exists()


def test_an_error_of_writing_names_the_run_directory(small: Path) -> None:
    """A file that may not grow stands for a disk that is full."""
    code = (
        f"import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, {(4096, 4096)})\n"
        f"from aqmlab.cli import main\nsys.exit(main(['run', {str(small)!r}, '--out', 'here', "
        "'--set', 'measure.record=[\"responses\"]']))"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    message = one_line(answer.stderr)
    wanted = r"here: cannot be written: \w+\.parquet: File too large \(os error 27\)"
    assert re.fullmatch(wanted, message), message
    assert entries(small.parent) == ["small.toml"]


def test_advice_to_install_can_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(AqmlabError) as raised:
        schedulers.DaskCluster("tcp://127.0.0.1:1")
    wanted = str(raised.value).partition("pip install ")[2].strip("'")
    assert f'cluster = ["{wanted}"]' in (ROOT / "pyproject.toml").read_text()
    # The project itself is in no registry.
    for file in (ROOT / "python").rglob("*.py"):
        assert "install aqmlab" not in file.read_text().replace('"', "").replace("'", ""), file


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("foo", 'found "foo"; expected the address of a Dask scheduler such as tcp://HOST:8786'),
        ("tcp://127.0.0.1:1", "nothing answers at tcp://127.0.0.1:1: Connection refused"),
    ],
)
def test_no_cluster_is_there(address: str, what: str) -> None:
    """One line, at once."""
    with pytest.raises(AqmlabError) as raised:
        schedulers.DaskCluster(address)
    assert str(raised.value) == f"--scheduler: {what}"


def without_manifest(folder: Path) -> None:
    """A run as earlier versions made it, whose files nobody vouches for."""
    (folder / "manifest.json").unlink()
    file = folder / "metadata.json"
    metadata = json.loads(file.read_text())
    del metadata["manifest"]
    file.write_text(json.dumps(metadata))


def changed(summary: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A summary with another value somewhere; None takes the key out."""
    *keys, last = path.split(".")
    node = summary
    for key in keys:
        node = node[key]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return summary


FOREIGN: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "empty": (lambda _: {}, "there is no seed"),
    "another's": (lambda _: {"name": "x", "results": [1, 2]}, "there is no seed"),
    "a list": (lambda _: [1], "is not a JSON object"),
    "no links": (lambda s: changed(s, "links", {}), "links: there is no link"),
    "links": (lambda s: changed(s, "links", None), "there is no links"),
    "a word": (lambda s: changed(s, "responses.all.p50_s", "fast"), 'responses.all.p50_s: found "'),
    "all": (lambda s: changed(s, "flows.all", None), "flows: there is no all"),
    "row": (lambda s: changed(s, "responses.fetches", 3), "responses.fetches: found 3"),
    "time": (lambda s: changed(s, "measured_s", "10 s"), 'measured_s: found "10 s"'),
    "utilization": (
        lambda s: changed(s, "links.bottleneck.forward.utilization", None),
        "links.bottleneck.forward: there is no utilization",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_summary_is_refused(aqmlab: Cli, small: Path, name: str) -> None:
    aqmlab("run", small, "--out", "here")
    without_manifest(Path("here"))
    make, expected = FOREIGN[name]
    file = Path("here/summary.json")
    file.write_text(json.dumps(make(json.loads(file.read_text()))))
    for command in ("show", "report", "compare"):
        answer = aqmlab(command, "here", *(["here"] if command == "compare" else []))
        assert (answer.status, answer.out) == (2, "")
        message = one_line(answer.err)
        assert message.startswith("here/summary.json: ")
        assert expected in message


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("summary.json", "[" * 100_000, "here: is not a run directory: no readable summary.json"),
        ("summary.json", "{", "here: is not a run directory: no readable summary.json"),
        ("scenario.toml", "title = 3", "here/scenario.toml: "),
        ("scenario.toml", "title = ", "here/scenario.toml: "),
        ("metadata.json", "3", "here/metadata.json: is not a JSON object"),
        ("metadata.json", '{"results_version": [1]}', "here: holds results of version [1]"),
    ],
)
def test_a_broken_run_directory_is_refused(
    aqmlab: Cli, small: Path, file: str, content: str, expected: str
) -> None:
    aqmlab("run", small, "--out", "here")
    without_manifest(Path("here"))
    Path("here", file).write_text(content)
    answer = aqmlab("show", "here")
    assert (answer.status, answer.out) == (2, "")
    assert one_line(answer.err).startswith(expected)


@pytest.mark.parametrize("make", [pipe, device])
@pytest.mark.parametrize(
    "name", ["manifest.json", "metadata.json", "summary.json", "flows.parquet"]
)
def test_a_run_directory_with_what_is_no_file_is_refused(
    aqmlab: Cli, small: Path, make: Callable[[Path], None], name: str
) -> None:
    aqmlab("run", small, "--out", "here", "--set", 'measure.record=["flows"]')
    file = Path("here", name)
    file.unlink()
    make(file)
    answer = aqmlab("show", "here")
    assert (answer.status, answer.out) == (2, "")
    message = one_line(answer.err)
    assert name in message
    assert re.match("here: is (damaged|not a run directory): ", message)


def test_a_broken_run_does_not_stop_the_report_of_others(aqmlab: Cli, small: Path) -> None:
    aqmlab("run", small, "--seeds", "1..5", "--out", "runs")
    first, second, third, *whole = sorted(Path("runs").glob("[!.]*"))
    (first / "summary.json").write_text("{}")
    (second / "responses.parquet").write_bytes(b"PAR1 nonsense")
    (third / "queue.parquet").unlink()
    answer = aqmlab("report", "runs", "-o", "report.md")
    assert (answer.status, answer.out) == (1, "report: report.md\n")
    *lines, last = answer.err.splitlines()
    assert [line.partition(": ")[2].partition("/")[0] for line in lines] == ["left out: runs"] * 3
    for folder, line in zip((first, second, third), lines, strict=True):
        assert line.startswith(f"aqmlab: left out: {folder}")
    assert last == "aqmlab: 3 of 5 run directories are left out of the report"
    text = Path("report.md").read_text()
    named = [folder.name in text for folder in (first, second, third, *whole)]
    assert named == [False, False, False, True, True]
    # A place that does not exist is no broken run: it was misspelt.
    answer = aqmlab("report", "runs", "nowhere")
    assert (answer.status, answer.err) == (2, "aqmlab: nowhere: there is no such run directory\n")


ODD = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


@pytest.mark.parametrize("written", ["title", "name"])
def test_texts_of_files_do_not_command_the_terminal(aqmlab: Cli, small: Path, written: str) -> None:
    text = json.dumps(f"odd {ODD}")  # TOML has the same escapes
    if written == "title":
        small.write_text(SMALL.replace('"Small fetches over a slow link"', text))
    else:
        small.write_text(SMALL.replace('name = "fetches"', f"name = {text}"))
    calls: list[list[object]] = [
        ["run", small, "--out", "a"],
        ["run", small, "--out", "b", "--seed", 2],
        ["show", "a"],
        ["show", "a", "--tsv"],
        ["show", "a", "--json"],
        ["compare", "a", "b"],
        ["run", small, "--set", f"{ODD}=1"],
        ["run", f"{ODD}.toml"],
        ["show", ODD],
        ["explain", ODD],
        ["run", small, "--seeds", ODD],
        ["list", ODD],
        ["report", ODD],
        [ODD],
        ["run", "odd\udcff.toml"],
    ]
    for call in calls:
        answer = aqmlab(*call)
        for character in ("\x1b", "\x07", "\x9b", "\u202e", "\udcff"):
            assert character not in answer.out + answer.err, call
    if written == "title":
        assert json.loads(aqmlab("show", "a", "--json").out)["scenario"] == f"odd {ODD}"
        assert r"odd \u001b]0;owned\u0007" in aqmlab("show", "a").out


def test_drawing_without_addresses_is_refused_in_a_line(small: Path) -> None:
    """The renderer would abort the process."""
    del small
    code = (
        "import resource, sys\nfrom aqmlab.cli import app\n"
        "most = resource.getrlimit(resource.RLIMIT_AS)[1]\n"
        "app.main(['run', 'small.toml', '--out', 'here'])\n"
        "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, most))\n"
        "sys.exit(app.main(['report', 'here']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert one_line(done.stderr).startswith("`ulimit -v` leaves 8 GiB of addresses; figures and")
    assert not Path("report.html").exists()
