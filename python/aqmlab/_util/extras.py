"""Libraries that only some users need: where one is missing, one line names the extra."""

from __future__ import annotations

import importlib
from types import ModuleType

from aqmlab.errors import AqmlabError

__all__ = ["needed"]


def needed(library: str, what: str, extra: str) -> ModuleType:
    """A library that an extra of the package installs.

    Args:
        library: its name.
        what: what needs it, in the plural.
        extra: the extra.

    Raises:
        AqmlabError: it is not installed.
    """
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise AqmlabError(
            f"{what} need {library}, which is not installed: pip install 'aqmlab[{extra}]'"
        ) from None
