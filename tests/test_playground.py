"""`aqmlab playground`: the built page, served to this machine alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from aqmlab.cli import served_page
from aqmlab.engine.execute import execute
from aqmlab.errors import AqmlabError
from aqmlab.reports.playground import fragment, fragment_of_link
from aqmlab.results.page_words import words
from aqmlab.scenario.link_files import link_names
from aqmlab.scenario.named_links import named_link
from aqmlab.scenario.scenario import Scenario
from conftest import ROOT, SMALL, Cli

SHOWN = """
[measure]
warm_up = "0 s"
duration = "1 s"
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "10 Mbit/s"
discipline = { kind = "codel", limit = "417 packets" }
[topology.bottleneck.forward]
delay = "0 ms"
[topology.bottleneck.reverse]
rate = "1000 Mbit/s"
discipline = { kind = "droptail", limit = "10000 packets" }
[[traffic]]
name = "transfers-1"
kind = "bulk"
flows = 2
start_within = "2 s"
tcp = { profile = "linux", congestion_control = "cubic" }
rtt = { kind = "constant", rtt = "40 ms" }
"""
"""As the page saves it."""
SERVE = """
import sys
from pathlib import Path
from aqmlab.cli import served_page
from aqmlab.cli.app import main
served_page.PAGE = Path(sys.argv[1])
sys.exit(main(["playground", "--no-browser", *sys.argv[2:]]))
"""
"""The command, with a page of a test."""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A folder with a page."""
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("<title>a page</title>")
    (folder / "playground.js").write_text("0;")
    return folder


