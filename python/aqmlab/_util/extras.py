"""Libraries that only some users need: where one is missing, one line says how to install it."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from aqmlab.errors import AqmlabError

__all__ = ["DRAWING", "needed", "undrawable"]

DRAWING = {
    "jinja2": "jinja2>=3.1",
    "pypdf": "pypdf>=5.0",
    "vl_convert": "vl-convert-python>=1.8",
}
"""Libraries that draw figures and make pages, and what installs them: the extra ``figures``."""


def undrawable() -> str:
    """Why there can be no figures and no pages: what is not installed. Nothing if all is."""
    lacking = [name for name in DRAWING if importlib.util.find_spec(name) is None]
    if not lacking:
        return ""
    verb = "which are" if len(lacking) > 1 else "which is"
    install = " ".join(f"'{DRAWING[name]}'" for name in lacking)
    names = ", ".join(lacking)
    return f"figures and pages need {names}, {verb} not installed: pip install {install}"


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
