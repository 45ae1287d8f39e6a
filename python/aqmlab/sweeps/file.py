"""Sweep files: a base scenario, what is varied, with which seeds. See docs/sweeps.md."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from aqmlab._util.expressions import Expression
from aqmlab._util.fields import Field, Scalar, read_toml
from aqmlab._util.filekinds import run_with, table_kind
from aqmlab._util.files import read_text
from aqmlab._util.shipped import found as shipped
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.results.own_metrics import Definition, define, table_of
from aqmlab.results.quantity import Quantity
from aqmlab.scenario import vary
from aqmlab.scenario.scenario import Override, Scenario, toml_value
from aqmlab.scenario.short import full_path, is_short
from aqmlab.sweeps.axes import (
    SweepAxis,
    filled,
    filled_key,
    names_in,
    plain,
    read_axis,
    same_kind,
    variable_name,
)

__all__ = ["Point", "Precision", "Sweep", "label_of"]


_MAX_BYTES = 16 * 2**20
"""Largest sweep file that is read."""
_MOST_RUNS = 1_000_000
"""A sweep of more runs is a slip of the pen."""
_MAX_SEEDS = 30
"""Seeds of a point at most when a precision is wanted, unless the file says otherwise."""
_KEYS = (
    "title",
    "scenario",
    "set",
    "axes",
    "derive",
    "keep",
    "seeds",
    "precision",
    "max_seeds",
    "baseline",
    "metrics",
    "show",
)
"""What may stand at the top of a sweep file."""
_SHOWN = ("loss", "utilization", "queue", "p50", "p90", "p99")
"""The metrics that are printed unless the file says otherwise."""


@dataclass(frozen=True)
class Precision:
    """How narrow the interval of a metric's mean has to be."""

    metric: str
    """Column of the results, or a short name that stands for every loaded link."""
    half_width: float
    """Half of the interval at most: a fraction of the mean, or in the metric's unit."""
    relative: bool


@dataclass(frozen=True)
class Point:
    """One combination of the steps of all axes."""

    steps: tuple[int, ...]
    """Which step of each axis."""
    variables: Mapping[str, Scalar]
    """Values of all variables, the derived ones included."""
    overrides: tuple[Override, ...]
    """What turns the base scenario into this point's."""

    @property
    def label(self) -> str:
        """The point in words."""
        return label_of(self.variables)


def label_of(variables: Mapping[str, Scalar]) -> str:
    """A point in words."""
    listed = (f"{name} = {plain(value)}" for name, value in variables.items())
    return ", ".join(listed) or "the scenario"


