"""Links whose answer is known: a run behind the present queue writes the capture.

Runs of the same users behind other queues are the truth that a prediction is held against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from aqmlab import Run, Scenario, run

__all__ = ["WORLDS", "World", "scenario", "taken"]

SERVERS_MS = (12, 18, 25, 30, 36, 45, 60, 80, 110, 150)
"""Round trips to ten servers; clients add 0, 1 or 2 ms in turn."""


@dataclass(frozen=True)
class World:
    """A link and its users."""

    rates: tuple[float, float]
    """Mbit/s down and up."""
    queue: str
    users: str
    """Classes of traffic; MATRIX stands for the round trips between all hosts."""
    present: str = "droptail"
    clients: int = 6
    access: str = ""
    """Rate of each host's own link."""
    up_queue: str | None = None
    changes: tuple[float, ...] = ()
    """Mbit/s down in each second after the first."""
    paths: tuple[str, ...] = ("main",)
    """Each has clients of its own."""
    others: tuple[str, ...] = ("fq-codel", "pie")
    """Queues whose effect is predicted."""


def classes(*texts: str, path: str = "main") -> str:
    """Each text is the body of a class."""
    return "".join(f'\n[[traffic]]\npath = "{path}"\n{text}\n' for text in texts)


PAGES = 'name = "pages"\nkind = "http2-web"\nobjects = 30\ntcp = "linux"\nrtt = MATRIX\n'
CALLS = (
    'name = "calls"\nkind = "voip"\ndirection = "both"\ncalls = 2\n'
    'rtt = { kind = "constant", rtt = "30 ms" }\n'
)
MEETINGS = (
    'name = "meetings"\nkind = "video-conference"\ndirection = "both"\n'
    'rtt = { kind = "constant", rtt = "30 ms" }\n'
)
SESSIONS = 'kind = "web-sessions"\ntcp = "linux"\nrtt = MATRIX\n'

WORLDS = {
    "home": World(
        (20, 5),
        'droptail", limit = "244 packets',
        classes(
            PAGES + 'users = 5\nthink = "4 s"',
            'name = "film"\nkind = "abr-video"\nviewers = 1\nrtt = MATRIX\n'
            'tcp = { profile = "linux", congestion_control = "bbr1" }',
            CALLS,
            SESSIONS + 'sessions = 1\nname = "files"\nthink_min = "2 s"\nthink_max = "8 s"\n'
            'transfer = { kind = "lognormal", median = "8 MB", sigma = 0.5 }',
            SESSIONS + 'sessions = 1\nname = "photos"\ndirection = "reverse"\nthink_min = "1 s"\n'
            'think_max = "5 s"\ntransfer = { kind = "lognormal", median = "1 MB", sigma = 1.0 }',
        ),
        access="200 Mbit/s",
    ),
    "office": World(
        (30, 10),
        "codel",
        classes(
            PAGES + 'users = 12\nthink = "8 s"',
            MEETINGS + "streams = 4",
            'name = "backup"\nkind = "bulk"\ndirection = "reverse"\ntcp = "linux"\nflows = 1\n'
            'rtt = { kind = "constant", rtt = "30 ms" }',
        ),
        present="codel",
        clients=12,
        access="100 Mbit/s",
    ),
    "bulk-web": World(
        (10, 10),
        'droptail", limit = "163 packets',
        classes(
            'name = "downloads"\nkind = "bulk"\ntcp = "linux"\nflows = 2\nrtt = MATRIX',
            PAGES + 'users = 3\nthink = "3 s"',
        ),
    ),
    "video-call": World(
        (8, 2),
        'droptail", limit = "130 packets',
        classes(
            'name = "films"\nkind = "abr-video"\ntcp = "linux"\nviewers = 2\nrtt = MATRIX',
            MEETINGS + 'streams = 2\nmax_rate = "1 Mbit/s"',
            CALLS,
            PAGES + 'users = 2\nthink = "4 s"',
        ),
        up_queue='droptail", limit = "65 packets',
    ),
    "many-short": World(
        (10, 10),
        'droptail", limit = "81 packets',
        classes(
            'name = "short"\nkind = "poisson"\ntcp = "linux"\nrate = "32 /s"\nrtt = MATRIX\n'
            'request = { kind = "lognormal", median = "350 bytes", sigma = 0.5 }\n'
            'response = { kind = "bounded-pareto", shape = 1.2, minimum = "6 kB", '
            'maximum = "10 MB" }',
        ),
        clients=8,
    ),
    "quic": World(
        (20, 10),
        'droptail", limit = "244 packets',
        classes(
            'name = "pages"\nkind = "http3-web"\nobjects = 30\nusers = 6\nthink = "4 s"\n'
            "rtt = MATRIX",
            SESSIONS + 'sessions = 1\nname = "files"\nthink_min = "2 s"\nthink_max = "8 s"\n'
            'transfer = { kind = "lognormal", median = "8 MB", sigma = 0.5 }',
            CALLS,
        ),
    ),
    "two-homes": World(
        (20, 10),
        'droptail", limit = "163 packets',
        classes(
            SESSIONS + 'sessions = 6\nname = "greedy"\nthink_min = "0.2 s"\nthink_max = "1 s"\n'
            'transfer = { kind = "lognormal", median = "3 MB", sigma = 0.5 }',
            path="greedy",
        )
        + classes(
            SESSIONS + 'sessions = 3\nname = "modest"\nthink_min = "0.5 s"\nthink_max = "1.5 s"\n'
            'transfer = { kind = "constant", size = "600 kB" }',
            path="modest",
        ),
        clients=1,
        paths=("greedy", "modest"),
        others=("fq-codel", "cake"),
    ),
    "radio": World(
        (14, 10),
        'droptail", limit = "300 packets',
        classes(
            PAGES + 'users = 5\nthink = "3 s"',
            SESSIONS + 'sessions = 1\nname = "files"\nthink_min = "1 s"\nthink_max = "4 s"\n'
            'transfer = { kind = "lognormal", median = "8 MB", sigma = 0.5 }',
        ),
        changes=tuple(
            14 + 8 * math.sin(second / 7) + 4 * math.sin(second / 2.3) for second in range(1, 310)
        ),
    ),
    "light": World(
        (50, 10),
        'droptail", limit = "406 packets',
        classes(PAGES + 'users = 2\nthink = "4 s"', CALLS),
    ),
}
"""By name."""


