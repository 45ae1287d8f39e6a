"""``aqmlab plot``: figures of runs, one command per kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from aqmlab._util.console import out
from aqmlab._util.filekinds import file_kind, run_with
from aqmlab._util.lazy import numpy_on_one_thread
from aqmlab.cli.build import Opt, built
from aqmlab.cli.options import MetricFiles, Runs, Where, flag, named_as_options
from aqmlab.errors import AqmlabError

__all__ = ["COMMANDS", "command"]


class _Kinds(Mapping[str, Callable[..., None]]):
    """The commands by kind, made when they are asked for: what draws takes long to load."""

    def __getitem__(self, name: str) -> Callable[..., None]:
        from aqmlab.figures import kinds

        if name in kinds.names():
            return _drawn(name)
        if Path(name).exists():
            raise AqmlabError(f"{name}: {_advice(Path(name))}")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        from aqmlab.figures import kinds

        return iter(kinds.names())

    def __len__(self) -> int:
        return len(list(iter(self)))


def _advice(given: Path) -> str:
    """What to do with something that stands where a kind of figure should."""
    if given.is_file() and (kind := file_kind(given)):
        return f"{run_with(given, kind)}, then draw its runs"
    return f"a kind of figure comes first: `aqmlab plot cdf {given}`; `aqmlab plot` lists them"


def _list_kinds() -> None:
    """Prints the kinds."""
    from aqmlab.figures import kinds

    for name in kinds.names():
        found = kinds.kind(name)
        options = " ".join(f"--{flag(one)}" for one in found.options)
        out(f"{name:18} {found.summary}")
        if options:
            out(f"{'':18} {options}")


def command(*, wanted: bool = False) -> None:
    """Draw a figure of runs. Without KIND, list the kinds of figures.

    Options:
        wanted (--list): List the kinds and end.
    """
    if wanted or click.get_current_context().invoked_subcommand is None:
        _list_kinds()
        raise click.exceptions.Exit(0)


COMMANDS = _Kinds()


def _drawn(name: str) -> Callable[..., None]:
    """The command of a kind: its options, and where and how the figure is written."""
    numpy_on_one_thread()
    from aqmlab.figures import kinds

    kind = kinds.kind(name)

    def draw(
        drawn: Callable[..., Any],
        runs: Runs,
        *,
        output: Path | None = None,
        width: Literal["column", "page", "screen"] = "screen",
        theme: Literal["light", "dark"] = "light",
        where: Where = None,
        title: str | None = None,
        no_title: bool = False,
        x_label: str | None = None,
        y_label: str | None = None,
        names: list[str] | None = None,
        height: float | None = None,
        font: str = "sans-serif",
        font_size: float | None = None,
        metric_files: MetricFiles = None,  # noqa: ARG001 - its callback has loaded them
    ) -> None:
        """Draw a figure; its kind describes itself.

        Options:
            output (-o, --output FILE): Figure file (.svg, .png, .pdf, .html); default: KIND.svg.
            width: Width of the figure. column: 3.5 inches. page: 7.16 inches. screen: 900 pixels.
            theme: Background and colours.
            title (TEXT): Title, instead of the computed title.
            no_title (--no-title): Draw no title and no subtitle.
            x_label (TEXT): Label of the horizontal axis.
            y_label (TEXT): Label of the vertical axis.
            names (--name OLD=NEW): Show another name for a run, a class of traffic, or a value of a
                parameter, such as 'red (30,90)=RED'. May be repeated.
            height (N): Height of each plot in points, or in pixels with --width screen.
            font (NAME): Font of all text. The font must be installed.
            font_size (N): Size of text in points, or in pixels with --width screen. Headings are
                larger.
        """
        from aqmlab.figures.files import check_suffix, save
        from aqmlab.figures.theme import Look
        from aqmlab.results.configurations import select

        target = output or Path(f"{name}.svg")
        check_suffix(target)  # fail before the work, not after it
        if no_title and title:
            raise AqmlabError("--title and --no-title: found both; give one of them")
        with named_as_options([*kind.options, *_OWN]):
            look = Look(
                width,
                theme,
                title="" if no_title else title or None,
                x_label=x_label,
                y_label=y_label,
                names=dict(map(_renaming, names or [])),
                height=height,
                font=font,
                font_size=font_size,
            )
            found = select(runs, where) if where else runs
            chart = drawn(found, look=look)
        out(f"figure: {save(chart, target)}")

    _, _, options = (inspect.getdoc(draw) or "").partition("\n\n")
    draw.__doc__ = f"{kind.about.replace('``', '`')}\n\n{options}"
    return built(kind.draw, **{one: _opt(one) for one in kind.options})(draw)


_OWN = ("where", "x_label", "y_label", "name", "height", "font_size")
"""Arguments in Python that are options of every kind here."""


_VALUES = {
    "traffic": "NAME",
    "link": "NAME",
    "direction": "<forward|reverse>",
    "limit_s": "S",
    "window_s": "S",
    "flow": "N",
    "metric": "METRIC",
    "delay": "METRIC",
    "throughput": "METRIC",
    "utilization": "METRIC",
    "x": "PARAMETER",
    "y": "PARAMETER",
    "series": "PARAMETER",
    "facet": "PARAMETER",
}
"""What the options of kinds take, as the help names it; choices name themselves."""


def _renaming(text: str) -> tuple[str, str]:
    """An old and a new name."""
    old, equals, new = text.rpartition("=")
    if not equals or not old.strip() or not new.strip():
        raise AqmlabError(f"name: found {text!r}; expected OLD=NEW, such as fq-codel=FQ")
    return old.strip(), new.strip()


def _opt(name: str) -> Opt:
    """How an option of a kind is spelled."""
    takes = _VALUES.get(name, "")
    return Opt(
        takes,
        "",
        f"--{flag(name)}",
        parse=partial(_own_metric, name) if takes == "METRIC" else None,
    )


def _own_metric(name: str, text: str) -> str:
    """A metric's name; ``NAME = TEXT`` defines one of one's own."""
    if "=" not in text:
        return text
    from aqmlab.results import own_metrics  # few figures want one

    one = own_metrics.option(text, f"--{flag(name)}")
    own_metrics.define([one])
    return one.name
