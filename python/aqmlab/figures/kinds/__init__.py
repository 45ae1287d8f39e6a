"""The kinds of figures: a module each, whose name is the kind's.

A module holds a function of its own name, which draws runs: its first argument are the runs, its
other arguments, except ``look``, are the kind's options, and its docstring says what all of them
are. Every module in this folder is a kind, and `aqmlab plot` offers it; there is no other list.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError

__all__ = ["FigureKind", "Option", "kind", "names"]


_ARGUMENT = re.compile(r"^ {8}(\w+): (.+(?:\n {12}.+)*)$", re.MULTILINE)


@dataclass(frozen=True)
class Option:
    """What can be chosen of a kind."""

    name: str
    type: Any
    default: Any
    help: str


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure."""

    name: str
    """As on the command line."""
    draw: Any
    """The function that draws it: of runs, the options by name, and ``look``."""

    @property
    def summary(self) -> str:
        """What it draws, in a line."""
        return (inspect.getdoc(self.draw) or "").partition("\n")[0]

    @property
    def about(self) -> str:
        """What it draws, in full."""
        return (inspect.getdoc(self.draw) or "").partition("\n\nArgs:")[0]

    @property
    def options(self) -> Mapping[str, Option]:
        """What can be chosen, by name."""
        types = get_type_hints(self.draw)
        found = _ARGUMENT.findall(self.draw.__doc__ or "")
        words = {name: " ".join(text.split()) for name, text in found}
        return {
            name: Option(name, types[name], parameter.default, words.get(name, ""))
            for name, parameter in list(inspect.signature(self.draw).parameters.items())[1:]
            if name != "look"
        }


def names() -> list[str]:
    """The kinds, as the command line calls them."""
    return sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(__path__))


def kind(name: str) -> FigureKind:
    """A kind by its name.

    Raises:
        AqmlabError: there is none of this name.
    """
    if name not in names():
        raise AqmlabError(
            f"there is no figure {name}{nearest(name, names())}; possible are {', '.join(names())}"
        )
    module = name.replace("-", "_")
    found = importlib.import_module(f"{__name__}.{module}")
    return FigureKind(name, getattr(found, module))
