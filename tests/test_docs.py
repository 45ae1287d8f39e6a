"""Every block of code in README.md and docs/ does what its page says, taken from the page itself.

What a block is follows from the language of its fence:

``sh``      Commands. Those of a page run in order, in a directory that looks like a checkout.
            Lines that begin with ``make`` are only looked up: continuous integration makes them.
            A block of nothing but ``aqmlab`` is called in this process; bash runs the others.
            A page that neither shows nor asserts what its runs give has short ones here.
``python``  A program, run there as well, in its place between the commands. After
            ``<!-- file: NAME -->`` it is a file that the commands find.
``text``    A picture, or output. After ``<!-- output -->`` it is the output of the block before;
            ``...`` stands for what differs from run to run, in a line or for some lines.
``toml``    A scenario, a sweep, or a part of one that is completed here and read.
            After ``<!-- file: NAME -->`` it is also a file that the commands find.
``json``    Is read.
``rust``    Belongs to the crates; `docs/extending.md` has a test of its own.

``<!-- not run: REASON -->`` before a block keeps it from being run; the reasons are printed.
``<!-- picture: FILE -->`` before a picture: what stands in it is what stands in the FILE that the
commands before it have drawn.

With AQMLAB_REWRITE=1 in the environment, outputs that have changed, and pictures, are replaced in
the pages: the sentences around them are then to be read again.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from aqmlab import Scenario, Sweep
from aqmlab.cli import app as cli
from aqmlab.results import own_metrics, python_metrics
from conftest import ROOT
from screens import script_on_terminal
from test_capture import CONNECTION, pcap

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?:<!-- (?P<comment>not run: [^>]+|output|file: \S+|picture: \S+) -->\n\n?)?"
    r"(?:```(?P<language>\w*)\n(?P<text>.*?)^```$|!\[[^]]*\]\((?P<picture>\S+)\)$)",
    re.MULTILINE | re.DOTALL,
)
LANGUAGES = {"sh", "python", "text", "toml", "json", "rust"}
SECONDS = 600
ON_TERMINAL = {"docs/tutorial.md"}
"""Pages whose outputs are those of a terminal: their tables fit."""
LONG = {
    "docs/choose.md",
    "docs/figures.md",
    "docs/gallery.md",
    "docs/how-to/access.md",
    "docs/how-to/capture.md",
    "docs/how-to/cluster.md",
    "docs/how-to/cookbook.md",
    "docs/how-to/l4s.md",
    "docs/how-to/learn.md",
    "docs/how-to/metrics-of-your-own.md",
    "docs/how-to/own-queue.md",
    "docs/how-to/pie-codel.md",
    "docs/how-to/quic.md",
    "docs/how-to/tune.md",
    "docs/how-to/why.md",
    "docs/how-to/wifi.md",
    "docs/labs/bufferbloat.md",
    "docs/labs/l4s.md",
    "docs/labs/own-queue.md",
    "docs/labs/red.md",
    "docs/labs/sawtooth.md",
    "docs/red-tail.md",
    "docs/report.md",
    "docs/sweeps.md",
    "docs/traffic/describe.md",
    "docs/tutorial.md",
}
"""Pages whose commands take more than 2 s of CPU time: `make test-long`."""
COLUMNS = 88
REWRITE = os.environ.get("AQMLAB_REWRITE") == "1"

WORD = r"""(?:[\w./:,+=@%^-]|'[^']*'|"[^"$`\\]*")+"""
CALL = re.compile(rf"aqmlab(?: +{WORD})*(?: +#.*)?")
"""A line that means the same without a shell."""
RUNS = {"run", "compare", "sweep", "tune"}
SHORT = ("--set", "measure.duration=8 s", "--set", "measure.warm_up=2 s")
RATES = '"downloadBandwidthMbps": 200, "uploadBandwidthMbps": 100'
COLUMNS_OF_DEVICES = (
    "Circuit ID,Parent Node,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps"
)
BEFORE = {
    "docs/how-to/access.md": f"""
        echo '{{"Tower": {{{RATES}}}}}' > network.json
        printf '%s\\n' '{COLUMNS_OF_DEVICES}' 'c1,Tower,1,1,100,20' > ShapedDevices.csv
    """,
    "docs/report.md": """
        aqmlab run scenarios/quickstart.toml --out runs/a
        aqmlab run scenarios/quickstart.toml --out runs/b \
            --set topology.bottleneck.discipline=fq-codel
        aqmlab sweep scenarios/sweeps/thresholds.toml --seeds 1
        aqmlab reproduce christiansen2000 B.1 --quick
    """,
    "docs/traffic/describe.md": """
        cp scenarios/synthetic.cvec mine.cvec
        aqmlab run scenarios/quickstart.toml --set measure.capture=bottleneck --out run
    """,
}
"""What a reader of a page has at hand before its first command."""


