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

__all__ = ["PAGE", "page"]

PAGE = Path("docs/cli.md")
"""Where the page is, from the project's folder."""
_HEAD = """# The command line

`python -m aqmlab.cli.reference` generates this page from the commands.

| exit status | when |
| --- | --- |
| 0 | the command did its work |
| 1 | a run, gate or packet script failed, a card got worse, or a report left out a damaged run |
| 2 | the input is wrong; for `run` and `check` also a plug-in that raises an exception |
| 130 | interrupted |

`aqmlab shell` ends with the status of its program.

Results go to standard output, everything else to standard error.

Tables are as wide as the terminal's window and never cut a number. In a pipe they are plain text of
any width. `--json` prints everything. `--tsv` prints a row for each run, or for each point of a
sweep. The heads of the columns are keys of [`summary.json`](metrics.md), and no number is rounded.
`KEY.low` and `KEY.high` are the ends of 95 % intervals. `--format` prints the tables
[for a paper](figures.md#tables-for-a-paper). `NO_COLOR` in the environment turns bold and colour
off. Control characters in titles and labels are printed as text such as `\\u001b`.

## Short paths of fields

You can leave out `topology.bottleneck.` before a field of the bottleneck: `--set rate=20Mbit/s`,
`--vary discipline=droptail-240,fq-codel`, `--vary 'discipline.target=1 ms..50 ms:log'`. A path is
short if it begins with a key of a link, such as `rate`, `delay`, `discipline`, `forward` or
`reverse`. Short paths work in options, sweeps, tables of a paper, and Python.

| topology | `discipline` is short for |
| --- | --- |
| `dumbbell`, `parking-lot` | `topology.bottleneck.discipline` |
| `network` with one link | `topology.links.LINK.discipline` |
| `network` with several links | an error, which lists the full paths |

The key of a [change](how-to/step.md) names one direction of a link. The end of a key is enough if
no other key has the same end: `forward.rate` for `bottleneck.forward.rate`.

## Places with runs

Commands that take `RUNS` open runs from any of these places:

| place | runs |
| --- | --- |
| a run directory | that run |
| a folder of run directories, a store | all of them |
| the folder of a sweep's results | the runs of the sweep, with the names of its points |
| a sweep file | the same, if the results are in `runs/sweeps/NAME` |
| a pattern in quotes, such as `'runs/bulk-*'` | the runs at all places that match the pattern |
"""
_FIGURE = "aqmlab plot "
"""How commands begin that draw."""
_SHARED = 4
"""How many commands take an option in the same words before the page lists it once, for all."""
_CARD = "aqmlab evaluate"
"""How commands begin that make report cards; what two of them take, the page lists once."""
_COMMON, _OF_CARDS = "Common options", "Options of report cards"


def page() -> str:
    """The page as Markdown: the options that many commands take first, then every command."""
    commands = [pair for name in names() for pair in _commands(load(name), f"aqmlab {name}")]
    # A figure counts as a command, the commands of another group count together.
    counted = {
        (name if name.startswith(_FIGURE) else " ".join(name.split()[:2]), row)
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
    cards = {row for row, count in of_cards.items() if count > 1} - shared
    head = [
        f"## {_COMMON}\n\nEach command lists the options that it takes.\n",
        _table(sorted(shared)),
        f"## Options of every figure\n\n{_table(sorted(drawn))}",
        f"## {_OF_CARDS}\n\n{_table(sorted(cards))}",
    ]
    groups = {_COMMON: shared, _OF_CARDS: cards}
    sections = (
        text for name, command in commands for text in _sections(command, name, groups, drawn)
    )
    return "\n".join([_HEAD, *head, *sections])


def _table(rows: Sequence[tuple[str, str]]) -> str:
    """Arguments and options as a table."""
    return (
        "\n".join(["| argument or option | meaning |", "| --- | --- |", *map(_line, rows)]) + "\n"
    )


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
    help_text = _prose(command.help)
    if name.startswith(_FIGURE):  # the page of the figures explains the kinds
        help_text = help_text.partition("\n\n")[0]
    yield f"## {name}\n\n{help_text}\n"
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
    if drawn <= set(rows):
        yield "[Options of every figure](#options-of-every-figure).\n"
    elif as_figures := ", ".join(f"`{row[0].split()[0]}`" for row in rows if row in drawn):
        yield f"[As for figures](#options-of-every-figure): {as_figures}.\n"


def _line(row: tuple[str, str]) -> str:
    """An argument or option as a row: its names and what it takes, what it is and its default."""
    names, meaning = row
    cells = (text.replace("|", r"\|") for text in (f"`{names}`", _prose(meaning)))
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
