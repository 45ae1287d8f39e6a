"""``aqmlab compare``: runs beside each other."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from aqmlab._util.console import out, print_json, print_tsv, say, show
from aqmlab._util.extras import undrawable
from aqmlab._util.files import check_output_file
from aqmlab._util.lazy import numpy_on_one_thread
from aqmlab._util.markup import rendered
from aqmlab._util.places import RUNS_ROOT
from aqmlab._util.table import TableModel
from aqmlab.cli import tables as cli_tables
from aqmlab.cli.build import Opt
from aqmlab.cli.completion import assigned
from aqmlab.cli.options import (
    Format,
    Jobs,
    Json,
    Memory,
    MetricFiles,
    OwnMetrics,
    Plugins,
    Seed,
    Seeds,
    Sets,
    Tsv,
    Where,
    check_format,
    chosen_seeds,
)
from aqmlab.cli.planning import baselines, made, planned_runs
from aqmlab.errors import AqmlabError
from aqmlab.results import tables
from aqmlab.results.baseline import Baseline, scenarios_of
from aqmlab.results.compare import (
    Difference,
    Distance,
    compared_groups,
    differences,
    distances,
    link_differences,
    own_differences,
)
from aqmlab.results.conclusion import conclusion
from aqmlab.results.families import family_titles
from aqmlab.results.groups import Group
from aqmlab.results.labels import distinguish
from aqmlab.results.own_metrics import unmeasured
from aqmlab.results.run import Run
from aqmlab.results.settings import Answers, answers
from aqmlab.scenario.scenario import Scenario

__all__ = ["check_figure", "command"]


def command(
    sources: list[Path],
    varied: Annotated[
        list[str] | None,
        Opt(
            "FIELD=A,B,...",
            "Run each scenario once with each value. Commas inside quotes, brackets and braces "
            "belong to a value. May be repeated: the command runs every combination.",
            "--vary",
            complete=assigned,
        ),
    ] = None,
    *,
    baseline: str | None = None,
    metrics: OwnMetrics = None,  # noqa: ARG001 - its callback has defined them
    metric_files: MetricFiles = None,  # noqa: ARG001 - its callback has loaded them
    where: Where = None,
    overrides: Sets = None,
    seed: Seed = None,
    seeds: Seeds = None,
    every: bool = False,
    figure: Path | None = None,
    drawn: bool = True,
    root: Path = RUNS_ROOT,
    as_json: Json = False,
    as_tsv: Tsv = False,
    markup: Format = None,
    jobs: Jobs = None,
    memory: Memory = None,  # noqa: ARG001 - its callback has set it
    plugin: Plugins = None,
) -> None:
    """Compare runs: the same users under different queues.

    The command prints the main numbers and an answer. The answer says which queue to take, which
    users gain, and which users lose. A star marks what clearly differs: its 95 % interval does not
    contain zero. `aqmlab explain needs` prints which values are good or poor for users.

    Runs that differ only in their seed form a group. A table shows the mean of each group. A
    difference is the mean of the differences between runs with the same seed.

    Options:
        sources (RUNS_OR_SCENARIO): Scenario files, run directories, folders of run directories,
            patterns such as 'runs/bulk-*', or sweeps.
        baseline (LABEL): Label of the runs to compare with, such as fq-codel; default: drop-tail.
        every (--all): Show all numbers and all differences.
        figure (-o, --output FILE): Figure file (.svg, .png, .pdf, .html); default:
            runs/compare.svg.
        drawn (--figure/--no-figure): Draw the figure. This takes most of the time.
        root (--out FOLDER): Folder for new run directories.
    """
    check_format(as_json=as_json, as_tsv=as_tsv, markup=markup)
    lacking = undrawable() if drawn and figure is None else ""
    target = _target(figure, root, drawn=drawn and not lacking)
    wanted = chosen_seeds(seed, seeds)
    planned = planned_runs(sources, varied or [], overrides, wanted, where)
    if len(planned) < 2:
        raise AqmlabError("a comparison needs two runs at least; add one, or --vary FIELD=A,B")
    if figure is not None:
        _check_curves(figure, len(planned) // len(wanted or [None]))
    opened = made(planned, root, jobs, _command(sources, plugin, varied, overrides, wanted))
    numpy_on_one_thread()
    groups = compared_groups(opened)
    # Runs from folders come in the order of their names, which is nobody's choice.
    ordered = any(isinstance(entry, Scenario) for entry in planned)
    asked = baseline or baselines(sources, where)
    parts = _compared(groups, asked, target, ordered=ordered, every=every or as_json)
    answer = answers(groups, asked, ordered=ordered, always=True)
    found = distinguish(opened)
    _draw(parts)
    if as_json:
        print_json(_content(found, parts, answer))
        return
    if as_tsv:
        print_tsv(cli_tables.runs_tsv(found))
        return
    _warn_of_invalid(found)
    for line in unmeasured(found):
        say(f"warning: {line}")
    if markup is not None:
        out(rendered(markup, _tables(parts, every=every)))
        return
    show(*_tables(parts, every=every), "")
    _name_runs(found, every=every)
    if lacking:
        out(f"no figure: {lacking}")
    for part in parts if target is not None else ():
        out(f"no figure: {part.no_figure}" if part.figure is None else f"figure: {part.figure}")
    if not every:
        out("all numbers and differences: --all")
    _conclude(answer, found)


def _draw(parts: Sequence[_Part]) -> None:
    """Draws the figures that there are to be."""
    for part in parts:
        if part.figure is not None:
            from aqmlab.figures.files import save
            from aqmlab.figures.kinds.comparison import comparison

            save(comparison([run for group in part.groups for run in group.runs]), part.figure)


def _warn_of_invalid(found: Sequence[Run]) -> None:
    """Names live runs in which the machine did not keep its bounds."""
    for run in found:
        for reason in run.invalid:
            say(f"invalid: {run.label}: {reason}")


def _conclude(answer: Answers | None, found: Sequence[Run]) -> None:
    """What it all comes to, in the words of the page."""
    out("\nanswer")
    if answer is None:
        out("Nothing can be said: no response, call, film, game or transfer was measured.")
        return
    for line in answer.lines():
        out(line)
    folders = list(dict.fromkeys(str(run.path.parent) for run in found))
    places = folders if len(folders) * _FEW < len(found) else [str(run.path) for run in found]
    command = f"aqmlab report {shlex.join(places)} --brief -o answer.html"
    out("as a page: " + (command if len(command) < _WIDE else "aqmlab report RUNS --brief"))


def _command(
    sources: Sequence[Path],
    plugins: Sequence[Path] | None,
    varied: Sequence[str] | None,
    overrides: Sequence[str] | None,
    seeds: Sequence[int] | None,
) -> str:
    """What a shell runs to make the same runs."""
    words = ["aqmlab", "compare", *map(str, sources)]
    for name, values in (("--plugin", plugins), ("--set", overrides), ("--vary", varied)):
        words += [word for value in values or () for word in (name, str(value))]
    if seeds:
        several = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
        words += ["--seeds", f"{seeds[0]}..{seeds[-1]}" if several else ",".join(map(str, seeds))]
    return shlex.join(words)


def _target(figure: Path | None, root: Path, *, drawn: bool) -> Path | None:
    """Where the figure goes, checked before the work; None: there is to be none."""
    if not drawn:
        if figure is not None:
            raise AqmlabError("--output and --no-figure: found both; give one of them")
        return None
    target = figure or root / "compare.svg"
    check_figure(target)
    return target


def check_figure(figure: Path) -> None:
    """An error if no figure can be written there."""
    from aqmlab.figures.files import check_suffix

    check_suffix(figure)
    check_output_file(figure, "a figure")


def _check_curves(figure: Path, curves: int) -> None:
    """An error if a figure that was asked for cannot show all runs."""
    from aqmlab.figures.theme import MOST_SERIES

    if curves > MOST_SERIES:
        raise AqmlabError(f"{figure}: a figure shows at most {MOST_SERIES} runs, not {curves}")


_WIDE = 68
"""A longer command does not stand in a line of a terminal."""
_FEW = 4
"""More runs than these are named by their folder."""


def _name_runs(found: list[Run], *, every: bool) -> None:
    """Says where the runs are."""
    if every or len(found) <= _FEW:
        for run in found:
            out(f"run directory: {run.path} ({run.label})")
        return
    for folder, many in Counter(run.path.parent for run in found).items():
        out(f"run directories: {folder} ({many} runs)")


@dataclass(frozen=True)
class _Part:
    """The runs of one scenario and what becomes of them."""

    title: str
    """Name of the scenario."""
    groups: list[Group]
    differences: list[Difference]
    links: list[Difference]
    own: list[Difference]
    """In metrics of one's own."""
    distances: list[Distance]
    figure: Path | None
    no_figure: str
    """Why there is no figure."""

    @property
    def every_difference(self) -> list[Difference]:
        """Of users, and of links; files hold those of users."""
        return [*self.differences, *self.links, *self.own]

    @property
    def verdict(self) -> list[str]:
        """What the comparison comes to."""
        return conclusion(self.every_difference, self.groups)


