"""Words of messages."""

from __future__ import annotations

import pytest
from aqmlab._util.words import counted, in_sentence, lasting, listing, several


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (5399, "90 min"),
        (5400, "2 h"),
        (172_799, "48 h"),
        (172_800, "2.0 days"),
    ],
)
def test_a_length_of_time_is_said_roughly(seconds: float, words: str) -> None:
    assert lasting(seconds) == words


def test_things_are_counted() -> None:
    assert [counted(number, "run") for number in (0, 1, 3000)] == ["0 runs", "1 run", "3,000 runs"]


def test_lists_are_written_as_people_write_them() -> None:
    names = ["a", "b", "c"]
    assert [listing(names[:count], "or") for count in range(4)] == ["", "a", "a or b", "a, b or c"]
    assert [in_sentence(names[:count]) for count in (1, 2, 3)] == ["a", "a and b", "a, b, and c"]
    assert [several(names, most) for most in (3, 2)] == ["a, b, c", "a, b and 1 more"]
    assert several(names, 1, " / ") == "a and 2 more"