@dataclass(frozen=True)
class Sweep:
    """The content of a sweep file: points, seeds, baseline and what is shown.

    Example:
        >>> import aqmlab
        >>> plan = aqmlab.Sweep.load("scenarios/sweeps/buffers.toml")
        >>> len(plan.points), plan.points[0].label
        (6, 'limit = 15')
        >>> plan.with_seeds([1, 2]).seeds
        (1, 2)
    """

    name: str
    """The stem of its file."""
    title: str
    scenario: Path
    """The base scenario."""
    settings: Mapping[str, Any]
    """Fields that every run sets, and their values, in which ``$name`` may stand."""
    axes: tuple[SweepAxis, ...]
    derived: Mapping[str, Expression]
    """Variables that are computed from the others."""
    keep: tuple[Expression, ...]
    """Points for which one of them is false are left out."""
    seeds: tuple[int, ...] | None
    """None: the scenario's."""
    precision: tuple[Precision, ...] = ()
    max_seeds: int = _MAX_SEEDS
    baseline: tuple[int, int] | None = None
    """The axis and its step that the others are compared with."""
    show: tuple[str, ...] = _SHOWN
    """The metrics that are printed."""
    metrics: tuple[Definition, ...] = ()
    """Metrics of one's own; they are printed, too."""
    overrides: tuple[Override, ...] = ()
    """What replaces fields of every run after everything else."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sweep:
        """Reads a sweep file; those that come with aqmlab are found from everywhere."""
        file = shipped(Path(path))
        content = read_toml(file, "sweep", _MAX_BYTES)
        if table_kind(content.value) == "scenario":
            raise AqmlabError(f"{file}: {run_with(file, 'scenario')}")
        return cls.read(content, file.parent, file.stem)

    @classmethod
    def read(cls, field: Field, folder: Path, name: str) -> Sweep:
        """A sweep from the content of its file; other files are sought in `folder`."""
        spec = field.table(_KEYS)
        if "scenario" not in spec:
            raise AqmlabError("scenario: is missing; a sweep varies the scenario of this file")
        axes = (
            [read_axis(item, folder) for item in spec["axes"].items("a list of axes, [[axes]]")]
            if "axes" in spec
            else []
        )
        _refuse_shared_names(axes)
        own = table_of(spec["metrics"], f"sweep {name}") if "metrics" in spec else ()
        define(own)  # what is wanted below may be among them
        what = "a table of fields and their values"
        settings = spec["set"].table(what=what) if "set" in spec else {}
        derived = _read_derived(spec, [name for axis in axes for name in axis.variables])
        found = cls(
            name=name,
            title=spec["title"].text("a text") if "title" in spec else name,
            scenario=_base(folder, spec["scenario"].text("the name of a scenario file")),
            settings={path: entry.value for path, entry in settings.items()},
            axes=tuple(axes),
            derived=derived,
            keep=tuple(map(_read_expression, _texts(spec["keep"]))) if "keep" in spec else (),
            seeds=_read_seeds(spec["seeds"]) if "seeds" in spec else None,
            precision=tuple(map(_read_precision, _texts(spec["precision"])))
            if "precision" in spec
            else (),
            max_seeds=_read_max_seeds(spec),
            baseline=_read_baseline(spec["baseline"], axes) if "baseline" in spec else None,
            show=_read_metrics(spec["show"]) if "show" in spec else _SHOWN,
            metrics=own,
        )
        found.refuse_the_useless()
        return found

    def with_overrides(self, overrides: Iterable[Override]) -> Sweep:
        """The sweep with some fields of every run replaced; not those that an axis varies."""
        added = tuple(overrides)
        for path, _ in added:
            for axis in self.axes:
                if (lost := self._replaced_field(axis, path)) is not None:
                    raise AqmlabError(
                        f"{path}: replaces {lost} in every run, which {axis.path} varies; leave "
                        "the one or the other out"
                    )
        return replace(self, overrides=(*self.overrides, *added))

    def with_seeds(self, seeds: Sequence[int]) -> Sweep:
        """The sweep with other seeds."""
        return replace(self, seeds=tuple(seeds))

    def with_metrics(self, metrics: Iterable[Definition]) -> Sweep:
        """The sweep with more metrics of one's own."""
        added = tuple(metrics)
        names = {one.name for one in added}
        kept = tuple(one for one in self.metrics if one.name not in names)
        define(added)
        return replace(self, metrics=(*kept, *added))

    @property
    def shows_the_usual(self) -> bool:
        """Whether the file names no metrics of its own to print."""
        return self.show == _SHOWN

    @property
    def variables(self) -> list[str]:
        """Names of all variables, the derived ones last."""
        return [*(name for axis in self.axes for name in axis.variables), *self.derived]

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The points, the last axis varying fastest; those that ``keep`` refuses are left out."""
        count = math.prod(len(axis.steps) for axis in self.axes)
        if count > _MOST_RUNS:
            raise AqmlabError(f"axes: give {count:,} points; at most {_MOST_RUNS:,} are possible")
        found = tuple(self._points())
        if not found:
            raise AqmlabError("keep: leaves no point of the sweep")
        for name in self.derived:
            same_kind(Field(f"derive.{name}", None), [point.variables[name] for point in found])
        return found

    def _points(self) -> Iterator[Point]:
        for steps in product(*(range(len(axis.steps)) for axis in self.axes)):
            chosen = [axis.steps[step] for axis, step in zip(self.axes, steps, strict=True)]
            variables = {name: value for step in chosen for name, value in step.variables.items()}
            for name, expression in self.derived.items():
                variables[name] = _computed(f"derive.{name}", expression, variables)
            if all(_computed("keep", test, variables) for test in self.keep):
                pairs = [pair for step in chosen for pair in step.settings.items()]
                filled_in = [
                    (filled_key(path, variables), toml_value(filled(value, variables)))
                    for path, value in (*self.settings.items(), *pairs)
                ]
                yield Point(steps, variables, tuple(filled_in))

    def scenario_of(self, point: Point, seed: int | None = None) -> Scenario:
        """The scenario of one run; by default with the seed of the point's scenario."""
        seeds = [] if seed is None else [("seed", str(seed))]
        try:
            return Scenario.load(self.scenario, [*point.overrides, *self.overrides, *seeds])
        except ScenarioError as error:
            raise ScenarioError(f"{error} (at {point.label})") from None

    def baseline_of(self, point: Point) -> tuple[int, ...] | None:
        """Steps of the point that this one is compared with; None: it is one itself."""
        if self.baseline is None or point.steps[self.baseline[0]] == self.baseline[1]:
            return None
        axis, step = self.baseline
        return (*point.steps[:axis], step, *point.steps[axis + 1 :])

    @property
    def baselines(self) -> dict[str, str]:
        """The label of each point's baseline, by the label of the point."""
        by_steps = {point.steps: point for point in self.points}
        found = {}
        for point in self.points:
            steps = self.baseline_of(point)
            if steps is not None and steps in by_steps:
                found[point.label] = by_steps[steps].label
        return found

    def _replaced_field(self, axis: SweepAxis, path: str) -> str | None:
        """A field that an axis varies and that is lost if another path is set later."""
        fields = dict.fromkeys(field for step in axis.steps for field in step.settings)
        later = self._full_path(path)
        lost = (one for one in fields if f"{self._full_path(one)}.".startswith(f"{later}."))
        return next(lost, None)

    def _full_path(self, path: str) -> str:
        """The path that a short one stands for in the scenario."""
        return full_path(self._source, path) if is_short(path) else path

    @cached_property
    def _source(self) -> str:
        """The text of the scenario; nothing if it cannot be read: what runs it says so."""
        try:
            return read_text(shipped(self.scenario), "scenario", _MAX_BYTES)
        except AqmlabError:
            return ""

    def refuse_the_useless(self) -> None:
        """Raises an error for names that no variable has, and for axes that change nothing."""
        known = self.variables
        used: set[str] = set().union(*(expression.names for expression in self.derived.values()))
        places = [("set", self.settings)]
        places += [(axis.path, step.settings) for axis in self.axes for step in axis.steps]
        for path, settings in places:
            for key, value in settings.items():
                names = names_in(key) | names_in(value)
                for name in sorted(names - set(known)):
                    raise AqmlabError(
                        f"{path}: {key} uses ${name}, which is no variable of this sweep"
                        f"{nearest(name, known)}; $$ is a dollar sign"
                    )
                used |= names
        for index, axis in enumerate(self.axes):
            for later in self.axes[index + 1 :]:
                for field in later.steps[0].settings:
                    if (lost := self._replaced_field(axis, field)) is not None:
                        raise AqmlabError(
                            f"{axis.path}: varies {lost}, which {later.path} replaces with {field};"
                            " give each axis a field of its own"
                        )
            if not used & set(axis.variables) and not any(step.settings for step in axis.steps):
                raise AqmlabError(
                    f"{axis.path}: changes nothing; give it a field, or use "
                    f"${axis.variables[0]} in set"
                )