def _compared(
    groups: list[Group], baseline: Baseline, target: Path | None, *, ordered: bool, every: bool
) -> list[_Part]:
    """The parts of a comparison: one for each scenario, with a figure of its own.

    Args:
        groups: What is compared.
        baseline: What was asked for.
        target: Where the figure goes.
        ordered: Whether somebody chose the order of the groups.
        every: Whether distances are shown.
    """
    scenarios = scenarios_of(groups)
    titles = family_titles([[group.first for group in own] for own in scenarios])
    compared = differences(groups, baseline, ordered=ordered)
    at_links = link_differences(groups, baseline, ordered=ordered)
    own_ones = own_differences(groups, baseline, ordered=ordered)
    apart = distances(groups, baseline, ordered=ordered) if every else []
    found = []
    for number, (title, own) in enumerate(zip(titles, scenarios, strict=True), 1):
        labels = {group.label for group in own}
        place = target
        if target is not None and len(scenarios) > 1:
            place = target.with_stem(f"{target.stem}-{number}")
        why = "" if place is None else _undrawable(own)
        found.append(
            _Part(
                title,
                own,
                [entry for entry in compared if entry.run in labels],
                [entry for entry in at_links if entry.run in labels],
                [entry for entry in own_ones if entry.run in labels],
                [entry for entry in apart if entry.run in labels],
                None if why else place,
                why,
            )
        )
    return found