@dataclass(frozen=True)
class Block:
    """A block of code and where it stands."""

    page: str
    line: int
    comment: str
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def reason(self) -> str | None:
        """Why it is not run."""
        return self.comment.removeprefix("not run: ") if "not run" in self.comment else None


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.end())
        name = page.relative_to(ROOT).as_posix()
        if not found["picture"]:
            yield Block(name, line, found["comment"] or "", found["language"], found["text"])
        elif found["comment"]:
            yield Block(name, line, found["comment"], "picture", found["picture"])


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
COMMANDS = list(dict.fromkeys(b.page for b in BLOCKS if b.language in {"sh", "python"}))
SHOWN = {
    block.page
    for block in BLOCKS
    if block.comment.startswith(("output", "picture: ")) or "assert " in block.text
}
"""Pages whose runs have to give what the page shows or asserts."""
NOT_RUN = [block for block in BLOCKS if block.reason]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory that looks like a checkout in which `make build` was called."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("scenarios", "papers"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "link.pcap").write_bytes(pcap(CONNECTION))
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def test_blocks_name_their_language() -> None:
    for page in PAGES:
        fences = re.findall(r"^ *```.*$", page.read_text(), re.MULTILINE)
        blocks = [b for b in BLOCKS if ROOT / b.page == page and b.language != "picture"]
        assert len(fences) == 2 * len(blocks), f"{page}: a fence that is indented or not closed"
        for block in blocks:
            assert block.language in LANGUAGES, f"{block.place}: name one of {sorted(LANGUAGES)}"
        indented = re.findall(r"^    (?:aqmlab|\.venv/bin/aqmlab|make) .*$", page.read_text(), re.M)
        assert not indented, f"{page}: commands stand between fences"


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.place)
def test_blocks_that_are_not_run_say_why(block: Block) -> None:
    pytest.skip(f"{block.place} is not run: {block.reason}")


def script(block: Block) -> str:
    """The block as a script of bash or Python."""
    if block.language == "python":
        return f"{sys.executable} - <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK\n"
    return block.text


def pattern(output: str) -> str:
    """A regular expression for what a page says about an output."""
    lines = [
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r" *\n"
        for line in output.splitlines()
    ]
    return "".join(lines)


def calls(text: str) -> list[list[str]] | None:
    """The arguments of each call of aqmlab, if a script has nothing else."""
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not all(map(CALL.fullmatch, lines)):
        return None
    return [shlex.split(line, comments=True)[1:] for line in lines]


