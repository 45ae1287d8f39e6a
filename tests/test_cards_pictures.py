"""The pictures of a card."""

from typing import Any

from aqmlab.cards.pictures import _place


def test_names_of_tests_cover_no_point_and_no_other_name() -> None:
    near = ["a-fast", "a-rtts", "a-heavy"]
    pairs: list[dict[str, Any]] = [{"queue": "candidate", "test": name} for name in near]
    pairs.append({"queue": "drop-tail", "test": "a-fast"})
    _place(pairs, [0.50, 0.49, 0.56, 0.9], [0.05, 0.12, 0.09, 0.0], 420)
    first, _, third = (pair["spot"] for pair in pairs[:3])
    assert third == 0, "nothing is right of it"
    assert first != 0, "its right is the third's point"
    assert "spot" not in pairs[3], "only the candidate's points have names"


def test_a_name_stays_within_the_plot() -> None:
    pairs: list[dict[str, Any]] = [{"queue": "candidate", "test": "a-capacity-fast"}]
    _place(pairs, [0.95], [0.5], 420)
    assert pairs[0]["spot"] == 1
