"""Metrics of one's own: numbers that a text computes from a run's tables and its summary.

See docs/how-to/metrics-of-your-own.md. A text is checked as a whole before any run is opened:
tables, columns, what they hold, functions, units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from aqmlab._util.lazy import np, pa, pc
from aqmlab._util.words import counted, nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.bounds import UNBOUNDED, Bounds
from aqmlab.results.columns import (
    TABLES,
    Column,
    column_of,
    lacking,
    stored_name,
)
from aqmlab.results.formula_text import (
    Both,
    CallNode,
    Compare,
    Name,
    Negative,
    Node,
    Not,
    NumberNode,
    Operation,
    TextNode,
    Texts,
    Truth,
    parse,
    written,
)
from aqmlab.results.metrics import known_keys, unit_in_summary
from aqmlab.results.units import SHARE, Factor, alike, converted, factor

__all__ = ["FUNCTIONS", "Formula", "Keyed", "ReadKey", "Recorded"]


_Takes = Literal["column", "test", "either"]
_BY_REASON = ("drops", "marks")
"""Parts of a summary whose keys are a discipline's own words."""
_AT_LEAST_ZERO: Bounds = (0.0, math.inf)
_WHOLE: Bounds = (0.0, 1.0)


class Keyed(Protocol):
    """A number of a summary, as a name stands for it."""

    @property
    def section(self) -> str:
        """First part of its key."""

    @property
    def last(self) -> str:
        """Last part of its key."""

    @property
    def key(self) -> str:
        """Its path in ``summary.json``."""

    @property
    def is_known(self) -> bool:
        """Whether the engine declares it."""

    @property
    def bounds(self) -> Bounds:
        """The least and the largest value."""

    def of(self, run: Any) -> float | None:  # noqa: ANN401 - whatever has a summary
        """Its value in a run; None if it was not measured."""


ReadKey = Callable[[str], Keyed]
"""Reads the name of a number of a summary; an error if there is none."""


class Recorded(Protocol):
    """A run, or whatever else has a summary and tables."""

    @property
    def path(self) -> Path:
        """What messages call it."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """``summary.json``."""

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The effective scenario."""

    def has(self, table: str) -> bool:
        """Whether it has a table."""

    def column_names(self, table: str) -> list[str]:
        """What the columns of a table are called."""

    def read(self, table: str, columns: Sequence[str] | None = None) -> Any:  # noqa: ANN401
        """Some columns of a table; None if there is no such table."""


@dataclass(frozen=True)
class _Function:
    """A function of the rows of a table."""

    fold: Callable[[Any, float], float]
    """What it makes of the values, which are not empty, and of its second number."""
    meaning: str
    takes: _Takes = "column"
    values: int = 1
    """How many it takes; the second is a share."""
    unit: str | None = None
    """The unit of what it gives; None: that of its column."""
    bounds: Bounds = UNBOUNDED


def _quantile(values: Any, share: float) -> float:  # noqa: ANN401 - an array of floats
    """The smallest value that so many do not exceed."""
    place = max(1, math.ceil(share * len(values))) - 1
    return float(np.partition(values, place)[place])


