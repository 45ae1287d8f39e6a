"""LibreQoS's two files as an access network: ``network.json`` and ``ShapedDevices.csv``.

The rules are those of LibreQoS 2.0: what a node or a circuit may send, and which queue it has.
"""

from __future__ import annotations

import csv
import difflib
import ipaddress
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aqmlab._util.words import several
from aqmlab.errors import AqmlabError
from aqmlab.scenario.access import Access, Node, Speed, SubscriberPlan

__all__ = ["read_access"]

_MBIT = 1e6
_DEEPEST = 7
_COLUMNS = {
    "circuitid": "Circuit ID",
    "parentnode": "Parent Node",
    "downloadminmbps": "Download Min Mbps",
    "uploadminmbps": "Upload Min Mbps",
    "downloadmaxmbps": "Download Max Mbps",
    "uploadmaxmbps": "Upload Max Mbps",
}
_LEAVES = {
    "cake": '"cake"',
    "fq_codel": '"fq-codel"',
    "none": '{ kind = "droptail", limit = "1000 packets" }',
}
_SLOW = ((1, 300), (2, 180), (3, 140), (4, 120))
"""CAKE's rtt in ms for rates up to so many Mbit/s."""
_LONGEST = 10
"""Lines that one row takes at most: a field in quotes can have line breaks."""
_NAMED = 10
"""So many lines or nodes are named in one message."""
_FAST = 1000
"""From so many Mbit/s on the default is FQ-CoDel."""
_MOST = 1e6
"""Mbit/s are below this."""
Pair = tuple[float, float]


@dataclass(frozen=True)
class _Circuit:
    """A subscriber; rates in Mbit/s, down and up."""

    name: str
    parent: str | None
    least: Pair
    most: Pair
    leaves: tuple[str, str]
    devices: int = 1


def read_access(
    network: Path, circuits: Path, link: Pair, *, names: bool = False, fit: bool = False
) -> Access:
    """The network of the two files before a link of these rates, bits per second down and up.

    Args:
        network: the tree of nodes.
        circuits: the devices of subscribers.
        link: bits per second of the link, down and up.
        names: whether nodes keep their names; else they are numbered.
        fit: whether assured rates are what fits, not what the files state.
    """
    tree = _read_tree(network, (link[0] / _MBIT, link[1] / _MBIT))
    nodes = tree.nodes
    found, warnings = _read_circuits(circuits, tree)
    found = _bounded(found, tree)
    warnings += tree.warnings(network) + _oversubscribed(found, tree)
    called = _called(nodes, names=names)

    def speed(ceil: float, rate: float, leaf: str | None = None) -> Speed:
        return Speed(ceil * _MBIT, None if fit else rate * _MBIT, leaf)

    kept = tuple(
        Node(
            called[name],
            None if parent is None else called[parent],
            (speed(down, _assured(down)), speed(up, _assured(up))),
        )
        for name, (parent, (down, up)) in nodes.items()
    )
    groups: dict[tuple[object, ...], list[_Circuit]] = defaultdict(list)
    for circuit in found:
        key = (circuit.parent, circuit.least, circuit.most, circuit.leaves, circuit.devices)
        groups[key].append(circuit)
    plans = tuple(
        SubscriberPlan(
            f"plan-{number}",
            None if it.parent is None else called[it.parent],
            len(group),
            (
                speed(it.most[0], it.least[0], _leaf(it.leaves[0], it.most[0])),
                speed(it.most[1], it.least[1], _leaf(it.leaves[1], it.most[1])),
            ),
            it.devices,
        )
        for number, group in enumerate(groups.values(), 1)
        for it in group[:1]
    )
    return Access(kept, plans, quantum="plan", warnings=tuple(warnings))


