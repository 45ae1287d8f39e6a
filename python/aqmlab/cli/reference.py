"""The reference page of the command line: ``python -m aqmlab.cli.reference`` writes docs/cli.md."""

from __future__ import annotations

import inspect
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from aqmlab._util.files import write_text
from aqmlab.cli.build import Either, Group
from aqmlab.cli.loading import load, names
from aqmlab.results.metric_groups import listed
from aqmlab.results.metrics import GROUPED

__all__ = ["PAGE", "page"]

PAGE = Path("docs/cli.md")
"""Where the page is, from the project's folder."""
_HEAD = """# The command line

`python -m aqmlab.cli.reference` generates this page from the commands.

| exit status | meaning |
| --- | --- |
| 0 | The command did its work. |
| 1 | A run failed, a test of a queue or congestion control failed, or a run directory is damaged. |
| 2 | The input is wrong, or a plug-in raises an exception (`run` and `check`). |
| 130 | The user interrupted the command. |

`aqmlab shell` ends with the exit status of its program.

Commands print results to standard output, and progress, warnings and errors to standard error.

On a terminal, tables fit the width of the window: the command can shorten long names, but never
numbers. `--json` prints all values. `--tsv` prints a row for each run, or for each point of a
sweep. Its column heads are keys of [`summary.json`](metrics.md). `KEY.low` and `KEY.high` are the
ends of 95 % intervals. `--format` prints [tables for a paper](figures.md#tables-for-a-paper). If
the environment variable `NO_COLOR` is set, commands print no bold text or colours.

## Short paths of fields

You can leave out `topology.bottleneck.` before a field of the bottleneck: `--set rate=20Mbit/s`,
`--vary discipline=droptail-240,fq-codel`, `--vary 'discipline.target=1 ms..50 ms:log'`. In a
topology of kind `network` with one link, the short path means `topology.links.LINK`. With several
links, this kind does not allow short paths. Sweep files and Python also accept short paths.

The key of a [change during a run](how-to/step.md) includes the direction of the link:
`bottleneck.forward.rate`. If no other key has the same end, you can leave out the first parts:
`forward.rate`.

## Places with runs

`RUNS` can be any of these places:

| place | runs |
| --- | --- |
| a run directory | this run |
| a folder of run directories, or a store | all runs in the folder |
| the folder of a sweep's results | all runs of the sweep |
| a sweep file | all runs of the sweep, if the results are in `runs/sweeps/NAME` |
| a pattern in quotes, such as `'runs/bulk-*'` | all runs at the places that match the pattern |
"""
_FIGURE = "aqmlab plot "
"""How commands begin that draw."""
_SHARED = 3
"""How many commands take an option in the same words before the page lists it once, for all."""
_CARD = "aqmlab evaluate"
"""How commands begin that make report cards; what two of them take, the page lists once."""
_SHORT_NAMES = f"Short names of metrics, by what they measure: {listed(GROUPED)}."
"""A sentence of the help; the page links to another page that says it."""
_BAR = r"\|"
"""A bar inside a cell of a table."""
_COMMON, _OF_CARDS = "Common options", "Options of report cards"
_LOADED = (
    "A direction of a link is *loaded* if its utilization is above 20 %, or if it drops or marks "
    "packets."
)
_CARDS = "[Report cards](evaluate.md) explains gates, findings, tiers and baselines."


def page() -> str:
    """The page as Markdown: the options that many commands take first, then every command."""
    commands = [pair for name in names() for pair in _commands(load(name), f"aqmlab {name}")]
    # The commands of a group count together.
    counted = {
        (" ".join(name.split()[:2]), row)
        for name, command in commands
        for row in _rows(name, command)
    }
    counts = Counter(row for _, row in counted)
    figures = [set(_rows(name, command)) for name, command in commands if name.startswith(_FIGURE)]
    drawn = set.intersection(*figures)
    shared = {row for row, count in counts.items() if count >= _SHARED} - drawn
    of_cards = Counter(
        row for name, command in commands if name.startswith(_CARD) for row in _rows(name, command)
    )
    cards = {row for row, count in of_cards.items() if count > 1} - shared - drawn
    head = [
        f"## {_COMMON}\n",
        _table(sorted(shared)),
        f"## Options of every figure\n\n{_table(sorted(drawn))}",
        f"## {_OF_CARDS}\n\n{_CARDS}\n\n{_table(sorted(cards))}",
    ]
    groups = {_COMMON: shared, _OF_CARDS: cards}
    sections: list[str] = []
    plots = [pair for pair in commands if pair[0].startswith(_FIGURE)]
    for name, command in commands:
        if not name.startswith(_FIGURE):
            sections += _sections(command, name, groups, drawn)
        elif name == plots[0][0]:
            sections += _figures(plots, drawn)
    return "\n".join([_HEAD, *head, *sections])