def _std(values: Any, _: float) -> float:  # noqa: ANN401 - an array of floats
    """Of a sample; of one value there is none."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _jain(values: Any, _: float) -> float:  # noqa: ANN401 - an array of floats
    squares = float(np.sum(values**2))
    return float(np.sum(values)) ** 2 / (len(values) * squares) if squares else math.nan


def _mean(values: Any, _: float) -> float:  # noqa: ANN401 - an array of floats
    return float(np.mean(values))


def _sum(values: Any, _: float) -> float:  # noqa: ANN401 - an array of floats
    return float(np.sum(values))


FUNCTIONS: Mapping[str, _Function] = {
    "count": _Function(_sum, "rows for which a test is true, or with a value", "either", unit=""),
    "share": _Function(_mean, "share of the rows for which a test is true", "test", unit=SHARE),
    "sum": _Function(_sum, "sum"),
    "rate": _Function(_sum, "sum over the measured span, by second"),
    "mean": _Function(_mean, "mean"),
    "std": _Function(_std, "standard deviation of a sample"),
    "min": _Function(lambda values, _: float(np.min(values)), "smallest value"),
    "max": _Function(lambda values, _: float(np.max(values)), "largest value"),
    "median": _Function(lambda values, _: _quantile(values, 0.5), "median"),
    "quantile": _Function(_quantile, "smallest value that a share does not exceed", values=2),
    "jain": _Function(_jain, "Jain's index of fairness", unit="", bounds=_WHOLE),
}
"""Functions of rows by name."""


@dataclass(frozen=True)
class _Kind:
    """What a checked part gives."""

    unit: str = ""
    bounds: Bounds = UNBOUNDED


@dataclass(frozen=True)
class Formula:
    """A text that gives a number of a run.

    Example:
        >>> from aqmlab.results.own_metrics import formula
        >>> late = formula("share(responses.response_s > 1) in %")
        >>> late.unit, sorted(late.tables), late.bounds
        ('%', ['responses'], (0.0, 100.0))
    """

    text: str
    unit: str
    """In which its numbers are; empty: none."""
    bounds: Bounds
    """The least and the largest number."""
    tables: frozenset[str]
    """What it reads; empty: the summary alone."""
    _tree: Node = field(repr=False, compare=False)
    _factor: Factor = field(repr=False, compare=False)
    _keys: Mapping[str, Keyed] = field(repr=False, compare=False)

    @classmethod
    def read(cls, text: str, read_key: ReadKey) -> Formula:
        """The formula of a text; an error says what is wrong with it.

        Args:
            text: what people write.
            read_key: reads the name of a number of the summary.
        """
        tree, wanted = parse(text)
        check = _Check(read_key)
        kind = check.number(tree)
        by = factor(kind.unit, wanted) if wanted else (1, 1)
        unit = wanted or ("" if kind.unit == SHARE else kind.unit)
        low, high = (converted(end, by) for end in kind.bounds)
        tables = frozenset(_tables(tree))
        return cls(text.strip(), unit, (low, high), tables, tree, by, check.keys)

    def of(self, run: Recorded) -> float | None:
        """Its number of a run, in its unit; None: it was not measured.

        Raises:
            AqmlabError: the run lacks a table or a column that it reads.
        """
        found = self._value(self._tree, run)
        if found is None or not math.isfinite(found := converted(found, self._factor)):
            return None
        return found

    def lacking(self, scenario: Mapping[str, Any]) -> str:
        """Why the runs of a scenario will not do; nothing if they will."""
        return next(filter(None, (lacking(table, scenario) for table in sorted(self.tables))), "")

    def _value(self, node: Node, run: Recorded) -> float | None:
        """The number of a checked part in a run; None: it was not measured."""
        match node:
            case NumberNode(value):
                return value
            case Name(text):
                return self._keys[text].of(run)
            case CallNode():
                return _folded(node, run)
            case Negative(of):
                inner = self._value(of, run)
                return None if inner is None else -inner
            case Operation(sign, left, right):
                first, second = self._value(left, run), self._value(right, run)
                return None if first is None or second is None else _arithmetic(sign, first, second)
            case _:
                raise AssertionError("it was checked")


def _tables(node: Node) -> Iterator[str]:
    """The tables that a checked part reads."""
    match node:
        case CallNode():
            yield _table_of(node)
        case Operation(_, left, right):
            yield from (*_tables(left), *_tables(right))
        case Negative(of):
            yield from _tables(of)
        case _:
            pass


@dataclass(frozen=True)
class _Check:
    """Checks the parts of a text."""

    read_key: ReadKey
    keys: dict[str, Keyed] = field(default_factory=dict)
    """The numbers of the summary that it reads, by name."""

    def number(self, node: Node) -> _Kind:
        """Checks a part that gives one number."""
        match node:
            case NumberNode():
                return _Kind()
            case Name(text):
                return self._key(text)
            case CallNode():
                return self._call(node)
            case Negative(of):
                inner = self.number(of)
                return _Kind(inner.unit, (-inner.bounds[1], -inner.bounds[0]))
            case Operation(sign, left, right):
                return _joined(node, sign, self.number(left), self.number(right), (left, right))
            case TextNode():
                raise AqmlabError(f"found {written(node)}; a text stands in a test only")
            case _:
                raise AqmlabError(
                    f"{written(node)}: is a test, not a number; take count(...) or share(...) of it"
                )

    def _key(self, text: str) -> _Kind:
        """Checks a number of the summary."""
        table, _, name = text.partition(".")
        if table in TABLES and name and column_of(table, name) is not None:
            raise AqmlabError(
                f"{text}: is a column, not a number; take mean(...), quantile(...), count(...) of "
                "it"
            )
        if text in FUNCTIONS:
            raise AqmlabError(f"{text}: is a function; it takes a column, such as packets.wait_s")
        if table in TABLES and name and "." not in name and not self._is_key(text):
            raise _no_column(table, name)
        found = self.read_key(text)
        if found.section == "metrics":
            raise AqmlabError(f"{text}: is a metric of your own; one cannot stand in the other")
        _ = found.key
        if not found.is_known and not any(f".{part}." in text for part in _BY_REASON):
            known = known_keys(found.section) if found.section != "breakdown" else ()
            raise AqmlabError(f"{text}: there is no {found.last}{nearest(found.last, known)}")
        self.keys[text] = found
        return _Kind(unit_in_summary(found.section, found.last), found.bounds)

    def _is_key(self, text: str) -> bool:
        """Whether a name is that of a number of the summary."""
        try:
            self.read_key(text)
        except AqmlabError:
            return False
        return True

    def _call(self, node: CallNode) -> _Kind:
        """Checks a function of rows."""
        name, given = node.name, node.given
        if name not in FUNCTIONS:
            hint = nearest(name, FUNCTIONS)
            raise AqmlabError(
                f'there is no function "{name[:40]}"{hint} (there are {", ".join(FUNCTIONS)})'
            )
        function = FUNCTIONS[name]
        for word, _ in node.named:
            if word != "where":
                raise AqmlabError(f'{name} has no "{word[:40]}"; it has where')
        if len(node.named) > 1:
            raise AqmlabError(f"{name}: found where twice; join the tests with and")
        if len(given) != function.values:
            raise AqmlabError(
                f"{name} takes {counted(function.values, 'value')}, found {len(given)}"
            )
        share = given[1] if function.values > 1 else NumberNode(0.0)
        if not isinstance(share, NumberNode) or not 0 <= share.value <= 1:
            raise AqmlabError(
                f"{name}: found {written(share)}; expected a share from 0 to 1, such as 0.99"
            )
        if function.takes == "test" or (function.takes == "either" and _is_test(given[0])):
            self._test(given[0], name)
            kind = _Kind("", _AT_LEAST_ZERO)
        else:
            kind = self._column(given[0], name)
        for _, test in node.named:
            self._test(test, f"{name}: where")
        _table_of(node)
        return _given(name, function, kind)

    def _named_column(self, text: str, where: str) -> Column:
        """The column of a name among columns."""
        table, dot, name = text.partition(".")
        if table in TABLES and dot:
            found = column_of(table, name)
            if found is not None:
                return found
            if self._is_key(text):
                raise _not_a_column(text)
            raise _no_column(table, name)
        if self._is_key(text):
            raise _not_a_column(text)
        if not dot:
            raise AqmlabError(
                f"{where}: found {text[:40]}; expected a column such as packets.wait_s, or a text "
                "in quotes"
            )
        raise AqmlabError(
            f'there is no table "{table[:40]}"{nearest(table, TABLES)} '
            f"(there are {', '.join(TABLES)})"
        )

    def _column(self, node: Node, where: str) -> _Kind:
        """Checks a part that gives a number for each row."""
        match node:
            case NumberNode():
                return _Kind()
            case Name(text):
                found = self._named_column(text, where)
                if found.kind == "text":
                    raise AqmlabError(f"{where}: {text} holds texts; it can stand in a test only")
                return _Kind(found.unit, _AT_LEAST_ZERO)
            case Negative(of):
                return _Kind(self._column(of, where).unit)
            case Operation(sign, left, right):
                kinds = self._column(left, where), self._column(right, where)
                return _joined(node, sign, *kinds, (left, right))
            case CallNode():
                raise AqmlabError(
                    f"{written(node)}: a function stands inside another; metrics are joined with "
                    "+ - * /"
                )
            case TextNode() | Texts() | Truth():
                raise AqmlabError(f"{where}: found {written(node)}; expected a column")
            case _:
                raise AqmlabError(f"{where}: found the test {written(node)}; expected a column")

    def _test(self, node: Node, where: str) -> None:
        """Checks a part that is true or false of each row."""
        match node:
            case Both(_, left, right):
                self._test(left, where)
                self._test(right, where)
            case Not(of):
                self._test(of, where)
            case Compare(sign, left, right):
                self._compared(sign, left, right, where)
            case Name(text) if self._named_column(text, where).kind == "bool":
                pass
            case CallNode():
                self._column(node, where)
            case _:
                raise AqmlabError(
                    f"{where}: found {written(node)}; expected a test such as "
                    'packets.class == "calls"'
                )

    def _compared(self, sign: str, left: Node, right: Node, where: str) -> None:
        """Checks a comparison."""
        sides = [left, *(right.values if isinstance(right, Texts) else [right])]
        kinds = [self._side(side, where) for side in sides]
        if len(set(kinds)) > 1:
            other = next(place for place, kind in enumerate(kinds) if kind != kinds[0])
            raise AqmlabError(
                f"{where}: {written(sides[0])} is a {kinds[0]}, found the {kinds[other]} "
                f"{written(sides[other])}"
            )
        if kinds[0] == "number":
            units = {
                self._column(side, where).unit for side in sides if not isinstance(side, NumberNode)
            }
            if len(units) > 1:
                said = " and ".join(unit or "no unit" for unit in sorted(units, reverse=True))
                raise AqmlabError(f"{where}: found {said}; they cannot be compared")
        elif sign not in ("==", "!=", "in", "not in"):
            raise AqmlabError(f'{where}: found "{sign}" between {kinds[0]}s; possible are == != in')

    def _side(self, node: Node, where: str) -> str:
        """What one side of a comparison is of each row."""
        match node:
            case TextNode():
                return "text"
            case Truth():
                return "truth"
            case Name(text):
                kind = self._named_column(text, where).kind
                return {"text": "text", "bool": "truth"}.get(kind, "number")
            case _:
                self._column(node, where)
                return "number"


def _no_column(table: str, name: str) -> AqmlabError:
    """That a table has no such column."""
    known = [column.name for column in TABLES[table]]
    hint = nearest(name, known) or f" (it has {', '.join(known)})"
    return AqmlabError(f'{table} has no column "{name}"{hint}')


def _joined(node: Node, sign: str, left: _Kind, right: _Kind, parts: tuple[Node, Node]) -> _Kind:
    """What a sign makes of two numbers or columns: products and quotients lose their unit."""
    if sign in "*/":
        return _Kind()
    plain = [isinstance(part, NumberNode) for part in parts]
    if left.unit != right.unit and not any(plain):
        said = [kind.unit or "no unit" for kind in (left, right)]
        hint = "; they differ in size" if alike(left.unit, right.unit) else ""
        raise AqmlabError(f"{written(node)}: found {said[0]} and {said[1]}; they cannot be "
                          f"{'added' if sign == '+' else 'subtracted'}{hint}")  # fmt: skip
    unit = right.unit if plain[0] else left.unit
    return _Kind(unit, _AT_LEAST_ZERO if sign == "+" and _grow(left, right) else UNBOUNDED)


def _grow(*kinds: _Kind) -> bool:
    """Whether none of them can be negative."""
    return all(kind.bounds[0] >= 0 for kind in kinds)


def _given(name: str, function: _Function, kind: _Kind) -> _Kind:
    """What a function gives of such values."""
    unit = kind.unit if function.unit is None else function.unit
    if name == "rate":
        return _Kind(f"{unit}/s" if unit else "", kind.bounds)
    if name == "std":
        return _Kind(unit, _AT_LEAST_ZERO)
    if name in ("count", "share", "jain"):
        return _Kind(unit, _AT_LEAST_ZERO if name == "count" else _WHOLE)
    return _Kind(unit, kind.bounds)


def _table_of(node: CallNode) -> str:
    """The one table of a function."""
    used = sorted({name.partition(".")[0] for name in _names(node)})
    if len(used) > 1:
        raise AqmlabError(f"{node.name}: needs columns of one table, found {', '.join(used)}")
    if not used:
        raise AqmlabError(f"{node.name}: needs a column, such as packets.wait_s")
    return used[0]


def _names(node: Node) -> Iterator[str]:
    """The columns in a part."""
    match node:
        case Name(text):
            yield text
        case CallNode(_, given, named):
            for part in (*given, *(test for _, test in named)):
                yield from _names(part)
        case Operation(_, left, right) | Compare(_, left, right) | Both(_, left, right):
            yield from (*_names(left), *_names(right))
        case Negative(of) | Not(of):
            yield from _names(of)
        case _:
            pass


def _not_a_column(text: str) -> AqmlabError:
    """That a number of the summary stands among columns."""
    return AqmlabError(f"{text}: is a number of the summary; it cannot stand among columns")


def _is_test(node: Node) -> bool:
    """Whether a part is true or false of a row."""
    if isinstance(node, Name):
        table, _, name = node.text.partition(".")
        found = column_of(table, name) if table in TABLES else None
        return found is not None and found.kind == "bool"
    return isinstance(node, Compare | Both | Not | Truth)


def _arithmetic(sign: str, left: float, right: float) -> float | None:
    """A sign between two numbers; None where it gives none."""
    try:
        result = {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: left / right,
        }[sign]()
    except (ZeroDivisionError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def _folded(node: CallNode, run: Recorded) -> float | None:
    """A function of the rows of a run's table."""
    table = _table_of(node)
    rows = _TableRows.of(run, table, dict.fromkeys(_names(node)))
    function, [first, *more] = FUNCTIONS[node.name], node.given
    if function.takes == "column" or (function.takes == "either" and not _is_test(first)):
        values = rows.numbers(first)
        if node.name == "count":
            values = pc.cast(pc.is_valid(values), pa.float64())
    else:
        values = pc.cast(rows.test(first), pa.float64())
    for _, test in node.named:
        values = pc.filter(values, rows.test(test))  # a row of which nothing is known is left out
    kept = values.drop_null().to_numpy()
    if not len(kept):
        return None
    share = more[0].value if more and isinstance(more[0], NumberNode) else 0.0
    found = function.fold(kept, share)
    if node.name == "rate":
        found /= float(run.summary["measured_s"])
    return found if math.isfinite(found) else None