def _called(nodes: Iterable[str], *, names: bool) -> dict[str, str]:
    """What each node is called: a number, or its name as a key of TOML can have it."""
    if not names:
        return {name: f"node-{number}" for number, name in enumerate(nodes, 1)}
    called: dict[str, str] = {}
    taken: set[str] = set()
    for name in nodes:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "node"
        # Names that differ in other signs only get a number.
        free = (plain, *(f"{plain}-{number}" for number in range(2, len(taken) + 3)))
        called[name] = next(it for it in free if it not in taken)
        taken.add(called[name])
    return called


@dataclass
class _Tree:
    """Nodes in the order of the file, parents first."""

    nodes: dict[str, tuple[str | None, Pair]]
    """Each one's parent and ceilings in Mbit/s."""
    virtual: dict[str, str | None]
    """Nodes that vanish, and the nearest real node above each."""
    link: Pair
    """Mbit/s of the link, down and up."""
    bare: list[str]
    """Nodes that state no rate of a direction."""
    cut: list[str]
    """Nodes with a rate below 1 Mbit/s, which is cut to 0."""

    def ceil(self, parent: str | None) -> Pair:
        """The ceilings of a node, or of the link."""
        return self.link if parent is None else self.nodes[parent][1]

    def warnings(self, path: Path) -> list[str]:
        """About the nodes that have the rate of their parent without a 0."""
        why = ((self.bare, "state no rate"), (self.cut, "state less than 1 Mbit/s, which counts 0"))
        return [
            f"{path}: {several(names, _NAMED)}: {what}; the parent's rate holds"
            for names, what in why
            if names
        ]


def _read_tree(path: Path, link: Pair) -> _Tree:
    """The nodes of a file before a link of these rates."""
    try:
        read = json.loads(_text(path), object_pairs_hook=_once(path))
        tree = _Tree({}, {}, link, [], [])
        _add(str(path), tree, read, (None, link, 0))
    except ValueError as error:
        raise AqmlabError(f"{path}: found no JSON: {error}; expected nodes by name") from None
    except RecursionError:
        raise AqmlabError(
            f"{path}: found nodes too deep to read; a tree has at most {_DEEPEST}"
        ) from None
    return tree


def _text(path: Path) -> str:
    """The text of a file, in UTF-8 with or without a byte order mark."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise AqmlabError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise AqmlabError(f"{path}: found other bytes; expected text in UTF-8") from None


def _once(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """What makes an object of pairs, each key of which comes once."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in pairs:
            if key in made:
                raise AqmlabError(f"{path}: {key}: found twice; names are unique in the whole file")
            made[key] = value
        return made

    return once


def _add(where: str, tree: _Tree, children: object, above: tuple[str | None, Pair, int]) -> None:
    """Takes in the nodes below one, of which `above` has the name, the ceilings and the depth."""
    path = where.partition(": ")[0]
    if not isinstance(children, dict):
        raise AqmlabError(f"{where}: found {json.dumps(children)[:40]}; expected nodes by name")
    parent, ceil, depth = above
    for written, node in children.items():
        name = written.strip()
        if not name:
            raise AqmlabError(f"{where}: found a node without a name; expected one")
        if name in tree.nodes or name in tree.virtual:
            raise AqmlabError(f"{path}: {name}: found twice; names are unique in the whole file")
        if not isinstance(node, dict):
            found = json.dumps(node)[:40]
            raise AqmlabError(f"{path}: {name}: found {found}; expected a table of its rates")
        virtual = node.get("virtual", False)
        if not isinstance(virtual, bool):
            found = json.dumps(virtual)[:40]
            raise AqmlabError(f"{path}: {name}.virtual: found {found}; expected true or false")
        below, inside = f"{path}: {name}.children", node.get("children", {})
        if virtual:
            tree.virtual[name] = parent
            _add(below, tree, inside, above)
            continue
        if depth >= _DEEPEST:
            raise AqmlabError(
                f"{path}: {name}: found at depth {depth + 1}; a tree has at most {_DEEPEST}"
            )
        keys = ("downloadBandwidthMbps", "uploadBandwidthMbps")
        stated = [_stated(f"{path}: {name}", node, key) for key in keys]
        if not all(key in node for key in keys):
            tree.bare.append(name)
        if any(0 < rate < 1 for rate in stated):
            tree.cut.append(name)
        # Whole Mbit/s; the parent's if none is stated, or more than the parent's.
        down, up = (
            float(int(min(rate, most))) or most for rate, most in zip(stated, ceil, strict=True)
        )
        tree.nodes[name] = (parent, (down, up))
        _add(below, tree, inside, (name, (down, up), depth + 1))


