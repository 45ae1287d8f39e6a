"""Assertions on ``struct tcp_info``: code of a script, of which only expressions are evaluated."""

from __future__ import annotations

import ast
import operator
import textwrap
from collections.abc import Callable, Iterator, Mapping

from aqmlab.validation.packetdrill.language import LanguageError, NotApplicableError

__all__ = ["CONSTANTS", "Assertion", "assertions"]

CONSTANTS = {
    "TCP_CA_Open": 0,
    "TCP_CA_Disorder": 1,
    "TCP_CA_CWR": 2,
    "TCP_CA_Recovery": 3,
    "TCP_CA_Loss": 4,
    "TCP_ESTABLISHED": 1,
    "TCP_SYN_SENT": 2,
    "TCP_SYN_RECV": 3,
    "TCP_FIN_WAIT1": 4,
    "TCP_FIN_WAIT2": 5,
    "TCP_TIME_WAIT": 6,
    "TCP_CLOSE": 7,
    "TCP_CLOSE_WAIT": 8,
    "TCP_LAST_ACK": 9,
    "TCP_LISTEN": 10,
    "TCP_CLOSING": 11,
    "TCP_INFINITE_SSTHRESH": 0x7FFF_FFFF,
}
"""The kernel's names of states."""
OPERATORS: Mapping[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
SIGNS: Mapping[type[ast.AST], Callable[[float], float]] = {
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "int": int,
    "float": float,
    "round": round,
}


class Assertion:
    """An expression that must hold."""

    def __init__(self, line: int, test: ast.expr) -> None:
        self.line = line
        self.test = test
        self.text = ast.unparse(test)

    def names(self) -> list[str]:
        """What it asks for, in its order."""
        nodes = [node for node in ast.walk(self.test) if isinstance(node, ast.Name)]
        known = {*CONSTANTS, *FUNCTIONS}
        nodes.sort(key=lambda node: (node.lineno, node.col_offset))
        return list(dict.fromkeys(node.id for node in nodes if node.id not in known))

    def holds(self, values: Mapping[str, float]) -> bool:
        """Whether it holds with these values.

        Raises:
            NotApplicableError: It is more than an expression of numbers.
        """
        try:
            return bool(self.value(self.test, {**CONSTANTS, **values}))
        except (ArithmeticError, TypeError, ValueError, RecursionError) as error:
            raise LanguageError(self.line, f"assert {self.text}: {error}") from None

    def value(self, node: ast.expr, values: Mapping[str, float]) -> float:
        """What an expression is."""
        found: float
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                if isinstance(number, int) and number.bit_length() > 64:
                    raise ValueError("found a number of more than 64 bits")
                found = number
            case ast.Name(id=name) if name in values:
                found = values[name]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in SIGNS:
                found = SIGNS[type(op)](self.value(operand, values))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                result = OPERATORS[type(op)](self.value(left, values), self.value(right, values))
                found = self.value(ast.Constant(result), values)
            case ast.BoolOp(op=op, values=parts):
                decides = all if isinstance(op, ast.And) else any
                found = decides(bool(self.value(part, values)) for part in parts)
            case ast.Compare(left=left, ops=ops, comparators=others):
                found = self.compare(left, ops, others, values)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                found = FUNCTIONS[name](*(self.value(arg, values) for arg in args))
            case _:
                message = f"assert {self.text}: only numbers are compared here"
                raise NotApplicableError(self.line, message)
        return found

    def compare(
        self,
        left: ast.expr,
        ops: list[ast.cmpop],
        others: list[ast.expr],
        values: Mapping[str, float],
    ) -> bool:
        """A comparison, or a chain of them."""
        first = self.value(left, values)
        for op, other in zip(ops, others, strict=True):
            second = self.value(other, values)
            if type(op) not in OPERATORS:
                message = f"assert {self.text}: only numbers are compared here"
                raise NotApplicableError(self.line, message)
            if not OPERATORS[type(op)](first, second):
                return False
            first = second
        return True


def assertions(line: int, code: str) -> Iterator[Assertion]:
    """The assertions of a piece of code. What it prints is left out.

    Raises:
        LanguageError: It is no code.
        NotApplicableError: It does more than assert.
    """
    try:
        tree = ast.parse(textwrap.dedent(code).strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        raise LanguageError(line, f"found code that Python cannot read: {why}") from None
    for statement in tree.body:
        # Code often begins on the line below its opening bracket.
        shift = len(code) - len(code.lstrip())
        place = line + code[:shift].count("\n") + statement.lineno - 1
        match statement:
            case ast.Assert(test=test):
                try:
                    yield Assertion(place, test)
                except RecursionError:
                    raise LanguageError(place, "found an assertion that is too deep") from None
            case ast.Pass() | ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
                continue
            case ast.Expr(value=ast.Constant()):
                continue
            case _:
                raise NotApplicableError(place, "code that does more than assert is not run")
