"""The look of every figure: sizes, colours, line patterns, headings.

Colours are those of M. Okabe and K. Ito (Color Universal Design, 2008), which readers with any
colour vision can tell apart, made lighter or darker until each stands out from its background;
beyond eight curves the line pattern tells them apart too.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from aqmlab._util.words import capital
from aqmlab.errors import AqmlabError
from aqmlab.figures.files import definition, excess
from aqmlab.figures.grammar import Channel, Chart

__all__ = [
    "MOST_SERIES",
    "PATTERNS",
    "THEMES",
    "Figure",
    "Heading",
    "Look",
    "Theme",
    "ThemeName",
    "WidthName",
    "configured",
    "finish",
]


WidthName = Literal["column", "page", "screen"]
ThemeName = Literal["light", "dark", "page"]


@dataclass(frozen=True)
class Theme:
    """Colours."""

    text: str
    soft: str
    """Of words beside the point, and of lines that show what is wanted."""
    grid: str
    axis: str
    background: str
    series: tuple[str, ...]
    """One after the other for the curves."""
    scheme: tuple[str, str]
    """From the least to the most of a heat map."""


THEMES: Mapping[ThemeName, Theme] = {
    "light": Theme(
        text="#1a1c20",
        soft="#545962",
        grid="#e6e8ec",
        axis="#7a7f88",
        background="#ffffff",
        series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#c98500", "#3a9fd8", "#000000",
                "#8f8400"),
        scheme=("#e8f1f8", "#00476f"),
    ),
    "dark": Theme(
        text="#e8e8ea",
        soft="#b0b3ba",
        grid="#31343b",
        axis="#7d818a",
        background="#1d1f24",
        series=("#56a8e8", "#f0803c", "#2fbf95", "#e39cc6", "#e6b429", "#9bd4f7", "#e8e8ea",
                "#d8d04a"),
        scheme=("#26303a", "#8ccbff"),
    ),
    # What a page's own style says: colours follow its theme.
    "page": Theme(
        text="var(--text)",
        soft="var(--soft)",
        grid="var(--grid)",
        axis="var(--axis)",
        background="transparent",
        series=tuple(f"var(--run-{number})" for number in range(1, 9)),
        scheme=("var(--shade)", "var(--run-1)"),
    ),
}  # fmt: skip
PATTERNS = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Dash patterns: the first for the first eight curves, the next for the next eight, ..."""
SHAPES = ("circle", "square", "triangle-up", "diamond")
"""Shapes of dots, which go with the patterns of lines."""
MOST_SERIES = 8 * len(PATTERNS)
"""Curves that a figure can tell apart."""


@dataclass(frozen=True)
class _Size:
    """What depends on how large a figure is."""

    total: float
    """Width of the whole figure."""
    unit: Literal["pt", "px"]
    """What a length is in a file: points of print, or pixels of a screen."""
    text: float
    heading: float
    stroke: float
    height: float
    """Height of a plot."""
    low: float
    """Height of one of several plots above each other."""
    dots_per_unit: float
    """Pixels of a PNG for each unit of length."""


_SIZES: Mapping[WidthName, _Size] = {
    # 3.5 inches and 7.16 inches: IEEE's column and page, at 300 dots per inch.
    "column": _Size(252, "pt", 7, 8.5, 1.1, 132, 58, 300 / 72),
    "page": _Size(515.5, "pt", 8, 10, 1.2, 170, 68, 300 / 72),
    "screen": _Size(900, "px", 12, 15, 1.8, 280, 100, 2),
}


_MOST_LENGTH = 5000


