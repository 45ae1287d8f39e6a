"""What a finished run leaves in its directory beside its tables."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from aqmlab import _native
from aqmlab._util.plugin_declarations import declared_by
from aqmlab._util.plugin_sources import Source, sources_of
from aqmlab.results.manifest import MANIFEST, seal
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

__all__ = ["described", "write_run"]


def write_run(
    folder: Path,
    scenario: Scenario,
    summary: str,
    *,
    target: Path,
    key: str,
    load: float | None,
    started: datetime,
    wall_s: float,
    cpu_s: float,
    program: Sequence[str] = (),
    queue: str | None = None,
) -> Run:
    """Writes the scenario, the summary and what made them; then the manifest.

    Args:
        folder: where the run's tables are.
        scenario: what was run.
        summary: what the engine summed up, the text of ``summary.json``.
        target: the run directory that the folder becomes.
        key: what tells the run from others.
        load: the load that its populations were calibrated to, if they were.
        started: when it began.
        wall_s: how long it took, in seconds.
        cpu_s: CPU time that it took, in seconds.
        program: the words of the program that was behind the link; none of its users was there.
        queue: what its queue was called, if the name is to be the run's label.

    Returns:
        The run. None of its files is read for it.
    """
    metadata = described(scenario, key=key, load=load, started=started, wall_s=wall_s, cpu_s=cpu_s)
    if program:
        metadata["program"] = list(program)
    if queue is not None:
        metadata["queue"] = queue
    written = {file: source.content for file, source in _plugins(scenario).items()}
    written["scenario.toml"] = scenario.effective.encode()
    written["summary.json"] = summary.encode()
    written["metadata.json"] = f"{json.dumps(metadata, indent=2, ensure_ascii=False)}\n".encode()
    manifest = replace(seal(folder, key, written), folder=target)
    return Run.just_made(scenario.data, summary, metadata, manifest=manifest)


def described(
    scenario: Scenario,
    *,
    key: str,
    load: float | None,
    started: datetime,
    wall_s: float,
    cpu_s: float,
) -> dict[str, object]:
    """What ``metadata.json`` holds; for the arguments see :func:`write_run`."""
    metadata: dict[str, object] = {
        "key": key,
        "results_version": _native.results_version(),
        "manifest": MANIFEST,
        "versions": {
            "aqmlab": _native.version(),
            "engine": _native.engine(),
            "python": platform.python_version(),
        },
        "seed": scenario.seed,
        "load": load,
        "machine": {"system": _system(), "cpus": os.cpu_count()},
        "started": started.isoformat(timespec="seconds"),
        "wall_s": round(wall_s, 3),
        "cpu_s": round(cpu_s, 3),
    }
    if files := _plugins(scenario):
        metadata["plugins"] = [
            {"file": file, **entry}
            for file, source in files.items()
            for entry in declared_by(source.sha256)
        ]
    return metadata


def _plugins(scenario: Scenario) -> dict[str, Source]:
    """The sources of a scenario's plug-ins, by the names of their copies."""
    sources = sources_of(scenario.effective)
    files = {f"plugin-{source.file}": source for source in sources}
    if len(files) < len(sources):
        files = {f"plugin-{source.sha256[:8]}-{source.file}": source for source in sources}
    return files


@lru_cache(maxsize=1)
def _system() -> str:
    """The operating system of this machine."""
    return platform.platform()
