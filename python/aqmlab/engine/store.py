"""The store of runs: every finished run under the hash of what made it.

A run directory's name is its key: the hash of the effective scenario (every default spelled out,
the seed and the users included) and of the engine's version. A directory with that key is that run,
and nobody repeats a run that the store holds. A run whose files are not what they were is
set aside and made again.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aqmlab._util.places import RUNS_ROOT
from aqmlab._util.pool import OnProgress
from aqmlab.engine.execute import execute
from aqmlab.engine.intake import taken_in, written
from aqmlab.engine.workspace import RUNS, remove_abandoned, workspace
from aqmlab.errors import AqmlabError, DamagedRunError, DamagedRunWarning, LaterRunError
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

__all__ = ["STORE_ROOT", "Store"]


STORE_ROOT = RUNS_ROOT / "store"
"""Where the store is by default."""
_DAMAGED = "damaged"
"""Folder of the damaged runs in a store."""


@dataclass(frozen=True)
class Store:
    """A folder of runs by key."""

    root: Path = STORE_ROOT
    verify: bool = False
    """Whether every byte of a run is checked when it is found, not only what is cheap to check."""

    def path(self, key: str) -> Path:
        """Where the run of a key is, or would be."""
        return self.root / key[:2] / key

    def place(self, key: str) -> str:
        """The path of a key as a text: sweeps ask for thousands."""
        return f"{self.root}/{key[:2]}/{key}"

    def find(self, key: str) -> Run | None:
        """The finished run of a key; a damaged one is set aside, with a warning."""
        path = self.path(key)
        if not path.is_dir():
            return None
        try:
            return self.opened(path, everything=self.verify)
        except LaterRunError:
            raise
        except AqmlabError as error:
            self._set_aside(path, error)
            return None

    def opened(self, path: Path, *, everything: bool) -> Run:
        """One of its runs; an error if it is damaged, or not the run that its name says."""
        run = Run.open(path)
        if run.metadata.get("key") != path.name:
            raise DamagedRunError(f"{path}: is damaged: it holds the run of another key")
        if everything and run.manifest is not None:
            run.manifest.check_everything()
        return run

    def _set_aside(self, path: Path, why: AqmlabError) -> None:
        """Moves a damaged run out of the way of the run that will be made again."""
        aside = self.root / _DAMAGED
        number, target = 1, aside / path.name
        while target.exists():
            number += 1
            target = aside / f"{path.name}-{number}"
        try:
            aside.mkdir(exist_ok=True)
            path.rename(target)
        except FileNotFoundError:
            return  # somebody else was faster
        except OSError as error:
            raise AqmlabError(
                f"{why}; it cannot be moved to {target}: {error.strerror}; remove it"
            ) from None
        warnings.warn(f"{why}; set aside as {target}", DamagedRunWarning, stacklevel=3)

    def run(self, scenario: Scenario, progress: OnProgress | None = None) -> Run:
        """The run of a scenario: found, or made now."""
        try:
            return execute(scenario, self.path(scenario.key), progress=progress, reuse=True)
        except AqmlabError:
            # Somebody else may have finished it while it was being made here.
            if (found := self.find(scenario.key)) is None:
                raise
            return found

    def put(self, key: str, files: Mapping[str, bytes]) -> Run:
        """Takes in the files of a run that was made elsewhere."""
        path = self.path(key)
        if not path.is_dir():
            with workspace(path) as folder:
                written(folder, key, files)
        return Run.open(path)

    def runs(self) -> Iterator[Path]:
        """The folders of its runs, damaged ones included that nobody has noticed."""
        for folder in sorted(self.root.glob("??/*")):
            if folder.is_dir() and not folder.name.startswith("."):
                yield folder

    def damaged(self) -> list[Path]:
        """The runs that were set aside."""
        return sorted((self.root / _DAMAGED).glob("*"))

    def tidy(self) -> None:
        """Takes in the whole runs that killed processes left, and removes what is unfinished."""
        with suppress(OSError):
            remove_abandoned(self.root, self._take_in)
        for folder in self.root.glob("??"):
            remove_abandoned(folder)

    def _take_in(self, folder: Path) -> None:
        """Takes in the whole runs of a folder of a killed process; nothing else counts."""
        found = []
        for path in (folder / RUNS).glob("*"):
            with suppress(AqmlabError):
                found.append(str(self.opened(path, everything=True).metadata["key"]))
        if found:
            taken_in(folder / RUNS, found, self.path)

    def remove(self, path: Path) -> None:
        """Removes a run: first its name, so that half a run is never found."""
        doomed = path.with_name(f".{path.name}.removed.partial")
        try:
            path.rename(doomed)
        except OSError as error:
            raise AqmlabError(f"{path}: cannot be removed: {error.strerror}") from None
        shutil.rmtree(doomed, ignore_errors=True)
