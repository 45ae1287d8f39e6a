"""PDF documents: the same drawings give the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pypdf
import vl_convert
from pypdf.generic import DictionaryObject

if TYPE_CHECKING:
    from pypdf.generic import PdfObject

__all__ = ["A4", "POINT", "paper", "pdf", "size_of"]

A4 = 794.0, 1123.0
"""Width and height of a page, upright, in pixels of 1/96 inch."""
POINT = 0.75
"""A pixel of a drawing in points: a page of 96 dots per inch."""


def paper(drawing: str, width: float, height: float) -> str:
    """A white page with a drawing, as SVG."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}"><rect width="100%" height="100%" fill="#fff"/>'
        f"{drawing}</svg>"
    )


def size_of(picture: str) -> tuple[float, float]:
    """Width and height of an SVG."""
    found = dict(re.findall(r'\s(width|height)="([\d.]+)"', picture.partition(">")[0]))
    return float(found["width"]), float(found["height"])


def pdf(
    drawings: Iterable[str],
    title: str = "",
    scale: float = POINT,
    attachments: Mapping[str, str] | None = None,
) -> bytes:
    """A document with a page for each drawing.

    Args:
        drawings: The pages as SVG.
        title: Title of the document; empty: none.
        scale: Points that a unit of a drawing becomes.
        attachments: Texts that go with the document, by file name.
    """

    def scaled(drawing: str) -> str:
        """What pypdf would scale it would leave without compression."""
        width, height = size_of(drawing)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{scale * width:g}" '
            f'height="{scale * height:g}" viewBox="0 0 {width:g} {height:g}">{drawing}</svg>'
        )

    book = pypdf.PdfWriter()
    for drawing in drawings:
        for page in pypdf.PdfReader(io.BytesIO(vl_convert.svg_to_pdf(scaled(drawing)))).pages:
            _order(page)
            book.add_page(page)
    book.add_metadata({"/Creator": "aqmlab"} | ({"/Title": title} if title else {}))
    for name, text in (attachments or {}).items():
        book.add_attachment(name, text.encode())
    written = io.BytesIO()
    book.write(written)
    return written.getvalue()


def _order(part: PdfObject | None) -> None:
    """Sorts the resources of a page or a part of it by name.

    The converter writes fonts and the like in an order that differs from call to call.
    """
    if not isinstance(part, DictionaryObject) or "/Resources" not in part:
        return
    resources = part["/Resources"].get_object()
    if not isinstance(resources, DictionaryObject):
        return
    for kind in resources.values():
        named = kind.get_object()
        if isinstance(named, DictionaryObject):
            entries = sorted(named.items())
            named.clear()
            named.update(entries)
            for _, one in entries:
                _order(one.get_object())
