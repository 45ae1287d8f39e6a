"""The store of runs: every finished run under the hash of what made it.

A run directory's name is its key: the hash of the effective scenario (every default spelled out,
the seed and the users included) and of the engine's version. What has that key is that run, so
nothing in the store is ever wrong, and whoever needs a run that is there does not repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aqmlab._util.pool import OnProgress
from aqmlab.engine.execute import RUNS_ROOT, execute
from aqmlab.engine.workspace import workspace
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

__all__ = ["STORE_ROOT", "Store"]


STORE_ROOT = RUNS_ROOT / "store"
"""Where the store is by default."""


@dataclass(frozen=True)
class Store:
    """A folder of runs by key."""

    root: Path = STORE_ROOT

    def path(self, key: str) -> Path:
        """Where the run of a key is, or would be."""
        return self.root / key[:2] / key

    def find(self, key: str) -> Run | None:
        """The finished run of a key."""
        path = self.path(key)
        return Run.open(path) if path.is_dir() else None

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
                for name, content in files.items():
                    (folder / name).write_bytes(content)
        return Run.open(path)
