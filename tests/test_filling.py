"""Two flows fill an empty link with each congestion control and each profile's other defaults."""

import pytest
from aqmlab import Scenario, ScenarioError, Simulation
from aqmlab.scenario.catalog import Catalog

SECONDS = 20
"""Half of them pass before the measured half."""

LINK = (20e6, 0.02)
"""Bits per second and round trip: 33 packets of 1,500 bytes are in flight when it is full."""

MADE_FOR = {"ns-one-way": (1.544e6, 0.1)}
"""A stack for a link of its own: its random delay before it sends is the time of a packet there."""

LEAST = {
    # A loss or a mark halves the window or less, and the buffer holds another window.
    "reno": 0.95,
    "cubic": 0.95,
    "scalable": 0.95,
    # They cut in proportion to the share of marks.
    "dctcp": 0.95,
    "prague": 0.95,
    # They send at the largest delivery rate that they have seen.
    "bbr1": 0.95,
    "bbr3": 0.95,
    # They keep some segments of their own in the queue.
    "vegas": 0.95,
    # The same, but CoDel marks that queue, and a mark halves the window.
    "fast": 0.9,
    # It sums the changes of the delay. What a loss leaves in the sum stays and holds the window
    # down: one run fills the link, another run does not.
    "santa-cruz": 0.05,
    # It halves the window when the delay rises, before the buffer is full.
    "sync-tcp": 0.9,
    # It slows down to two segments for a tenth of the time.
    "ledbat-plus-plus": 0.9,
}
"""The share of the link that two flows take at least, by what defines the congestion control."""

FALLS_SHORT = {
    # A round of an odd window ends with an ACK that is delayed; Vegas takes that for a queue.
    ("vegas", "rfc"): 0.1,
    ("vegas", "freebsd-4.5"): 0.1,
    ("vegas", "linux"): 0.8,
    ("vegas", "linux-classic"): 0.8,
    # Several losses in a window end in a time-out, which is counted in ticks of 100 ms.
    ("reno", "ns-one-way"): 0.8,
    # It takes its own burst behind the random delay for a queue.
    ("sync-tcp", "ns-one-way"): 0.05,
}
"""What takes less, and the share that it takes at least: docs/transports.md says why."""

QUEUES_OF_ITS_OWN = {"fast": 200}
"""Packets that two flows keep in the queue: the buffer holds them beside a window."""

FILLED_BY_OTHERS = {"external", "plugin"}
"""A window that somebody else sets."""


CATALOG = Catalog.load()
PROFILES = list(CATALOG.summaries("profiles"))


def share(profile: str, keys: str, *, buffer: int = 0) -> float:
    """What two flows take of a link, of the most that their buffers let them take."""
    rate, rtt = MADE_FOR.get(profile, LINK)
    packets = round(rate * rtt / 8 / 1500) + buffer
    queue = f'{{ kind = "droptail", limit = "{packets} packets" }}'
    if "ecn = true" in keys:
        queue = '{ kind = "codel", ecn = true }'
    seconds = SECONDS * (5 if profile in MADE_FOR else 1)
    scenario = Scenario.from_toml(f"""
        title = "Two flows alone"
        measure = {{ warm_up = "{seconds / 2} s", duration = "{seconds / 2} s" }}
        [topology]
        kind = "dumbbell"
        bottleneck = {{ rate = "{rate} bit/s", framing = "none", discipline = {queue} }}
        [[traffic]]
        name = "alone"
        kind = "bulk"
        flows = 2
        start_within = "100 ms"
        rtt = {{ kind = "constant", rtt = "{rtt} s" }}
        tcp = {{ profile = "{profile}", {keys} }}
    """)
    stack = scenario.data["traffic"][0]["tcp"]
    mss, header = _bytes(stack["mss"]), _bytes(stack["header"])
    window = min(_bytes(stack["send_buffer"]), _bytes(stack["receive_buffer"]))
    most = 2 * 8 * window * (mss + header) / mss / (rtt + 8 * (mss + header) / rate)
    with Simulation(scenario, record=False) as run:
        run.run_until(seconds / 2)
        run.step(seconds / 2)
        return run.links["bottleneck.forward"].throughput_bps / min(rate, most)


def _bytes(size: str) -> int:
    number, unit = size.split()
    return int(number) * {"bytes": 1, "KiB": 2**10, "MiB": 2**20}[unit]


def test_every_control_has_a_share_that_it_takes() -> None:
    kinds = CATALOG.summaries("transports")
    controls = {name.split(".")[1] for name in kinds if name.startswith("congestion_control.")}
    assert controls == set(LEAST) | FILLED_BY_OTHERS


@pytest.mark.parametrize("ecn", ["ecn = true", "ecn = false"])
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("control", LEAST)
def test_two_flows_fill_an_empty_link(control: str, profile: str, ecn: str) -> None:
    keys = f'congestion_control = "{control}", {ecn}'
    try:
        taken = share(profile, keys, buffer=QUEUES_OF_ITS_OWN.get(control, 0))
    except ScenarioError as refused:
        # In one line that says what the stack lacks.
        message = str(refused)
        assert "traffic.alone.tcp.congestion_control" in message
        needs_records = profile != "linux" and 'recovery = "rack-tlp"' in message
        assert needs_records or (ecn == "ecn = false" and "ecn = true" in message), message
        return
    short = FALLS_SHORT.get((control, profile), LEAST[control])
    assert taken >= short, taken


@pytest.mark.parametrize(("control", "profile"), FALLS_SHORT)
def test_what_falls_short_still_does(control: str, profile: str) -> None:
    """Where it no longer does, the table and the page lose a line."""
    keys = f'congestion_control = "{control}", ecn = '
    taken = [share(profile, keys + ecn) for ecn in ("true", "false")]
    assert min(taken) < LEAST[control], taken


@pytest.mark.parametrize("echo", ["until-cwr", "each-change", "accurate"])
@pytest.mark.parametrize("control", ["dctcp", "prague", "cubic"])
def test_an_echo_that_is_stated_fills_the_link_too(control: str, echo: str) -> None:
    keys = f'congestion_control = "{control}", ecn = true, ecn_echo = "{echo}"'
    assert share("linux", keys) > 0.9
