"""Modules that plug-ins import from their own folders: each run has its own, as of the plug-ins."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Imported", "imported_anew", "importing"]

Imported = dict[str, ModuleType]
"""What the plug-ins of a run have imported from their folders, by name."""
_LOCK = threading.RLock()
"""Runs in threads share the modules of the process while plug-ins import."""
_OPEN: list[Imported] = []
"""Those of the runs whose plug-ins import now."""
_BROUGHT: set[str] = set()
"""The names of all modules that plug-ins have brought into this process from their folders."""
_INSTALLED = frozenset(["site-packages", "dist-packages"])
_PACKAGE = __name__.partition(".")[0]


@contextmanager
def imported_anew(folder: Path, imported: Imported) -> Iterator[None]:
    """Within it a plug-in is executed, without what other runs imported from plug-ins' folders.

    A module that the program itself imported first is the program's, and stays.

    Args:
        folder: where the plug-in's file is.
        imported: the modules of the run, which get those that are imported meanwhile.
    """
    with _LOCK:
        if any(run is imported for run in _OPEN):
            yield
            return
        for name in sorted(_BROUGHT, reverse=True):
            _take_out(name)
        for name in sorted(imported):
            _put_in(name, imported[name])
        before = set(sys.modules)
        writes = sys.dont_write_bytecode
        # What is compiled is looked up by seconds: it hides a change within the same second.
        sys.dont_write_bytecode = True
        _OPEN.append(imported)
        try:
            yield
        finally:
            _OPEN.pop()
            sys.dont_write_bytecode = writes
            new = {
                name: module
                for name, module in [*sys.modules.items()]
                if name not in before and _is_of(module, folder)
            }
            _BROUGHT.update(new)
            imported.update(new)


def importing(folder: Path, imported: Imported) -> Callable[..., ModuleType]:
    """The ``import`` of a plug-in: its callbacks import what its run has, too.

    Args:
        folder: where the plug-in's file is.
        imported: the modules of the run.
    """

    def own(name: str, *rest: Any, **named: Any) -> ModuleType:  # noqa: ANN401 - as the built-in
        roots = {brought.partition(".")[0] for brought in _BROUGHT}
        if name in sys.modules and name.partition(".")[0] not in roots:
            return __import__(name, *rest, **named)
        with imported_anew(folder, imported):
            return __import__(name, *rest, **named)

    return own


def _take_out(name: str) -> None:
    """Has the next import of a module execute it; its package has it as an attribute, too."""
    module = sys.modules.pop(name, None)
    package, _, own = name.rpartition(".")
    parent = sys.modules.get(package)
    if parent is not None and module is not None and vars(parent).get(own) is module:
        delattr(parent, own)


def _put_in(name: str, module: ModuleType) -> None:
    """Has the next import of a module find it."""
    sys.modules[name] = module
    package, _, own = name.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], own, module)


def _is_of(module: ModuleType, folder: Path) -> bool:
    """Whether a module is a Python file in a folder, and belongs to nothing installed there."""
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    name = str(getattr(module, "__name__", ""))
    if not isinstance(loader, SourceFileLoader | SourcelessFileLoader):
        return False
    if name.partition(".")[0] == _PACKAGE:
        return False
    file, own = (Path(os.path.realpath(path)) for path in (loader.path, folder))
    with suppress(ValueError):
        inner = file.relative_to(own)
        library = Path(os.path.realpath(sysconfig.get_path("stdlib")))
        return not (_INSTALLED & {*inner.parts} or file.is_relative_to(library))
    return False
