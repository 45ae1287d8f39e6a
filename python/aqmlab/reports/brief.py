"""A report of one page (A4): a picture, five numbers, the verdict, the setting, how to repeat it.

For readers who decide: the same numbers as in the long report, and no others.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from aqmlab._util.files import write_bytes, write_text
from aqmlab._util.table import Cell, TableModel
from aqmlab.errors import AqmlabError
from aqmlab.figures.kinds.cdf import cdf
from aqmlab.figures.kinds.delay import delay
from aqmlab.figures.palette import PALETTE
from aqmlab.figures.pdf import pdf
from aqmlab.reports.charts import address
from aqmlab.reports.pictures import MOST_CONFIGURATIONS, Picture, drawn
from aqmlab.reports.sheet import Strip, clean, gap, label, sheet, size_of, table, text
from aqmlab.results.compare import Difference
from aqmlab.results.conclusion import KeyNumber, effects, key_numbers, ranked
from aqmlab.results.directions import in_words, way
from aqmlab.results.groups import Group
from aqmlab.results.links import loaded_links
from aqmlab.results.metrics import look_up
from aqmlab.results.queues import link_at
from aqmlab.results.tables import difference_cell, estimate_cell

if TYPE_CHECKING:
    from aqmlab.reports.content import Report
    from aqmlab.results.run import Run

__all__ = ["Brief", "brief", "write_html", "write_pdf"]


_WIDTH, _HEIGHT = 794.0, 1123.0
"""The page in pixels of 1/96 inch: A4, upright."""
_MARGIN = 44.0
_ROOM = _WIDTH - 2 * _MARGIN
_NUMBERS = 5
"""Numbers on the page."""
_MOST_COLUMNS = 4
"""Configurations beside each other in the table."""
_MOST_CLASSES = 6
"""Classes of traffic that are described."""
_MOST_COMMANDS = 2
"""Configurations whose scenario a command names."""
_POPULATIONS = ("users", "viewers", "streams", "flows", "calls", "players", "rate", "load")
"""Keys of a class that say how much traffic it is."""


@dataclass(frozen=True)
class Brief:
    """What stands on the page."""

    title: str
    about: str
    """The scenario's title and the question."""
    verdict: Sequence[str]
    numbers: TableModel
    setting: Sequence[tuple[str, str]]
    repeat: Sequence[str]
    """Commands, then what they need."""
    picture: Picture | None
    names: Sequence[str]
    """Labels of the configurations, in their order."""


def brief(report: Report, folder: Path) -> Brief:
    """The page about the runs of a report; addresses are relative to its folder.

    Raises:
        AqmlabError: the runs are of several scenarios, which have no common numbers.
    """
    if report.parts:
        titles = ", ".join(part.title for part in report.parts[:4])
        raise AqmlabError(
            f"--brief: found runs of {len(report.parts)} scenarios ({titles}); a page is about "
            "one of them"
        )
    groups = report.groups
    subjects = report.subjects[:1] if report.subjects[:1] != [report.title] else []
    return Brief(
        title=report.title,
        about=". ".join([*(one for one in subjects if one), report.question]),
        verdict=report.verdict or ["Nothing is compared: there is no baseline."],
        numbers=_numbers(groups, [*report.compared, *report.at_links]),
        setting=_setting(groups),
        repeat=_repeat(groups, folder.resolve()),
        picture=_picture(groups),
        names=[group.label for group in groups],
    )