def _undrawable(groups: Sequence[Group]) -> str:
    """Why there can be no figure of some runs; nothing if there can."""
    from aqmlab.figures.theme import MOST_SERIES

    if len(groups) > MOST_SERIES:
        return "it would show too many runs"
    runs = [run for group in groups for run in group.runs]
    recorded = any(run.has("responses") or run.has("queue") for run in runs)
    return "" if recorded else "measure.record is empty"


def _content(found: list[Run], parts: list[_Part], answer: Answers | None) -> dict[str, Any]:
    """A comparison as JSON."""
    figures = [str(part.figure) for part in parts if part.figure is not None]
    return {
        "runs": [
            {"label": run.label, "path": str(run.path), "summary": run.summary} for run in found
        ],
        "scenarios": [
            {"title": part.title, "labels": [group.label for group in part.groups]}
            for part in parts
        ],
        "differences": [
            entry.to_json() for part in parts for entry in (*part.differences, *part.own)
        ],
        "distances": [entry.to_json() for part in parts for entry in part.distances],
        "verdict": [line for part in parts for line in part.verdict],
        "answer": None if answer is None else answer.to_json(),
        "figure": figures[0] if figures else None,
        "figures": figures,
    }


def _tables(parts: Sequence[_Part], *, every: bool) -> list[str | TableModel]:
    """The few numbers of each scenario, or all of them."""
    found: list[str | TableModel] = []
    for part in parts:
        found += ["", part.title] if found else [part.title] * (len(parts) > 1)
        found += _tables_of(part, every=every)
    if len(parts) > 1:
        found += ["", f"These are runs of {len(parts)} scenarios: each is compared for itself."]
    return found


def _tables_of(part: _Part, *, every: bool) -> list[str | TableModel]:
    """The numbers of one scenario."""
    if every:
        found = cli_tables.apart(tables.comparison(part.groups))
        if part.differences or part.own:
            every_one = [*part.differences, *part.own]
            found += ["", *cli_tables.apart(tables.difference_tables(every_one))]
    else:
        found = cli_tables.apart(tables.key_numbers_table(part.groups, part.every_difference))
    if not part.differences and len(part.groups) > 1:
        names = ", ".join(group.label for group in part.groups)
        hint = f"none of them is drop-tail, and no --baseline LABEL names one of {names}"
        if part.links:
            hint = "no user's response, transfer or call ended in the measured span"
        if all(group.first.metadata.get("program") for group in part.groups):
            hint = "aqmlab sees the links, not what the program's users get"
        found += ["", f"nothing is compared: {hint}"]
    if every and part.distances:
        found += ["", *cli_tables.apart(tables.distances(part.distances))]
    return found
