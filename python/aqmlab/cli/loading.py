"""Commands that are imported when they are called: figures and tables cost half a second.

A command's line in the help is read from its source, which is not run for that.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from importlib.machinery import FileFinder
from pathlib import Path
from typing import Any

import click

from aqmlab.cli import commands
from aqmlab.cli.build import Either, Group, made
from aqmlab.cli.interrupts import leaving_at_once

__all__ = ["CommandGroup", "load", "names", "shortened", "summary"]


def names() -> list[str]:
    """The commands: the modules of :mod:`aqmlab.cli.commands`."""
    return sorted(found.name for found in pkgutil.iter_modules(commands.__path__))


def load(name: str) -> click.Command:
    """A command or group of commands, whose module is imported."""
    with leaving_at_once():
        module = importlib.import_module(f"{commands.__name__}.{name}")
    if hasattr(module, "OLD"):
        return Either(name, module.COMMANDS, module.command, module.OLD)
    if hasattr(module, "COMMANDS"):
        return Group(name, module.COMMANDS, module.command)
    return made(module.command, name, context_settings=getattr(module, "CONTEXT", None))


class CommandGroup(click.Group):
    """All commands; each is imported when it is called or completed."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - click's settings
        super().__init__(commands=[_Unloaded(name) for name in names()], **settings)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that the arguments begin with; a group without a command shows its help."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is None:
            return name, command, rest
        loaded = load(str(command.name))
        if isinstance(loaded, Either) and rest and rest[0] in loaded.functions:
            return f"{name} {rest[0]}", loaded.get_command(ctx, rest[0]), rest[1:]
        if not rest and loaded.no_args_is_help and not ctx.resilient_parsing:
            rest = ["--help"]
        return name, loaded, rest


class _Unloaded(click.Command):
    """The name of a command, and what it is in a line."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first sentence of its docstring, as far as there is room for it."""
        return shortened(summary(str(self.name)), limit)


def summary(name: str) -> str:
    """The first sentence of a command's docstring."""
    [folder] = [
        found.module_finder.path
        for found in pkgutil.iter_modules(commands.__path__)
        if found.name == name and isinstance(found.module_finder, FileFinder)
    ]
    tree = ast.parse(Path(folder, f"{name}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "command":
            return _first_sentence(ast.get_docstring(node) or "")
    return ""


def _first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence, in one line."""
    paragraph = " ".join(text.split("\n\n", 1)[0].split())
    sentence, stop, _ = paragraph.partition(". ")
    return (sentence + stop).strip()


def shortened(text: str, width: int) -> str:
    """A text of at most so many characters: what is left out is whole words."""
    if len(text) <= width:
        return text
    return text[: width - 3].rpartition(" ")[0].rstrip(" ,;:.") + "..."
