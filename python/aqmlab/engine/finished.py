"""What a finished run leaves in its directory beside its tables."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from aqmlab import _native
from aqmlab.plugins.declarations import declared_by
from aqmlab.plugins.sources import sources_of
from aqmlab.results.manifest import MANIFEST, seal
from aqmlab.scenario.scenario import Scenario

__all__ = ["write_run"]


def write_run(
    folder: Path,
    scenario: Scenario,
    summary: Mapping[str, object],
    *,
    key: str,
    load: float | None,
    started: datetime,
    wall_s: float,
    cpu_s: float,
) -> None:
    """Writes the scenario, the summary and what made them; then the manifest.

    Args:
        folder: where the run's tables are.
        scenario: what was run.
        summary: what the engine summed up.
        key: what tells the run from others.
        load: the load that its populations were calibrated to, if they were.
        started: when it began.
        wall_s: how long it took, in seconds.
        cpu_s: CPU time that it took, in seconds.
    """
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
        "machine": {"system": platform.platform(), "cpus": os.cpu_count()},
        "started": started.isoformat(timespec="seconds"),
        "wall_s": round(wall_s, 3),
        "cpu_s": round(cpu_s, 3),
    }
    sources = sources_of(scenario.effective)
    if sources:
        files = {f"plugin-{source.file}": source for source in sources}
        if len(files) < len(sources):
            files = {f"plugin-{source.sha256[:8]}-{source.file}": source for source in sources}
        for file, source in files.items():
            (folder / file).write_bytes(source.content)
        metadata["plugins"] = [
            {"file": file, **entry}
            for file, source in files.items()
            for entry in declared_by(source.sha256)
        ]
    (folder / "scenario.toml").write_text(scenario.effective, encoding="utf-8")
    for name, content in (("summary.json", summary), ("metadata.json", metadata)):
        text = json.dumps(content, indent=2, ensure_ascii=False)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    seal(folder, key)
