"""Random transfers of our end point, and the packet scripts that they make.

A plan says what both ends and the network between them do. ``crates/tcp/examples/transfer.rs`` runs
it and writes what the server is sent and sends as a script.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.validation.script import Script, parse

__all__ = ["Plan", "drawn", "scripts_of", "smaller"]

PROGRAM = Path("target/quick/examples/transfer")
"""Runs plans; ``make kernel-diff`` builds it."""
MSS = 1000
MOST = 60
"""Events of the network fall on as many segments, unless the transfer is longer."""
LONGEST = 22
"""Segments of the longest transfer, unless stated."""


@dataclass(frozen=True)
class Plan:
    """A transfer. Segments with data count from 1, and so do the client's behind the handshake."""

    control: str = "cubic"
    initial_window: int = 10
    ecn: bool = False
    stamps: bool = False
    sack: bool = True
    ack_every: int = 2
    quick_acks: int = 16
    round_trip: float = 0.1
    spacing: float = 0.0002
    writes: tuple[tuple[float, int], ...] = ((0.0, 10 * MSS),)
    """Seconds after the handshake, and bytes."""
    close: bool = False
    lost: tuple[int, ...] = ()
    late: tuple[tuple[int, float], ...] = ()
    """Which segments arrive late, and by how many seconds."""
    marked: tuple[int, ...] = ()
    lost_acks: tuple[int, ...] = ()

    def __str__(self) -> str:
        """What differs from a transfer without events."""
        plain = asdict(Plan())
        own = {key: value for key, value in asdict(self).items() if value != plain[key]}
        return ", ".join(f"{key} = {json.dumps(value)}" for key, value in own.items()) or "nothing"

    def toml(self) -> str:
        """The plan as the program reads it."""

        def flag(value: bool) -> str:
            return "true" if value else "false"

        shared = f'profile = "linux", mss = "{MSS} bytes", ecn = {flag(self.ecn)}'
        shared += f", timestamps = {flag(self.stamps)}"
        # An end point without SACK offers none, and so the other end has none either.
        recovery = "" if self.sack else ', recovery = "new-reno", rack_rules = "rfc8985"'
        client = "" if self.sack else ', window_counts = "bytes"'
        own = f', congestion_control = "{self.control}", initial_window = {self.initial_window}'
        # What is sent again gives a round trip, and ends the back-off, with time stamps alone.
        own += "" if self.stamps else ', backoff_ends_with = "sample"'
        acks = f", ack_every = {self.ack_every}, quick_acks = {self.quick_acks}"
        lines = [
            f"server = {{ {shared}{own} }}",
            f"client = {{ {shared}{recovery}{client}{acks}{NO_EXTRAS if recovery else ''} }}",
            f"close = {flag(self.close)}",
            "until = 8.0",
        ]
        keys = ("round_trip", "spacing", "writes", "lost", "late", "marked", "lost_acks")
        lines += [f"{key} = {json.dumps(getattr(self, key))}" for key in keys]
        return "\n".join(lines) + "\n"


NO_EXTRAS = ', tail_loss_probe = { kind = "off" }, undo = false, dsack = false, frto = "off"'
"""What needs SACK."""


