"""Which directions of links are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aqmlab.results.links import LinkDirection, loaded_links, main_link
from aqmlab.results.run import Run

IDLE = {"utilization": 0.1, "loss_rate": 0.0, "mark_rate": 0.0, "sojourn_mean_s": 0.0}
BUSY = {**IDLE, "utilization": 0.9}


def run(**links: dict[str, Any]) -> Run:
    """A run that measured these links."""
    return Run(Path("made"), "made", {"links": links}, {}, {})


def names(*runs: Run) -> list[str]:
    """The loaded directions as tables call them."""
    return list(map(str, loaded_links(runs)))


def test_a_busy_upload_is_the_loaded_link() -> None:
    """The queue of an office may be that of its upload."""
    office = run(bottleneck={"forward": IDLE, "reverse": BUSY})
    assert names(office) == ["bottleneck reverse"]
    assert main_link([office]) == ("bottleneck", "reverse")


def test_every_loaded_hop_is_named() -> None:
    """A parking lot has several, in the order of the summary; idle access links are left out."""
    lot = run(
        access={"forward": IDLE, "reverse": IDLE},
        first={"forward": BUSY, "reverse": IDLE},
        second={"forward": BUSY, "reverse": {**BUSY, "utilization": 0.95}},
    )
    assert names(lot) == ["first forward", "second forward", "second reverse"]
    assert str(main_link([lot])) == "second reverse"


def test_a_drop_or_a_mark_makes_a_link_matter() -> None:
    """However idle it is on average."""
    dropping = {**IDLE, "loss_rate": 1e-6}
    marking = {**IDLE, "mark_rate": 1e-6}
    assert names(run(a={"forward": dropping, "reverse": IDLE})) == ["a forward"]
    assert names(run(a={"forward": IDLE, "reverse": marking})) == ["a reverse"]
    at_the_bound = {**IDLE, "utilization": 0.2}
    assert names(run(a={"forward": {**IDLE, "utilization": 0.201}, "reverse": at_the_bound})) == [
        "a forward"
    ]


def test_links_of_any_run_count() -> None:
    """What is loaded in one of the runs is shown of all of them."""
    first = run(bottleneck={"forward": BUSY, "reverse": IDLE})
    second = run(bottleneck={"forward": IDLE, "reverse": BUSY})
    assert names(first, second) == ["bottleneck forward", "bottleneck reverse"]


def test_an_idle_network_has_a_busiest_link() -> None:
    """A table without a row says nothing."""
    lazy = {**IDLE, "utilization": 0.15}
    assert names(run(bottleneck={"forward": IDLE, "reverse": lazy})) == ["bottleneck reverse"]
    assert names() == []
    assert names(run()) == []


def test_equally_busy_links_are_told_apart_by_the_wait() -> None:
    """Then by their order."""
    waiting = {**BUSY, "sojourn_mean_s": 0.5}
    assert main_link([run(a={"forward": BUSY, "reverse": waiting})]) == ("a", "reverse")
    assert main_link([run(a={"forward": BUSY, "reverse": BUSY})]) == ("a", "forward")


def test_a_direction_knows_its_place() -> None:
    """Summaries and tables have a word for it each."""
    at = LinkDirection("bottleneck", "reverse")
    assert at.path == ("links", "bottleneck", "reverse")
    assert str(at) == "bottleneck reverse"
