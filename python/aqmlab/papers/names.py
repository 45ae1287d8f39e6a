"""Which papers there are: nothing else of them is loaded."""

from __future__ import annotations

from pathlib import Path

from aqmlab._util.fields import toml_table
from aqmlab._util.shipped import SHIPPED
from aqmlab.errors import AqmlabError

__all__ = ["folder_of", "names", "titles"]


def names() -> list[str]:
    """Names of the papers that are known here."""
    return sorted(
        {path.parent.name for folder in _folders() for path in folder.glob("*/tables.toml")}
    )


def titles() -> dict[str, str]:
    """What each paper is called, by its name."""
    return {
        name: str(toml_table(folder_of(name) / "tables.toml", "paper")["paper"]) for name in names()
    }


def folder_of(name: str) -> Path:
    """The folder of a paper."""
    candidates = [Path(name), *(folder / name for folder in _folders())]
    for folder in candidates:
        if (folder / "tables.toml").is_file():
            return folder
    known = names()
    listed = f"known papers: {', '.join(known)}" if known else "no paper is installed"
    raise AqmlabError(f"there is no paper {name}; {listed}")


def _folders() -> list[Path]:
    """Where papers are looked for: in the working directory, then among the shipped ones."""
    return [Path("papers"), SHIPPED / "papers"]
