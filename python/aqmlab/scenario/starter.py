"""A first scenario of one's own: a link of a known kind, as a commented file.

What a kind of link has by default is in :data:`LINKS`. Rates follow the topology's terms: *forward*
is from the servers to the clients, which is the download of the people at the clients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import indent

from aqmlab._util.shipped import SHIPPED
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario.access import Access
from aqmlab.scenario.named_links import NamedLink
from aqmlab.scenario.quantities import FRAME_BITS, rate_text, rounded, time_text
from aqmlab.scenario.scenario import Scenario

__all__ = ["LINKS", "StarterLink", "comparison", "next_commands", "scenario_text"]


_PAGES_BPS = 1.1e6
"""Bits per second that a person's pages take on a fast line, packets and all."""
_VIDEO_BPS = 4.4e6
"""The highest rate of a film's ladder, packets and all."""
_MEETING_BPS = 2.6e6
"""The highest rate of a picture, packets and reports and all."""
_ACKNOWLEDGED = 0.02
"""Bits of acknowledgements and requests for a bit of pages and films."""
_LEAST_BUFFER = 20
"""Packets: two initial windows of ten."""
_MOST_PACKETS = 4_000_000
"""A run of about so many packets takes some seconds."""
_LEAST_ROUND_TRIPS = 100
"""Shorter runs say little of TCP."""
_MOST_USERS = 100_000
_MOST_STATIONS = 2007
"""What an access point can tell apart."""


