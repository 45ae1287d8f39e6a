"""Options that have a new name: the old one is refused with the new one in the message."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuses some keyword arguments of a function.

    Args:
        new_names: the new name of each, by the old one.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def checked(*arguments: P.args, **options: P.kwargs) -> R:
            for old, new in new_names.items():
                if old in options:
                    raise TypeError(f"{function.__name__}(): {old} is called {new}")
            return function(*arguments, **options)

        return checked

    return decorate
