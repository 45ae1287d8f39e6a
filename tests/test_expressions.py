"""Expressions of sweeps, whatever the text: a value that files can hold, or one line of error.

As a program, `test_expressions.py SECONDS`, it fuzzes for so long: a part of `make fuzz`.
"""

from __future__ import annotations

import ast
import math
import sys
import time
from types import FrameType
from typing import Any

import pytest
from aqmlab._util import expressions
from aqmlab._util.expressions import MOST_ITEMS, Expression
from aqmlab._util.fields import MOST_WHOLE
from aqmlab.errors import AqmlabError
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

VARIABLES = {
    "load_pct": 80,
    "min_th": 5.5,
    "name": "red",
    "none": 0,
    "points": [1, 2.5, "a"],
    "huge": MOST_WHOLE,
    "tiny": 5e-324,
}

FOUND = [
    "99999999999999999999999",
    "[1] * 1000000000 == 1",
    "'a' * 1000000000",
    "9007199254740991 * 9007199254740991",
    "1e308 * 10",
    "1e999",
    "-1e999 + 1e999",
    "0.0 / 0.0",
    "1 // 0",
    "1 % 0.0",
    "1 in 1",
    "'a' < 1",
    "-'a'",
    "not-1",
    "-" * 499 + "1",
    "(" * 200 + "1" + ")" * 200,
    "[" * 90 + "]" * 90,
    "~1",
    "1 @ 1",
    "2 ** 99999999",
    "1 << 99999999",
    "(lambda: 1)()",
    "().__class__",
    "[x for x in points]",
    "f'{huge}'",
    "'\\x1b[31m'",
    "b'1'",
    "1j",
    "...",
    "None",
    "x := 1",
    "\x00",
    "1\n+ 1",
    "name if tiny else points",
    "1 if tiny / 2 else 0",
]
"""What once was wrong elsewhere, or could be."""

_LEAVES = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.text(max_size=5).map(repr),
    st.sampled_from([*VARIABLES, "unknown", "True", "None"]),
)
_OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<<", "@", "|"]
_OPERATORS += ["<", "<=", "==", "!=", ">", ">=", "in", "not in", "is", "and", "or"]


def _larger(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts of which some are parts."""
    return st.one_of(
        st.tuples(part, st.sampled_from(_OPERATORS), part).map(" ".join).map("({})".format),
        st.tuples(st.sampled_from(["-", "+", "not ", "~"]), part).map("".join),
        st.lists(part, max_size=4).map(", ".join).map("[{}]".format),
        st.tuples(part, part, part).map(lambda parts: "({} if {} else {})".format(*parts)),
    )


TEXTS = st.one_of(st.recursive(_LEAVES, _larger, max_leaves=12), st.text(max_size=60))


def is_bounded(value: object) -> bool:
    """Whether a file can hold a value."""
    match value:
        case bool():
            return True
        case int():
            return abs(value) <= MOST_WHOLE
        case float():
            return math.isfinite(value)
        case str():
            return value.isprintable() and len(value) <= MOST_ITEMS
        case list():
            return len(value) <= MOST_ITEMS and all(map(is_bounded, value))
    return False


def check(text: str) -> None:
    """What holds for every text."""
    try:
        expression = Expression.parse(text)
        value = expression.value(VARIABLES)
    except AqmlabError:
        return
    assert is_bounded(value)
    # Apart from `and` and `or`, which come to a truth value here, it is what Python says.
    if not any(isinstance(node, ast.BoolOp | ast.Tuple) for node in ast.walk(expression.tree)):
        assert value == eval(text.strip(), {"__builtins__": {}}, VARIABLES)


@pytest.mark.long
@given(TEXTS)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_the_text(text: str) -> None:
    check(text)


@pytest.mark.parametrize("text", FOUND)
def test_what_was_found(text: str) -> None:
    check(text)


@given(st.binary())
@example(b"\xff")
@settings(max_examples=100, deadline=None)
def test_text_of_any_bytes(content: bytes) -> None:
    check(content.decode("latin-1"))


def main(seconds: float) -> None:
    """Fuzzes for some seconds; prints how many texts, and how many lines of the code they reach."""
    ends = time.monotonic() + seconds
    reached: set[int] = set()
    executions = 0

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:  # a trace function, or None
        if frame.f_code.co_filename != expressions.__file__:
            return None
        reached.add(frame.f_lineno)
        return trace

    def one(text: str) -> None:
        nonlocal executions
        executions += 1
        check(text)

    number = 0
    while time.monotonic() < ends:
        sys.settrace(trace if number == 0 else None)
        number += 1
        fuzzed = settings(max_examples=1_000, deadline=None, database=None,
                          suppress_health_check=list(HealthCheck))(given(TEXTS)(one))  # fmt: skip
        seed(number + time.time_ns())(fuzzed)()
    for text in FOUND:
        one(text)
    sys.stdout.write(f"{executions} executions, {len(reached)} lines\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
