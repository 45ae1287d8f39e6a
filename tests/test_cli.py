"""The command line: what it says, where, and with which status."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from aqmlab import Run
from aqmlab._util import console
from conftest import ROOT, SMALL, Cli, Terminal

BROKEN = sorted((ROOT / "tests" / "scenarios" / "broken").glob("*.toml"))

RED = '{kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets"}'
DROPTAIL = '{kind = "droptail", limit = "20 packets"}'
TWO_QUEUES = f"topology.bottleneck.discipline={DROPTAIL}, {RED}"


def entries(folder: Path) -> list[str]:
    """Everything in a folder, hidden things too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def one_line(text: str) -> str:
    """The only line, which must begin with the command's name."""
    assert text.startswith("aqmlab: ")
    assert text.count("\n") == 1
    return text.removeprefix("aqmlab: ").rstrip("\n")


def test_run_says_what_happened_and_where(aqmlab: Cli, small: Path) -> None:
    answer = aqmlab("run", small)
    assert (answer.status, answer.err) == (0, "")
    [directory] = Path("runs").iterdir()
    assert directory.name.startswith("small-")
    assert answer.out.endswith(f"run directory: {directory}\n")
    for word in ("droptail 20", "fetches", "download", "p90 s"):
        assert word in answer.out
    again = aqmlab("run", small)
    assert again == answer


def test_json_is_the_summary_and_nothing_else(aqmlab: Cli, small: Path) -> None:
    answer = aqmlab("run", small, "--json", "--out", "here", "--seed", "3")
    summary = json.loads(answer.out)
    assert summary == json.loads(Path("here/summary.json").read_text())
    assert summary["seed"] == 3
    assert json.loads(aqmlab("show", "here", "--json").out) == summary
    aqmlab("run", small, "--out", "there")
    assert len(json.loads(aqmlab("show", "here", "there", "--json").out)) == 2


def test_replicas_are_the_runs_of_their_seeds(aqmlab: Cli, small: Path) -> None:
    """Several at a time, and still the same bytes as one after the other."""
    answer = aqmlab("run", small, "--seeds", "1..3", "--jobs", "2", "--out", "replicas")
    assert (answer.status, answer.err) == (0, "")
    for seed in (1, 2, 3):
        [replica] = Path("replicas").glob(f"small-*-s{seed}")
        assert f"run directory: {replica}\n" in answer.out
        aqmlab("run", small, "--seed", seed, "--out", "alone" + str(seed))
        for file in ("responses.parquet", "flows.parquet", "queue.parquet", "scenario.toml"):
            alone = Path("alone" + str(seed), file).read_bytes()
            assert (replica / file).read_bytes() == alone, f"seed {seed}: {file} differs"
    summaries = json.loads(aqmlab("run", small, "--seeds", "1,3", "--json").out)
    assert [summary["seed"] for summary in summaries] == [1, 3]


def test_set_replaces_fields(aqmlab: Cli, small: Path) -> None:
    limit = "topology.bottleneck.discipline.limit=7 packets"
    answer = aqmlab("run", small, "--set", limit, "--set", "measure.record=[]")
    assert "droptail 7," in answer.out


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.stem)
def test_a_broken_scenario_gets_one_sentence(aqmlab: Cli, file: Path, elsewhere: Path) -> None:
    before = entries(elsewhere)
    for command in (["run"], ["calibrate"], ["compare", "--vary", "seed=1,2"]):
        answer = aqmlab(*command, file)
        assert (answer.status, answer.out) == (2, "")
        message = one_line(answer.err)
        assert len(message) < 400
        field, colon, rest = message.partition(": ")
        assert (field, colon, rest) != (message, "", "")
        assert "Traceback" not in message
    assert entries(elsewhere) == before


