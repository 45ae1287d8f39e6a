"""The files of links that have names."""

from __future__ import annotations

from pathlib import Path

__all__ = ["link_file", "link_names"]


_FOLDER = Path(__file__).parent / "links"


def link_names() -> list[str]:
    """The names of all links."""
    return sorted(file.stem for file in _FOLDER.glob("*.toml"))


def link_file(name: str) -> Path:
    """Where a link is described."""
    return _FOLDER / f"{name}.toml"