def _numbers(groups: Sequence[Group], changes: Sequence[Difference]) -> TableModel:
    """Five numbers with their intervals; between two configurations their differences."""
    every = key_numbers(groups)
    users = [number for number in every if number.of_users]
    users = _telling(ranked(users, [number.place for number in users]), groups, changes)
    links = [number for number in every if not number.of_users]
    chosen = [*users, *links][:_NUMBERS]
    columns = groups[:_MOST_COLUMNS]
    pairs = {(change.run, change.baseline) for change in changes}
    lone = len(pairs) == 1 and len(groups) == 2
    seeds = min(len(group.runs) for group in groups)
    caption = "Five numbers" if len(chosen) == _NUMBERS else "Numbers"
    caption += ", means ± half of the 95 % interval over the seeds" if seeds > 1 else ", one seed"
    if len(groups) > len(columns):
        caption += f"; the first {len(columns)} of {len(groups)} configurations"
    table = TableModel(caption, name="brief")
    table.add_key("")
    for head in (*(group.label for group in columns), *(["difference"] if lone else [])):
        table.add_number(head)
    for number in chosen:
        cells = [estimate_cell(number.metric, number.of(one)) for one in columns]
        table.add_row(number.head, *cells, *([_change(number, changes)] if lone else []))
    return table


def _telling(
    numbers: Sequence[KeyNumber], groups: Sequence[Group], changes: Sequence[Difference]
) -> list[KeyNumber]:
    """The first number, then what is worse for users, what else differs, and what is the same."""
    outcomes: dict[str, set[str]] = {}
    for one in effects(changes, groups):
        outcomes.setdefault(one.number.head, set()).add(one.outcome)

    def rank(number: KeyNumber) -> int:
        found = outcomes.get(number.head, set())
        return 0 if "worse" in found else 2 if found <= {"same"} else 1

    return [*numbers[:1], *sorted(numbers[1:], key=rank)]


def _change(number: KeyNumber, changes: Sequence[Difference]) -> Cell:
    """The difference of a number with its interval."""
    for change in changes:
        if (change.traffic, change.metric) == (number.owner, number.metric.key):
            return difference_cell(change)
    return Cell("-")