def called(arguments: list[str], is_short: bool) -> str:
    """What a command writes, called in this process."""
    if is_short and arguments and arguments[0] in RUNS and arguments[1].endswith(".toml"):
        arguments = [*arguments, *SHORT]
    written = io.StringIO()
    with redirect_stdout(written), redirect_stderr(written):
        status = cli.main(arguments)
    own_metrics.forget()
    python_metrics.forget()
    assert status == 0, f"aqmlab {shlex.join(arguments)}\n{written.getvalue()}"
    return written.getvalue()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.long] * (page in LONG)) for page in COMMANDS],
)
def test_commands_of_a_page(page: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    prelude = (
        f"set -euo pipefail\nexport PATH={Path(sys.executable).parent}:$PATH\n"
        f'make() {{ command make --dry-run --no-print-directory -C {ROOT} "$@" >/dev/null; }}\n'
    )

    def run(text: str) -> str:
        if page in ON_TERMINAL:
            status, output, said = script_on_terminal(prelude + text, COLUMNS, checkout)
            assert status == 0, f"{page}: {text}\n{output}{said}"
            return output
        if (found := calls(text)) is not None:
            return "".join(called(arguments, page not in SHOWN) for arguments in found)
        answer = subprocess.run(
            ["bash", "-c", prelude + text],
            cwd=checkout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert answer.returncode == 0, f"{page}: {text}\n{answer.stdout}"
        return answer.stdout

    run(BEFORE.get(page, ""))
    output = ""
    for block in (block for block in BLOCKS if block.page == page and not block.reason):
        if block.comment.startswith("file: "):
            (checkout / block.comment.removeprefix("file: ")).write_text(block.text)
        elif block.language in {"sh", "python"}:
            output = run(script(block))
        elif block.comment == "output":
            if REWRITE and not re.search(pattern(block.text), output):
                rewrite(block, output)
            else:
                assert re.search(pattern(block.text), output), f"{block.place} is not in\n{output}"
        elif block.comment.startswith("picture: "):
            drawn, shown = checkout / block.comment.removeprefix("picture: "), picture(block)
            if REWRITE:
                shutil.copy(drawn, shown)
            old = f"{block.place}: {shown} is an old picture"
            assert words_in(shown) == words_in(drawn), old


def rewrite(block: Block, output: str) -> None:
    """Replaces a block by an output: round a paragraph ``...`` by as many of its first paragraphs,
    and of its last, as the block has."""
    lines = [line.rstrip() for line in output.splitlines() if not line.startswith("aqmlab: ")]
    rules = {
        line: re.compile(pattern(line)) for line in block.text.splitlines() if "..." in line[1:]
    }
    found = [
        next((known for known, rule in rules.items() if rule.fullmatch(f"{line}\n")), line)
        for line in lines
    ]
    parts, shown = "\n".join(found).split("\n\n"), block.text.strip().split("\n\n")
    if "..." in shown:
        before, after = shown.index("..."), shown[::-1].index("...")
        parts = [*parts[:before], "...", *parts[len(parts) - after :]]
    page = ROOT / block.page
    page.write_text(page.read_text().replace(block.text, "\n\n".join(parts) + "\n"))


def picture(block: Block) -> Path:
    """The file of a picture of a page."""
    return (ROOT / block.page).parent / block.text


def words_in(drawing: Path) -> list[str]:
    """What is written in a drawing, sorted: titles, names and numbers.

    Runs that a pattern names come by their keys, and the key of a replayed capture has its place.
    """
    return sorted(re.findall(r">([^<]+)</text>", drawing.read_text()))


def test_numbers_of_the_tutorial_are_real() -> None:
    """A number in its sentences stands in a command or an output of it, too."""
    page = ROOT / "docs" / "tutorial.md"
    blocks = "".join(block.text for block in BLOCKS if ROOT / block.page == page)
    known = set(re.findall(r"\d[\d,.]*\d|\d", blocks))
    prose = re.sub(
        r"`[^`]*`|\(.*?\)|^#.*$|Python 3\.\d+|A4", "", FENCE.sub("", page.read_text()), flags=re.M
    )
    numbers = re.findall(r"\d[\d,.]*\d|\d", re.sub(r"95 % interval", "", prose))
    assert [number for number in numbers if number not in known] == []


# --- TOML -----------------------------------------------------------------------------------------

MEASURE = '[measure]\nwarm_up = "2 s"\nduration = "200 s"\n'
TOPOLOGY = '[topology]\nkind = "dumbbell"\n[topology.bottleneck]\nrate = "10 Mbit/s"\n'
DISCIPLINE = 'discipline = { kind = "droptail", limit = "60 packets" }\n'
TRAFFIC = (
    '[[traffic]]\nname = "transfers"\nkind = "bulk"\nflows = 2\n'
    'rtt = { kind = "constant", rtt = "60 ms" }\n'
)
SWEEP = (
    'title = "From a page"\nscenario = "../../scenarios/quickstart.toml"\nseeds = "1..2"\n'
    'derive = { users = "34 * load_pct" }\n'
)


def scenario_around(text: str) -> str:
    """A whole scenario that has a part of one in its place."""
    has_traffic = "[[traffic]]" in text
    if text.startswith("[topology]"):
        (path,) = re.findall(r"^\[topology\.paths\.(\w+)\]", text, re.MULTILINE)
        return f'{MEASURE}{text}{TRAFFIC}path = "{path}"\n'
    if text.startswith("[topology.bottleneck]"):
        queue = "" if "discipline = " in text else DISCIPLINE
        users = "" if has_traffic else TRAFFIC
        return f'{MEASURE}[topology]\nkind = "dumbbell"\n{text}{queue}{users}'
    if text.startswith("[measure]"):
        return text + TOPOLOGY + DISCIPLINE + TRAFFIC
    if text.startswith("discipline"):
        return MEASURE + TOPOLOGY + text + ("" if has_traffic else TRAFFIC)
    if has_traffic:
        return MEASURE + TOPOLOGY + DISCIPLINE + text
    return MEASURE + TOPOLOGY + DISCIPLINE + TRAFFIC + text


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.language == "toml" and not block.reason],
    ids=lambda block: block.place,
)
def test_toml_is_read(block: Block, checkout: Path) -> None:
    if "[[axes]]" in block.text:
        whole = "scenario = " in block.text
        folder = checkout / ("scenarios/sweeps" if whole else "papers/christiansen2000")
        file = folder / "page.toml"
        file.write_text(block.text if whole else SWEEP + block.text)
        assert Sweep.load(file).axes
        return
    file = checkout / "scenarios" / "page.toml"
    for name in re.findall(r'file = "(.+\.cvec)"', block.text):
        if not file.with_name(name).exists():
            shutil.copy(file.with_name("synthetic.cvec"), file.with_name(name))
    whole = "[topology]" in block.text and "[[traffic]]" in block.text
    file.write_text(block.text if whole else scenario_around(block.text))
    assert Scenario.load(file).title is not None


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language == "json"], ids=lambda block: block.place
)
def test_json_is_read(block: Block) -> None:
    assert json.loads(block.text)
