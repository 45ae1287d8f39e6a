"""Writing figures: SVG, PNG, PDF, and a web page that needs no network."""

from __future__ import annotations

import hashlib
import os
import re
import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vl_convert

from aqmlab._util.files import write_bytes
from aqmlab.errors import AqmlabError
from aqmlab.figures.grammar import Chart

if TYPE_CHECKING:
    from altair import TopLevelMixin as AltairChart

__all__ = [
    "WRITERS",
    "check_address_space",
    "check_suffix",
    "definition",
    "excess",
    "inside",
    "save",
    "svg",
]


_RESERVED = 66 << 30
"""Bytes of addresses that the renderer reserves, about; of memory it takes some hundred MB."""
_NAMED = re.compile(r'id="(\w+)"')
_NAME = re.compile(r'(?<=\bid=")\w+(?=")|(?<=#)\w+(?=\))')
"""The name of an element, where it is given and where it is referred to."""
_HEAD = re.compile(r'<svg ([^>]*?)width="([\d.]+)" height="([\d.]+)"')
_APART = ("data", "datasets", "usermeta")
"""Parts of a definition with values of the figure's own."""
_NEAR = 0.015
"""A picture is made this much wider or narrower as a whole: 12 pixels of text become 11.8."""


def save(chart: Chart | AltairChart, path: str | os.PathLike[str]) -> Path:
    """Writes a figure; the name's suffix says how: .svg, .png, .pdf or .html (needs no network).

    Raises:
        AqmlabError: the suffix is unknown, or the place cannot be written.
    """
    target = Path(path)
    write = check_suffix(target)
    write_bytes(target, write(definition(chart)))
    return target


def definition(chart: Chart | AltairChart) -> dict[str, Any]:
    """A chart as Vega-Lite, unchecked: tests check all kinds, which takes longer than drawing."""
    return chart.to_dict() if isinstance(chart, Chart) else chart.to_dict(validate=False)


def check_address_space() -> None:
    """An error if this process may not reserve the addresses that drawing needs: it would abort."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY and most < _RESERVED:
        raise AqmlabError(
            f"`ulimit -v` leaves {most / 2**30:.3g} GiB of addresses; figures and reports reserve "
            f"{_RESERVED >> 30} GiB, and use little of them; bound the memory by a control group"
        )


def check_suffix(path: Path) -> Callable[[dict[str, Any]], bytes]:
    """What writes a file of this name; an error if nothing does."""
    check_address_space()
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise AqmlabError(
            f"{path}: a figure is written as {', '.join(WRITERS)}, not as "
            f"{path.suffix or 'a file without suffix'}"
        )
    return writer


def svg(spec: dict[str, Any]) -> str:
    """A chart's definition as SVG; one for print states its size in points.

    Always the same: Vega numbers its clips on from chart to chart.
    """
    picture = _sized(spec)
    names = dict.fromkeys(_NAMED.findall(picture))
    parts = {name: f"part{number}" for number, name in enumerate(names)}
    picture = _NAME.sub(lambda found: parts.get(found[0], found[0]), picture)
    unit = _about(spec, "unit", "px")
    if unit == "px":
        return picture
    return _HEAD.sub(rf'<svg \1width="\2{unit}" height="\3{unit}"', picture, count=1)


def inside(picture: str, x: float, scale: float) -> str:
    """A drawing as a part of a sheet, on which its elements have names of their own.

    An image of it would take ten times as long to turn into pixels.
    """
    own = hashlib.sha256(picture.encode()).hexdigest()[:8]
    names = {*_NAMED.findall(picture)}
    picture = _NAME.sub(
        lambda found: f"{found[0]}_{own}" if found[0] in names else found[0], picture
    )
    width, height = _size(picture)
    size = f'x="{x:.1f}" width="{scale * width:.1f}" height="{scale * height:.1f}"'
    return _HEAD.sub(rf"<svg \1{size}", picture, count=1)


def excess(spec: dict[str, Any]) -> float:
    """How much wider than its look a chart is drawn, in its own unit; 0 where scaling mends it."""
    width, _ = _size(_drawn(spec))
    total = float(_about(spec, "width", width))
    return 0.0 if abs(width - total) <= _NEAR * total else width - total


def _size(picture: str) -> tuple[float, float]:
    """Width and height of a picture."""
    found = _HEAD.search(picture)
    assert found is not None, "vl-convert states the size of an SVG"
    return float(found[2]), float(found[3])


def _sized(spec: dict[str, Any]) -> str:
    """What Vega draws, at the width of its look where that is near."""
    picture = _drawn(spec)
    width, height = _size(picture)
    total = float(_about(spec, "width", width))
    if width == total or excess(spec):
        return picture
    # The picture's own coordinates stay: it is shown in another size.
    head = rf'<svg \1width="{total:g}" height="{height * total / width:.5g}"'
    return _HEAD.sub(head, picture, count=1)


_LATEST: list[tuple[dict[str, Any], str]] = []
"""What was drawn last: a figure whose width was right is written next."""


def _drawn(spec: dict[str, Any]) -> str:
    """What Vega draws."""
    for known, picture in _LATEST:
        if known == spec:
            return picture
    picture = vl_convert.vegalite_to_svg(_still(spec), allowed_base_urls=[])
    _LATEST[:] = [(spec, picture)]
    return picture


def _still(part: Any) -> Any:  # noqa: ANN401 - JSON
    """A part of a definition without what only a pointer shows: drawing is faster without it."""
    if isinstance(part, list):
        return [_still(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {name: _still(one) for name, one in part.items() if name not in _APART}
    if "encoding" in kept:
        kept["encoding"] = {key: one for key, one in kept["encoding"].items() if key != "tooltip"}
    return kept | {name: part[name] for name in _APART if name in part}


def _about(spec: dict[str, Any], key: str, default: Any) -> Any:  # noqa: ANN401 - JSON
    """What a figure's look says of its file."""
    return spec.get("usermeta", {}).get("aqmlab", {}).get(key, default)


def _png(spec: dict[str, Any]) -> bytes:
    """A picture: of a figure for print, 300 dots per inch."""
    return vl_convert.svg_to_png(_sized(spec), scale=_about(spec, "scale", 2.0))


def _pdf(spec: dict[str, Any]) -> bytes:
    """A document with the figure as its page."""
    from aqmlab.figures.pdf import pdf  # other figures do without its library

    return pdf([_sized(spec)], scale=1.0)


WRITERS: Mapping[str, Callable[[dict[str, Any]], bytes]] = {
    ".svg": lambda spec: svg(spec).encode(),
    ".png": _png,
    ".pdf": _pdf,
    ".html": lambda spec: vl_convert.vegalite_to_html(spec, bundle=True).encode(),
}
"""By suffix."""
