"""``--set FIELD=VALUE``, ``--vary FIELD=A,B,...`` and ``--seeds A..B``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Override, Scenario

__all__ = ["assignment", "combinations", "seeds", "split", "variations"]


_OPENING = {"[": "]", "{": "}"}
_QUOTES = "\"'"
_MOST_SEEDS = 10_000


def assignment(text: str, option: str) -> Override:
    """Splits FIELD=VALUE."""
    field, equals, value = text.partition("=")
    if not equals or not field.strip():
        raise AqmlabError(f'{option}: found "{text[:80]}"; expected FIELD=VALUE')
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
    ends = [-1, *_outer_commas(text), len(text)]
    values = [text[left + 1 : right].strip() for left, right in pairwise(ends)]
    if not all(values):
        raise AqmlabError(f'--vary: found "{text[:80]}", where a value between commas is empty')
    return values


def _outer_commas(text: str) -> Iterator[int]:
    """Positions of the commas outside of quotes, brackets and braces."""
    closing: list[str] = []
    for position, character in enumerate(text):
        if closing and character == closing[-1]:
            closing.pop()
        elif closing and closing[-1] in _QUOTES:
            continue
        elif character in _QUOTES:
            closing.append(character)
        elif character in _OPENING:
            closing.append(_OPENING[character])
        elif character == "," and not closing:
            yield position