def _stated(where: str, node: dict[str, Any], key: str) -> float:
    """The Mbit/s that a node states; 0 if none."""
    found = node.get(key, 0)
    number = isinstance(found, (int, float)) and not isinstance(found, bool)
    if not number or not 0 <= found < _MOST:
        raise AqmlabError(
            f"{where}.{key}: found {json.dumps(found)[:40]}; expected Mbit/s, 0 for the parent's"
        )
    return float(found)


def _read_circuits(path: Path, tree: _Tree) -> tuple[list[_Circuit], list[str]]:
    """The subscribers of a file, and what is worth a warning."""
    rows = _Rows(path, re.split(r"\r\n|\r|\n", _text(path)))
    circuits: dict[str, _Circuit] = {}
    addresses = _Addresses()
    problems, warnings = [], []
    for line, row in rows:
        try:
            circuit = _circuit(row, tree)
        except _WrongError as wrong:
            problems.append(f"{path}:{line}: {wrong}")
            continue
        addresses.add(line, row)
        known = circuits.get(circuit.name)
        if known is None:
            circuits[circuit.name] = circuit
            continue
        if known.parent != circuit.parent:
            problems.append(
                f"{path}:{line}: Parent Node: found {circuit.parent or 'nothing'}, but circuit "
                f"{circuit.name} is below {known.parent or 'the link'}; expected one parent"
            )
            continue
        circuits[circuit.name] = replace(known, devices=known.devices + 1)
        other = [what for what, has in _COMPARED if has(circuit) != has(known)]
        if other:
            warnings.append(
                f"{path}:{line}: {', '.join(other)}: the first device of {circuit.name} decides"
            )
    problems += rows.problems
    if problems:
        first, *others = sorted(problems, key=_line)
        more = several([_line(it) for it in others], _NAMED)
        raise AqmlabError(first + (f"; wrong, too: line {more}" if more else ""))
    if not circuits:
        raise AqmlabError(f"{path}: found no circuit; expected a line for each device")
    return list(circuits.values()), warnings + addresses.warnings(path)


_COMPARED: tuple[tuple[str, Callable[[_Circuit], object]], ...] = (
    ("minimum", lambda it: it.least),
    ("maximum", lambda it: it.most),
    ("sqm", lambda it: it.leaves),
)
"""What the devices of a circuit have in common."""


def _line(problem: str) -> int:
    """The line that a problem is about."""
    found = re.search(r":(\d+): ", problem)
    return int(found[1]) if found else 0


class _WrongError(Exception):
    """What is wrong in a column: its name, what was found, what would be right."""

    def __str__(self) -> str:
        column, found, right = self.args
        return f"{column}: {found}; expected {right}"


