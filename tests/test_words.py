"""Words of messages."""

from __future__ import annotations

import pytest
from aqmlab._util.words import lasting


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
