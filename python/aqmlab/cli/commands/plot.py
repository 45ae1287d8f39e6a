"""``aqmlab plot``: figures of runs, one command per kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from aqmlab._util.console import out
from aqmlab.cli.options import Runs

__all__ = ["app"]


_Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Figure (.svg, .png, .pdf, .html); default: KIND.svg."),
]
_Width = Annotated[
    Literal["column", "page", "screen"],
    typer.Option(help="3.5 inches, 7.16 inches, or 900 pixels wide."),
]
_Theme = Annotated[Literal["light", "dark"], typer.Option(help="Colours.")]


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


def _list_kinds() -> None:
    """Prints the kinds."""
    from aqmlab.figures import kinds

    for name in kinds.names():
        found = kinds.kind(name)
        options = " ".join(f"--{_flag(option)}" for option in found.options)
        out(f"{name:18} {found.summary}")
        if options:
            out(f"{'':18} {options}")


def _flag(option: str) -> str:
    """What an option is called on the command line: units of times are part of its meaning."""
    return {"traffic": "class"}.get(option, option.removesuffix("_s").replace("_", "-"))


app = typer.Typer(
    cls=_Group, invoke_without_command=True, help="Draw runs: a command per kind of figure."
)


@app.callback()
def _plot(
    context: typer.Context,
    wanted: Annotated[bool, typer.Option("--list", help="List the kinds and end.")] = False,
) -> None:
    """Draw runs: a command per kind of figure; without one, list the kinds."""
    if wanted or context.invoked_subcommand is None:
        _list_kinds()
        raise typer.Exit


def _command(name: str) -> Any:  # noqa: ANN401 - typer's own type
    """The command of a kind: its options, and where and how the figure is written."""
    from aqmlab.figures import kinds

    kind = kinds.kind(name)

    def draw(
        runs: Runs,
        output: _Output = None,
        width: _Width = "screen",
        theme: _Theme = "light",
        **options: Any,  # noqa: ANN401 - checked by typer against the kind's types
    ) -> None:
        from aqmlab.figures.files import check_suffix, save
        from aqmlab.figures.theme import Look

        target = output or Path(f"{name}.svg")
        check_suffix(target)  # fail before the work, not after it
        chart = kind.draw(runs, look=Look(width, theme), **options)
        out(f"figure: {save(chart, target)}")

    return _with_options(draw, kind)


def _with_options(draw: Callable[..., None], kind: Any) -> Any:  # noqa: ANN401 - typer's own type
    """A function as a command that has the kind's options too."""
    own = inspect.signature(draw, eval_str=True).parameters
    more = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=Annotated[
                option.type, typer.Option(f"--{_flag(option.name)}", help=option.help)
            ],
        )
        for option in kind.options.values()
    ]
    given = [one for one in own.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    signature = inspect.Signature([*given, *more])
    draw.__signature__ = signature  # type: ignore[attr-defined]  # what typer reads
    draw.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    draw.__doc__ = kind.about
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(kind.name)(draw)
    return typer.main.get_command(single)
