"""Loading plug-ins, and carrying them to where a run is made.

A plug-in is code, with all rights of the user who loads it. Only the user's word loads one: an
option of the command line, or a call here. A scenario only names plug-ins that are loaded.
"""

from __future__ import annotations

import builtins
import inspect
import json
import os
import sys
import tempfile
import traceback
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from aqmlab import _native
from aqmlab._util.files import read_bytes
from aqmlab._util.plugin_declarations import note
from aqmlab._util.plugin_sources import LOADED, Source
from aqmlab.errors import AqmlabError, PluginError
from aqmlab.plugins.compiled import translated
from aqmlab.plugins.declared import Control, Discipline, declared, shortened
from aqmlab.plugins.imported import Imported, imported_anew, importing

__all__ = ["ensure", "kinds_of", "load", "loaded", "register"]

_MAX_BYTES = 256 * 2**20
_Class = TypeVar("_Class", bound=type[Discipline] | type[Control])


def load(path: str | os.PathLike[str]) -> list[str]:
    """Loads the plug-ins of a file: Python (``.py``), or a shared object (``.so``).

    Args:
        path: the file. Its code runs now, and in every run that uses it.

    Returns:
        The names of its plug-ins, as scenarios have them.

    Raises:
        AqmlabError: the file cannot be read, or holds no plug-in, or one with a mistake.
        PluginError: its code raises an exception; the message ends with the traceback.
    """
    file = Path(path)
    content = read_bytes(file, "plug-in", _MAX_BYTES)
    return ensure(Source(file.name, content, os.fspath(file.parent.absolute())), file)


def ensure(source: Source, place: Path | None = None) -> list[str]:
    """Loads the plug-ins of a source, unless they are."""
    if source.sha256 not in LOADED or place is not None:
        kind = Path(source.file).suffix
        if kind == ".py":
            found = _from_python(source, place)
        elif kind in (".so", ".dylib"):
            found = _from_shared_object(source, place)
        else:
            raise AqmlabError(f"{place or source.file}: expected a file .py or .so")
        LOADED[source.sha256] = source, found
        _note_loaded()
    return [name for _, name in LOADED[source.sha256][1]]


def _from_python(source: Source, place: Path | None) -> list[tuple[str, str]]:
    """Runs a module, and makes the plug-ins known that it defines."""
    shown = str(place or source.file)
    name = f"aqmlab_plugin_{source.sha256[:16]}"
    # So that a traceback shows the lines, wherever the file is.
    import linecache

    text = source.content.decode("utf-8", errors="replace")
    linecache.cache[shown] = len(text), None, text.splitlines(keepends=True), shown
    try:
        code = compile(source.content, shown, "exec")
        namespace = _executed(code, name, source, {})
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's module raises
        sys.modules.pop(name, None)
        raised = _as_raised(error)
        reason = raised.rpartition("\n")[2]
        raise PluginError(f"{shown}: cannot be loaded: {reason}\n{raised}") from None

    def renew(imported: Imported) -> dict[str, Any]:
        path = sys.path[:]
        try:
            return _executed(code, name, source, imported)
        finally:
            sys.path[:] = path  # what the file adds to it was added when it was loaded

    classes = {
        item: key
        for key, item in namespace.items()
        if isinstance(item, type)
        and issubclass(item, Discipline | Control)
        and item.__module__ == name
        and not item.__name__.startswith("_")
    }
    if not classes:
        raise AqmlabError(
            f"{shown}: found no plug-in; expected a subclass of aqmlab.plugins.Discipline or "
            "aqmlab.plugins.Control"
        )
    try:
        _refuse_twins(list(classes))
        return [_known(plugin, source.sha256, (renew, key)) for plugin, key in classes.items()]
    except AqmlabError as error:
        raise AqmlabError(f"{shown}: {error}") from None


def _as_raised(error: BaseException) -> str:
    """A traceback of the user's code, without this module and that which imports for it."""
    shown = traceback.TracebackException.from_exception(error)
    own = {__file__, importing.__code__.co_filename}
    shown.stack = traceback.StackSummary.from_list(
        [frame for frame in shown.stack if frame.filename not in own]
    )
    return "".join(shown.format()).rstrip()


def _refuse_twins(classes: Sequence[type[Discipline | Control]]) -> None:
    """An error if two classes have one name: the later one would take the place of the other."""
    seen: dict[str, str] = {}
    for plugin in classes:
        name = declared(plugin).name
        if name in seen:
            raise AqmlabError(
                f"{seen[name]} and {plugin.__name__}: are both called {shortened(name)}; give one "
                "of them another plugin_name"
            )
        seen[name] = plugin.__name__


def _executed(
    code: types.CodeType, name: str, source: Source, imported: Imported
) -> dict[str, Any]:
    """What a module holds that is executed now: each run has its own, and its own imports."""
    folder = Path(source.folder)
    module = types.ModuleType(name)
    module.__file__ = os.fspath(folder / source.file)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": importing(folder, imported)}
    sys.modules[name] = module
    with imported_anew(folder, imported):
        exec(code, vars(module))
    return vars(module)


def _from_shared_object(source: Source, place: Path | None) -> list[tuple[str, str]]:
    """Loads a copy: a library that is compiled again under its name is a new library."""
    with tempfile.TemporaryDirectory(prefix="aqmlab-") as folder:
        copy = Path(folder) / source.file
        copy.write_bytes(source.content)
        shown = str(place or source.file)
        return _native.load_shared_object(os.fspath(copy), source.sha256, shown)


def _known(
    plugin: type[Discipline | Control],
    sha256: str,
    renewed: tuple[Callable[[Imported], dict[str, Any]], str] | None = None,
) -> tuple[str, str]:
    """Makes a class known to the engine, and how its module is executed anew."""
    says = declared(plugin)
    try:
        _native.check_plugin_name(says.name)
    except AqmlabError as error:
        raise AqmlabError(f"{plugin.__name__}: {error}") from None
    if plugin.plugin_is_compiled:
        functions = translated(plugin, says)
        return _native.register_compiled(
            says.kind, says.name, says.purpose, sha256, says.fields, functions
        )
    return _native.register_class(
        says.kind,
        says.name,
        says.purpose,
        sha256,
        says.fields,
        says.callbacks,
        (plugin, renewed),
    )


def register(plugin: _Class) -> _Class:
    """Makes a class of this program or notebook known, without a file; a decorator.

    Its source goes into run directories. Sweeps and clusters need a file: see :func:`load`.
    """
    try:
        text = inspect.getsource(plugin)
    except (OSError, TypeError):
        text = f"# {plugin.__qualname__}: its source is not known\n"
    source = Source(f"{plugin.__name__}.txt", text.encode())
    LOADED[source.sha256] = source, [_known(plugin, source.sha256)]
    _note_loaded()
    return plugin


def loaded() -> dict[str, Source]:
    """The sources that are loaded, by hash."""
    return {sha256: source for sha256, (source, _) in LOADED.items()}


def arrived(file: str, content: bytes, folder: str = "") -> Source:
    """A source that came with a scenario, loaded: unpickling runs code anyway."""
    source = Source(file, content, folder)
    ensure(source)
    return source


Source.arrived = staticmethod(arrived)


def kinds_of(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Kinds and names of the plug-ins of a file that is loaded."""
    content = read_bytes(Path(path), "plug-in", _MAX_BYTES)
    return LOADED[Source(Path(path).name, content).sha256][1]


def _note_loaded() -> None:
    """Remembers what the plug-ins of this process declare, for labels of their runs."""
    note(json.loads(_native.plugins()))
