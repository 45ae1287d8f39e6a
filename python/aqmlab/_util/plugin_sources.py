"""The sources of the plug-ins that are loaded, and which of them a scenario has."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

__all__ = ["LOADED", "Source", "has_files", "sources_of"]


@dataclass(frozen=True)
class Source:
    """The file of a plug-in, as it was when it was loaded. Where it is unpickled, it is loaded."""

    file: str
    """Its name, without folders."""
    content: bytes
    """What it holds."""
    folder: str = field(default="", compare=False)
    """Where it was loaded from, as an absolute path; nothing if it was no file."""
    arrived: ClassVar[Callable[[str, bytes, str], Source]]
    """What unpickling calls."""

    @property
    def sha256(self) -> str:
        """Its hash, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).arrived, (self.file, self.content, self.folder)


LOADED: dict[str, tuple[Source, list[tuple[str, str]]]] = {}
"""By hash: sources, and kinds and names of the plug-ins that they hold."""
_HASH = re.compile(r'^sha256 = "([0-9a-f]{64})"$|[{ ]sha256 = "([0-9a-f]{64})"', re.MULTILINE)


def sources_of(effective: str) -> tuple[Source, ...]:
    """The sources of the plug-ins that an effective scenario has."""
    if not LOADED:
        return ()
    hashes = dict.fromkeys(first or second for first, second in _HASH.findall(effective))
    return tuple(LOADED[sha256][0] for sha256 in hashes if sha256 in LOADED)


def has_files(effective: str) -> bool:
    """Whether an effective scenario has plug-ins that another process can load."""
    sources = sources_of(effective)
    return bool(sources) and not any(source.file.endswith(".txt") for source in sources)
