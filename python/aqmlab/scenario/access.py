"""Access networks: the tree of nodes and plans of ``aqmlab init --kind isp``, in both directions.

A plan is a kind of subscriber. LibreQoS describes a network in two files, which
:mod:`aqmlab.scenario.libreqos` reads into the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aqmlab.errors import AqmlabError
from aqmlab.scenario.quantities import parsed_rates, rate_text

__all__ = ["Access", "Node", "Speed", "SubscriberPlan", "plans_of"]

_PACKET = "1514 bytes"


@dataclass(frozen=True)
class Speed:
    """Rates of a node or subscriber in one direction, in bits per second."""

    ceil: float
    rate: float | None = None
    """The assured rate; None: what fits."""
    leaf: str | None = None
    """The discipline of a subscriber as TOML; None: the tree's."""


@dataclass(frozen=True)
class Node:
    """What carries subscribers."""

    name: str
    parent: str | None
    speeds: tuple[Speed, Speed]
    """Down and up."""


@dataclass(frozen=True)
class SubscriberPlan:
    """Subscribers of a kind."""

    name: str
    parent: str | None
    count: int
    speeds: tuple[Speed, Speed]
    """Down and up."""
    hosts: int = 1
    """Hosts of each."""


@dataclass(frozen=True)
class Access:
    """A network of subscribers."""

    nodes: tuple[Node, ...]
    plans: tuple[SubscriberPlan, ...]
    leaf: str = "cake"
    quantum: str = _PACKET
    warnings: tuple[str, ...] = ()

    @property
    def hosts(self) -> int:
        """Client hosts of all subscribers."""
        return sum(plan.count * plan.hosts for plan in self.plans)

    @property
    def subscribers(self) -> int:
        """How many there are."""
        return sum(plan.count for plan in self.plans)

    def text(self, direction: str) -> str:
        """The discipline of a direction, ``forward`` or ``reverse``, as TOML."""
        return "\n".join(self._lines(direction)) + "\n"

    def _lines(self, direction: str) -> Iterator[str]:
        side = ("forward", "reverse").index(direction)
        path = f"topology.bottleneck.{direction}.discipline"
        yield f"""
[{path}]
kind = "htb"               # a tree of rates: `aqmlab explain htb`
leaf = "{self.leaf}"              # the queue of each subscriber
quantum = "{self.quantum}"\
"""
        for node in self.nodes:
            yield f"\n[{path}.nodes.{node.name}]"
            yield from _keys(node.parent, node.speeds[side])
        for plan in self.plans:
            yield f"\n[{path}.plans.{plan.name}]"
            yield f"count = {plan.count}"
            if plan.hosts > 1:
                yield f"hosts = {plan.hosts}"
            yield from _keys(plan.parent, plan.speeds[side])


def _keys(parent: str | None, speed: Speed) -> Iterator[str]:
    """What nodes and plans have in common."""
    if parent is not None:
        yield f'parent = "{parent}"'
    if speed.rate is not None:
        yield f'rate = "{rate_text(speed.rate)}"'
    yield f'ceil = "{rate_text(speed.ceil)}"'
    if speed.leaf is not None:
        yield f"leaf = {speed.leaf}"


def plans_of(text: str, users: int, rates: tuple[float, float]) -> Access:
    """A tower with subscribers of these plans: ``100/20:0.6,500/50:0.4``.

    Args:
        text: rates down and up in Mbit/s, and the share of the users, of each plan.
        users: subscribers of all plans.
        rates: bits per second of the link, down and up.
    """
    wanted: list[tuple[str, tuple[float, float], float]] = []
    for part in text.split(","):
        speeds, _, share = part.strip().partition(":")
        try:
            weight = float(share or 1)
        except ValueError:
            weight = 0.0
        if not weight > 0 or weight == float("inf"):
            raise AqmlabError(
                f'--plans: found "{part.strip()[:80]}"; expected DOWN/UP:SHARE, such as 100/20:0.6'
            )
        parsed = parsed_rates(speeds, "--plans")
        name = "plan-" + "-".join(f"{bps / 1e6:g}".replace(".", "_") for bps in parsed)
        if any(name == other for other, *_ in wanted):
            raise AqmlabError(f"--plans: found {speeds} twice; give each plan once")
        wanted.append((name, parsed, weight))
    counts = _dealt(users, [share for *_, share in wanted])
    plans = [
        SubscriberPlan(name, "tower", count, (Speed(down), Speed(up)))
        for (name, (down, up), _), count in zip(wanted, counts, strict=True)
        if count
    ]
    tower = Node("tower", None, (Speed(rates[0]), Speed(rates[1])))
    return Access((tower,), tuple(plans))


def _dealt(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers in proportion to shares, of this total: the largest remainders get one more."""
    exact = [total * share / sum(shares) for share in shares]
    counts = [int(number) for number in exact]
    by_rest = sorted(range(len(exact)), key=lambda at: counts[at] - exact[at])
    for at in by_rest[: total - sum(counts)]:
        counts[at] += 1
    return counts
