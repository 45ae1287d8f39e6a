"""``aqmlab plot``: figures of runs, one command per kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from aqmlab._util.console import out
from aqmlab._util.filekinds import file_kind, run_with
from aqmlab._util.lazy import numpy_on_one_thread
from aqmlab.cli.options import MetricFiles, Runs, Where, described, flag, named_as_options, option
from aqmlab.cli.usage import name_plainly
from aqmlab.errors import AqmlabError

__all__ = ["app"]


class _Kinds(MutableMapping[str, Any]):
    """The commands by kind, made when they are asked for: what draws takes long to load."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's own type
        from aqmlab.figures import kinds

        if name not in self._made:
            if name not in kinds.names():
                raise KeyError(name)
            self._made[name] = _command(name)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:  # noqa: ANN401 - typer's own type
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Any:  # noqa: ANN401 - an iterator of names
        from aqmlab.figures import kinds

        return iter(kinds.names())

    def __len__(self) -> int:
        return len(list(iter(self)))


class _Group(TyperGroup):
    """The kinds of figures as commands."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(*arguments, **options)
        self.commands = _Kinds()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - click's types
        """The kind that the arguments begin with; says what a file or a folder lacks."""
        given = Path(args[0])
        if args[0] not in self.commands and given.exists():
            raise AqmlabError(f"{given}: {_advice(given)}")
        return super().resolve_command(ctx, args)


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


app = typer.Typer(
    cls=_Group, invoke_without_command=True, help="Draw runs: a command per kind of figure."
)


@app.callback()
@described
def _plot(
    context: typer.Context,
    *,
    wanted: bool = False,
) -> None:
    """Draw a figure of runs; without a kind, list the kinds.

    Options:
        wanted (--list): List the kinds and end.
    """
    if wanted or context.invoked_subcommand is None:
        _list_kinds()
        raise typer.Exit


def _command(name: str) -> Any:  # noqa: ANN401 - typer's own type
    """The command of a kind: its options, and where and how the figure is written."""
    numpy_on_one_thread()
    from aqmlab.figures import kinds

    kind = kinds.kind(name)

    @described
    def draw(
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
        **options: Any,  # noqa: ANN401 - checked by typer against the kind's types
    ) -> None:
        """Draw a figure; its kind describes itself.

        Options:
            output (-o, --output FILE): Figure (.svg, .png, .pdf, .html); default: KIND.svg.
            width: 3.5 inches, 7.16 inches, or 900 pixels wide.
            theme: Background and colours.
            title (TEXT): Title in place of the computed title.
            no_title (--no-title): Draw no title and no subtitle.
            x_label (TEXT): Name of the horizontal axis.
            y_label (TEXT): Name of the vertical axis.
            names (--name OLD=NEW): Another name for a run, a class of traffic, or a value of a
                parameter, such as 'red (30,90)=RED'. May be repeated.
            height (N): Height of a plot in points; on a screen in pixels.
            font (NAME): Font of all text; it must be installed.
            font_size (N): Size of small text in points; on a screen in pixels.
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
            options |= _with_own_metrics(options)
            found = select(runs, where) if where else runs
            chart = kind.draw(found, look=look, **options)
        out(f"figure: {save(chart, target)}")

    return _with_options(draw, kind)


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


def _with_own_metrics(options: Mapping[str, Any]) -> dict[str, str]:
    """The options that define a metric of one's own, ``NAME = TEXT``, with its name instead."""
    found = {}
    for name, value in options.items():
        if _VALUES.get(name) == "METRIC" and value is not None and "=" in value:
            from aqmlab.results import own_metrics  # few figures want one

            one = own_metrics.option(value, f"--{flag(name)}")
            own_metrics.define([one])
            found[name] = one.name
    return found


def _with_options(draw: Callable[..., None], kind: Any) -> Any:  # noqa: ANN401 - typer's own type
    """A function as a command that has the kind's options too."""
    own = inspect.signature(draw, eval_str=True).parameters
    more = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=Annotated[
                one.type,
                option(
                    _VALUES.get(one.name, ""),
                    one.help,
                    f"--{flag(one.name)}",
                    show_default="default: " not in one.help,
                ),
            ],
        )
        for one in kind.options.values()
    ]
    given = [one for one in own.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    signature = inspect.Signature([*given, *more])
    draw.__signature__ = signature  # type: ignore[attr-defined]  # what typer reads
    draw.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    draw.__doc__ = kind.about.replace("``", "`")
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(kind.name)(draw)
    command = typer.main.get_command(single)
    name_plainly(command)
    return command
