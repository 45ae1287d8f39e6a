"""``aqmlab new``: a working starting point for an algorithm of one's own."""

from __future__ import annotations

import re
from enum import Enum
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from aqmlab._util.console import out
from aqmlab._util.files import write_text
from aqmlab.errors import AqmlabError

__all__ = ["command"]


class _Kind(str, Enum):
    """What can be begun."""

    discipline = "discipline"
    control = "control"


class _Language(str, Enum):
    """What it can be written in."""

    python = "python"
    c = "c"


def command(
    kind: Annotated[_Kind, typer.Argument(metavar="KIND", help="discipline or control.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, such as my-red.")],
    language: Annotated[_Language, typer.Option(help="What it is written in.")] = _Language.python,
) -> None:
    """Write a queue discipline or congestion control of your own, as a working starting point.

    Files appear in the current folder: NAME.py, or NAME.c with the header aqmlab.h.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise AqmlabError(f'NAME: found {name}; expected letters, digits and hyphens, as "my-red"')
    stem = name.replace("-", "_")
    folder = resources.files("aqmlab.plugins")
    suffix = {"python": "py", "c": "c"}[language.value]
    text = (folder / "starters" / f"{kind.value}.{suffix}.txt").read_text(encoding="utf-8")
    text = text.replace("NAME", name).replace("STEM", stem).replace("CLASS", _class_name(name))
    files = {Path(f"{stem}.{suffix}"): text}
    if language is _Language.c and not Path("aqmlab.h").exists():
        files[Path("aqmlab.h")] = (folder / "aqmlab.h").read_text(encoding="utf-8")
    for file in files:
        if file.exists():
            raise AqmlabError(f"{file}: is there already; choose another name or folder")
    for file, content in files.items():
        write_text(file, content)
        out(f"wrote {file}")
    plugin = f"{stem}.py"
    if language is _Language.c:
        plugin = f"./{stem}.so"
        out(f"compile: cc -O2 -shared -fPIC -ffp-contract=off -o {stem}.so {stem}.c")
    out(f"check:   aqmlab check {plugin}")


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))
