"""Charts as Vega-Lite declares them: data, marks, channels, and charts of several plots.

Whatever is said here is a plain value until a chart is written. Altair has the same words and
checks each of them; a command that draws would wait for it as long as for the drawing, so figures
become Altair charts only for those who ask for one: see :mod:`aqmlab.figures.altair_charts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = [
    "Channel",
    "Chart",
    "concat",
    "hconcat",
    "inline",
    "layer",
    "named_data",
    "vconcat",
]


_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
_TYPES = {"N": "nominal", "O": "ordinal", "Q": "quantitative"}
_PARTS = ("layer", "hconcat", "vconcat", "concat")
"""What a chart has its plots under."""
_SECOND = ("x2", "y2")
"""Channels that take the type of ``x`` or ``y``."""
_SIZES = ("width", "height")


class Channel(dict[str, Any]):
    """How a column of the data is shown: ``Channel("delay:Q", title="Delay (ms)")``.

    The letter after the colon is the column's type: nominal, ordinal or quantitative.
    """

    def __init__(self, column: str, **options: Any) -> None:  # noqa: ANN401 - as Vega-Lite has it
        name, _, kind = column.partition(":")
        super().__init__(field=name, type=_TYPES[kind], **options)

    def but(self, **options: Any) -> Channel:  # noqa: ANN401 - as Vega-Lite has it
        """A copy with other options."""
        found = Channel.__new__(Channel)
        found.update(self, **options)
        return found


def inline(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows as a chart's data."""
    return {"values": values}


def named_data(name: str) -> dict[str, Any]:
    """Data that stand elsewhere under a name."""
    return {"name": name}


class Chart:
    """One plot, or several; its methods give a changed copy."""

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        **properties: Any,  # noqa: ANN401 - as Vega-Lite has it
    ) -> None:
        self.parts: dict[str, Any] = {} if data is None else {"data": data}
        self.parts |= properties

    def properties(self, **properties: Any) -> Chart:  # noqa: ANN401 - as Vega-Lite has it
        """The chart with other properties."""
        found = Chart()
        found.parts = self.parts | properties
        return found

    def mark(self, kind: str, **options: Any) -> Chart:  # noqa: ANN401 - as Vega-Lite has it
        """The plot with a mark for each row, such as ``line``."""
        return self.properties(mark={"type": kind, **options})

    def encode(self, **channels: Any) -> Chart:  # noqa: ANN401 - as Vega-Lite has it
        """The plot with more of its data shown; a channel that is None is left out."""
        more = {name: _shown(name, value) for name, value in channels.items() if value is not None}
        return self.properties(encoding=self.parts.get("encoding", {}) | more)

    def keep(self, condition: str) -> Chart:
        """The plot of those rows alone that meet a condition."""
        return self._transformed({"filter": condition})

    def flatten(self, *columns: str) -> Chart:
        """The plot with a row for each entry of columns that hold lists."""
        return self._transformed({"flatten": list(columns)})

    def _transformed(self, step: dict[str, Any]) -> Chart:
        return self.properties(transform=[*self.parts.get("transform", ()), step])

    def scales(self, **resolved: str) -> Chart:
        """The chart whose plots share scales, or have ``independent`` ones."""
        return self.properties(resolve={"scale": resolved})

    def facet(self, **properties: Any) -> Chart:  # noqa: ANN401 - as Vega-Lite has it
        """A plot for each value of the column of the channel ``row`` or ``facet``."""
        by = {key: properties.pop(key) for key in ("row", "facet") if key in properties}
        inner = self.properties()
        data = inner.parts.pop("data", None)
        return Chart(data, facet=by.get("facet", by), spec=inner, **properties)

    def plots(self) -> Iterator[Chart]:
        """The single plots, with their layers."""
        inner = [part for kind in _PARTS for part in self.parts.get(kind, ())]
        if not inner:
            yield self
        for part in inner:
            yield from part.plots()

    def __add__(self, other: Chart) -> Chart:
        """Both charts on the same ground, the second one above."""
        if "layer" in self.parts:
            return self.properties(layer=[*self.parts["layer"], other])
        return layer(self, other)

    def to_dict(self) -> dict[str, Any]:
        """The chart's definition; rows stand apart in ``datasets``, each once."""
        datasets: dict[int, tuple[str, Any]] = {}

        def said(chart: Chart) -> dict[str, Any]:
            found = dict(chart.parts)
            values = found.get("data", {}).get("values")
            if values is not None:
                name, _ = datasets.setdefault(id(values), (f"data-{len(datasets) + 1}", values))
                found["data"] = {"name": name}
            for kind in _PARTS:
                if kind in found:
                    found[kind] = [said(part) for part in found[kind]]
            if "spec" in found:
                found["spec"] = said(found["spec"])
            return found

        spec = said(self) | {"$schema": _SCHEMA}
        return spec | ({"datasets": dict(datasets.values())} if datasets else {})


def _shown(channel: str, value: Any) -> Any:  # noqa: ANN401 - as Vega-Lite has it
    """What a channel shows; a word is a column with its type."""
    if isinstance(value, list):
        return [_shown(channel, one) for one in value]
    if not isinstance(value, str):
        return value
    found = Channel(value)
    if channel in _SECOND:
        del found["type"]
    return found


def layer(
    *charts: Chart,
    data: Mapping[str, Any] | None = None,
    **properties: Any,  # noqa: ANN401 - as Vega-Lite has it
) -> Chart:
    """Plots above each other on the same ground, whose size is that of the first that has one."""
    sizes = {
        key: next(part.parts[key] for part in charts if key in part.parts)
        for key in _SIZES
        if any(key in part.parts for part in charts)
    }
    plain = [part.properties() for part in charts]
    found = [part.parts.get("data") for part in charts]
    shared = data is None and found and all(one is found[0] for one in found)
    for part in plain:
        for key in (*_SIZES, "data") if shared else _SIZES:
            part.parts.pop(key, None)
    return Chart(found[0] if shared else data, layer=plain, **(sizes | properties))


def hconcat(*charts: Chart, spacing: float | None = None) -> Chart:
    """Charts beside each other."""
    return _several("hconcat", charts, spacing=spacing)


def vconcat(*charts: Chart, spacing: float | None = None) -> Chart:
    """Charts below each other."""
    return _several("vconcat", charts, spacing=spacing)


def concat(
    *charts: Chart,
    columns: int,
    spacing: float | None = None,
    title: str | None = None,
) -> Chart:
    """Charts in so many columns."""
    return _several("concat", charts, columns=columns, spacing=spacing, title=title)


def _several(kind: str, charts: Sequence[Chart], **properties: object) -> Chart:
    """Charts in some order, with the properties that are given."""
    known = {key: value for key, value in properties.items() if value is not None}
    return Chart(None, **{kind: list(charts)}, **known)
