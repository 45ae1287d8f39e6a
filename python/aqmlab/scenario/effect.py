"""Whether an override takes effect: a direction's own key wins over the one that both share.

``topology.bottleneck.discipline`` speaks of both directions of a link. A direction that states the
key for itself, as ``[topology.bottleneck.reverse]`` does, keeps its own: the override does not
reach it. It is refused if the responses of some traffic cross the link in that direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab.errors import ScenarioError
from aqmlab.scenario.content import content, value_of

__all__ = ["Outvoted", "outvoted", "refuse_without_effect"]


_DIRECTIONS = ("forward", "reverse")
_LINKS = ("bottleneck", "aggregation")
"""Keys of a topology that hold both directions of a link; those in ``links`` do as well."""


@dataclass(frozen=True)
class Outvoted:
    """An override that does not reach one direction of a link."""

    field: str
    """Path of the override, such as ``topology.bottleneck.discipline``."""
    direction: str
    """``forward`` or ``reverse``."""
    winner: str
    """Path of what is in force there, such as ``topology.bottleneck.reverse.discipline``."""

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.field}: does not change {self.direction}, where {self.winner} wins"


def outvoted(source: str, overrides: Sequence[tuple[str, str]]) -> list[Outvoted]:
    """The overrides that a direction's own key keeps from one direction.

    An override that comes later, and speaks of the direction itself, is meant to win.

    Args:
        source: the scenario as TOML.
        overrides: in the order in which they are applied.
    """
    paths = [tuple(key.strip() for key in path.split(".")) for path, _ in overrides]
    shared = [path for path in paths if _is_shared(path)]
    if not shared:
        return []
    tables = content(source)
    stated = {own for path in shared for own in _own_keys(path) if _lies_in(tables, own)}
    found: dict[tuple[str, ...], Outvoted] = {}
    for path, (_, text) in zip(paths, overrides, strict=True):
        stated = {own for own in stated if own[: len(path)] != path} | _stated_by(path, text)
        for own in _own_keys(path) if _is_shared(path) else ():
            if own in stated:
                found[own] = Outvoted(".".join(path), own[-2], ".".join(own))
        # What an override says of the direction itself is what is wanted there.
        found = {own: entry for own, entry in found.items() if own[: len(path)] != path[: len(own)]}
    return list(found.values())


def refuse_without_effect(found: Sequence[Outvoted], carrying: Mapping[str, set[str]]) -> None:
    """Raises an error if an override does not reach a direction that carries responses.

    Args:
        found: what :func:`outvoted` found.
        carrying: the directions that carry responses by link; of links that are missing, both.
    """
    for entry in found:
        link, *_, key = entry.winner.split(".")[1:]
        alone = not any(
            other.field == entry.field and other.direction != entry.direction for other in found
        )
        if alone and entry.direction not in carrying.get(link, _DIRECTIONS):
            continue
        side = entry.winner.rpartition(f".{entry.direction}.")[0]
        raise ScenarioError(
            f"{entry}: set {entry.winner}, or take {key} out of [{side}.{entry.direction}]"
        )


def _is_shared(path: tuple[str, ...]) -> bool:
    """Whether a path speaks of a key that both directions of a link share."""
    return (length := _link_length(path)) > 0 and path[length] not in _DIRECTIONS


def _link_length(path: tuple[str, ...]) -> int:
    """How many keys of a path name a link; 0: it names nothing inside a link."""
    if path[:1] != ("topology",):
        return 0
    length = 3 if path[1:2] == ("links",) else 2 if path[1:2] and path[1] in _LINKS else 0
    return length if len(path) > length else 0


def _own_keys(path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Where each direction would state for itself what a shared path speaks of."""
    length = _link_length(path)
    return [(*path[:length], direction, path[length]) for direction in _DIRECTIONS]


def _lies_in(table: Any, path: tuple[str, ...]) -> bool:  # noqa: ANN401 - any TOML value
    """Whether nested tables state a path."""
    for key in path:
        if not isinstance(table, Mapping) or key not in table:
            return False
        table = table[key]
    return True


def _stated_by(path: tuple[str, ...], text: str) -> set[tuple[str, ...]]:
    """The keys of directions that an override states."""
    length = _link_length(path)
    if not length or path[length] not in _DIRECTIONS:
        return set()
    if len(path) > length + 1:
        return {path[: length + 2]}
    value = value_of(text)
    return {(*path, key) for key in value} if isinstance(value, Mapping) else set()
