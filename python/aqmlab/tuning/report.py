"""What a search leaves in its folder: ``tune.json``, tables, a picture, the chosen scenarios."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab._util.files import write_bytes, write_text
from aqmlab._util.words import counted
from aqmlab.errors import AqmlabError
from aqmlab.figures.files import definition, svg
from aqmlab.figures.search import TriedSetting, search
from aqmlab.figures.theme import Look, ThemeName
from aqmlab.tuning.goals import Goal
from aqmlab.tuning.outcome import Tuning
from aqmlab.tuning.study import FILE

__all__ = ["picture", "refuse_a_taken_place", "tsv", "write"]


_PAGE = "tune.json"
PICTURES: Mapping[ThemeName, str] = {"light": "search.svg", "dark": "search-dark.svg"}
"""The picture by its theme."""


def refuse_a_taken_place(folder: Path) -> None:
    """Raises an error if something else than a search is there."""
    if not os.path.lexists(folder) or (folder / FILE).is_file():
        return
    if not folder.is_dir() or any(
        not entry.name.startswith(f".{FILE}") for entry in folder.iterdir()
    ):
        raise AqmlabError(
            f"{folder}: exists and is not the folder of a search; choose another --out"
        )


def write(found: Tuning) -> None:
    """Writes all of it, in place of what an earlier search left."""
    folder = found.folder
    write_text(folder / "trials.tsv", tsv([found.row(trial) for trial in found.trials]))
    write_text(folder / "front.tsv", tsv([found.row(trial) for trial in found.front]))
    if found.feasible:
        for theme, name in PICTURES.items():
            write_bytes(folder / name, svg(definition(picture(found, Look(theme=theme)))).encode())
    for name, choice in (("best", found.best), ("robust", found.robust)):
        for index, scenario in enumerate(found.plan.scenarios if choice else ()):
            assert choice is not None
            tuned = found.plan.scenario_of(choice.trial.values, index)
            write_text(folder / f"{name}-{scenario.name}.toml", tuned.effective)
    text = json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"
    write_text(folder / _PAGE, text)


def tsv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as tab-separated values under their keys; nothing for None."""
    heads = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["\t".join(heads)]
    lines += ["\t".join(_cell(row.get(head)) for head in heads) for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    """A value in one line without tabs."""
    return "" if value is None else " ".join(str(value).split())


def picture(found: Tuning, look: Look) -> Any:  # noqa: ANN401 - any of Altair's charts
    """The search as a picture: one goal over its settings, or the first two with their front."""
    goals = found.plan.goals[:2]
    several = len(found.plan.scenarios) > 1
    on_front = {trial.number for trial in found.front}
    points = [
        TriedSetting(
            trial.number,
            _shown(found.scales.mean(trial.measured), goals, several),
            found.is_feasible(trial),
            trial.number in on_front,
        )
        for trial in found.trials
        if trial.measured
    ]
    names = {}
    if found.best is not None:
        names["best mean" if len(goals) == 1 else "balanced"] = found.best.trial.number
    if found.robust is not None:
        names["best worst case"] = found.robust.trial.number
    untuned = _shown(found.scales.mean(found.untuned), goals, several)
    titles = [_title(goal, several) for goal in goals]
    scenarios = ", ".join(one.name for one in found.plan.scenarios)
    subtitle = f"{scenarios}; means over {counted(len(found.plan.seeds), 'seed')}"
    return search(
        points,
        untuned,
        titles,
        [goal.is_minimized for goal in goals],
        names,
        (subtitle,),
        look=look,
    )


def _shown(vector: Sequence[float], goals: Sequence[Goal], several: bool) -> list[float]:
    """Numbers in the units in which they are shown; ratios unchanged."""
    return [
        value if several else value * goal.quantity.scale
        for value, goal in zip(vector, goals, strict=False)
    ]


def _title(goal: Goal, several: bool) -> str:
    """What an axis says."""
    if several:
        return f"{goal.metric}, ratio to untuned"
    unit = goal.quantity.unit
    return f"{goal.metric} ({unit})" if unit else goal.metric
