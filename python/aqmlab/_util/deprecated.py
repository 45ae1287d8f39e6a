"""Names that have changed: the old one works for one more minor version, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["OLD_NAMES", "old_names"]


OLD_NAMES: dict[str, str] = {}
"""The last minor version that has each old name, by the dotted name; a test reads it."""


def old_names(module: str, new_names: Mapping[str, str], last: str) -> Callable[[str], Any]:
    """What the ``__getattr__`` of a module asks for names that have changed.

    Args:
        module: its dotted name.
        new_names: the new name of each, by the old one.
        last: the last minor version that has the old ones, such as ``0.4``.
    """
    OLD_NAMES.update({f"{module}.{old}": last for old in new_names})

    def found(name: str) -> Any:  # noqa: ANN401 - whatever the module has
        new = new_names.get(name)
        if new is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is called {module}.{new}; the old name goes after {last}",
            DeprecationWarning,
            stacklevel=3,  # past the module, where the old name stands
        )
        return getattr(importlib.import_module(module), new)

    return found
