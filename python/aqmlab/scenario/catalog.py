"""What there is to choose from, as the engine describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab._util.shipped import SHIPPED
from aqmlab.errors import AqmlabError
from aqmlab.scenario.link_files import link_names
from aqmlab.scenario.vocabulary import WORDS

__all__ = ["Catalog", "CatalogEntry", "scenario_files"]


_FEW_WORDS = 4
"""A meaning of fewer words, such as "Median.", gets the text about its part of the summary."""
_DOTTED = {"metrics", "transports"}
"""Kinds whose names say where they belong before the last dot: ``congestion_control.bbr3``."""


@dataclass(frozen=True)
class CatalogEntry:
    """One thing that a scenario can name, or a word of results."""

    kind: str
    """Such as "disciplines"."""
    name: str
    """As a scenario writes it."""
    summary: str
    parameters: Sequence[Mapping[str, Any]]
    """Name, description, and default or value of each."""
    about: Mapping[str, Any] | None = None
    """Where a discipline comes from: title, paper, purpose, departures, memory."""

    def to_json(self) -> dict[str, Any]:
        """For ``aqmlab explain --json``."""
        return asdict(self)


@dataclass(frozen=True)
class Catalog:
    """Everything that a scenario can name."""

    entries: Sequence[CatalogEntry]
    """All of it apart from links, whose files are read when they are asked for."""

    @classmethod
    def load(cls) -> Catalog:
        """The engine's catalog."""
        content: dict[str, dict[str, Any]] = json.loads(_native.catalog())
        return cls(
            [
                CatalogEntry(
                    kind, name, entry["summary"], entry.get("parameters", []), entry.get("about")
                )
                for kind, named in content.items()
                for name, entry in named.items()
            ]
            + [
                CatalogEntry("metrics", metric["key"], _meaning(metric, section["about"]), [])
                for section in json.loads(_native.result_schema())["sections"]
                for metric in section["metrics"]
            ]
            + [
                CatalogEntry("words", word, f"{about.meaning}\nPage: {about.page}", [])
                for word, about in WORDS.items()
            ]
        )

    def summaries(self, kind: str) -> dict[str, str]:
        """Names and summaries of one kind."""
        if kind == "links":
            return {name: _link_entry(name).summary for name in link_names()}
        return {entry.name: entry.summary for entry in self.entries if entry.kind == kind}

    def find(self, name: str) -> list[CatalogEntry]:
        """What has a name; an error with the nearest names if nothing has."""
        wanted = name.lower()
        found = self._called(wanted)
        if all(entry.kind == "words" for entry in found):
            from aqmlab.results.metrics import SHORT_NAMES  # it looks at every metric

            # The short name of a metric, which tables of sweeps and comparisons have.
            short = wanted.partition(".")[0]
            found += self._called(SHORT_NAMES.get(short, "").rpartition(".")[2])
        if not found:
            import difflib

            last = {entry.name.rpartition(".")[2] for entry in self.entries}
            spellings = {name for about in WORDS.values() for name in about.others}
            known = {entry.name for entry in self.entries} | last | spellings | {*link_names()}
            names = sorted(known | {*SHORT_NAMES})
            close = difflib.get_close_matches(wanted, names, n=3)
            close = close or [one for one in names if len(wanted) > 2 and wanted in one][:3]
            hint = (
                f"did you mean {' or '.join(close)}?"
                if close
                else "`aqmlab list` names disciplines, traffic models and profiles; "
                "docs/metrics.md has the metrics"
            )
            raise AqmlabError(f'nothing is called "{name[:60]}"; {hint}')
        return found

    def _called(self, name: str) -> list[CatalogEntry]:
        """What has a name; of a metric or a transport its last part will do: ``bbr3``."""
        return [
            entry
            for entry in self.entries
            if entry.name == name
            or (entry.kind == "words" and name in WORDS[entry.name].others)
            or (entry.kind in _DOTTED and entry.name.rpartition(".")[2] == name)
        ] + [_link_entry(link) for link in link_names() if link == name]


def _meaning(metric: Mapping[str, Any], about: str) -> str:
    """What a metric of ``summary.json`` means, with its unit; of what, where that is not said."""
    unit = metric["unit"]
    meaning = f"{metric['meaning']} Unit: {unit}." if unit != "1" else str(metric["meaning"])
    is_bare = len(metric["meaning"].split()) < _FEW_WORDS
    return f"{meaning} {about}".strip() if is_bare else meaning


def _link_entry(name: str) -> CatalogEntry:
    """A link that has a name: its numbers with their sources."""
    from aqmlab.scenario.named_links import named_link  # it reads scenarios

    link = named_link(name)
    others = f"Others call it {', '.join(link.names)}. " if link.names else ""
    left = f"It leaves out {link.leaves_out}." if link.leaves_out else ""
    parameters = [
        {"name": key, "value": value, "description": source} for key, value, source in link.numbers
    ]
    return CatalogEntry("links", name, f"{link.title}. {others}{left}".strip(), parameters)


def scenario_files() -> list[Path]:
    """The scenario files in the folder ``scenarios``: of the working folder, or the shipped ones.

    The paths are those that :meth:`~aqmlab.scenario.scenario.Scenario.load` takes.
    """
    own = sorted(Path("scenarios").glob("*.toml"))
    return own or [file.relative_to(SHIPPED) for file in sorted(SHIPPED.glob("scenarios/*.toml"))]
