"""In which order the runs of a folder were asked for, and by which command.

Names of run directories say nothing of it. Tables and figures of a folder have the order, and so
the colours, of the command behind its runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from aqmlab._util.files import write_text
from aqmlab.errors import AqmlabError

__all__ = ["command_of", "note", "noted"]


_FILE = ".order"
"""In the folder: names of run directories, a line each; at the end how many of them the last
command asked for, and that command, behind a mark."""
_MARK = "# "


def note(folder: Path, names: Sequence[str], command: str = "") -> None:
    """Notes the order of some run directories, which are behind those of earlier commands.

    A folder that cannot be written keeps its order: its runs come by their labels.

    Args:
        folder: where they are.
        names: their names.
        command: what a shell runs to make them, from the folder in which it was run.
    """
    own = list(dict.fromkeys(names))
    if not own:
        return
    found = [*(name for name in noted(folder) if name not in {*own}), *own]
    text = "".join(f"{name}\n" for name in found)
    if command and "\n" not in command:
        text += f"{_MARK}{len(own)} {command}\n"
    if text != "".join(f"{line}\n" for line in _lines(folder)):
        with suppress(AqmlabError, OSError):
            write_text(folder / _FILE, text)


def noted(folder: Path) -> Mapping[str, int]:
    """The place of each run directory in the noted order; nothing where none is."""
    names = (line for line in _lines(folder) if not line.startswith(_MARK))
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def command_of(folder: Path, names: Iterable[str]) -> str:
    """The command that asked for some run directories, all of them and no others; or nothing."""
    lines = _lines(folder)
    if not lines or not lines[-1].startswith(_MARK):
        return ""
    count, _, command = lines[-1].removeprefix(_MARK).partition(" ")
    asked = lines[:-1][-int(count) :] if count.isdigit() and int(count) else []
    return command if asked and {*asked} == {*names} else ""


def _lines(folder: Path) -> list[str]:
    with suppress(OSError, UnicodeDecodeError):
        return (folder / _FILE).read_text(encoding="utf-8").splitlines()
    return []
