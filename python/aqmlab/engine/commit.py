"""Runs that get their names together.

A run directory must be on the disk before it has its name. To wait for the disk takes a few
milliseconds for each file, many times what a tiny run takes. So finished runs are collected in a
folder of their own, and a thread gives some of them their names at a time: it syncs the file
system, renames, and syncs again. A process that is killed in between leaves the folder behind, and
the next one takes the whole runs out of it. A power failure loses at most the runs of one group.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aqmlab._util.files import made_folder
from aqmlab.engine.intake import Folder, taken_in, written
from aqmlab.engine.workspace import RUNS, held, remove_folder
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run

if TYPE_CHECKING:
    from aqmlab.engine.store import Store

__all__ = ["Done", "RunCommit", "itself", "nothing"]

_MOST = 32
"""Runs that get their names together."""
_WAIT_S = 0.5
"""How long a finished run waits for others."""
Taken = TypeVar("Taken")


@dataclass(frozen=True)
class Done:
    """The end of a run that went well."""

    taken: Any
    """What was wanted of the run."""


def nothing(_: Run) -> None:
    """Nothing is wanted of a run yet: it is opened when all of them are there."""


def itself(run: Run) -> Run:
    """All of a run is wanted."""
    return run


class RunCommit(AbstractContextManager["RunCommit[Taken]"], Generic[Taken]):
    """Finished runs on their way into a store or another folder of runs.

    Args:
        store: where they go.
        take: what is wanted of each.
    """

    def __init__(self, store: Store | Folder, take: Callable[[Run], Taken]) -> None:
        self._store = store
        self._take = take
        self._ready: SimpleQueue[str | None] = SimpleQueue()
        self._known: dict[str, Taken | AqmlabError] = {}
        self.taken: dict[str, Taken | AqmlabError] = {}
        """What was taken of each run, by its key, or why it could not be named."""
        self._failure: BaseException | None = None

    def __enter__(self) -> RunCommit[Taken]:
        made_folder(self._store.root)
        self._held, self._descriptor = held(self._store.root / os.urandom(4).hex())
        self._folder = self._held / RUNS  # who makes a run locks the folder above it for a moment
        self._folder.mkdir()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        return self

    def place(self, key: str) -> Path:
        """Where the run of a key is made."""
        return self._folder / key

    def add(self, key: str, done: Done | None = None) -> None:
        """The run of a key is finished: it is in its place, or has its name already.

        Args:
            key: the run's.
            done: has what is wanted of it, where that is known.
        """
        if done is not None:
            self._known[key] = done.taken
        self._ready.put(key)

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Takes in the files of a run that was made elsewhere; errors are kept in its place."""
        place = self.place(key)
        try:
            if not self._store.path(key).is_dir():
                place.mkdir()
                self._known[key] = self._take(written(place, key, files))
        except OSError as error:
            self._known[key] = AqmlabError(f"{place}: cannot be written: {error.strerror}")
        except AqmlabError as error:
            self._known[key] = error
        if isinstance(self._known.get(key), AqmlabError):
            shutil.rmtree(place, ignore_errors=True)  # nobody may give it a name
        self._ready.put(key)

    def _work(self) -> None:
        """Names runs, some at a time, until there are no more."""
        ended = False
        while not ended:
            keys = [self._ready.get()]
            until = time.monotonic() + _WAIT_S
            with suppress(Empty):
                while keys[-1] is not None and len(keys) < _MOST:
                    keys.append(self._ready.get(timeout=max(0.0, until - time.monotonic())))
            ended = keys[-1] is None
            try:
                self._commit([key for key in keys if key is not None])
            except BaseException as error:  # noqa: BLE001 - raised where the group ends
                self._failure = error

    def _commit(self, keys: list[str]) -> None:
        """Gives runs their names, and takes what is wanted of them."""
        new = [key for key in keys if self.place(key).is_dir()]
        failed = {}
        try:
            if new:
                failed = taken_in(self._folder, new, self._store.path)
        except OSError as error:
            reason = AqmlabError(f"{self._store.root}: cannot be written: {error.strerror}")
            failed = dict.fromkeys(new, reason)
        for key in keys:
            self.taken[key] = failed.get(key) or self._taken(key)

    def _taken(self, key: str) -> Taken | AqmlabError:
        """What is wanted of a run."""
        if key in self._known:
            return self._known.pop(key)
        try:
            return self._take(Run.open(self._store.path(key)))
        except AqmlabError as error:
            return error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ready.put(None)
        self._thread.join()
        remove_folder(self._held, self._descriptor)
        if self._failure is not None and error is None:
            raise self._failure