@dataclass(frozen=True)
class StarterLink:
    """What a scenario is made of."""

    what: str
    """What it is in a word or two, with ``{users}``."""
    forward_bps: float
    """Bits per second to the clients: the download."""
    reverse_bps: float
    """Bits per second from the clients: the upload."""
    rtt_s: float
    """Typical round-trip time without a queue."""
    users: int
    """People, workers or transfers; see `traffic`."""
    traffic: str
    """The classes of traffic that they are, as TOML, with ``{users}``, ``{viewers}``,
    ``{streams}``, ``{rtt}`` or ``{low}`` to ``{high}``, and ``{down}`` and ``{up}``."""
    duration_s: float
    """Measured, if the rates allow it."""
    buffer_s: float | None
    """The buffer holds so much at the faster rate; None: a round-trip time."""
    buffer_rule: str
    """The rule of the buffer in words."""
    people_per_viewer: int = 1
    """One of so many watches a film."""
    people_per_meeting: int = 1
    """One of so many is in a video call with somebody elsewhere."""
    call: bool = False
    """Whether there is a voice call."""
    upload: bool = False
    """Whether a long transfer leaves the clients."""
    controls: tuple[str, ...] = ()
    """Congestion controls that share the link, each with `users` transfers."""
    wifi: int | None = None
    """Devices on Wi-Fi, one of them far away."""
    access: Access | None = None
    """The tree of rates of its subscribers, each of whom is a user."""

    named: NamedLink | None = None
    """The link that has a name, in place of rates and a buffer."""

    @property
    def buffer_packets(self) -> int:
        """The drop-tail queue, in full-size packets; the same for both directions."""
        seconds = self.rtt_s if self.buffer_s is None else self.buffer_s
        packets = max(self.forward_bps, self.reverse_bps) * seconds / FRAME_BITS
        return max(_LEAST_BUFFER, math.ceil(packets))

    @property
    def viewers(self) -> int:
        """Who watches a film; at least one does."""
        return max(1, self.users // self.people_per_viewer)

    @property
    def streams(self) -> int:
        """Streams of video calls: one each way for each; there is at least one call."""
        return 2 * max(1, self.users // self.people_per_meeting)

    @property
    def asked_bps(self) -> tuple[float, float]:
        """What people take of a fast line, down and up, without upload: pages, films, meetings."""
        transferred = self.users * _PAGES_BPS + self.viewers * _VIDEO_BPS
        pictures = self.streams / 2 * _MEETING_BPS
        return transferred + pictures, _ACKNOWLEDGED * transferred + pictures

    @property
    def measured_s(self) -> float:
        """The measured time: shorter on links on which much happens in it."""
        of_packets = _MOST_PACKETS * FRAME_BITS / (self.forward_bps + self.reverse_bps)
        least = _LEAST_ROUND_TRIPS * self.rtt_s
        return (
            self.duration_s
            if least < self.duration_s < of_packets
            else rounded(max(min(self.duration_s, of_packets), least))
        )


_PAGES = """\
# On a fast line these users need some {down} down and {up} up on average, without the
# upload. A slow line delays pages and lowers bit rates. A full buffer delays all packets.

[[traffic]]
name = "pages"             # a class of its own in every result
kind = "http2-web"         # each person loads a page of some 70 objects, reads, loads the next
users = {users}
tcp = "linux"              # CUBIC, RACK, tail loss probes; `aqmlab list profiles` has others
direction = "forward"      # the pages come over the download
rtt = {{ kind = "uniform", min = "{low}", max = "{high}" }}   # some servers are nearer

[[traffic]]
name = "video"             # films and lessons: the player picks the bit rate, 0.3 to 4.3 Mbit/s
kind = "abr-video"
viewers = {viewers}
tcp = "linux"
direction = "forward"
rtt = {{ kind = "uniform", min = "{low}", max = "{high}" }}
"""

_MEETINGS = """
[[traffic]]
name = "meetings"          # pictures of video calls, one stream each way, at most 2.5 Mbit/s
kind = "video-conference"
streams = {streams}
direction = "both"
rtt = {{ kind = "constant", rtt = "{rtt}" }}
"""

_GAME = """
[[traffic]]
name = "game"              # drawn by the player's machine: small packets both ways
kind = "game"
players = 1
rate = "50 kbit/s"
frame_rate = 20
direction = "forward"
rtt = {{ kind = "constant", rtt = "{rtt}" }}
"""

_WORKERS = """\
[[traffic]]
name = "workers"           # a class of its own in every result
kind = "web-sessions"      # each asks, gets its answer, works a little, asks again
sessions = {users}
transfer = {{ kind = "lognormal", median = "20 kB", sigma = 2.0 }}   # many small, few large
think_min = "2 ms"         # how long they work on an answer
think_max = "8 ms"
start_within = "10 ms"
tcp = "linux"              # CUBIC, RACK, tail loss probes; `aqmlab list profiles` has others
direction = "forward"      # the way of the answers
rtt = {{ kind = "uniform", min = "{low}", max = "{high}" }}"""

_TRANSFERS = """\
[[traffic]]
name = "transfers"         # a class of its own in every result
kind = "bulk"              # endless transfers: TCP itself, without people
flows = {users}
start_within = "1 s"       # not all at the same instant
tcp = "linux"              # CUBIC, RACK, tail loss probes; `aqmlab list profiles` has others
direction = "forward"      # from the servers to the clients
rtt = {{ kind = "uniform", min = "{low}", max = "{high}" }}"""

_CONTROL = """\
[[traffic]]
name = "{name}"
kind = "bulk"              # endless transfers
flows = {users}                  # as many of each control, or the shares say nothing
start_within = "1 s"       # not all at the same instant
tcp = {{ profile = "linux", congestion_control = "{control}"{more} }}
direction = "forward"      # from the servers to the clients
rtt = {{ kind = "constant", rtt = "{rtt}" }}   # the same for all: only the control differs
"""

_COUNTING = {
    "prague": ', ecn = true, ect = "ect1", ect_on = "all-data", ecn_echo = "accurate"',
    "dctcp": ', ecn = true, ect_on = "all-data", ecn_echo = "each-change"',
}
"""What controls that count marks need of their stack; they also need a queue that marks."""

_HOME_BUFFER = (
    "100 ms of the faster direction, and as many packets the other way, as in many modems"
)
_BDP_BUFFER = "one bandwidth-delay product: the faster rate times the round-trip time"

LINKS = {
    "office": StarterLink(
        what="An office of {users} people",
        forward_bps=100e6,
        reverse_bps=20e6,
        rtt_s=0.03,
        users=25,
        traffic=_PAGES + _MEETINGS,
        people_per_viewer=8,
        people_per_meeting=12,
        duration_s=180.0,
        buffer_s=0.1,
        buffer_rule=_HOME_BUFFER,
        call=True,
        upload=True,
    ),
    "home": StarterLink(
        what="A home of {users} people",
        forward_bps=50e6,
        reverse_bps=10e6,
        rtt_s=0.02,
        users=4,
        traffic=_PAGES + _MEETINGS + _GAME,
        people_per_viewer=2,
        people_per_meeting=4,
        duration_s=180.0,
        buffer_s=0.1,
        buffer_rule=_HOME_BUFFER,
        call=True,
        upload=True,
    ),
    "data-centre": StarterLink(
        what="A data-centre link with {users} workers",
        forward_bps=10e9,
        reverse_bps=10e9,
        rtt_s=100e-6,
        users=40,
        traffic=_WORKERS,
        duration_s=2.0,
        buffer_s=None,
        buffer_rule=_BDP_BUFFER,
    ),
    "lab": StarterLink(
        what="A dumbbell with {users} long transfers",
        forward_bps=10e6,
        reverse_bps=10e6,
        rtt_s=0.1,
        users=8,
        traffic=_TRANSFERS,
        duration_s=120.0,
        buffer_s=None,
        buffer_rule=_BDP_BUFFER,
    ),
    "fairness": StarterLink(
        what="Fairness: {users} transfers of each congestion control",
        forward_bps=50e6,
        reverse_bps=50e6,
        rtt_s=0.04,
        users=2,
        traffic="",
        duration_s=120.0,
        buffer_s=None,
        buffer_rule=_BDP_BUFFER,
        controls=("cubic", "bbr3"),
    ),
    "isp": StarterLink(
        what="An access network of {users} subscribers",
        forward_bps=1e9,
        reverse_bps=500e6,
        rtt_s=0.02,
        users=400,
        traffic=_PAGES + _MEETINGS,
        people_per_viewer=4,
        people_per_meeting=40,
        duration_s=60.0,
        buffer_s=0.1,
        buffer_rule=_HOME_BUFFER,
        call=True,
    ),
}
"""The kinds of links, as they are unless one says otherwise."""


def scenario_text(link: StarterLink, file: str) -> str:
    """The scenario as commented TOML, which is checked.

    Args:
        link: what it is made of.
        file: the name that it will have, for the commands in its comments.
    """
    if not 1 <= link.users <= _MOST_USERS:
        raise AqmlabError(f"--users: found {link.users}; expected 1 to {_MOST_USERS:,}")
    if link.wifi is not None and not 2 <= link.wifi <= _MOST_STATIONS:
        raise AqmlabError(f"--wifi: found {link.wifi}; expected 2 to {_MOST_STATIONS:,} devices")
    text = "\n".join(_parts(link, file))
    try:
        # What is written is right; a trace comes beside it.
        Scenario.from_toml(text, folder=SHIPPED / "scenarios" if link.named else None)
    except ScenarioError as error:
        if not link.controls:
            raise
        raise AqmlabError(f"--controls: {error}") from None
    return text


def next_commands(link: StarterLink, file: str) -> list[str]:
    """What is worth running next; lines of a shell."""
    if link.named:
        compared = f"aqmlab compare {file} --vary 'discipline=fq-codel,cake'"
        return [f"aqmlab run {file}", compared, "aqmlab report runs"]
    if link.access:
        compared = (
            f"aqmlab compare {file} \\\n  --vary 'forward.discipline.leaf=cake,fq-codel,droptail'"
        )
        return [f"aqmlab run {file}", compared, "aqmlab report runs"]
    compared = f"aqmlab compare {file} \\\n  --vary 'discipline={comparison(link)}'"
    if link.wifi is not None:
        compared = f"aqmlab compare {file} \\\n  --vary 'wifi.queue=fifo,mac80211'"
    if link.controls:  # goodput of each control is a line of each table
        return [f"aqmlab run {file}", compared, "aqmlab plot classes runs -o shares.svg"]
    return [f"aqmlab run {file}", compared, "aqmlab report runs"]


def comparison(link: StarterLink) -> str:
    """The values of ``discipline`` that are worth a comparison."""
    return f'{{kind="droptail",limit="{link.buffer_packets} packets"}},fq-codel'


def _parts(link: StarterLink, file: str) -> Iterator[str]:
    """The text part by part."""
    forward, reverse = rate_text(link.forward_bps), rate_text(link.reverse_bps)
    rates = forward if forward == reverse else f"{forward} down, {reverse} up"
    title = f"{link.what.format(users=link.users)}, {rates}"
    if link.wifi is not None:
        title += f", with {link.wifi} devices on Wi-Fi"
    measured = link.measured_s
    tries = "\n".join(indent(command, "#   ") for command in next_commands(link, file))
    traced = min(link.users, 10) if link.controls else 1
    hosts = min(link.users * max(1, len(link.controls)), 100)
    hosts = hosts if link.wifi is None else link.wifi
    trees = {"forward": "", "reverse": ""}
    shared = f"""\
# The queue of each direction. `aqmlab list presets` has others: discipline = "fq-codel". The
# buffer is {link.buffer_rule}.
discipline = {{ kind = "droptail", limit = "{link.buffer_packets} packets" }}
"""
    if link.access:
        hosts = link.access.hosts
        trees = {direction: link.access.text(direction) for direction in trees}
        shared = "# Each direction has a tree of rates with a queue for each subscriber.\n"
    bottleneck = f"""\
[topology.bottleneck]      # both directions, unless .forward or .reverse below says otherwise
framing = "ethernet"       # each packet occupies the wire for 38 bytes more than its IP length
{shared}
[topology.bottleneck.forward]   # from the servers to the clients: the download
rate = "{forward}"
{trees["forward"]}
[topology.bottleneck.reverse]   # from the clients to the servers: the upload
rate = "{reverse}"
{trees["reverse"]}"""
    if link.named:
        bottleneck = f"""\
# The link {link.named.name}: {link.named.title}.
# `aqmlab explain {link.named.name}` says where each number comes from.
{link.named.text}"""
    yield f"""\
# {title}. Try
{tries}
# Every value that is not stated has a default: docs/scenario.md lists them, and the run directory
# holds the scenario with all of them. `aqmlab explain NAME` says what a discipline, a kind of
# traffic or a metric is.

title = "{title}"
seed = 1                   # same seed, same users: they meet every queue with the very same wishes

[measure]
warm_up = "{time_text(rounded(measured / 3))}"           # simulated, but not counted
duration = "{time_text(measured)}"          # counted
queue_sample = "{time_text(rounded(measured / 3000))}"     # how often the queues are looked at
record = ["responses", "flows", "queue", "sojourn"]   # what figures and reports draw
flow_trace = {{ flows = {traced}, period = "{time_text(rounded(measured / 600))}" }}   # each class

[topology]
kind = "dumbbell"          # clients on one side, servers on the other, one link between them

[topology.hosts]
clients = {hosts}
servers = 10

{bottleneck}"""
    if link.wifi is not None:
        yield _WIFI.format(near=link.wifi - 1)
    down, up = (rate_text(float(f"{bps:.2g}")) for bps in link.asked_bps)
    values = {
        "users": link.users,
        "viewers": link.viewers,
        "streams": link.streams,
        "rtt": time_text(link.rtt_s),
        "low": time_text(link.rtt_s / 2),
        "high": time_text(link.rtt_s * 1.5),
        "down": down,
        "up": up,
    }
    if link.traffic:
        yield link.traffic.format(**values)
    if link.wifi is not None:
        yield _FAR.format(**values)
    for number, control in enumerate(link.controls, 1):
        twice = link.controls.count(control) > 1
        name = f"{control}-{number}" if twice else control
        more = _COUNTING.get(control, "")
        yield _CONTROL.format(**values, name=name, control=control, more=more)
    if link.upload:
        yield _UPLOAD.format(**values)
    if link.call:
        yield _CALL.format(**values)


_WIFI = """\
[topology.wifi]            # behind the bottleneck: an access point, whose stations are the clients
phy = "ht20"               # 802.11n; "vht80" (802.11ac) and "he80" (802.11ax) need other mcs
stations = [
    {{ count = {near}, mcs = 15 }},                # near: 144 Mbit/s on the air
    {{ count = 1, mcs = 0, class = "far" }},    # far away: 7.2 Mbit/s
]
queue = "mac80211"         # a queue for each station, as in Linux since 2016; "fifo": one for all
airtime_fairness = true    # with "mac80211": as much time on the air for each station
"""

_FAR = """
[[traffic]]
name = "far"               # the device far away downloads: its packets take long on the air
kind = "bulk"
flows = 1
tcp = "linux"
direction = "forward"
rtt = {{ kind = "constant", rtt = "{rtt}" }}
"""

_UPLOAD = """\
[[traffic]]
name = "upload"            # a backup, a large file: a transfer that takes what it gets
kind = "bulk"
flows = 1
tcp = "linux"
direction = "reverse"      # from the clients to the servers
rtt = {{ kind = "constant", rtt = "{rtt}" }}
"""

_CALL = """\
[[traffic]]
name = "call-down"         # what one hears of a voice call: packets every 20 ms, rated by MOS
kind = "voip"
calls = 1
direction = "forward"
rtt = {{ kind = "constant", rtt = "{rtt}" }}

[[traffic]]
name = "call-up"           # what the other side hears
kind = "voip"
calls = 1
direction = "reverse"
rtt = {{ kind = "constant", rtt = "{rtt}" }}
"""
