"""In which order the runs of a folder were asked for: names of run directories say nothing of it.

Tables and figures of a folder have the order, and so the colours, of the command behind its runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from aqmlab._util.files import write_text
from aqmlab.errors import AqmlabError

__all__ = ["note", "noted"]


_FILE = ".order"
"""In the folder: names of run directories, a line each."""


def note(folder: Path, names: Sequence[str]) -> None:
    """Notes the order of some run directories, which are behind those of earlier commands.

    A folder that cannot be written keeps its order: its runs come by their labels.
    """
    known = list(noted(folder))
    found = [*(name for name in known if name not in {*names}), *dict.fromkeys(names)]
    if names and found != known:
        with suppress(AqmlabError, OSError):
            write_text(folder / _FILE, "".join(f"{name}\n" for name in found))


def noted(folder: Path) -> Mapping[str, int]:
    """The place of each run directory in the noted order; nothing where none is."""
    with suppress(OSError, UnicodeDecodeError):
        lines = (folder / _FILE).read_text(encoding="utf-8").splitlines()
        return {name: place for place, name in enumerate(dict.fromkeys(lines))}
    return {}
