"""Colours of pages: those of figures, and what a page has beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from aqmlab.figures.theme import THEMES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PALETTE"]


_PAGE: Mapping[str, Mapping[str, str]] = {
    "light": {
        "--line": "#d9dce1",
        "--paper": "#f6f7f9",
        "--shade": "#eef0f3",
        "--link": "#0b57a4",
        "--better": "#00664a",
        "--worse": "#a33c00",
    },
    "dark": {
        "--line": "#3a3d44",
        "--paper": "#15161a",
        "--shade": "#26292f",
        "--link": "#8cc4ff",
        "--better": "#5fd0a5",
        "--worse": "#ffab66",
    },
}
"""What the page has beside the colours of figures."""


def _palette(theme: Literal["light", "dark"]) -> dict[str, str]:
    """All colours of the page under a theme."""
    colours = THEMES[theme]
    return {
        "--text": colours.text,
        "--soft": colours.soft,
        "--grid": colours.grid,
        "--axis": colours.axis,
        "--card": colours.background,
        **_PAGE[theme],
        **{f"--run-{k}": colour for k, colour in enumerate(colours.series, 1)},
    }


PALETTE: Mapping[str, Mapping[str, str]] = {"light": _palette("light"), "dark": _palette("dark")}
"""Colours of the page by theme."""