def test_enough_broken_scenarios() -> None:
    assert len(BROKEN) >= 10


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run"], "Missing argument 'SCENARIO'. `aqmlab run -h` explains it."),
        (["plot", "cdf"], "Missing argument 'RUNS'. `aqmlab plot cdf -h` explains it."),
        (["rnu", "x.toml"], "No such command 'rnu'"),
        (["run", "smal.toml"], "there is no such scenario file; did you mean small.toml?"),
        (
            ["run", "small.toml", "--seed", "one"],
            "Invalid value for '--seed': found one; expected a whole number",
        ),
        (
            ["run", "small.toml", "--jobs", "0"],
            "Invalid value for '--jobs': found 0; expected a whole number, at least 1",
        ),
        (
            ["traffic", "describe", "bulk", "--seconds", "soon"],
            "found soon; expected a number, at least 1 and at most 1,000,000",
        ),
        (["run", "small.toml", "--fast"], "No such option: --fast"),
        (["run", "--zigzag"], "No such option: --zigzag. `aqmlab run -h` lists the options."),
        (["run", "small.toml", "--seeds", "8..1"], "larger than its last; expected 1..8"),
        (["run", "small.toml", "--seeds", "1..x"], "expected seeds such as 1..8 or 1,5,9"),
        (["run", "small.toml", "--seeds", "1..9999999"], "at most 10,000 at a time"),
        (["run", "small.toml", "--seeds", "1..2", "--seed", "3"], "found both"),
        (["run", "small.toml", "--set", "seed"], '--set: found "seed"; expected FIELD=VALUE'),
        (["run", "small.toml", "--set", "sed=2"], "sed: unknown key"),
        (["run", "small.toml", "--out", "small.toml"], "is not a run directory"),
        (["run", "small.toml", "--out", "small.toml/below"], "small.toml is not a folder"),
        (["show", "nowhere"], "there is no such run directory"),
        (["show", "."], "is not a run directory"),
        (["compare", "small.toml"], "a comparison needs two runs at least"),
        (["compare", "small.toml", "--vary", "seed=1,2", "-o", "x.gif"], "a figure is written as"),
        (["calibrate", "small.toml"], "nothing to calibrate"),
        (["explain", "redd"], "did you mean red or red-pd or sred?"),
        (["list", "queues"], "Invalid value for"),
        (["reproduce", "floyd1993"], "there is no paper floyd1993"),
        (["show", ".", "--format", "word"], "'word' is not one of 'latex', 'markdown', 'csv'"),
        (["show", ".", "--tsv", "--format", "csv"], "--tsv and --format: found both"),
        (["report", "nowhere"], "there is no such run directory"),
    ],
)
def test_wrong_use_gets_one_sentence(
    aqmlab: Cli, small: Path, arguments: list[str], expected: str
) -> None:
    before = entries(small.parent)
    answer = aqmlab(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert expected in one_line(answer.err)
    assert entries(small.parent) == before


def test_a_file_that_is_no_scenario_is_named(aqmlab: Cli, elsewhere: Path) -> None:
    (elsewhere / "picture.png").write_text("x")
    for command in ("run", "compare", "calibrate"):
        answer = aqmlab(command, "picture.png")
        assert (answer.status, answer.out) == (2, "")
        assert answer.err.startswith("aqmlab: picture.png: line 1, column 2: not TOML")


def test_a_run_of_another_scenario_is_not_overwritten(aqmlab: Cli, small: Path) -> None:
    aqmlab("run", small, "--out", "here")
    before = Path("here/summary.json").read_bytes()
    answer = aqmlab("run", small, "--seed", "2", "--out", "here")
    assert answer.status == 2
    assert "another scenario, seed or version" in one_line(answer.err)
    assert Path("here/summary.json").read_bytes() == before


def test_list_alone_names_what_can_be_listed(aqmlab: Cli) -> None:
    rows = aqmlab("list").out.splitlines()[1:]
    assert [row.split()[0] for row in rows][:3] == ["disciplines", "presets", "transports"]
    assert "18: " in next(row for row in rows if row.startswith("traffic"))


def test_compare_runs_what_is_missing(aqmlab: Cli, small: Path) -> None:
    answer = aqmlab("compare", small, "--vary", TWO_QUEUES)
    assert (answer.status, answer.err) == (0, "")
    words = ("droptail 20", "red (5,15)", "against droptail 20", "figure: runs/compare.svg")
    for word in words:
        assert word in answer.out
    assert "Kolmogorov" not in answer.out
    every = aqmlab("compare", small, "--vary", TWO_QUEUES, "--all").out
    assert "Kolmogorov" in every
    for shown in (answer.out, every):
        *lines, page = shown.partition("\nanswer\n")[2].splitlines()
        assert len(lines) <= 7
        assert page.startswith("as a page: aqmlab report")
    assert Path("runs/compare.svg").read_text().startswith("<svg")
    directories = sorted(path for path in Path("runs").iterdir() if path.is_dir())
    assert len(directories) == 2

    content = json.loads(aqmlab("compare", *directories, "--json", "-o", "figure.html").out)
    assert {run["label"] for run in content["runs"]} == {"droptail 20", "red (5,15)"}
    assert {run["path"] for run in content["runs"]} == {str(path) for path in directories}
    assert content["figure"] == "figure.html"
    assert {entry["metric"] for entry in content["differences"]} >= {"p50_s", "le_1s"}
    assert all(entry["paired"] and entry["class"] == "all" for entry in content["differences"])
    (distance,) = content["distances"]
    assert distance["class"] == "all"
    assert {distance["run"], distance["baseline"]} == {"droptail 20", "red (5,15)"}
    assert 0 < distance["kolmogorov"] < 1


def test_compare_without_its_figure(aqmlab: Cli, small: Path) -> None:
    """Its words are the same without the line of the figure; nothing is loaded that draws."""
    drawn = aqmlab("compare", small, "--vary", TWO_QUEUES)
    Path("runs/compare.svg").unlink()
    call = ["compare", str(small), "--vary", TWO_QUEUES, "--no-figure"]
    code = (
        f"import sys; from aqmlab.cli import main; assert main({call!r}) == 0; "
        "print('altair' in sys.modules, 'vl_convert' in sys.modules, file=sys.stderr)"
    )
    bare = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert bare.stderr == "False False\n"
    assert bare.stdout == drawn.out.replace("figure: runs/compare.svg\n", "")
    assert not Path("runs/compare.svg").exists()
    assert json.loads(aqmlab(*call, "--json").out)["figure"] is None
    both = aqmlab(*call, "-o", "figure.svg")
    assert (both.status, one_line(both.err)) == (
        2,
        "--output and --no-figure: found both; give one of them",
    )


def test_compare_without_records_draws_nothing(aqmlab: Cli, small: Path) -> None:
    answer = aqmlab("compare", small, "--vary", "seed=1,2", "--set", "measure.record=[]")
    assert answer.status == 0
    assert "no figure" in answer.out
    assert not Path("runs/compare.svg").exists()


def test_a_comparison_of_many_runs_needs_no_figure(
    aqmlab: Cli, small: Path, tmp_path: Path
) -> None:
    seeds = ",".join(map(str, range(1, 34)))
    many = ("compare", small, "--vary", f"seed={seeds}", "--set", "measure.duration=2 s")
    refused = aqmlab(*many, "-o", tmp_path / "many.svg")
    assert refused.status == 2
    assert "at most 32 runs, not 33" in one_line(refused.err)
    answer = aqmlab(*many)
    assert answer.status == 0
    assert "no figure: it would show too many runs" in answer.out


def test_calibration_comes_first_and_is_reported_once(aqmlab: Cli, small: Path) -> None:
    small.write_text(SMALL.replace('rate = "30 /s"\n', "").replace("title", "load = 0.5\ntitle"))
    answer = aqmlab("run", small, "--json")
    assert answer.status == 0
    message = one_line(answer.err)
    assert message.startswith("calibrated: fetches: ")
    assert "for 50 % (R2 " in message
    [directory] = Path("runs").iterdir()
    assert json.loads((directory / "metadata.json").read_text())["load"] == 0.5
    assert 'rate = "' in (directory / "scenario.toml").read_text()

    listed = aqmlab("calibrate", small)
    assert listed.out == f"{message}\n"
    [found] = json.loads(aqmlab("calibrate", small, "--json").out)
    assert found["unit"] == "connections/s"
    # The load of the run is the one that was asked for.
    link = json.loads(answer.out)["links"]["bottleneck"]["forward"]
    assert 0.35e6 * 2 < link["throughput_bps"] < 0.65e6 * 2


@pytest.mark.parametrize(
    "kind", ["disciplines", "transports", "traffic", "profiles", "scenarios", "papers"]
)
def test_everything_is_listed(aqmlab: Cli, kind: str) -> None:
    expected = {
        "disciplines": "red",
        "transports": "recovery.reno",
        "traffic": "mah-web",
        "profiles": "freebsd-2.2.8",
        "scenarios": "scenarios/quickstart.toml",
        "papers": "christiansen2000",
    }[kind]
    names = json.loads(aqmlab("list", kind, "--json").out)
    assert expected in names
    assert all(names.values())
    assert expected in aqmlab("list", kind).out


@pytest.mark.long
def test_everything_listed_is_explained(aqmlab: Cli) -> None:
    for kind in ("disciplines", "transports", "traffic", "profiles"):
        for name in json.loads(aqmlab("list", kind, "--json").out):
            answer = aqmlab("explain", name)
            assert answer.status == 0
            assert answer.out.startswith(name)
    [red] = json.loads(aqmlab("explain", "RED", "--json").out)
    assert {"min_th", "max_th", "gentle"} <= {entry["name"] for entry in red["parameters"]}
    assert "0.002" in aqmlab("explain", "red").out


def test_a_transport_is_explained_by_its_last_word(aqmlab: Cli) -> None:
    """As scenarios and people say it."""
    for name in json.loads(aqmlab("list", "transports", "--json").out):
        answer = aqmlab("explain", name.rpartition(".")[2])
        assert answer.status == 0
        assert name in answer.out
    answer = aqmlab("explain", "l4s")
    assert (answer.status, answer.out) == (2, "")
    assert "did you mean" in answer.err
    assert "l4s-marking" in answer.err


def test_the_schema_is_json(aqmlab: Cli) -> None:
    assert "topology" in json.loads(aqmlab("schema").out)["properties"]


def test_bars_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, drawn in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        with console.Progress("running") as progress:
            progress.update("a", 0.5)
        assert bool(stream.getvalue()) is drawn


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Calls the installed command in a process of its own."""
    words = [sys.executable, "-m", "aqmlab", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_installed_command(small: Path) -> None:
    good = command("run", small, "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["measured_s"] == 20
    bad = command("run", "nowhere.toml")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert one_line(bad.stderr) == "nowhere.toml: there is no such scenario file"
    assert command("--help").returncode == 0


def test_a_reader_that_leaves_early_is_no_error() -> None:
    shell = f"{sys.executable} -m aqmlab schema | head -n 1"
    answer = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.stderr) == ("{\n", "")


FIRST_LINES = {
    "latex": (r"\\begin\{tabular\}\{l[lr]*\}\n\\toprule\n(.*) \\\\\n\\midrule\n", " & "),
    "markdown": (r"\| (.*) \|\n\| ---[-:| ]* \|\n", " | "),
    "csv": (r"(?:^|\n)(?!#)(\w.*)\n", ","),
}
"""How a table begins in each format, and what stands between its heads."""


@pytest.mark.long_cases("latex", "markdown")
@pytest.mark.parametrize("markup", FIRST_LINES)
def test_tables_for_papers(aqmlab: Cli, small: Path, markup: str) -> None:
    Path("few.toml").write_text(
        'scenario = "small.toml"\nseeds = "1..2"\nbaseline = { a_b = "x&y" }\nshow = ["p50"]\n'
        '[[axes]]\nname = "a_b"\n[axes.variants."x&y"]\nrate = "2 Mbit/s"\n'
        '[axes.variants.z]\nrate = "3 Mbit/s"\n'
    )
    aqmlab("compare", small, "--vary", TWO_QUEUES, "--out", "pair")
    begins, between = FIRST_LINES[markup]
    for arguments, first in (
        (["sweep", "few.toml"], {"latex": r"a\_b", "markdown": r"a\_b", "csv": "a_b"}[markup]),
        (["compare", "pair"], "number"),
        (["compare", "pair", "--all"], "run"),
        (["show", "pair"], "link"),
    ):
        answer = aqmlab(*arguments, "--format", markup)
        assert answer.status == 0
        heads = re.findall(begins, answer.out)
        assert len(heads) >= 2
        assert heads[0].split(between)[0] == first
        assert "\x1b" not in answer.out
        for word in ("run directory", "results:", "figure:", "answer", "--all"):
            assert word not in answer.out
    swept = aqmlab("sweep", "few.toml", "--format", markup).out
    assert {"latex": r"x\&y", "markdown": r"x\&y", "csv": "x&y"}[markup] in swept


@pytest.mark.parametrize("options", [[], ["--json"], ["--tsv"], ["--format", "csv"]])
def test_a_full_disk_behind_standard_output_is_reported(
    aqmlab: Cli, small: Path, options: list[str]
) -> None:
    aqmlab("run", small, "--out", "here")
    words = [sys.executable, "-m", "aqmlab", "show", "here", *options]
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert answer.returncode == 1
    assert one_line(answer.stderr) == "standard output cannot be written: No space left on device"


@pytest.mark.parametrize("lines", ["show here", "show here --tsv", "list disciplines"])
def test_a_reader_of_tables_may_leave_early(aqmlab: Cli, small: Path, lines: str) -> None:
    aqmlab("run", small, "--out", "here")
    shell = f"{sys.executable} -m aqmlab {lines} | head -c 3"
    answer = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert (len(answer.stdout), answer.stderr) == (3, "")


def test_characters_that_an_encoding_lacks_are_escaped(aqmlab: Cli, small: Path) -> None:
    small.write_text(SMALL.replace("Small fetches", "Small fetches \u2264 1"))
    aqmlab("run", small, "--out", "here")
    words = [sys.executable, "-m", "aqmlab", "show", "here"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    answer = subprocess.check_output(words, env=environment)
    assert answer.startswith(rb"Small fetches \u2264 1 over")


@pytest.mark.long
def test_an_interrupt_is_reported_and_leaves_nothing(small: Path) -> None:
    shell = (
        f"timeout -s INT 10 {sys.executable} -m aqmlab run {small} "
        "--set 'measure.duration=240 h' --out here"
    )
    answer = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert one_line(answer.stderr) == "interrupted"
    assert entries(small.parent) == ["small.toml"]


WHEN_LOADED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv[1:] = {call!r}
{begin}
"""
"""A call that is interrupted as it begins to load a module."""
COMMAND = "from aqmlab.cli import main; sys.exit(main())"
"""What the installed command does."""
MODULE = "import runpy; runpy.run_module('aqmlab', run_name='__main__')"
"""What ``python -m aqmlab`` does."""


@pytest.mark.long_cases(but="command-*")
@pytest.mark.parametrize(
    "module",
    [
        "click",
        "aqmlab._util.plain",
        "aqmlab._native",
        "aqmlab.cli.app",
        "aqmlab.cli.commands.compare",
        "numpy",
        "numpy._core",
        "pyarrow",
        "pyarrow.lib",
        "vl_convert",
    ],
)
@pytest.mark.parametrize("begin", [COMMAND, MODULE], ids=["command", "module"])
def test_an_interrupt_while_modules_are_loaded(small: Path, begin: str, module: str) -> None:
    call = ["compare", str(small), "--vary", TWO_QUEUES]
    code = WHEN_LOADED.format(module=module, call=call, begin=begin)
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout) == (130, "")
    assert one_line(answer.stderr) == "interrupted"
    # What draws and compares is loaded behind the runs, which stay.
    runs = [Run.open(path) for path in Path("runs").glob("*-s1")]
    assert len(runs) == (2 if module.partition(".")[0] in {"numpy", "pyarrow"} else 0)
    assert runs or entries(small.parent) == ["small.toml"]


def test_an_interrupt_that_is_ignored_stays_so(small: Path) -> None:
    call = ["run", str(small), "--json"]
    code = WHEN_LOADED.format(module="aqmlab._util.plain", call=call, begin=COMMAND)
    code = f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{code}"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")


def test_the_command_begins_at_once() -> None:
    """Next to nothing is loaded before the command can report an interrupt."""
    code = "import sys; import aqmlab.cli; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert {name for name in loaded if name.startswith("aqmlab")} == {
        "aqmlab",
        "aqmlab.cli",
        "aqmlab.cli.interrupts",
    }
    assert not {"typing", "numpy", "click", "rich", "polars", "pyarrow", "altair", "scipy"} & {
        *loaded
    }