@dataclass(frozen=True)
class Look:
    """How a figure looks: where it is to stand, and on what background.

    Widths ``column`` and ``page`` are 3.5 and 7.16 inches, as papers have them; ``screen`` is 900
    pixels. The theme ``page`` takes the colours of the web page in which a chart stands.
    """

    width: WidthName = "screen"
    theme: ThemeName = "light"
    title: str | None = None
    """Stands in place of the computed title; empty: no title and no subtitle."""
    x_label: str | None = None
    """Name of the horizontal axis, in place of its own."""
    y_label: str | None = None
    """Name of the vertical axis."""
    names: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Other names for runs, classes of traffic, and values of parameters."""
    height: float | None = None
    """Height of a plot: points of print, or pixels of a screen."""
    font: str = "sans-serif"
    font_size: float | None = None
    """Size of small print; titles grow with it."""

    def __post_init__(self) -> None:
        known: dict[str, Iterable[str]] = {"width": _SIZES, "theme": THEMES}
        for name, names in known.items():
            if getattr(self, name) not in names:
                raise AqmlabError(
                    f"{name}: found {getattr(self, name)}; expected one of {', '.join(names)}"
                )
        for name in ("height", "font_size"):
            value = getattr(self, name)
            if value is not None and not 0 < value < _MOST_LENGTH:
                raise AqmlabError(
                    f"{name}: found {value:g}; expected a length above 0 and below {_MOST_LENGTH}"
                )

    @property
    def size(self) -> _Size:
        """What depends on the width, and what is chosen apart from it."""
        size = _SIZES[self.width]
        if self.font_size is not None:
            size = replace(
                size, text=self.font_size, heading=size.heading * self.font_size / size.text
            )
        if self.height is not None:
            size = replace(size, height=self.height, low=size.low * self.height / size.height)
        return size

    def named(self, name: str) -> str:
        """A name as the figure has it."""
        return self.names.get(name, name)

    @property
    def colours(self) -> Theme:
        """The colours."""
        return THEMES[self.theme]

    def stroke(self, number: int) -> str:
        """The colour of a curve."""
        series = self.colours.series
        return series[number % len(series)]

    @staticmethod
    def dash(number: int) -> list[int]:
        """The line pattern of a curve."""
        return PATTERNS[number // 8 % len(PATTERNS)]

    def colour(
        self,
        names: Sequence[str],
        of: str = "series",
        *,
        legend: bool | None = None,
        most: int | None = MOST_SERIES,
        among: Sequence[str] = (),
    ) -> Channel:
        """A colour per curve, in their order; an error if there are more than `most`.

        A single curve needs no legend: the title or the subtitle names it.

        Args:
            names: of the curves.
            of: the column that has them.
            legend: whether there is a legend; default: of several curves.
            most: so many curves at most.
            among: all that were given, in their order, if not all of them have a curve: each keeps
                the colour of its place, so that a queue looks alike in every figure.
        """
        if most is not None and len(names) > most:
            raise AqmlabError(
                f"a figure shows at most {most} curves, not {len(names)}; name fewer runs, or "
                "keep some with --where NAME=VALUE"
            )
        scale = {"domain": list(names), "range": [self.stroke(k) for k in _places(names, among)]}
        shown = len(names) > 1 if legend is None else legend
        return Channel(f"{of}:N", sort=list(names), scale=scale, legend=self._legend(names, shown))

    def pattern(
        self,
        names: Sequence[str],
        of: str = "series",
        *,
        legend: bool | None = None,
        among: Sequence[str] = (),
    ) -> Channel:
        """A line pattern per curve: solid for as long as the colours last."""
        places = _places(names, among)
        scale = {"domain": list(names), "range": [self.dash(k) for k in places]}
        shown = len(names) > 1 if legend is None else legend
        return Channel(f"{of}:N", sort=list(names), scale=scale, legend=self._legend(names, shown))

    def shape(
        self, names: Sequence[str], of: str = "series", *, legend: bool | None = None
    ) -> Channel | None:
        """A shape per dot; None for as long as colours alone tell them apart."""
        if len(names) <= 8:
            return None
        scale = {"domain": list(names), "range": [SHAPES[k // 8] for k in range(len(names))]}
        shown = len(names) > 1 if legend is None else legend
        return Channel(f"{of}:N", sort=list(names), scale=scale, legend=self._legend(names, shown))

    def _legend(self, names: Sequence[str], shown: bool) -> dict[str, Any] | None:
        """A legend in as many columns as the labels leave room for."""
        if not shown:
            return None
        label = max(map(len, names)) * 0.55 * self.size.text + 3.5 * self.size.text
        return {"title": None, "columns": max(1, int(self.size.total / label))}

    def letters(self, font: float, share: float = 0.54) -> int:
        """How many letters of a font stand beside each other in the figure."""
        return int((self.size.total - 8) / (share * font))


def _places(names: Sequence[str], among: Sequence[str]) -> list[int]:
    """The places of some curves among all that were given."""
    order = {name: place for place, name in enumerate(among or names)}
    return [order[name] for name in names]


@dataclass(frozen=True)
class Heading:
    """What a figure says, and what it draws."""

    title: str
    """The finding, computed from the data."""
    subtitle: tuple[str, ...] = ()
    """What is drawn: link, direction, seeds, intervals."""

    def params(self, look: Look) -> dict[str, Any] | None:
        """The heading in lines that fit; nothing if the look has no title."""
        if look.title == "":
            return None
        title = self.title if look.title is None else look.title
        lines = textwrap.wrap(title, look.letters(look.size.heading, 0.57)) or [""]
        below = [
            line
            for text in self.subtitle
            for line in textwrap.wrap(capital(text), look.letters(look.size.text))
        ]
        return {
            "text": lines,
            "subtitle": below,
            "anchor": "start",
            "frame": "bounds",
            "offset": look.size.text * 0.8,
            "fontSize": look.size.heading,
            "subtitleFontSize": look.size.text,
        }

    def within(self, look: Look, room: float) -> dict[str, Any]:
        """The heading above a part of a figure, in lines that fit its width."""
        font, small = look.size.text, 0.92 * look.size.text
        below = self.subtitle[0] if self.subtitle else ""
        return {
            "text": textwrap.wrap(self.title, int(room / (0.54 * font))) or [""],
            "subtitle": textwrap.wrap(capital(below), int(room / (0.5 * small))),
            "anchor": "start",
            "fontSize": font,
            "subtitleFontSize": small,
        }


@dataclass(frozen=True)
class Figure:
    """A figure before it has a size: some plots and what stands above them."""

    heading: Heading
    build: Callable[[float], Chart]
    """Gives the plots when those beside each other may have some width together."""
    margin: float = 6
    """About what axes and labels take beside the plots, in heights of text."""

    def chart(self, look: Look) -> Chart:
        """The finished figure."""
        return finish(self.build, look, self.heading, self.margin)


def finish(
    build: Callable[[float], Chart], look: Look, heading: Heading, margin: float = 6
) -> Chart:
    """A figure of the look's width, under its heading.

    Args:
        build: gives the figure when all plots beside each other may have some width together.
        look: its look.
        heading: what stands above it.
        margin: about what axes and labels take beside the plots, in heights of text. Where it is
            nearly right, the figure is drawn once.
    """
    params = heading.params(look)
    room = look.size.total - margin * look.size.text

    def drawn(room: float) -> Chart:
        plain = _with_axis_names(build(room), look)
        titled = plain if params is None else plain.properties(title=params)
        return configured(titled, look, width=look.size.total)

    chart = drawn(room)
    # What axes, legends and labels take is known when they have been drawn.
    over = excess(definition(chart))
    return drawn(room - math.ceil(over)) if over else chart


def _with_axis_names(chart: Chart, look: Look) -> Chart:
    """A chart whose axes have the look's names."""
    for channel, option in (("x", "x_label"), ("y", "y_label")):
        wanted = getattr(look, option)
        if wanted is None:
            continue
        axes = [
            axis
            for plot in chart.plots()
            if isinstance(axis := plot.parts.get("encoding", {}).get(channel), Channel)
        ]
        titled = [axis for axis in axes if isinstance(axis.get("title"), str)]
        titles = list(dict.fromkeys(str(axis["title"]) for axis in titled))
        if len(titles) > 1:
            raise AqmlabError(
                f"{option}: found {wanted!r}, but the figure has several such axes: "
                f"{', '.join(titles)}"
            )
        for axis in titled or axes:
            axis["title"] = wanted
    return chart


