"""Whether a replay behind the present queue does what the capture shows."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

from aqmlab._util.lazy import np, tomllib
from aqmlab.engine.execute import execute
from aqmlab.scenario.quantities import loads_text
from aqmlab.scenario.scenario import Scenario
from aqmlab.traffic.inferred import Inferred
from aqmlab.traffic.played import replayed
from aqmlab.traffic.replay import Replay

__all__ = ["Checked", "check"]


_FEWEST = 10
"""Responses that are compared, at least."""
_FAR = {"t50": 2.0, "t90": 3.0}
"""A factor between capture and replay that shows a wrong assumption."""
_LEAST_S = 0.05
"""And so much between them."""


@dataclass(frozen=True)
class Checked:
    """The capture beside its replay behind the present queue."""

    lines: tuple[str, ...]
    """In words."""
    failure: str = ""
    """What is too far from the capture, and what to state."""


def check(capture: Path, found: Replay) -> Checked:
    """Replays a capture behind the present queue and compares response times and loads."""
    inferred = Inferred.read(capture, found.rates_bps)
    scenario = Scenario.load(found.file)
    discipline = found.present
    value = tomllib.loads(f"it = {discipline}")["it"] if discipline.startswith("{") else discipline
    scenario = scenario.with_overrides({"topology.bottleneck.discipline": value})
    with tempfile.TemporaryDirectory(prefix="aqmlab-") as folder:
        run = execute(scenario, Path(folder) / "present")
        label = run.queue_label
        warm_up_s = 0.1 * inferred.seconds
        again = replayed(run, inferred.rates, warm_up_s)
    times = inferred.responses(warm_up_s)
    again_said = f"replayed behind {label}, the present queue: "
    if again["responses"]:
        half, most = (f"{1e3 * again[key]:,.0f} ms" for key in ("t50", "t90"))
        again_said += (
            f"half of {again['responses']:,.0f} responses take up to {half}, 90 % up to {most}; "
        )
    again_said += loads_text(again["load_down"], again["load_up"])
    lines = (f"captured: {_said(times, loads_text(*inferred.passed.loads_bps))}", again_said)
    failure = ""
    if len(times) >= _FEWEST and again["responses"] >= _FEWEST:
        for share, key, words in ((0.5, "t50", "half"), (0.9, "t90", "90 %")):
            right = float(np.quantile(times, share))
            if not failure and _is_far(again[key], right, _FAR[key]):
                failure = (
                    f"{capture}: the replay behind {label} is far from the capture: {words} of "
                    f"the responses take up to {1e3 * again[key]:,.0f} ms, in the capture "
                    f"{1e3 * right:,.0f} ms; an assumption is wrong, state it: --rate DOWN/UP, "
                    "--rtt MS or --present QUEUE; or compare all the same: --what-if"
                )
    return Checked(lines, failure)


def _said(times: np.ndarray, loads: str) -> str:
    """Response times and loads in words."""
    if not len(times):
        return loads
    half, most = (1e3 * float(np.quantile(times, share)) for share in (0.5, 0.9))
    return (
        f"half of {len(times):,} responses take up to {half:,.0f} ms, 90 % up to {most:,.0f} ms; "
        f"{loads}"
    )


def _is_far(value: float, right: float, factor: float) -> bool:
    """Whether two times differ by more than a queue's guess explains."""
    if value <= 0 or right <= 0:
        return False
    return abs(math.log(value / right)) > math.log(factor) and abs(value - right) > _LEAST_S
