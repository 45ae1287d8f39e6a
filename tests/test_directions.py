"""What people read of the directions of links: download and upload where they are that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aqmlab import Scenario
from aqmlab.results.directions import brief, in_queue, in_words, placed
from aqmlab.results.links import LinkDirection
from conftest import SMALL, Cli

ROOT = Path(__file__).parents[1]
DOWN, UP = (LinkDirection("bottleneck", way) for way in ("forward", "reverse"))
QUEUE = "topology.bottleneck.discipline"


def shipped(name: str) -> Any:
    """The effective scenario of a shipped file."""
    return Scenario.load(ROOT / "scenarios" / f"{name}.toml").data


@pytest.mark.parametrize("name", ["office", "quickstart", "cellular", "packmime"])
def test_servers_answer_over_the_download(name: str) -> None:
    """In a dumbbell; the office's backup is an upload and changes nothing."""
    scenario = shipped(name)
    assert [in_words(at, scenario) for at in (DOWN, UP)] == ["download", "upload"]
    beside = "upload link" if name == "office" else "upload"  # a class of the office is the upload
    assert [brief(at, scenario) for at in (DOWN, UP)] == ["download", beside]
    assert placed(UP, scenario) == "of the upload"
    assert in_queue(DOWN, scenario) == "in the download queue"
    processor = LinkDirection("bottleneck-input", "forward")
    assert in_words(processor, scenario) == "bottleneck-input download"


def test_other_networks_keep_their_own_words() -> None:
    """A row of routers has no download, nor has a link that only clients' data cross."""
    lot = shipped("parking-lot")
    core = LinkDirection("core-1", "forward")
    assert in_words(core, lot) == brief(core, lot) == "core-1 forward"
    assert placed(core, lot) == in_queue(core, lot) == "at core-1 forward"
    sending = SMALL.replace("[[traffic]]", '[[traffic]]\ndirection = "reverse"')
    asked = Scenario.from_toml(sending).data
    assert [in_words(at, asked) for at in (DOWN, UP)] == [
        "bottleneck forward",
        "bottleneck reverse",
    ]
    assert brief(UP, asked) == "reverse"


def test_people_read_words_and_files_have_keys(aqmlab: Cli, small: Path) -> None:
    """Tables, labels and verdicts say download; JSON, TSV and TOML say forward."""
    vary = f"{QUEUE}=droptail-24,fq-codel"
    shown = aqmlab("compare", small, "--vary", vary, "--seeds", "1..3").out
    assert "\ndownload utilization %" in shown
    assert "forward" not in shown
    once = aqmlab("run", small, "--set", "topology.bottleneck.forward.rate=1 Mbit/s")
    assert "\ndownload " in once.out
    assert "forward" not in once.out
    runs = [path for path in Path("runs").iterdir() if path.is_dir()]
    summary = json.loads((runs[0] / "summary.json").read_text())
    assert [*summary["links"]["bottleneck"]] == ["forward", "reverse"]
    assert "[topology.bottleneck.forward" in (runs[0] / "scenario.toml").read_text()
    rows = aqmlab("show", runs[0], "--tsv").out
    assert "links.bottleneck.forward.utilization" in rows
    assert "download" not in rows


def test_a_page_says_why() -> None:
    """The page of the numbers has both words."""
    page = (ROOT / "docs/metrics.md").read_text()
    assert "## Download and forward" in page