def drawn(seed: int, controls: Sequence[str], most: int = LONGEST) -> Plan:
    """A random plan of at most ``most`` segments; a longer one than usual has no fewer."""
    draw = random.Random(seed)
    bulk = draw.randint(2 if most <= LONGEST else LONGEST + 2, most)
    parts = draw.choice([1, 1, 1, 2, 3])
    cuts = sorted(draw.sample(range(1, bulk), min(parts - 1, bulk - 1)))
    sizes = [(end - start) * MSS for start, end in zip([0, *cuts], [*cuts, bulk], strict=True)]
    if draw.random() < 0.3:
        sizes[-1] -= draw.randrange(1, MSS)
    round_trip = draw.choice([0.02, 0.05, 0.1, 0.1, 0.1, 0.2])
    ecn = draw.random() < 0.25
    at, writes = 0.0, []
    for size in sizes:
        writes.append((round(at, 3), size))
        at += draw.choice([0.5, 1.5, 2.5, 10]) * round_trip + 0.003
    loss = draw.choice([0, 0.05, 0.1, 0.2])
    mark = draw.choice([0.05, 0.2]) if ecn else 0
    loss_of_acks = draw.choice([0, 0, 0.1, 0.3])
    number_late = draw.choice([0, 0, 0, 1, 2, 3])

    def some(share: float) -> tuple[int, ...]:
        return tuple(
            number for number in range(1, MOST + max(0, most - LONGEST)) if draw.random() < share
        )

    return Plan(
        control=draw.choice(controls),
        initial_window=draw.choice([10, 10, 10, 2, 4]),
        ecn=ecn,
        stamps=draw.random() < 0.4,
        sack=draw.random() < 0.85,
        ack_every=draw.choice([1, 2, 2]),
        quick_acks=draw.choice([0, 16]),
        round_trip=round_trip,
        spacing=draw.choice([0.0002, 0.001, 0.004]),
        writes=tuple(writes),
        close=draw.random() < 0.4,
        lost=some(loss),
        late=tuple(
            (number, round(draw.uniform(0.001, round_trip), 3))
            for number in sorted(draw.sample(range(1, bulk + 1), min(number_late, bulk)))
        ),
        marked=some(mark),
        lost_acks=some(loss_of_acks),
    )


def with_(plan: Plan, **changes: Any) -> Plan:  # noqa: ANN401 - values of any field
    """The plan with other values of some fields."""
    return replace(plan, **changes)


def smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with less in them, the ones that save most first."""
    for key in ("lost", "late", "marked", "lost_acks"):
        events = getattr(plan, key)
        if len(events) > 1:
            yield with_(plan, **{key: ()})
            yield with_(plan, **{key: events[: len(events) // 2]})
            yield with_(plan, **{key: events[len(events) // 2 :]})
    if len(plan.writes) > 1:
        total = sum(size for _, size in plan.writes)
        yield with_(plan, writes=((0.0, total),))
        yield with_(plan, writes=plan.writes[:-1])
    yield from (
        with_(plan, **{key: getattr(Plan(), key)})
        for key in ("close", "stamps", "ecn", "spacing", "ack_every", "quick_acks", "sack")
        if getattr(plan, key) != getattr(Plan(), key)
    )
    if plan.control != "reno":
        yield with_(plan, control="reno")
    (*before, (at, size)) = plan.writes
    for less in {size // 2 // MSS * MSS, size - MSS, size - size % MSS}:
        if 0 < less < size:
            yield with_(plan, writes=(*before, (at, less)))
    for key in ("lost", "late", "marked", "lost_acks"):
        events = getattr(plan, key)
        for place in range(len(events)):
            yield with_(plan, **{key: events[:place] + events[place + 1 :]})


def scripts_of(plans: Sequence[Plan]) -> list[tuple[str, Script]]:
    """The script of each plan, as text and read.

    Raises:
        AqmlabError: The program is missing, or refuses a plan.
    """
    if not PROGRAM.exists():
        raise AqmlabError(
            f"{PROGRAM} is missing: cargo build --profile quick -p aqmlab-tcp --example transfer"
        )
    with TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.toml") for number in range(len(plans))]
        for path, plan in zip(paths, plans, strict=True):
            path.write_text(plan.toml())
        ran = subprocess.run(
            [PROGRAM.resolve(), *paths], capture_output=True, text=True, check=False
        )
        if ran.returncode != 0:
            raise AqmlabError(f"transfer: {ran.stderr.strip()}")
        texts = [path.with_suffix(".script").read_text() for path in paths]
    return [(text, parse(text)) for text in texts]