def scenario(
    name: str, *, queue: str | None = None, seconds: float = 310, tap: str = "edge"
) -> str:
    """A world as TOML, with its own queue, or another queue in both directions."""
    world = WORLDS[name]
    rows = (
        "[" + ", ".join(f'"{rtt + one % 3} ms"' for one in range(world.clients)) + "]"
        for rtt in SERVERS_MS
    )
    matrix = f'{{ kind = "pairs", matrix = [{", ".join(rows)}] }}'
    own = queue or world.queue
    up = None if queue else world.up_queue
    down_rate, up_rate = world.rates
    rows = (
        f'{{ at = "{at} s", rate = "{mbps:.3f} Mbit/s" }}'
        for at, mbps in enumerate(world.changes, 1)
    )
    paths = "".join(
        f'\n[topology.paths.{path}]\nlinks = ["bottleneck", "edge"]\n' for path in world.paths
    )
    varied = f"\n[topology.links.bottleneck.forward]\nrate_changes = [{', '.join(rows)}]\n"
    return f"""\
title = "{name}"
seed = 1

[measure]
warm_up = "40 s"
duration = "{seconds - 40:g} s"
record = ["responses", "flows", "queue", "sojourn"]
capture = {{ link = "{tap}", after = "10 s" }}

[topology]
kind = "network"
hosts = {{ clients = {world.clients}, servers = 10{
        f', rate = "{world.access}"' if world.access else ""
    } }}
{paths}
[topology.links.edge]
rate = "1 Gbit/s"
discipline = {{ kind = "droptail", limit = "20000 packets" }}

[topology.links.bottleneck]
rate = "{down_rate:g} Mbit/s"
discipline = {{ kind = "{own}" }}
{varied if world.changes else ""}
[topology.links.bottleneck.reverse]
rate = "{up_rate:g} Mbit/s"
{f'discipline = {{ kind = "{up}" }}' if up else ""}
{world.users.replace("MATRIX", matrix)}"""


def taken(name: str, folder: Path, *, queue: str | None = None, **how: object) -> Run:
    """The run of a world, with its capture, in a folder of its own."""
    text = scenario(name, queue=queue, **how)  # type: ignore[arg-type]
    return run(Scenario.from_toml(text), out_dir=folder / f"{name}-{queue or 'present'}")