@pytest.fixture
def served(page: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command under way with a scenario, and the address that it prints."""
    Path("shown.toml").write_text(SHOWN)
    command = [sys.executable, "-c", SERVE, str(page), "shown.toml", "--set", "seed=7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_it_serves_the_page_with_the_scenario(served: tuple[subprocess.Popen[str], str]) -> None:
    process, address = served
    place, _, state = address.partition("#")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", place)
    assert {"rate=10", "lane=codel", "seed=7", "transfers=2%2Ccubic%2C40"} <= {
        field.partition("%3B")[0] for field in state.split("&")
    }
    with urlopen(place) as answer:
        assert answer.read() == b"<title>a page</title>"
    with urlopen(f"{place}playground.js") as answer:
        assert answer.headers["Content-Type"] == "text/javascript"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130


def test_a_run_directory_opens_as_its_scenario(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SHOWN)
    run = execute(scenario, tmp_path / "run")
    Path("shown.toml").write_text(SHOWN)
    assert served_page.fragment_of(run.path, []) == served_page.fragment_of(Path("shown.toml"), [])


def test_what_it_cannot_do_is_one_line(
    aqmlab: Cli, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_page, "PAGE", tmp_path / "nothing")
    absent = aqmlab("playground")
    assert (absent.status, absent.err.count("\n")) == (2, 1)
    assert "`make playground` builds it" in absent.err
    assert "needs Node" in absent.err
    monkeypatch.setattr(served_page, "PAGE", page)
    (tmp_path / "small.toml").write_text(SMALL)
    other = aqmlab("playground", "small.toml")
    assert (other.status, other.err.count("\n")) == (2, 1)
    assert other.err.startswith("aqmlab: small.toml: the playground cannot show it")
    with served_page.serving(page, 0) as (server, _):
        taken = aqmlab("playground", "--port", server.server_address[1])
    assert (taken.status, taken.err.count("\n")) == (2, 1)
    assert "--port: cannot listen at" in taken.err


def test_the_package_has_the_page_that_make_builds() -> None:
    place = served_page.PAGE.relative_to(ROOT).as_posix()
    assert place == "python/aqmlab/shipped/playground"
    assert 'outDir: "../site/playground"' in (ROOT / "web/vite.config.ts").read_text()
    assert "cp -r site/playground python/aqmlab/shipped/" in (ROOT / "Makefile").read_text()
    assert f'path = "{place}/**/*"' in (ROOT / "pyproject.toml").read_text()
    tracked = ROOT.joinpath("python/aqmlab/shipped").iterdir()
    dangling = [file for file in tracked if file.is_symlink() and not file.exists()]
    assert dangling == [], "maturin stops at a link that leads nowhere"


def test_quic_and_breakdowns_open_too() -> None:
    quic = 'transport = "quic"\nquic = { congestion_control = "cubic", ecn = false }'
    tcp = 'tcp = { profile = "linux", congestion_control = "cubic" }'
    shown = SHOWN.replace(tcp, quic).replace('"1 s"\n', '"1 s"\nbreakdown = true\n', 1)
    Path("quic.toml").write_text(shown)
    address = served_page.fragment_of(Path("quic.toml"), [])
    assert {"transfers=2%2Ccubic%2C40%2Cquic", "why=1"} <= set(address.split("&"))


def test_the_page_says_why_in_the_words_of_the_command() -> None:
    file = ROOT / "web/src/why.json"
    text = json.dumps(words(), indent=2) + "\n"
    if os.environ.get("AQMLAB_REWRITE"):
        file.write_text(text)
    assert file.read_text() == text, "AQMLAB_REWRITE=1 pytest tests/test_playground.py renews it"


def over(name: str) -> Scenario:
    """A scenario over a link that has a name, with the link's own queues."""
    scenario = Scenario.from_toml(SHOWN)
    return scenario.with_overrides(named_link(name).overrides(scenario))


SHOWN_LINKS = [name for name in link_names() if name != "data-centre"]


@pytest.mark.parametrize("name", SHOWN_LINKS)
def test_a_named_link_opens_by_its_name(name: str) -> None:
    address = fragment(over(name).data)
    assert address is not None
    assert {f"link={name}", "lane=own"} <= set(address.split("&"))
    assert fragment_of_link(name) == f"link={name}"


@pytest.mark.long_cases("cellular-*")
@pytest.mark.parametrize(("name", "limits"), [("dsl", (667, 42)), ("cellular", (463, 208))])
def test_another_queue_has_the_buffers_of_the_link(name: str, limits: tuple[int, int]) -> None:
    queues = [
        (
            f"topology.bottleneck.{way}.discipline",
            f'{{ kind = "codel", limit = "{packets} packets" }}',
        )
        for way, packets in zip(("forward", "reverse"), limits, strict=True)
    ]
    address = fragment(over(name).with_overrides(queues).data)
    assert address is not None
    assert f"link={name}" in address.split("&")
    assert "lane=codel%3B" in address
    other = fragment(over(name).with_overrides(queues[:1]).data)
    assert other is None, "the way back has another queue"


def test_a_link_that_is_changed_or_too_fast_has_no_address(
    aqmlab: Cli, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        fragment(over("lossy").with_overrides([("topology.bottleneck.loss", "0.1")]).data) is None
    )
    assert fragment(over("data-centre").data) is None
    monkeypatch.setattr(served_page, "PAGE", page)
    fast = aqmlab("playground", "--link", "data-centre")
    assert (fast.status, fast.err.count("\n")) == (2, 1)
    assert "at most 200 Mbit/s" in fast.err
    unknown = aqmlab("playground", "--link", "dls")
    assert (unknown.status, unknown.err.count("\n")) == (2, 1)
    assert "expected one of" in unknown.err


def test_a_scenario_opens_over_another_link(tmp_path: Path) -> None:
    Path("shown.toml").write_text(SHOWN)
    address = served_page.fragment_of(Path("shown.toml"), [], "leo")
    assert {"link=leo", "transfers=2%2Ccubic%2C40"} <= set(address.split("&"))
    with pytest.raises(AqmlabError, match="--link: a scenario file takes it"):
        served_page.fragment_of(tmp_path, [], "leo")
