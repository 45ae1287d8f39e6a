"""The reference page of the command line: ``python -m aqmlab.cli.reference`` writes docs/cli.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from aqmlab._util.files import write_text
from aqmlab.cli.loading import load, names

__all__ = ["PAGE", "page"]


PAGE = Path("docs/cli.md")
"""Where the page is, from the project's folder."""
_HEAD = """# The command line

Every command with its arguments and options. The page is generated from the commands themselves by
`python -m aqmlab.cli.reference`; a test holds it current.

Exit status: 0 done, 1 a run failed, or a damaged one is left out of a report, 2 the input is wrong,
130 interrupted. What was asked for goes to standard output, everything else to standard error.
`-o`, `--output` names a file, `--out` a folder; `--seed N` is one seed, `--seeds A..B` are several.

Tables are as wide as the terminal's window and never cut a number: one that is too wide is turned
(a row for each metric) or split into blocks of columns. In a pipe they are plain text of any width.
`--tsv` prints tab-separated values instead: a row for each run (of a sweep: for each point), the
keys of [`summary.json`](metrics.md) as heads, nothing rounded; of a sweep the means, with the ends
of their 95 % intervals as `KEY.low` and `KEY.high`. `--json` prints everything. `--format` prints
the tables themselves [for a paper](figures.md#tables-for-a-paper). Progress is shown by bars on a
terminal, elsewhere by a line on standard error every 10 s. Where the environment has `NO_COLOR`,
nothing is bold or coloured. Control characters in titles, labels and files are printed
as text such as `\\u001b`.

## Short paths of fields

A field of the bottleneck needs no `topology.bottleneck.` before it: `--set rate=20Mbit/s`,
`--vary discipline=droptail-240,fq-codel`, `--vary 'discipline.target=1 ms..50 ms:log'`. A path is
short if it begins with a key of a link, such as `rate`, `delay`, `discipline`, `forward` or
`reverse`. Short paths work in every option that takes a field, in the axes and settings of a sweep,
in the tables of a paper and in `Scenario.with_overrides`.

| topology | `discipline` is short for |
| --- | --- |
| `dumbbell`, `parking-lot` | `topology.bottleneck.discipline` |
| `network` with one link | `topology.links.LINK.discipline` |
| `network` with several links | an error, which lists the full paths |

The key of a [change](how-to/step.md) names one direction of a link. There the end of a key is
enough if no other key has the same end: `forward.rate` for `bottleneck.forward.rate`.

## Places with runs

Commands that take `RUNS` open runs from any of these places:

| place | runs |
| --- | --- |
| a run directory | that run |
| a folder of run directories, a store | all of them |
| the folder of a sweep's results | the runs of the sweep, by the names of its points |
| a sweep file | the same, if the results are in `runs/sweeps/NAME` |
| a pattern in quotes, such as `'runs/bulk-*'` | those at all places that fit it |
"""


def page() -> str:
    """The page as Markdown."""
    return "\n".join(
        [_HEAD, *(text for name in names() for text in _sections(load(name), f"aqmlab {name}"))]
    )


def _sections(command: Any, name: str) -> Iterator[str]:  # noqa: ANN401 - click's type
    """A command, or the commands of a group, each as a section."""
    inner = getattr(command, "commands", None)
    if inner is not None:
        for key in sorted(inner):
            yield from _sections(inner[key], f"{name} {key}")
        return
    context = typer.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## {name}\n\n```text\n{name} {usage}\n```\n\n{_prose(command.help)}\n"
    records = (parameter.get_help_record(context) for parameter in command.params)
    rows = [_row(*record) for record in records if record is not None]
    if rows:
        yield "\n".join(["| argument or option | meaning |", "| --- | --- |", *rows]) + "\n"


def _row(names: str, meaning: str) -> str:
    """An argument or option as a row: its names and what it takes, what it is and its default."""
    cells = (text.replace("|", r"\|") for text in (f"`{names}`", _prose(meaning)))
    return f"| {' | '.join(cells)} |"


def _prose(text: str | None) -> str:
    """The paragraphs of a docstring, each in a line."""
    paragraphs = (text or "").strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


if __name__ == "__main__":
    write_text(PAGE, page())
