"""Small expressions over the variables of a sweep: ``34 * load_pct``, ``min_th < max_th``.

The language is the part of Python's that only computes: numbers, texts, lists of them, variables,
arithmetic, comparisons, ``in``, ``and``, ``or``, ``not``, ``x if y else z``, and calls of the
functions that its user allows (a sweep allows none).
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from aqmlab._util.fields import MOST_WHOLE
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError

LONGEST = 500
"""Most characters of an expression: a longer one could exhaust the stack."""

MOST_ITEMS = 10_000
"""Most characters of a text, and items of a list, that an expression may come to."""

BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}

Functions = Mapping[str, Callable[..., Any]]
"""Functions that an expression may call, by name."""


@dataclass(frozen=True)
class Expression:
    """An expression that was checked: it holds only what the language has."""

    text: str
    tree: ast.expr
    functions: Functions = field(default_factory=dict, compare=False)

    @classmethod
    def parse(cls, text: str, functions: Functions | None = None) -> Expression:
        """Reads an expression; the error says what is wrong with it."""
        known = functions or {}
        if len(text) > LONGEST:
            raise AqmlabError(f"is longer than {LONGEST} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise AqmlabError(f'"{text}" is no expression such as "min_th < max_th"') from None
        for node in ast.walk(tree):
            refuse_the_unknown(node, text, known)
        return cls(text, tree, known)

    @cached_property
    def names(self) -> set[str]:
        """The variables that it uses."""
        used = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        return used - set(self.functions)

    def value(self, variables: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a number, text, ...
        """What it comes to."""
        for name in sorted(self.names - set(variables)):
            raise AqmlabError(
                f'"{self.text}" uses {name}, which is no variable of this sweep'
                + nearest(name, variables)
            )
        try:
            return evaluate(self.tree, {**self.functions, **variables})
        except (TypeError, ZeroDivisionError, OverflowError) as error:
            raise AqmlabError(f'"{self.text}" cannot be computed: {error}') from None
        except RecursionError:
            raise AqmlabError(f'"{self.text}" is nested too deeply') from None


def refuse_the_unknown(node: ast.AST, text: str, functions: Functions) -> None:
    """Raises an error for a part that the language does not have."""
    parts = (ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.IfExp)
    terms = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.And, ast.Or)
    known = (*parts, *terms, *BINARY, *UNARY, *COMPARE)
    fits = isinstance(node, known)
    if isinstance(node, ast.Constant):
        fits = isinstance(node.value, str | int | float)
        try:
            bounded(node.value)
        except OverflowError as error:
            raise AqmlabError(f'"{text}" holds {error}') from None
    if isinstance(node, ast.Call):
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        fits = called in functions and not node.keywords
    if not fits:
        raise AqmlabError(
            f'"{text}" holds {type(node).__name__}; possible are numbers, texts, variables, '
            "+ - * / // %, comparisons, in, and, or, not, if else"
        )


def evaluate(node: ast.expr, variables: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """The value of a part."""

    def value(part: ast.expr) -> Any:  # noqa: ANN401
        return evaluate(part, variables)

    result: Any
    match node:
        case ast.Constant(value=constant):
            result = constant
        case ast.Name(id=name):
            result = variables[name]
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            result = [value(part) for part in parts]
        case ast.Call(func=function, args=parts):
            result = value(function)(*map(value, parts))
        case ast.BinOp(left=left, op=op, right=right):
            result = arithmetic(op, value(left), value(right))
        case ast.UnaryOp(op=unary, operand=part):
            result = UNARY[type(unary)](value(part))
        case ast.BoolOp(op=both, values=parts):
            result = (all if isinstance(both, ast.And) else any)(value(part) for part in parts)
        case ast.IfExp(test=test, body=yes, orelse=no):
            result = value(yes if value(test) else no)
        case ast.Compare(left=left, ops=ops, comparators=others):
            terms = [value(left), *map(value, others)]
            pairs = zip(ops, pairwise(terms), strict=True)
            result = all(COMPARE[type(op)](*pair) for op, pair in pairs)
        case _:
            raise AssertionError(f"checked expressions hold no {type(node).__name__}")
    return result


def arithmetic(op: ast.operator, left: object, right: object) -> object:
    """The result of an operator; texts and lists can only be joined."""
    for kind, name in ((str, "text"), (list, "list")):
        found = [isinstance(side, kind) for side in (left, right)]
        if any(found) and not (all(found) and isinstance(op, ast.Add)):
            raise TypeError(f"a {name} is no number")
    return bounded(BINARY[type(op)](left, right))


def bounded(value: object) -> object:
    """The value, if it is one that tables and files can hold; else an OverflowError."""
    if isinstance(value, int) and abs(value) > MOST_WHOLE:
        raise OverflowError(f"a whole number beyond {MOST_WHOLE}")
    # Arrays of numbers, and what they come to, may have gaps.
    if type(value) is float and not math.isfinite(value):
        raise OverflowError("a number that is not finite")
    if isinstance(value, str | list) and len(value) > MOST_ITEMS:
        raise OverflowError(f"a text or list of more than {MOST_ITEMS:,} items")
    if isinstance(value, str) and not value.isprintable():
        raise OverflowError("a text with characters that cannot be printed")
    return value