def _table(rows: Sequence[tuple[str, str]]) -> str:
    """Arguments and options as a table."""
    return "\n".join(["| argument | meaning |", "| --- | --- |", *map(_line, rows)]) + "\n"


def _figures(plots: Sequence[tuple[str, Any]], drawn: set[tuple[str, str]]) -> Iterator[str]:
    """The commands that draw, in one section: their kinds, and every option that is not common."""
    yield "## aqmlab plot\n\nThis command draws a figure of runs: `aqmlab plot KIND RUNS`.\n"
    kinds, takers = [], dict[tuple[str, str], list[str]]()
    for name, command in plots:
        own = [row for row in _rows(name, command) if row not in drawn]
        kind, (what, *_) = name.removeprefix(_FIGURE), _prose(command.help).split("\n\n")
        kinds.append((kind, f"{what} | {', '.join(f'`{row[0].split()[0]}`' for row in own)}"))
        for row in own:
            takers.setdefault(row, []).append(kind)
    yield (
        "\n".join(
            ["| kind | figure | own options |", "| --- | --- | --- |"]
            + [f"| `{kind}` | {cells} |" for kind, cells in kinds]
        )
        + "\n"
    )
    others = "[options of every figure](#options-of-every-figure)"
    yield f"{_LOADED} Every kind also takes the {others}.\n"
    names = Counter(row[0].split()[0] for row in takers)
    rows = [
        (f"`{name}`" + _kinds(some if names[name.split()[0]] > 1 else ()), meaning)
        for (name, meaning), some in sorted(takers.items(), key=_by_option)
    ]
    yield (
        "\n".join(
            ["| option | meaning |", "| --- | --- |"]
            + [
                f"| {name.replace('|', _BAR)} | {_prose(meaning).replace('|', _BAR)} |"
                for name, meaning in rows
            ]
        )
        + "\n"
    )


def _by_option(pair: tuple[tuple[str, str], list[str]]) -> tuple[str, list[str]]:
    """The order of the options of figures: by name, then by the kinds that take them."""
    (name, _), some = pair
    return name.split()[0], some


def _kinds(some: Sequence[str]) -> str:
    """The kinds of figures that take an option in this meaning, behind its name."""
    return f" ({', '.join(some)})" if some else ""


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - click's type
    """A command, or the commands of a group, with their names."""
    if not isinstance(command, Group):
        yield name, command
    if not isinstance(command, Group | Either):
        return
    context = click.Context(command)
    for key in sorted(command.list_commands(context)):
        yield from _commands(command.get_command(context, key), f"{name} {key}")


def _rows(name: str, command: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - click's type
    """What each argument and option is called, and what it means."""
    context = click.Context(command, info_name=name)
    records = (parameter.get_help_record(context) for parameter in command.params)
    return [record for record in records if record is not None]


def _sections(
    command: Any,  # noqa: ANN401 - click's type
    name: str,
    groups: Mapping[str, set[tuple[str, str]]],
    drawn: set[tuple[str, str]],
) -> Iterator[str]:
    """A command as a section."""
    yield f"## {name}\n\n{_prose(command.help)}\n"
    rows = _rows(name, command)
    if not name.startswith(_CARD):
        groups = {_COMMON: groups[_COMMON]}
    own = [row for row in rows if row not in drawn.union(*groups.values())]
    if own:
        yield _table(own)
    for title, some in groups.items():
        listed = ", ".join(f"`{row[0].split()[0].rstrip(',')}`" for row in rows if row in some)
        if listed:
            yield f"[{title}](#{title.lower().replace(' ', '-')}): {listed}.\n"
    if as_figures := ", ".join(f"`{row[0].split()[0]}`" for row in rows if row in drawn):
        yield f"[Options of figures](#options-of-every-figure): {as_figures}.\n"


def _line(row: tuple[str, str]) -> str:
    """An argument or option as a row: its names and what it takes, what it is and its default."""
    names, meaning = row
    meaning = meaning.replace(_SHORT_NAMES, "[Sweeps](sweeps.md) lists short names of metrics.")
    cells = (text.replace("|", _BAR) for text in (f"`{names}`", _prose(meaning)))
    return f"| {' | '.join(cells)} |"


def _prose(text: str | None) -> str:
    """The paragraphs of a docstring, each in a line; what is indented is a block of commands."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(map(_paragraph, paragraphs))


def _paragraph(text: str) -> str:
    """A paragraph in a line, or a block of commands."""
    if not text.startswith(" "):
        return " ".join(text.split())
    return f"```text\n{textwrap.dedent(text)}\n```"


if __name__ == "__main__":
    write_text(PAGE, page())