def _computed(path: str, expression: Expression, variables: Mapping[str, Scalar]) -> Scalar:
    """The value of an expression; an error names where it stands."""
    try:
        value = expression.value(variables)
    except AqmlabError as error:
        raise AqmlabError(f"{path}: {error}") from None
    if not isinstance(value, Scalar):
        raise AqmlabError(f'{path}: "{expression.text}" is no text, number, true or false')
    return value


def _refuse_shared_names(axes: Sequence[SweepAxis]) -> None:
    """Raises an error if two axes have a variable of the same name."""
    owners: dict[str, str] = {}
    for axis in axes:
        for name in axis.variables:
            if name in owners:
                raise AqmlabError(f"{axis.path}: {owners[name]} has a variable {name} already")
            owners[name] = axis.path


def _base(folder: Path, name: str) -> Path:
    """The scenario of a sweep file: beside it, in the working folder, or a shipped one."""
    places = [folder / name, Path(name), shipped(Path(name))]
    return next((place for place in places if place.exists()), places[0])


def _texts(field: Field) -> list[Field]:
    """One text, or a list of them."""
    return [field] if isinstance(field.value, str) else field.items("a text, or a list of texts")


def _read_expression(field: Field) -> Expression:
    """An expression of the file."""
    try:
        return Expression.parse(field.text('an expression such as "min_th < max_th"'))
    except AqmlabError as error:
        if str(error).startswith(field.path):
            raise
        field.wrong(str(error))


