"""A star says that something clearly differs, and nothing else."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from aqmlab.results.compare import Difference, link_differences
from aqmlab.results.conclusion import conclusion
from aqmlab.results.groups import Group
from aqmlab.results.run import Run
from aqmlab.results.statistics import Estimate
from aqmlab.results.tables import key_numbers_table
from aqmlab.scenario.scenario import Scenario
from conftest import SMALL

ROOT = Path(__file__).parents[1]
QUEUE = "topology.bottleneck.discipline"


def waiting(queue: str, *delays: float) -> Group:
    """Runs of a queue with some mean queueing delays of the download, a seed each."""
    runs = []
    for seed, delay in enumerate(delays, 1):
        scenario = Scenario.from_toml(SMALL, [(QUEUE, queue), ("seed", str(seed))]).data
        busy = {"utilization": 0.9, "loss_rate": 0.01, "mark_rate": 0.0, "sojourn_mean_s": delay}
        answered = {"count": 9, "p50_s": 1.0 + delay}
        summary = {
            "links": {
                "bottleneck": {
                    "forward": busy,
                    "reverse": {**busy, "utilization": 0.1, "loss_rate": 0.0},
                }
            },
            "responses": {"all": answered, "fetches": answered},
            "flows": {},
            "quality": {},
            "seed": seed,
        }
        runs.append(Run.in_memory(scenario, summary, path=f"{queue}-{seed}"))
    return Group(runs[0].label, tuple(runs))


@pytest.mark.parametrize(("after", "is_clear"), [((0.01, 0.011, 0.012), True), ((0.05,), False)])
def test_rows_of_links_have_a_star_where_they_clearly_differ(
    after: tuple[float, ...], is_clear: bool
) -> None:
    """As rows of people have."""
    groups = [waiting("droptail-24", 0.1, 0.11, 0.12)]
    groups.append(waiting("pie", *after))
    changes = link_differences(groups)
    [table, apart] = key_numbers_table(groups, changes)
    row = {cells[0].text: cells for cells in table.rows}["download mean queueing delay (ms)"]
    assert row[1].text.endswith("*") is False
    assert row[2].text.endswith(" *") is is_clear
    same = {cells[0].text: cells for cells in table.rows}["download utilization %"]
    assert "*" not in same[2].text
    assert "download mean queueing delay (ms)" in [cells[0].text for cells in apart.rows]


def test_the_verdict_names_links_that_clearly_differ() -> None:
    """Neither as better nor as worse, on a line that is left."""
    groups = [waiting("droptail-24", 0.1, 0.11, 0.12), waiting("pie", 0.01, 0.011, 0.012)]
    gone = Estimate(-0.1, -0.12, -0.08, 3, "t")
    users = Difference(groups[1].label, groups[0].label, "all", "p50_s", gone, True, "")
    lines = conclusion([users, *link_differences(groups)], groups)
    assert lines[-1] == "  links: download mean queueing delay 110.0 to 11.0 ms"
    assert not any(line.startswith("  links") for line in conclusion([users], groups))


def test_what_has_no_interval_has_another_sign() -> None:
    """One seed bears out nothing, so there is no star."""
    groups = [waiting("droptail-24", 0.4), waiting("pie", 0.01)]
    one = Estimate(-0.39, math.nan, math.nan, 1, "none")
    users = Difference(groups[1].label, groups[0].label, "all", "p50_s", one, True, "")
    lines = conclusion([users, *link_differences(groups)], groups)
    assert not any("*" in line for line in lines)
    assert "~ no interval" in lines[0]
    [table, _] = key_numbers_table(groups, [users, *link_differences(groups)])
    assert not any("*" in cell.text for row in table.rows for cell in row)


def _texts(file: Path) -> Iterator[str]:
    """The texts of a module, pieces of texts with fields in them too."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


MODULES = {
    file.relative_to(home).as_posix(): file
    for home, folder in ((ROOT / "python/aqmlab", "."), (ROOT, "lab"))
    for file in (home / folder).rglob("*.py")
}
SHOWN = {"results/tables.py", "cards/page.py"}
"""Modules that print stars, each beside a difference that is clear."""
PATTERNS = {
    *("cards/renew_worst.py", "cli/commands/store.py", "engine/store.py", "engine/intake.py"),
    *("engine/workspace.py", "papers/paper.py", "papers/reproduce.py", "papers/rule.py"),
    *("lab/card_rows.py", "lab/disciplines/validate.py", "lab/live/compare.py"),
    *(
        "lab/peers/fidelity.py",
        "lab/peers/sessions.py",
        "lab/kernel/scripts.py",
        "lab/soak.py",
        "results/recorded.py",
    ),
    *("results/formula.py", "results/formula_text.py"),
    *("_util/markup.py", "papers/causes.py", "papers/scoreboard.py", "document/markdown.py"),
}
"""Modules with patterns of names and paths, which nobody reads, and with emphasis."""


@pytest.mark.long
def test_no_other_star_is_printed() -> None:
    """A module that adds a star to a table or a figure is named here."""
    lone = {
        name for name, file in MODULES.items()
        if any(re.fullmatch(r"\s*\\?\*", text) for text in _texts(file))
    }  # fmt: skip
    assert lone >= SHOWN
    assert lone <= SHOWN | PATTERNS


@pytest.mark.long
def test_every_legend_says_that_it_clearly_differs() -> None:
    """Texts that say what a star is."""
    said = [
        text
        for file in MODULES.values()
        for text in _texts(file)
        if re.search(r"(?<![*'])\*(:| =) |\bstars? (marks|means)\b", text)
    ]
    assert len(said) >= 3
    assert all("clearly differs" in text for text in said)


def test_pages_say_the_same_of_stars() -> None:
    """No page gives a star another meaning."""
    for file in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "records").glob("*.md")]:
        for sentence in re.findall(
            r"[^.\n]*\bstars? (?:is|marks?|means?)\b[^.]*", file.read_text()
        ):
            assert re.search(r"clearly differ|more than chance", sentence), f"{file}: {sentence}"
