"""The first minute: what `aqmlab` alone says, help, completion, and what is not imported for it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import aqmlab as package
import pytest
from aqmlab import _native
from aqmlab.cli import app, loading
from conftest import ROOT, Cli

HEAVY = (
    "altair",
    "jinja2",
    "numpy",
    "polars",
    "pyarrow",
    "pypdf",
    "rich",
    "scipy",
    "vl_convert",
)
"""Libraries that cost time where they are not used."""


def imported_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has imported after some code."""
    listing = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{listing}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def called(*arguments: str) -> str:
    """Code that calls the command line."""
    return f"from aqmlab.cli import main; assert main({list(arguments)!r}) == 0"


@pytest.mark.parametrize(
    "code",
    [
        "import aqmlab; dir(aqmlab); aqmlab.__version__; aqmlab.AqmlabError",
        called("--version"),
        called(),
        called("-h"),
    ],
    ids=["import", "version", "bare", "help"],
)
def test_a_start_imports_nothing_heavy(code: str) -> None:
    assert not imported_by(code) & set(HEAVY)


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("explain", "red"),
        ("schema",),
        ("show", "here"),
        ("run", "{small}", "--seed", "9"),
    ],
    ids=lambda words: words[0],
)
def test_libraries_are_imported_where_they_are_used(
    aqmlab: Cli, small: Path, arguments: tuple[str, ...]
) -> None:
    """One run needs no statistics, no tables of many numbers and no figure."""
    aqmlab("run", small, "--out", "here")
    call = called(*(word.format(small=small) for word in arguments))
    assert not imported_by(call) & set(HEAVY)


def test_an_explanation_needs_no_results_and_no_processes() -> None:
    """Each module of ours costs a millisecond or more."""
    code = f"{called('explain', 'red')}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    parts = ("engine.execute", "engine.schedulers", "plugins", "results.run", "results.tables")
    assert not loaded & {f"aqmlab.{part}" for part in parts}


def test_every_public_name_is_there() -> None:
    code = "import aqmlab; print(*[getattr(aqmlab, name).__name__ for name in aqmlab.__all__])"
    found = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert found.split() == package.__all__
    assert set(package.__all__) < set(dir(package))
    assert getattr(package.results, "__name__", "") == "aqmlab.results"
    with pytest.raises(AttributeError, match="no attribute 'simulation'"):
        package.simulation  # noqa: B018 - that it is refused is what is tested