@dataclass(frozen=True)
class _TableRows:
    """Some columns of a run's table."""

    columns: Mapping[str, Any]
    """By name, as the text has it."""
    count: int

    @classmethod
    def of(cls, run: Recorded, table: str, names: Sequence[str] | Mapping[str, None]) -> _TableRows:
        """The columns of some names."""
        if not run.has(table):
            raise AqmlabError(lacking(table, run.scenario, always=True))
        stored = {name: stored_name(table, name.partition(".")[2]) for name in names}
        there = run.column_names(table)
        for column in stored.values():
            if column not in there:
                raise AqmlabError(f'{table}.parquet of {run.path} has no column "{column}"')
        found = run.read(table, list(dict.fromkeys(stored.values())))
        assert found is not None, "the run has the table"
        columns = {
            name: _in_seconds(found.column(column), name, column) for name, column in stored.items()
        }
        return cls(columns, found.num_rows)

    def numbers(self, node: Node) -> Any:  # noqa: ANN401 - an array of floats
        """What a column, or a computation of columns, is in each row; empty where it is none."""
        found = self._numbers(node)
        if isinstance(found, float):
            return pa.chunked_array([np.full(self.count, found)])
        return pc.if_else(pc.is_finite(found), found, None)

    def _numbers(self, node: Node) -> Any:  # noqa: ANN401 - an array of floats, or a float
        match node:
            case NumberNode(value):
                return value
            case Name(text):
                return pc.cast(self.columns[text], pa.float64())
            case Negative(of):
                inner = self._numbers(of)
                return -inner if isinstance(inner, float) else pc.negate(inner)
            case Operation(sign, left, right):
                sides = self._numbers(left), self._numbers(right)
                if all(isinstance(side, float) for side in sides):
                    found = _arithmetic(sign, *sides)
                    return math.nan if found is None else found
                return getattr(pc, _SIGNS[sign])(*sides)
            case _:
                raise AssertionError("it was checked")

    def test(self, node: Node) -> Any:  # noqa: ANN401 - an array of truth values
        """Whether each row fits; empty where an empty cell leaves that open."""
        match node:
            case Both("and", left, right):
                return pc.and_kleene(self.test(left), self.test(right))
            case Both(_, left, right):
                return pc.or_kleene(self.test(left), self.test(right))
            case Not(of):
                return pc.invert(self.test(of))
            case Name(text):
                return self.columns[text]
            case Compare(sign, left, right):
                return self._compared(sign, left, right)
            case _:
                raise AssertionError("it was checked")

    def _compared(self, sign: str, left: Node, right: Node) -> Any:  # noqa: ANN401 - see above
        first = self._side(left)
        if isinstance(right, Texts):
            found: Any = None
            for value in right.values:
                one = pc.equal(first, self._side(value))
                found = one if found is None else pc.or_kleene(found, one)
        else:
            found = getattr(pc, _COMPARISONS[sign])(first, self._side(right))
        found = pc.invert(found) if sign == "not in" else found
        if isinstance(found, pa.Scalar):
            return pa.chunked_array([pa.array([found.as_py()] * self.count, pa.bool_())])
        return found

    def _side(self, node: Node) -> Any:  # noqa: ANN401 - an array, or a value
        match node:
            case TextNode(value) | Truth(value):
                return value
            case Name(text):
                column = self.columns[text]
                if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
                    return column
                if pa.types.is_boolean(column.type):
                    return column
                return self.numbers(node)
            case _:
                found = self._numbers(node)
                return found if isinstance(found, float) else self.numbers(node)


def _in_seconds(column: Any, name: str, stored: str) -> Any:  # noqa: ANN401 - an Arrow column
    """A column of nanoseconds under its name in seconds."""
    if name.endswith(f".{stored}"):
        return column
    return pc.divide(pc.cast(column, pa.float64()), 1e9)


_SIGNS: Mapping[str, str] = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_COMPARISONS: Mapping[str, str] = {
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "==": "equal",
    "!=": "not_equal",
}
"""What Arrow calls signs between columns."""
