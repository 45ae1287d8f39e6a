"""Runs of a folder that another engine has made again: only the newer ones are shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from aqmlab import _native
from aqmlab._util.words import counted
from aqmlab.errors import AqmlabError
from aqmlab.results.metrics import look_up
from aqmlab.results.run import Run

__all__ = ["remade", "remade_words"]


def remade(runs: Mapping[Path, Run]) -> dict[Path, Run]:
    """The runs that a newer engine has made again, with the same configuration and seed.

    Live runs are none: each of them is a measurement of its own. The engine of the run that began
    last counts as the newer one.
    """
    simulated = {place: run for place, run in runs.items() if run.world == "sim"}
    if len({_engine(run) for run in simulated.values()}) < 2:
        return {}
    newest: dict[str, Run] = {}
    keys = {place: _configuration(run) for place, run in simulated.items()}
    for place, run in simulated.items():
        known = newest.setdefault(keys[place], run)
        if _started(run) > _started(known):
            newest[keys[place]] = run
    return {
        place: run
        for place, run in simulated.items()
        if _engine(run) != _engine(newest[keys[place]])
    }


def remade_words(left: Mapping[Path, Run]) -> str:
    """That they are left out, in a line."""
    folders = ", ".join(dict.fromkeys(str(run.path.parent) for run in left.values()))
    return (
        f"left out: {counted(len(left), 'run')} of {folders} that a newer engine has made again; "
        "name a run directory to take it"
    )


def _configuration(run: Run) -> str:
    """The scenario with its seed, written by the present engine where that still reads it.

    Engines differ in what an effective scenario states.
    """
    data = run.scenario
    with suppress(AqmlabError, OSError):
        text = (run.path / "scenario.toml").read_text(encoding="utf-8")
        data = json.loads(_native.to_json(_native.parse(text, str(run.path), ())))
    return json.dumps({key: data[key] for key in data if key != "title"}, sort_keys=True)


def _engine(run: Run) -> str:
    return str(look_up(run.metadata, ("versions", "engine")) or run.summary.get("version"))


def _started(run: Run) -> str:
    return str(run.metadata.get("started", ""))