def test_alone_it_says_where_to_begin(aqmlab: Cli) -> None:
    answer = aqmlab()
    assert (answer.status, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert len(lines) < 25
    assert max(map(len, lines)) <= 80
    for name in loading.names():
        assert re.search(rf"(?:^  |Also: .*){name}\b", answer.out, re.MULTILINE | re.DOTALL), name
        assert loading.summary(name), f"{name} has no docstring"


def test_the_examples_work(aqmlab: Cli) -> None:
    assert len(app.EXAMPLES) == 3
    shown = aqmlab().out
    for example in app.EXAMPLES:
        assert example in shown
        name, *words = shlex.split(example.replace("\\\n", " "))
        assert name == "aqmlab"
        # As short as a test has to be.
        brief = ["--set", "measure.duration=2 s", "--set", "measure.warm_up=1 s"]
        answer = aqmlab(*words, *(brief if words[0] == "compare" else []))
        assert (answer.status, answer.err) == (0, "")


@pytest.mark.parametrize("name", ["", *loading.names(), "traffic describe"])
def test_help_everywhere(aqmlab: Cli, name: str) -> None:
    answers = [aqmlab(*name.split(), option) for option in ("-h", "--help")]
    assert answers[0] == answers[1]
    assert (answers[0].status, answers[0].err) == (0, "")
    assert answers[0].out.startswith(f"Usage: aqmlab {name}".strip())


@pytest.mark.parametrize("name", ["traffic", "store"])
def test_a_group_alone_shows_its_help(aqmlab: Cli, name: str) -> None:
    assert aqmlab(name) == aqmlab(name, "-h")


def test_a_misspelt_command_is_guessed(aqmlab: Cli) -> None:
    answer = aqmlab("comapre")
    assert answer.status == 2
    assert "compare" in answer.err


Completed = Callable[..., list[str]]


@pytest.fixture
def completed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Completed:
    """What bash offers for the last word."""

    def call(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(["aqmlab", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setenv("_AQMLAB_COMPLETE", "complete_bash")
        with pytest.raises(SystemExit):
            app.main([])
        return capsys.readouterr().out.split()

    return call


def test_shells_complete(completed: Completed) -> None:
    assert completed("re") == ["replay", "report", "reproduce"]
    assert completed("list", "p") == ["presets", "profiles", "papers"]
    presets = ["fq-codel-rfc", "fq-pie-rfc", "fq-codel-l4s"]
    assert completed("explain", "fq") == ["fq-codel", "fq-pie", *presets]
    assert "p50_s" in completed("explain", "p50")
    assert completed("run", "--see") == ["--seed", "--seeds"]
    assert completed("compare", "x", "--vary", "topology.bottleneck.d") == [
        "topology.bottleneck.discipline="
    ]
    field = "topology.bottleneck.discipline"
    assert completed("compare", "x", "--vary", f"{field}=pie,fq-") == [
        f"{field}=pie,fq-codel",
        f"{field}=pie,fq-codel-rfc",
        f"{field}=pie,fq-pie",
        f"{field}=pie,fq-pie-rfc",
        f"{field}=pie,fq-codel-l4s",
    ]
    assert completed("compare", "x", "--vary", "seed=1") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(shell: str) -> None:
    found = subprocess.check_output(
        [sys.executable, "-m", "aqmlab", "--show-completion", shell],
        text=True,
    )
    assert "_AQMLAB_COMPLETE" in found


@pytest.mark.parametrize(
    ("shell", "file", "start"),
    [
        ("bash", ".bash_completions/aqmlab.sh", ".bashrc"),
        ("zsh", ".zfunc/_aqmlab", ".zshrc"),
        ("fish", ".config/fish/completions/aqmlab.fish", None),
    ],
)
def test_completion_is_installed_once(
    aqmlab: Cli,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    shell: str,
    file: str,
    start: str | None,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")  # the shell that is taken if none is named
    for words in (["--install-completion"], ["--install-completion", shell]):
        answer = aqmlab(*words)
        assert (answer.status, answer.err) == (0, "")
        assert answer.out.startswith(f"{shell} completion installed in {tmp_path / file}\n")
    assert (tmp_path / file).read_text() == aqmlab("--show-completion", shell).out
    if start is not None:
        assert len((tmp_path / start).read_text().strip().splitlines()) == 1


def test_completion_of_an_unknown_shell_is_refused(aqmlab: Cli) -> None:
    answer = aqmlab("--show-completion", "tcsh")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == 'aqmlab: SHELL: found "tcsh"; expected one of bash, zsh, fish\n'


def test_zsh_and_fish_complete(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def offered(shell: str, line: str) -> tuple[object, str]:
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("_AQMLAB_COMPLETE", f"complete_{shell}")
        with pytest.raises(SystemExit) as end:
            app.main([])
        return end.value.code, capsys.readouterr().out

    assert offered("zsh", "aqmlab list pre") == (0, "_arguments '*: :((\"presets\"))'\n")
    _, out = offered("zsh", "aqmlab explain fq-codel-r")
    meaning = "FQ-CoDel with the rules of RFC 8290, without ECN"
    assert out == f'_arguments \'*: :(("fq-codel-rfc":"{meaning}"))\'\n'
    assert offered("zsh", "aqmlab run ") == (0, "_files\n")
    status, out = offered("fish", "aqmlab explain fq-p")
    assert (status, out.split("\t")[0]) == (0, "fq-pie")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "is-args")
    assert offered("fish", "aqmlab explain fq-p") == (0, "")
    assert offered("fish", "aqmlab run ") == (1, "")
    assert offered("tcsh", "aqmlab")[0] == 1


def test_a_build_without_the_live_bed_says_what_adds_it(
    aqmlab: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make run` alone makes such a build; `.ci/run` asks a real one."""
    source = (ROOT / "crates/python/src/without_live.rs").read_text()
    [lacking] = re.findall(r'Some\("(.*)"\.to_owned\(\)\)', source)
    monkeypatch.delattr(_native, "run_live")
    monkeypatch.setattr(_native, "live_missing", lambda: lacking)
    monkeypatch.setattr(_native, "live_privileged", lambda: True)
    run = aqmlab("run", ROOT / "scenarios/live/quick.toml", "--on", "live", "--out", "out")
    assert (run.status, run.err) == (2, f"aqmlab: {lacking}\n")
    shell = aqmlab("shell", "--rate", "20/5", "true")
    assert (shell.status, shell.err) == (125, f"aqmlab: {lacking}\n")
    assert not any(Path().iterdir())
    doctor = aqmlab("shell", "--doctor")
    assert doctor.status == 125
    assert re.search(r"^aqmlab +missing +no live bed\. Cure: make build", doctor.out, re.MULTILINE)
    assert "namespaces" not in doctor.out
