"""Values of arguments that need no library: texts, paths, choices and whole numbers.

typer has pydantic coerce every value, whose import takes as long as typer's own. What is plain is
made here, to the same value; everything else, and all that is wrong, is left to typer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

__all__ = ["ease"]


_MOST_DIGITS = 15


def ease(command: Any) -> None:  # noqa: ANN401 - click's type
    """Lets a command, or a group of commands, take what is plain without typer's help."""
    if "get_params" in vars(command):
        return  # it does so already
    of_click = command.get_params

    def get_params(context: Any) -> list[Any]:  # noqa: ANN401 - click's type
        found: list[Any] = of_click(context)
        for parameter in found:
            _ease(parameter)
        return found

    command.get_params = get_params
    if hasattr(command, "get_command"):
        _ease_group(command)


def _ease_group(group: Any) -> None:  # noqa: ANN401 - click's type
    """Does so for the commands of a group, each when it is asked for: it may be loaded then."""
    of_click = group.get_command

    def get_command(context: Any, name: str) -> Any:  # noqa: ANN401 - click's types
        found = of_click(context, name)
        if found is not None:
            ease(found)
        return found

    group.get_command = get_command


def _ease(parameter: Any) -> None:  # noqa: ANN401 - click's type
    """Does so for a parameter. A typer without these names coerces everything itself."""
    of_typer = getattr(parameter, "get_runtime_param", None)
    if of_typer is None or isinstance(of_typer, _Eased):
        return
    if hasattr(parameter, "type_descriptor"):
        parameter.get_runtime_param = _Eased(of_typer)


class _Eased:
    """What coerces the values of a parameter."""

    def __init__(self, of_typer: Callable[[], Any]) -> None:
        self._of_typer = of_typer

    def __call__(self) -> _Eased:
        """What typer asks the parameter for."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401 - click's types
        """The value that the command gets."""
        described = param.type_descriptor
        found = _plain(value, described.annotation, described.parameter_info)
        if found is None and value is not None:
            found = self._by_typer(value, param, ctx)
        return found if value is not None or not _takes_many(param) else ()

    def _by_typer(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401 - click's types
        """The value as typer makes it; says what a number should be."""
        try:
            return self._of_typer().coerce(value, param=param, ctx=ctx)
        except typer.BadParameter:
            wanted = _number(param.type_descriptor)
            if not wanted:
                raise
            given = value if isinstance(value, str) else " ".join(map(str, value))
            raise typer.BadParameter(
                f"found {given[:40] or 'nothing'}; expected {wanted}", ctx=ctx, param=param
            ) from None


def _number(described: Any) -> str:  # noqa: ANN401 - typer's type
    """What a number must be; empty: it is no number."""
    kind = next(iter(get_args(described.annotation)), described.annotation)
    if kind not in (int, float):
        return ""
    ends = (("at least", described.parameter_info.min), ("at most", described.parameter_info.max))
    bounds = [f"{words} {end:,.15g}" for words, end in ends if end is not None]
    name = "a whole number" if kind is int else "a number"
    return ", ".join([name, *([" and ".join(bounds)] if bounds else [])])


def _takes_many(param: Any) -> bool:  # noqa: ANN401 - click's type
    """Whether a parameter is a list."""
    return bool(param.multiple or param.nargs == -1)


def _plain(value: Any, annotation: Any, about: Any) -> Any:  # noqa: ANN401 - typer's types
    """The value as the annotation has it; None where it takes more than a look."""
    if about.parser is not None:
        return None
    if get_origin(annotation) is list and isinstance(value, list | tuple):
        [inner] = get_args(annotation)
        found = [_plain(one, inner, about) for one in value]
        return None if None in found else found
    if annotation is Path and isinstance(value, str | Path):
        return _path(str(value), about)
    if isinstance(value, str):
        return _of_text(value, annotation, about)
    return value if type(value) is annotation is not float else None


def _of_text(text: str, annotation: Any, about: Any) -> Any:  # noqa: ANN401 - typer's types
    """The value of a text, by the type of its parameter."""
    if annotation is str:
        return text
    if annotation is int:
        is_whole = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        return int(text) if is_whole and about.min is about.max is None else None
    if get_origin(annotation) is Literal:
        return text if text in get_args(annotation) else None
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next((member for member in annotation if member.value == text), None)
    return None


def _path(text: str, about: Any) -> Path | None:  # noqa: ANN401 - typer's type
    """A path of which nothing is wanted but that it can be read if it is there."""
    wants = about.exists or about.resolve_path or about.writable or about.path_type is not None
    if wants or not (about.file_okay and about.dir_okay) or "\0" in text:
        return None
    path = Path(text)
    return path if not path.exists() or os.access(path, os.R_OK) else None
