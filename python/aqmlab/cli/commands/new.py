"""``aqmlab new``: a working starting point for an algorithm or a traffic source of one's own."""

from __future__ import annotations

import re
from enum import Enum
from importlib import resources
from pathlib import Path

from aqmlab import _native
from aqmlab._util.console import out
from aqmlab._util.files import write_text
from aqmlab.errors import AqmlabError

__all__ = ["command"]


class _PluginKind(str, Enum):
    """What can be begun."""

    discipline = "discipline"
    control = "control"
    source = "source"


class _Language(str, Enum):
    """What it can be written in."""

    python = "python"
    c = "c"
    rust = "rust"


_LONGEST_NAME = 60
_ALGORITHMS = {
    _Language.python: ({"STEM.py": "KIND.py"}, ["check:   aqmlab check STEM.py"]),
    _Language.c: (
        {"STEM.c": "KIND.c", "aqmlab.h": ""},
        [
            "compile: cc -O2 -shared -fPIC -ffp-contract=off -o STEM.so STEM.c",
            "check:   aqmlab check ./STEM.so",
        ],
    ),
    _Language.rust: (
        {
            "STEM/Cargo.toml": "Cargo.toml",
            "STEM/src/lib.rs": "KIND.rs",
            "STEM/src/aqmlab.rs": "aqmlab.rs",
        },
        [
            "compile: cd STEM && cargo test && cargo build --release",
            "check:   aqmlab check STEM/target/release/libSTEM.so",
        ],
    ),
}
"""By language: files with the starting points that they are made of, and what to do with them."""
_SOURCE = (
    {"STEM.py": "source.py", "STEM.toml": "source.toml"},
    [
        "vectors: python STEM.py",
        "look:    aqmlab traffic describe STEM.cvec",
        "run:     aqmlab run STEM.toml",
    ],
)


def command(
    kind: _PluginKind,
    name: str,
    *,
    language: _Language = _Language.python,
) -> None:
    """Write a template of your own queue, control or traffic source.

    The command writes into the current folder. A queue or control is NAME.py, or NAME.c with the
    header aqmlab.h, or the folder of a Rust crate. A source is two files: a Python program that
    writes connection vectors, and a scenario that replays them.

    Options:
        kind (KIND): What to write.
        name (NAME): Name of the queue, control or source, such as my-red.
        language: Programming language of a queue or control.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > _LONGEST_NAME:
        found = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
        raise AqmlabError(
            f"NAME: found {found}; expected at most {_LONGEST_NAME} small letters, digits and "
            'hyphens, as "my-red"'
        )
    if kind is not _PluginKind.source:
        try:
            _native.check_plugin_name(name)
        except AqmlabError as error:
            raise AqmlabError(f"NAME: {str(error).removeprefix('name: ')}") from None
    if kind is _PluginKind.source and language is not _Language.python:
        raise AqmlabError(f"--language: found {language.value}; sources are written in python")
    layout, next_steps = _SOURCE if kind is _PluginKind.source else _ALGORITHMS[language]
    words = {
        "KIND": kind.value,
        "NAME": name,
        "STEM": name.replace("-", "_"),
        "CLASS": "".join(part.capitalize() for part in name.split("-")),
    }

    def filled(text: str) -> str:
        return re.sub("|".join(words), lambda word: words[word[0]], text)

    folder = resources.files("aqmlab.plugins")
    files = {}
    for place, start in layout.items():
        path = Path(filled(place))
        if not start and path.exists():
            continue  # the header, which other plug-ins share
        source = folder / "starters" / f"{filled(start)}.txt" if start else folder / path.name
        text = source.read_text(encoding="utf-8")
        files[path] = filled(text) if start else text
    for path in files:
        if path.exists():
            raise AqmlabError(f"{path}: is there already; choose another name or folder")
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, content)
        out(f"wrote {path}")
    for line in next_steps:
        out(filled(line))
