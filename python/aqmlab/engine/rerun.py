"""A run made again, to record what happens on one of its connections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from aqmlab import _native
from aqmlab._util.lazy import pq
from aqmlab.engine import memory
from aqmlab.errors import AqmlabError
from aqmlab.results.events import Events
from aqmlab.results.story import Story
from aqmlab.scenario.scenario import Scenario

__all__ = ["events_of"]


def events_of(story: Story, progress: Callable[[float], object] | None = None) -> Events:
    """The events of a response: its run is made again, with a log of that connection only.

    Args:
        story: the response.
        progress: called now and then with the share of the simulated time that is done.

    Raises:
        AqmlabError: the run has no directory, or another version of aqmlab made it.
    """
    run, row = story.run, story.row
    file = Path(run.path) / "scenario.toml"
    if not file.is_file():
        raise AqmlabError(f"{file}: is missing; only a run with a directory can be made again")
    flow = int(row["flow"])
    scenario = Scenario.load(file).with_overrides(
        [("measure.story", str(flow)), ("measure.record", "[]")]
    )
    with TemporaryDirectory(prefix="aqmlab-story-") as folder:
        _native.run(scenario.effective, folder, progress, memory.bound())
        written = Path(folder) / "story.parquet"
        rows = pq.read_table(written).to_pylist() if written.is_file() else []
    found = Events(rows, story.response_ns, float(row["start_s"]), run.scenario)
    if found.parts != story.parts:
        raise AqmlabError(
            f"{run.path}: response {story.number} has other parts when the run is made again; "
            "another version of aqmlab made the run, make it again"
        )
    return found
