"""``--set FIELD=VALUE``, ``--vary FIELD=A,B,...`` and ``--seeds A..B``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Override, Scenario

__all__ = ["assignment", "combinations", "seeds", "split", "variations"]


_QUOTES = "\"'"
_CLOSING = {"[": "]", "{": "}", '"': '"', "'": "'"}
_NAMES = {"[": "bracket", "{": "brace", '"': "quotation mark", "'": "quotation mark"}
_MOST_SEEDS = 10_000


def assignment(text: str, option: str) -> Override:
    """Splits FIELD=VALUE."""
    field, equals, value = text.partition("=")
    if not equals or not field.strip():
        raise AqmlabError(f'{option}: found "{text[:80]}"; expected FIELD=VALUE')
    _, unclosed = _scanned(value)
    for position in unclosed[:1]:
        # Elsewhere such a character may be a part of plain text.
        if value[:position].rstrip()[-1:] in {"", ","}:
            what = _NAMES[value[position]]
            raise AqmlabError(
                f'{option} {field.strip()}: found "{value.strip()[:80]}", where the {what} '
                f"{value[position]} is not closed"
            )
    return field.strip(), value.strip()


def combinations(varied: Sequence[str]) -> list[list[Override]]:
    """Every combination of the values of some ``--vary`` options; one empty one without any."""
    alternatives = []
    for text in varied:
        field, values = assignment(text, "--vary")
        alternatives.append([(field, value) for value in split(values)])
    return [list(chosen) for chosen in product(*alternatives)]


def variations(base: Scenario, varied: Sequence[str]) -> list[Scenario]:
    """The scenario with every combination of the values of some ``--vary`` options.

    An error if two combinations are the same scenario: what is varied has no effect there.
    """
    found: list[Scenario] = []
    named: dict[str, str] = {}
    for pairs in combinations(varied):
        scenario = base.with_overrides(pairs)
        name = ", ".join(f"{field}={value}" for field, value in pairs)
        if (twin := named.get(scenario.effective)) is not None:
            raise AqmlabError(
                f"--vary: {twin} and {name} are the same scenario; name each value once, and each "
                "field in one --vary"
            )
        named[scenario.effective] = name
        found.append(scenario)
    return found


def seeds(text: str) -> list[int]:
    """Several seeds: ``1..8`` (both ends included), ``1,5,9``, or both, in order, once each."""
    found: list[int] = []
    for part in text.split(","):
        first, dots, last = (piece.strip() for piece in part.partition(".."))
        ends = (first, last if dots else first)
        if not all(end.isascii() and end.isdigit() for end in ends):
            raise AqmlabError(f'--seeds: found "{text[:80]}"; expected seeds such as 1..8 or 1,5,9')
        if int(first) > int(ends[1]):
            raise AqmlabError(
                f'--seeds: found "{part.strip()[:80]}", whose first seed is larger than its last; '
                f"expected {ends[1]}..{first}"[:200]
            )
        if int(ends[1]) - int(first) >= _MOST_SEEDS:
            raise AqmlabError(f'--seeds: found "{text[:80]}"; at most {_MOST_SEEDS:,} at a time')
        found += range(int(first), int(ends[1]) + 1)
    return list(dict.fromkeys(found))


def split(text: str) -> list[str]:
    """Values between commas; commas inside quotes, brackets and braces belong to a value."""
    commas, _ = _scanned(text)
    ends = [-1, *commas, len(text)]
    values = [text[left + 1 : right].strip() for left, right in pairwise(ends)]
    if not all(values):
        raise AqmlabError(f'--vary: found "{text[:80]}", where a value between commas is empty')
    return values


def _scanned(text: str) -> tuple[list[int], list[int]]:
    """Positions of the commas outside of quotes, brackets and braces, and of what stays open."""
    commas: list[int] = []
    opened: list[tuple[int, str]] = []
    for position, character in enumerate(text):
        closing = opened[-1][1] if opened else ""
        if character == closing:
            opened.pop()
        elif closing and closing in _QUOTES:
            continue
        elif character in _CLOSING:
            opened.append((position, _CLOSING[character]))
        elif character == "," and not opened:
            commas.append(position)
    return commas, [position for position, _ in opened]