def _setting(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """The network, who uses it, and how long it was measured."""
    first = groups[0].first
    found = []
    for at in loaded_links([run for one in groups for run in one.runs])[:2]:
        stated = [link_at(one.first.scenario, at) for one in groups]
        rates = list(dict.fromkeys(str(link["rate"]) for link in stated if link is not None))
        if rates:
            found.append((in_words(at, first.scenario), ", ".join(rates)))
    traffic = first.scenario.get("traffic", ())
    words = [_class_in_words(entry, first.scenario) for entry in traffic[:_MOST_CLASSES]]
    more = len(traffic) - len(words)
    found.append(("traffic", "; ".join(words) + (f"; and {more} more" if more > 0 else "")))
    found.append(("queues", ", ".join(group.label for group in groups)))
    measured = float(first.summary["measured_s"])
    warm_up = float(first.summary["simulated_s"]) - measured
    how = "in real time" if "live" in first.summary else "simulated"
    found.append(("measured", f"{measured:g} s, {how}, after a warm-up of {warm_up:g} s"))
    return found


def _class_in_words(entry: Mapping[str, Any], scenario: Mapping[str, Any]) -> str:
    """A class: its name, its kind, how many."""
    found = [key for key in _POPULATIONS if isinstance(entry.get(key), int | float | str)]
    many = [f"{entry[key]} {_unit(key, entry[key])}".strip() for key in found]
    about = ", ".join([str(entry.get("kind")), *many[:1]])
    goes = way(str(entry.get("direction", "")), scenario)
    return f"{entry.get('name')} ({about}{f', {goes}' if goes else ''})"


def _unit(population: str, count: object) -> str:
    """What is counted: one flow, two flows; a rate names its own unit."""
    if population == "rate":
        return ""
    return population.removesuffix("s") if count == 1 else population


def _repeat(groups: Sequence[Group], folder: Path) -> list[str]:
    """Commands that make the same runs, and the version of the engine that they take."""
    seeds = sorted({run.seed for one in groups for run in one.runs})
    listed = ",".join(map(str, seeds))
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        listed = f"{seeds[0]}..{seeds[-1]}"
    names = [_scenario_of(one.first, folder) for one in groups[:_MOST_COMMANDS]]
    if len(groups) == _MOST_COMMANDS:
        command = f"aqmlab compare {' '.join(names)} --seeds {listed}"
    else:
        command = f"aqmlab run {names[0]} --seeds {listed}"
    about = f"seeds {listed}; "
    if len(groups) > _MOST_COMMANDS:
        about += f"the same for each of the {len(groups)} configurations; "
    versions = look_up(groups[0].first.metadata, ("versions",)) or {}
    engines = {
        str(look_up(run.metadata, ("versions", "engine")) or "unknown")
        for one in groups
        for run in one.runs
    }
    program = f"aqmlab {versions.get('aqmlab', groups[0].first.summary.get('version', ''))}"
    return [command, f"{about}{program}, engine {', '.join(sorted(engines))}"]


def _scenario_of(run: Run, folder: Path) -> str:
    """The scenario of a run, as a shell names it from the folder of the report."""
    return shlex.quote(os.path.relpath(run.path.resolve() / "scenario.toml", folder))


def _picture(groups: Sequence[Group]) -> Picture | None:
    """How long responses take; without responses the delay of the queue; else nothing."""
    if len(groups) > MOST_CONFIGURATIONS:
        return None
    runs = [run for one in groups for run in one.runs]
    answered = any(
        row.get("count") for run in runs for row in run.summary.get("responses", {}).values()
    )
    name, draw = ("cdf", cdf) if answered else ("delay", delay)
    try:
        return drawn(name, draw, runs)
    except AqmlabError:  # the runs recorded nothing that it could show
        return None


def write_html(page: Brief, path: Path) -> None:
    """Writes the page for a browser, which also prints it on one sheet."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("aqmlab.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    style = environment.get_template("report.css").render(palette=PALETTE)
    made = environment.get_template("report.brief.html").render(page=page, style=style)
    write_text(path, made)


def write_pdf(page: Brief, path: Path) -> None:
    """Writes the page as A4. The picture takes the room that the words leave."""
    above, below = list(_above(page)), list(_below(page))
    left = _HEIGHT - 2 * _MARGIN - sum(strip.height for strip in (*above, *below))
    strips = [*above, *_picture_strip(page.picture, left), *below]
    write_bytes(path, pdf([sheet(strips, _HEIGHT, "", _WIDTH)], clean(page.title)))


def _above(page: Brief) -> Iterator[Strip]:
    """What stands above the picture."""
    soft = PALETTE["light"]["--soft"]
    yield from text(page.title, 21, bold=True, room=_ROOM, lines=2)
    yield from text(page.about, 12, colour=soft, room=_ROOM, lines=2)
    yield gap(10)
    for line in page.verdict:
        bold = not line.startswith(" ")
        yield from text(line.strip(), 12, bold=bold, room=_ROOM, lines=2)
    yield gap(10)


def _below(page: Brief) -> Iterator[Strip]:
    """What stands below it."""
    yield gap(8)
    yield from table({name: k for k, name in enumerate(page.names)}, page.numbers, _ROOM)
    yield from text("Setting", 13, bold=True, room=_ROOM)
    for name, value in page.setting:
        yield from text(f"{name}: {value}", 10.5, room=_ROOM, lines=3)
    yield gap(8)
    yield from text("To repeat it", 13, bold=True, room=_ROOM)
    command, about = page.repeat
    yield from text(command, 9, mono=True, room=_ROOM, lines=3)
    yield from text(about, 10.5, room=_ROOM, lines=2)


def _picture_strip(picture: Picture | None, room: float) -> Iterator[Strip]:
    """The picture, as large as the page allows."""
    if picture is None:
        yield Strip(20, label("No picture: see the long report.", 0, 12, 10.5))
        return
    wide, tall = size_of(picture.still)
    scale = min(_ROOM / wide, room / tall)
    yield Strip(
        scale * tall,
        f'<image width="{scale * wide:.1f}" height="{scale * tall:.1f}" '
        f'href="{address(picture.still)}"/>',
    )
