"""LibreQoS's two files as an access network: ``network.json`` and ``ShapedDevices.csv``.

The rules are those of LibreQoS 2.0: what a node or a circuit may send, and which queue it has.
"""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.scenario.access import Access, Node, Plan, Speed

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
_FAST = 1000
"""From so many Mbit/s on the default is FQ-CoDel."""
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
    warnings += _oversubscribed(found, tree)
    called = {
        name: _plain(name) if names else f"node-{number}" for number, name in enumerate(nodes, 1)
    }
    if len(set(called.values())) < len(called):
        raise AqmlabError(f"{network}: found names that differ in signs only; leave out --names")

    def speed(ceil: float, rate: float, leaf: str | None = None) -> Speed:
        return Speed(ceil * _MBIT, None if fit else rate * _MBIT, leaf)

    kept = tuple(
        Node(
            called[name],
            None if parent is None else called[parent],
            (speed(down, max(down - 1, 0.01)), speed(up, max(up - 1, 0.01))),
        )
        for name, (parent, (down, up)) in nodes.items()
    )
    groups: dict[tuple[object, ...], list[_Circuit]] = defaultdict(list)
    for circuit in found:
        key = (circuit.parent, circuit.least, circuit.most, circuit.leaves, circuit.devices)
        groups[key].append(circuit)
    plans = tuple(
        Plan(
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


def _plain(name: str) -> str:
    """A name that a key of TOML can be."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "node"


@dataclass
class _Tree:
    """Nodes in the order of the file, parents first."""

    nodes: dict[str, tuple[str | None, Pair]]
    """Each one's parent and ceilings in Mbit/s."""
    virtual: dict[str, str | None]
    """Nodes that vanish, and the nearest real node above each."""


def _read_tree(path: Path, link: Pair) -> _Tree:
    """The nodes of a file before a link of these rates."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once(path))
    except OSError as error:
        raise AqmlabError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise AqmlabError(f"{path}: found no JSON: {error}") from None
    tree = _Tree({}, {})
    _add(path, tree, read, (None, link, 0))
    return tree


def _once(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """What makes an object of pairs, each key of which comes once."""

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        for key in keys:
            if keys.count(key) > 1:
                raise AqmlabError(f"{path}: {key}: found twice; names are unique in the whole file")
        return dict(pairs)

    return made


def _add(path: Path, tree: _Tree, children: object, above: tuple[str | None, Pair, int]) -> None:
    """Takes in the nodes below one, of which `above` has the name, the ceilings and the depth."""
    if not isinstance(children, dict):
        raise AqmlabError(f"{path}: found {json.dumps(children)[:40]}; expected nodes by name")
    parent, ceil, depth = above
    for name, node in children.items():
        if name in tree.nodes or name in tree.virtual:
            raise AqmlabError(f"{path}: {name}: found twice; names are unique in the whole file")
        if not isinstance(node, dict):
            raise AqmlabError(f"{path}: {name}: expected a table of its rates")
        if node.get("virtual"):
            tree.virtual[name] = parent
            _add(path, tree, node.get("children", {}), above)
            continue
        if depth >= _DEEPEST:
            raise AqmlabError(
                f"{path}: {name}: found at depth {depth + 1}; a tree has at most {_DEEPEST}"
            )
        down = _ceil(f"{path}: {name}", node, "downloadBandwidthMbps", ceil[0])
        up = _ceil(f"{path}: {name}", node, "uploadBandwidthMbps", ceil[1])
        tree.nodes[name] = (parent, (down, up))
        _add(path, tree, node.get("children", {}), (name, (down, up), depth + 1))


def _ceil(where: str, node: dict[str, Any], key: str, above: float) -> float:
    """Whole Mbit/s; the parent's if none is stated, or more than the parent's."""
    found = node.get(key, 0)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not found >= 0:
        raise AqmlabError(f"{where}.{key}: found {json.dumps(found)[:40]}; expected Mbit/s")
    whole = int(min(found, above))
    return float(whole) if whole else above


def _read_circuits(path: Path, tree: _Tree) -> tuple[list[_Circuit], list[str]]:
    """The subscribers of a file, and what is worth a warning."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    except OSError as error:
        raise AqmlabError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise AqmlabError(f"{path}: found no text in UTF-8") from None
    rows = _Rows(path, lines)
    circuits: dict[str, _Circuit] = {}
    problems, warnings = [], []
    for line, row in rows:
        try:
            circuit = _circuit(row, tree)
        except _WrongError as wrong:
            problems.append(f"{path}:{line}: {wrong}")
            continue
        known = circuits.get(circuit.name)
        if known is None:
            circuits[circuit.name] = circuit
            continue
        if known.parent != circuit.parent:
            problems.append(
                f"{path}:{line}: Parent Node: found {circuit.parent}, but circuit {circuit.name} "
                f"is below {known.parent}"
            )
            continue
        circuits[circuit.name] = replace(known, devices=known.devices + 1)
        if replace(circuit, devices=known.devices) != known:
            warnings.append(f"{path}:{line}: the first device of {circuit.name} decides")
    problems += rows.problems
    if problems:
        first, *others = sorted(problems, key=_line)
        more = ", ".join(str(_line(it)) for it in others)
        raise AqmlabError(first + (f"; wrong, too: line {more}" if more else ""))
    if not circuits:
        raise AqmlabError(f"{path}: found no circuit; expected a line for each device")
    return list(circuits.values()), warnings


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
        for number, line in self._lines:
            fields = [field.strip() for field in next(csv.reader([line]))]
            if columns is None:
                columns = [re.sub(r"[^a-z0-9]", "", field.lower()) for field in fields]
                missing = [name for key, name in _COLUMNS.items() if key not in columns]
                if missing:
                    raise AqmlabError(
                        f"{self._path}:{number}: column {missing[0]} is missing; "
                        "expected the header of ShapedDevices.csv"
                    )
                continue
            if len(fields) > len(columns):
                self.problems.append(
                    f"{self._path}:{number}: found {len(fields)} fields; expected {len(columns)}: "
                    "a comma in a field needs quotes"
                )
                continue
            yield number, dict(zip(columns, fields, strict=False))


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
        raise _WrongError("Parent Node", f"found {parent}", "a node of the network")
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
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.01 <= rate < 1e6:
        raise _WrongError(_COLUMNS[key], f"found {text or 'nothing'}", "Mbit/s, at least 0.01")
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
            if circuit.parent is not None:
                ceil = tree.nodes[circuit.parent][1][side]
                most = min(most, ceil)
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
    sums = dict.fromkeys(tree.nodes, 0.0)
    for parent, (down, _) in tree.nodes.values():
        if parent is not None:
            sums[parent] += down - 1
    for circuit in circuits:
        if circuit.parent is not None:
            sums[circuit.parent] += circuit.least[0]
    return [
        f"{name} is over-subscribed {total / (tree.nodes[name][1][0] - 1):.2f} times: "
        "its ceiling will not hold; --fit gives it assured rates that do"
        for name, total in sums.items()
        if tree.nodes[name][1][0] > 1 and total > tree.nodes[name][1][0] - 1
    ]


def _leaf(sqm: str, most: float) -> str | None:
    """The discipline of a circuit as TOML; None: the tree's, which is CAKE."""
    kind = sqm or ("fq_codel" if most >= _FAST else "cake")
    if kind != "cake":
        return _LEAVES[kind]
    for up_to, rtt in _SLOW:
        if most <= up_to:
            return f'{{ kind = "cake", rtt = "{rtt} ms" }}'
    return None
