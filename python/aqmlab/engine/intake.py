"""Runs that were made under other names, or elsewhere, and get their places.

See :mod:`aqmlab.engine.commit`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aqmlab._util.files import filesystem_synced, renamed
from aqmlab.engine.workspace import RUNS, remove_abandoned
from aqmlab.errors import AqmlabError, DamagedRunError
from aqmlab.results.run import Run

__all__ = ["Folder", "taken_in", "written"]


@dataclass(frozen=True)
class Folder:
    """A folder of runs with names that somebody else gives."""

    root: Path

    def path(self, name: str) -> Path:
        """Where the run of a name is, or would be."""
        return self.root / name

    def tidy(self) -> None:
        """Takes in the whole runs that killed processes left, and removes what is unfinished."""
        with suppress(OSError):
            remove_abandoned(self.root, self._take_in)

    def _take_in(self, folder: Path) -> None:
        """Takes in the whole runs of a folder of a killed process; nothing else counts."""
        found = []
        for path in (folder / RUNS).glob("*"):
            with suppress(AqmlabError):
                run = Run.open(path)
                if run.manifest is not None:
                    run.manifest.check_everything()
                    found.append(path.name)
        if found:
            taken_in(folder / RUNS, found, self.path)


def written(folder: Path, key: str, files: Mapping[str, bytes]) -> Run:
    """Writes the files of a run that was made elsewhere into a folder, and checks them."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    run = Run.open(folder)
    if run.metadata.get("key") != key or run.manifest is None:
        raise DamagedRunError(
            f"{folder}: another run arrived than the one that was asked for: {key}"
        )
    run.manifest.check_everything()
    return run


def taken_in(
    folder: Path, names: Iterable[str], path: Callable[[str], Path]
) -> dict[str, AqmlabError]:
    """Gives whole runs in a folder their names; what is there already stays.

    Their contents reach the disk before their names do.

    Args:
        folder: where they are, each under its name or key.
        names: which of them.
        path: says where a run of a name is, or would be.

    Returns:
        By name, why a run could not be named.

    Raises:
        OSError: the file system cannot be synced.
    """
    filesystem_synced(folder)
    failed = {
        name: error for name in names if (error := _name(folder / name, path(name))) is not None
    }
    filesystem_synced(folder)
    return failed


def _name(whole: Path, target: Path) -> AqmlabError | None:
    """Gives a run its name; why it cannot have it."""
    try:
        target.parent.mkdir(exist_ok=True)
        if whole.is_dir() and not os.path.lexists(target):
            renamed(whole, target)
    except OSError as error:
        if not target.is_dir():  # else another process was faster
            return AqmlabError(f"{target}: cannot be made: {error.strerror}")
    return None