class _Rows:
    """The rows of a file by column, with the number of each line."""

    def __init__(self, path: Path, lines: list[str]) -> None:
        self.problems: list[str] = []
        self._path = path
        self._lines = [
            (number, line)
            for number, line in enumerate(lines, 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        columns: list[str] | None = None
        for number, fields in self._fields():
            if columns is None:
                columns = self._header(number, fields)
                continue
            if len(fields) > len(columns):
                self.problems.append(
                    f"{self._path}:{number}: found {len(fields)} fields; expected {len(columns)}: "
                    "a comma in a field needs quotes"
                )
                continue
            yield number, dict(zip(columns, fields, strict=False))

    def _header(self, number: int, fields: list[str]) -> list[str]:
        """The names of the columns: letters and digits only."""
        where = f"{self._path}:{number}"
        if len(fields) == 1 and re.search(r"[;\t]", fields[0]):
            raise AqmlabError(f"{where}: found no comma; expected commas between fields")
        columns = [re.sub(r"[^a-z0-9]", "", field.lower()) for field in fields]
        for key, name in _COLUMNS.items():
            if key not in columns:
                raise AqmlabError(
                    f"{where}: column {name} is missing; expected the header of ShapedDevices.csv"
                )
        for name in ("sqm", *_COLUMNS):
            if columns.count(name) > 1:
                shown = _COLUMNS.get(name, name)
                raise AqmlabError(f"{where}: column {shown}: found twice; expected it once")
        return columns

    def _fields(self) -> Iterator[tuple[int, list[str]]]:
        """The fields of each row. A field in quotes can go over lines."""
        at = 0
        while at < len(self._lines):
            number, text = self._lines[at]
            fields = _split(text)
            taken = 1
            while fields is None and taken < min(_LONGEST, len(self._lines) - at):
                text += "\n" + self._lines[at + taken][1]
                taken += 1
                fields = _split(text)
            if fields is None:
                self.problems.append(
                    f"{self._path}:{number}: found a quote that does not end or a field of more "
                    "than 128 kB; expected quotes around whole fields"
                )
                taken = 1
            else:
                yield number, [field.strip() for field in fields]
            at += taken


def _split(text: str) -> list[str] | None:
    """The fields of a row; None: a quote does not end in it."""
    try:
        # Blanks after a quote are let pass.
        plain = re.sub(r'"[ \t]+(?=,|$)', '"', text)
        return next(csv.reader([plain], strict=True, skipinitialspace=True))
    except csv.Error:
        return None


class _Addresses:
    """Which addresses circuits have. The simulation uses none; a real shaper goes by them."""

    def __init__(self) -> None:
        self._seen: dict[object, str] = {}
        """The circuit of each address."""
        self._twice: list[int] = []
        self._wrong: list[int] = []

    def add(self, line: int, row: dict[str, str]) -> None:
        """Takes in the addresses of a row."""
        for text in re.split(r"[,\s]+", f"{row.get('ipv4', '')} {row.get('ipv6', '')}".strip()):
            if not text:
                continue
            try:
                address = ipaddress.ip_network(text, strict=False)
            except ValueError:
                self._wrong.append(line)
                continue
            if self._seen.setdefault(address, row["circuitid"]) != row["circuitid"]:
                self._twice.append(line)

    def warnings(self, path: Path) -> list[str]:
        """A line for each kind of mistake."""
        kinds = (
            (self._twice, "an address that another circuit has"),
            (self._wrong, "text that is no IP address"),
        )
        return [
            f"{path}: line {several(sorted(set(lines)), _NAMED)}: found {what}; "
            "the simulation uses none"
            for lines, what in kinds
            if lines
        ]


def _circuit(row: dict[str, str], tree: _Tree) -> _Circuit:
    """The circuit of a row."""
    name = row.get("circuitid", "")
    if not name:
        raise _WrongError("Circuit ID", "found nothing", "a number or a word")
    parent: str | None = row.get("parentnode") or None
    if not tree.nodes:
        parent = None  # A flat network: all are below the link.
    elif parent in tree.virtual:
        parent = tree.virtual[parent]
    elif parent is not None and parent not in tree.nodes:
        near = difflib.get_close_matches(parent, [*tree.nodes, *tree.virtual], 1)
        meant = f", such as {near[0]}" if near else ""
        raise _WrongError("Parent Node", f"found {parent}", f"a node of the network{meant}")
    pairs = []
    for kind in ("min", "max"):
        pair = [_rate(row, f"{way}load{kind}mbps") for way in ("down", "up")]
        pairs.append((pair[0], pair[1]))
    for key, least, most in zip(("downloadminmbps", "uploadminmbps"), *pairs, strict=True):
        if least > most:
            raise _WrongError(_COLUMNS[key], f"found {least:g}", f"at most the maximum, {most:g}")
    sqm = re.sub(r"\s", "", row.get("sqm", "").lower())
    down, _, up = sqm.partition("/") if "/" in sqm else (sqm, "", sqm)
    for leaf in (down, up):
        if leaf and leaf not in _LEAVES:
            raise _WrongError(
                "sqm", f"found {leaf}", "cake, fq_codel, none or two of them, down/up"
            )
    return _Circuit(name, parent, pairs[0], pairs[1], (down, up))


def _rate(row: dict[str, str], key: str) -> float:
    """A rate of a row."""
    text = row.get(key, "")
    # Not what float() takes beside: 1_000, nan, digits of other scripts.
    plain = re.fullmatch(r"\+?([0-9]+\.?|[0-9]*\.[0-9]+)([eE][+-]?[0-9]+)?", text)
    rate = float(text) if plain else math.nan
    if not 0.01 <= rate < _MOST:
        found = f"found {text[:40] or 'nothing'}"
        raise _WrongError(_COLUMNS[key], found, "Mbit/s, from 0.01 to below 1000000")
    return rate


def _bounded(circuits: list[_Circuit], tree: _Tree) -> list[_Circuit]:
    """What circuits may send below their nodes, down and up."""
    for side in (0, 1):
        least: dict[str | None, list[float]] = defaultdict(list)
        for circuit in circuits:
            least[circuit.parent].append(_least(circuit, side))
        made = []
        for circuit in circuits:
            own, most = _least(circuit, side), circuit.most[side]
            ceil = tree.ceil(circuit.parent)[side]
            most = min(most, ceil)
            if circuit.parent is not None:
                siblings = least[circuit.parent]
                if sum(siblings) > ceil - 1:
                    own = 1.0 if len(siblings) <= ceil - 1 else 0.01
            own = min(own, most)
            made.append(
                replace(
                    circuit,
                    least=(own, circuit.least[1]) if side == 0 else (circuit.least[0], own),
                    most=(most, circuit.most[1]) if side == 0 else (circuit.most[0], most),
                )
            )
        circuits = made
    return circuits


def _least(circuit: _Circuit, side: int) -> float:
    """The assured rate; where it is the maximum, a Mbit/s less."""
    least, most = circuit.least[side], circuit.most[side]
    return max(most - 1, 0.01) if least == most else least


def _oversubscribed(circuits: list[_Circuit], tree: _Tree) -> list[str]:
    """A warning about each node whose children's assured rates exceed its own."""
    return [
        f"{name} is over-subscribed {share:.2f} times{way}: "
        "its ceiling will not hold; --fit gives it assured rates that do"
        for side, way in enumerate(("", " in the upload"))
        for name, share in _sold(circuits, tree, side)
        if share > 1
    ]


def _sold(circuits: list[_Circuit], tree: _Tree, side: int) -> Iterator[tuple[str, float]]:
    """How many times each node's assured rate its children have."""
    sums = dict.fromkeys(tree.nodes, 0.0)
    for parent, ceil in tree.nodes.values():
        if parent is not None:
            sums[parent] += _assured(ceil[side])
    for circuit in circuits:
        if circuit.parent is not None:
            sums[circuit.parent] += circuit.least[side]
    for name, total in sums.items():
        yield name, total / _assured(tree.nodes[name][1][side])


def _assured(ceil: float) -> float:
    """What LibreQoS assures a node of this ceiling: a Mbit/s less."""
    return max(ceil - 1, 0.01)


def _leaf(sqm: str, most: float) -> str | None:
    """The discipline of a circuit as TOML; None: the tree's, which is CAKE."""
    kind = sqm or ("fq_codel" if most >= _FAST else "cake")
    if kind != "cake":
        return _LEAVES[kind]
    for up_to, rtt in _SLOW:
        if most <= up_to:
            return f'{{ kind = "cake", rtt = "{rtt} ms" }}'
    return None