def configured(chart: Chart, look: Look, width: float | None = None) -> Chart:
    """The style that all figures share; with a width, its file has that width."""
    colours, size = look.colours, look.size
    config: dict[str, Any] = {
        "background": colours.background,
        "font": look.font,
        "padding": round(size.text * 0.6),
        "axis": {
            "labelFontSize": size.text,
            "titleFontSize": size.text,
            "titleFontWeight": "normal",
            "labelColor": colours.soft,
            "titleColor": colours.text,
            "gridColor": colours.grid,
            "domainColor": colours.axis,
            "tickColor": colours.axis,
            "tickSize": size.text * 0.4,
            "labelPadding": size.text * 0.2,
            "titlePadding": size.text * 0.5,
        },
        "axisX": {"grid": False},
        "title": {
            "fontSize": size.text * 1.08,
            "anchor": "start",
            "fontWeight": "bold",
            "color": colours.text,
            "subtitleColor": colours.soft,
            "offset": size.text * 0.4,
        },
        "header": {
            "labelColor": colours.text,
            "labelFontSize": size.text,
            "titleColor": colours.text,
        },
        "legend": {
            "labelFontSize": size.text,
            "labelColor": colours.text,
            "titleColor": colours.text,
            "titleFontSize": size.text,
            "orient": "top",
            "symbolType": "stroke",
            "symbolStrokeWidth": 2.2 * size.stroke,
            "symbolSize": 9 * size.text,
            "symbolOpacity": 1,
            "labelLimit": size.total,
            "offset": size.text * 0.5,
            "rowPadding": 2,
            "columnPadding": size.text,
        },
        "view": {"stroke": None},
    }
    about = {"unit": size.unit, "scale": size.dots_per_unit}
    if width is not None:
        about["width"] = width
    return chart.properties(config=config, usermeta={"aqmlab": about})