def _read_derived(spec: Mapping[str, Field], taken: Sequence[str]) -> dict[str, Expression]:
    """The variables that are computed."""
    if "derive" not in spec:
        return {}
    found = {}
    for name, field in spec["derive"].table(what="a table of names and expressions").items():
        if variable_name(Field(field.path, name)) in taken:
            field.wrong("an axis has a variable of this name already")
        found[name] = _read_expression(field)
    return found


def _read_seeds(field: Field) -> tuple[int, ...]:
    """``"1..5"`` or a list of whole numbers."""
    what = 'seeds such as "1..5" or [1, 2, 3]'
    if isinstance(field.value, list):
        found = [item.whole("a whole number from 0") for item in field.items(what)]
    else:
        text = field.text(what)
        try:
            found = vary.seeds(text)
        except AqmlabError as error:
            field.wrong(str(error).removeprefix("--seeds: "))
    if len(set(found)) < len(found):
        field.wrong("holds a seed twice")
    return tuple(found)


def _read_precision(field: Field) -> Precision:
    """``"5% of p50"``, or ``"0.01 of p50"`` in the metric's unit."""
    what = 'a precision such as "5% of p50", or "0.01 of p50" in the metric\'s own unit'
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(%?)\s+of\s+(\S+)\s*", field.text(what))
    try:
        size = float(match[1]) if match else 0.0
    except ValueError:
        size = 0.0
    if match is None or not 0 < size < math.inf:
        field.expected(what)
    relative = bool(match[2])
    return Precision(_known_metric(field, match[3]), size / 100 if relative else size, relative)


def _read_max_seeds(spec: Mapping[str, Field]) -> int:
    """Seeds of a point at most when a precision is wanted."""
    if "max_seeds" not in spec:
        return _MAX_SEEDS
    if "precision" not in spec:
        spec["max_seeds"].wrong("is for sweeps with a precision; this one has none")
    return spec["max_seeds"].whole("a whole number from 2", 2)


def _read_metrics(field: Field) -> tuple[str, ...]:
    """The metrics to print."""
    for item in field.items("a list of metrics"):
        _known_metric(item, item.text("a metric"))
    return tuple(field.value)


def _known_metric(field: Field, name: str) -> str:
    """The column of a metric; of one of links that names none of them, its name."""
    try:
        return Quantity.read(name).column
    except AqmlabError as error:
        field.wrong(str(error))


def _read_baseline(field: Field, axes: Sequence[SweepAxis]) -> tuple[int, int]:
    """``{ queue = "droptail_240" }``: the axis, and the step with which the others are compared."""
    wanted = {
        name: item.scalar()
        for name, item in field.table(what="a table with a variable and its value").items()
    }
    if not wanted:
        field.wrong("is empty; name a variable and its value")
    name = next(iter(wanted))
    axis = next((index for index, axis in enumerate(axes) if name in axis.variables), None)
    if axis is None:
        known = [name for axis in axes for name in axis.variables]
        field.wrong(f"no axis has a variable {name}{nearest(name, known)}")
    for other in wanted:
        if other not in axes[axis].variables:
            field.inner(other).wrong(f"is no variable of the axis of {name}")
    steps = [
        index
        for index, step in enumerate(axes[axis].steps)
        if all(step.variables[name] == value for name, value in wanted.items())
    ]
    if len(steps) != 1:
        field.wrong(f"fits {len(steps) or 'no'} steps of its axis; it has to name exactly one")
    return axis, steps[0]
