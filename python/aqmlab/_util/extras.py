"""Libraries that only some users need: where one is missing, one line says how to install it."""

from __future__ import annotations

import importlib
from types import ModuleType

from aqmlab.errors import AqmlabError

__all__ = ["needed"]


def needed(library: str, what: str, requirement: str) -> ModuleType:
    """A library that an extra of the package installs.

    Args:
        library: its name.
        what: what needs it, in the plural.
        requirement: what installs it, as in the extras of ``pyproject.toml``.

    Raises:
        AqmlabError: it is not installed.
    """
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise AqmlabError(
            f"{what} need {library}, which is not installed: pip install '{requirement}'"
        ) from None
