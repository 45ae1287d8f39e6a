"""What a source of traffic asks for: quantiles, tails, long memory.

A source is played on an ideal network, which loses nothing and where bytes take no time but the
round trip: what it does there is what it is, before any queue has a say in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aqmlab import _native
from aqmlab._util.lazy import np
from aqmlab.scenario.scenario import Scenario, inline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from aqmlab.scenario.scenario import Override

__all__ = [
    "BIN_S",
    "EXAMPLES",
    "FOLLOWERS",
    "PROBABILITIES",
    "SECONDS",
    "Described",
    "Description",
    "Memory",
    "describe",
    "example",
    "memory",
    "recorded",
]


SECONDS = 1000.0
"""How long a source is played."""
PROBABILITIES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""Quantiles that are shown."""
_TAIL = 0.01
"""Share of the values that Hill's estimate of the tail index looks at, and the fewest of them."""
_FEWEST_IN_TAIL = 50
BIN_S = 0.001
"""Finest time scale of the logscale diagram."""
_MOST_BINS = 1 << 22
_FEWEST_COEFFICIENTS = 16
"""Octaves with fewer wavelet coefficients say nothing."""
_MSS_BYTES = 1460
"""Payload of a packet, for the number of packets."""
_WINDOW_BYTES = 17_520
"""A transfer sends so much in each round trip, in the series of bytes."""
_POPULATION = 100.0
"""Users, sessions or connections per second of a class that leaves them to its load."""
_COPIES = 1.0
"""Copies of recorded connections of a class that leaves them to its load."""

EXAMPLES = {
    "mah-web": "users = 100",
    "unc-web": "users = 100",
    "web-sessions": "sessions = 100",
    "packmime": 'rate = "100 /s"',
    "poisson": """
        rate = "100 /s"
        request = { kind = "constant", size = "400 bytes" }
        response = { kind = "bounded-pareto", shape = 1.2, minimum = "2 kB", maximum = "10 MB" }
    """,
    "general-tcp": 'rate = "100 /s"',
    "bulk": 'flows = 10\nsize = "1 MB"',
    "cbr": 'flows = 10\nrate = "24 kbit/s"\npacket = "210 bytes"',
    "on-off": 'flows = 100\nrate = "24 kbit/s"',
    "telnet": "sessions = 100",
    "http2-web": "users = 100",
    "http3-web": "users = 100",
    "voip": "calls = 10",
    "game": 'players = 1\nrate = "50 kbit/s"\nframe_rate = 20',
    "ftp": 'rate = "10 /s"',
}
"""What a kind needs beside its name to be described by itself."""
FOLLOWERS = {"abr-video", "video-conference"}
"""Kinds that ask for as much as the network gives: an ideal network says nothing about them."""
_VECTOR_RTT = 'rtt = { kind = "vector" }'
_OWN_RTT = {"packmime": 'rtt = { kind = "packmime" }', "general-tcp": _VECTOR_RTT}
_ANY_RTT = 'rtt = { kind = "uniform", min = "10 ms", max = "150 ms" }'


def example(kind: str, overrides: Sequence[Override] = ()) -> Scenario:
    """A scenario with one class of a kind of :data:`EXAMPLES`."""
    rtt = _OWN_RTT.get(kind, _ANY_RTT)
    return _one_class(f'kind = "{kind}"\n{rtt}\n{EXAMPLES[kind]}', overrides)


def recorded(file: Path, overrides: Sequence[Override] = ()) -> Scenario:
    """A scenario whose one class is the connection vectors of a file."""
    return _one_class(
        f'kind = "vectors"\nfile = {inline(file.name)}\ncopies = 1\n{_VECTOR_RTT}',
        overrides,
        file.parent,
    )


def _one_class(keys: str, overrides: Sequence[Override], folder: Path | None = None) -> Scenario:
    """A scenario with one class that has these keys."""
    text = f"""
        [topology]
        kind = "dumbbell"
        bottleneck = {{ rate = "100 Mbit/s", discipline = "droptail-240" }}
        [[traffic]]
        {keys}
    """
    return Scenario.from_toml(text, overrides, folder=folder)


@dataclass(frozen=True)
class Described:
    """A sample of something, in one unit."""

    name: str
    unit: str
    values: np.ndarray

    @property
    def quantiles(self) -> list[float]:
        """One for each of :data:`PROBABILITIES`."""
        return [float(value) for value in np.quantile(self.values, PROBABILITIES)]

    @cached_property
    def tail(self) -> tuple[float, float] | None:
        """Tail index and its standard error (B. Hill 1975), from the largest values."""
        number = int(_TAIL * len(self.values))
        if number < _FEWEST_IN_TAIL:
            return None
        largest = np.sort(self.values)[-number - 1 :]
        if largest[0] <= 0 or largest[0] == largest[-1]:
            return None
        index = 1.0 / float(np.mean(np.log(largest[1:] / largest[0])))
        return index, index / float(np.sqrt(number))

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        named = {f"p{100 * p:g}": q for p, q in zip(PROBABILITIES, self.quantiles, strict=True)}
        index, error = self.tail or (None, None)
        return {
            "unit": self.unit,
            "count": len(self.values),
            "mean": float(np.mean(self.values)),
            **named,
            "max": float(np.max(self.values)),
            "tail_index": index,
            "tail_index_standard_error": error,
        }


@dataclass(frozen=True)
class Memory:
    """A logscale diagram: energy of a counting process by time scale, and its slope.

    P. Abry, D. Veitch, "Wavelet Analysis of Long-Range-Dependent Traffic", IEEE Transactions on
    Information Theory, 1998, with the Haar wavelet.
    """

    name: str
    scales_s: np.ndarray
    energies: np.ndarray
    coefficients: np.ndarray
    fitted: np.ndarray
    """Which of the scales the slope was fitted to."""
    hurst: float | None
    standard_error: float | None

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        fitted = self.scales_s[self.fitted]
        return {
            "hurst": self.hurst,
            "standard_error": self.standard_error,
            "from_s": float(fitted[0]) if self.hurst is not None else None,
            "to_s": float(fitted[-1]) if self.hurst is not None else None,
            "scales_s": self.scales_s.tolist(),
            "energies": self.energies.tolist(),
        }


def memory(name: str, series: np.ndarray, bin_s: float, from_s: float) -> Memory:
    """Logscale diagram of a series, and the Hurst parameter from the scales above `from_s`."""
    sums, scales, energies, numbers = series.astype(float), [], [], []
    length = 1
    while len(sums) // 2 >= _FEWEST_COEFFICIENTS:
        pairs = sums[: len(sums) // 2 * 2].reshape(-1, 2)
        length *= 2
        energies.append(float(np.mean(np.diff(pairs, axis=1) ** 2)) / length)
        numbers.append(len(pairs))
        scales.append(length * bin_s)
        sums = pairs.sum(axis=1)
    scales_s, energy, number = np.array(scales), np.array(energies), np.array(numbers)
    fitted = (scales_s >= from_s) & (energy > 0)
    hurst = error = None
    if fitted.sum() >= 3:
        octave = np.log2(scales_s[fitted])
        # The logarithm of the mean of n squared normals: variance 2 / (n ln(2)^2), and a bias.
        weight = number[fitted] * np.log(2) ** 2 / 2
        height = np.log2(energy[fitted]) + 1 / (number[fitted] * np.log(2))
        centre = np.average(octave, weights=weight)
        spread = np.sum(weight * (octave - centre) ** 2)
        hurst = float((np.sum(weight * (octave - centre) * height) / spread + 1) / 2)
        error = float(1 / np.sqrt(spread) / 2)
    return Memory(name, scales_s, energy, number, fitted, hurst, error)


@dataclass(frozen=True)
class Description:
    """What one class does on an ideal network."""

    name: str
    kind: str
    seconds: float
    """How long it was played; recorded connections no longer than until the last one opens."""
    population: str
    columns: dict[str, np.ndarray]

    def count(self, column: str) -> int:
        """Values in a column."""
        return len(self.columns[column])

    @cached_property
    def gaps_s(self) -> np.ndarray:
        """Times between the openings of connections."""
        gaps: np.ndarray = np.diff(self.columns["opened_s"])
        return gaps

    @cached_property
    def exchange_connection(self) -> np.ndarray:
        """For each exchange the number of its connection."""
        exchanges = self.columns["exchanges"].astype(int)
        found: np.ndarray = np.repeat(np.arange(len(exchanges)), exchanges)
        return found

    @cached_property
    def asked_s(self) -> np.ndarray:
        """When each exchange begins: after the handshake and the exchanges before it."""
        connection = self.exchange_connection
        if len(connection) == 0:
            return np.empty(0)
        rtt = self.columns["rtt_s"][connection]
        took = rtt + self.columns["pause_s"]
        before = np.cumsum(took) - took
        first = np.searchsorted(connection, np.arange(connection[-1] + 1))
        since_first = before - before[first][connection]
        asked: np.ndarray = self.columns["opened_s"][connection] + rtt + since_first
        return asked

    @cached_property
    def quantities(self) -> list[Described]:
        """Everything that has a distribution."""
        columns = self.columns
        pauses = columns["pause_s"]
        found = [
            Described("time between connections", "s", self.gaps_s),
            Described("round-trip time", "s", columns["rtt_s"]),
            Described("exchanges of a connection", "", columns["exchanges"]),
            Described("request", "bytes", columns["request_bytes"]),
            Described("response", "bytes", columns["response_bytes"]),
            Described("pause or server time on a connection", "s", pauses[pauses > 0]),
            Described("time between datagrams", "s", np.diff(columns["datagram_s"])),
            Described("datagram", "bytes", columns["datagram_bytes"]),
        ]
        return [quantity for quantity in found if len(quantity.values) > 0]

    @cached_property
    def packets(self) -> tuple[int, int]:
        """Data packets of the requests and of the responses, datagrams included."""

        def full(column: str) -> int:
            return int(np.sum(np.ceil(self.columns[column] / _MSS_BYTES)))

        return full("request_bytes"), full("response_bytes") + self.count("datagram_s")

    @cached_property
    def memories(self) -> list[Memory]:
        """Logscale diagrams of the arrivals and of the bytes."""
        bin_s = max(BIN_S, self.seconds / _MOST_BINS)
        edges = np.arange(0, self.seconds + bin_s, bin_s)
        found = []
        for name, column in (("connections", "opened_s"), ("datagrams", "datagram_s")):
            times = self.columns[column]
            if len(times) >= 100:
                counts, _ = np.histogram(times, edges)
                # Below about ten arrivals a bin the counts are discrete more than anything else.
                from_s = 10 * self.seconds / len(times)
                found.append(memory(name, counts, bin_s, from_s))
        if self.count("response_bytes") >= 100:
            found.append(memory("bytes of responses", self.byte_series(edges), bin_s, 1.0))
        return found

    def byte_series(self, edges: np.ndarray) -> np.ndarray:
        """Bytes of responses in each bin, a window of :data:`_WINDOW_BYTES` per round trip."""
        rtt = self.columns["rtt_s"][self.exchange_connection]
        size = np.minimum(self.columns["response_bytes"], _WINDOW_BYTES / rtt * self.seconds)
        start = self.asked_s + rtt / 2
        last = rtt * np.maximum(size / _WINDOW_BYTES, 1e-3)
        # The bytes up to a time are sums of ramps: their slopes change where one begins or ends.
        times = np.concatenate((start, start + last))
        slopes = np.concatenate((size / last, -size / last))
        order = np.argsort(times)
        times, slopes = times[order], np.cumsum(slopes[order])
        total = np.concatenate(([0.0], np.cumsum(slopes[:-1] * np.diff(times))))
        series: np.ndarray = np.diff(np.interp(edges, times, total))
        return series

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        columns = self.columns
        return {
            "class": self.name,
            "kind": self.kind,
            "population": self.population,
            "played_s": self.seconds,
            "connections": self.count("opened_s"),
            "refused": self.count("refused_s"),
            "exchanges": self.count("request_bytes"),
            "persistent_connections": float(np.mean(columns["exchanges"] > 1))
            if self.count("exchanges")
            else None,
            "datagrams": self.count("datagram_s"),
            "request_bytes": float(np.sum(columns["request_bytes"])),
            "response_bytes": float(np.sum(columns["response_bytes"])),
            "datagram_bytes": float(np.sum(columns["datagram_bytes"])),
            "request_packets": self.packets[0],
            "response_packets": self.packets[1],
            "quantities": {quantity.name: quantity.to_json() for quantity in self.quantities},
            "memory": {memory.name: memory.to_json() for memory in self.memories},
        }


def describe(scenario: Scenario, seconds: float = SECONDS) -> list[Description]:
    """Plays every class of a scenario by itself.

    A class that leaves its users (or connections per second) to the scenario's load is played with
    :data:`_POPULATION` of them (recorded connections: :data:`_COPIES`). What one of them does is
    the same.
    """
    found = []
    for index, traffic in enumerate(scenario.data["traffic"]):
        effective = scenario.effective
        key = _native.population_key(effective, index)
        if _native.population(effective, index) is None:
            population = _COPIES if key == "copies" else _POPULATION
            effective = _native.set_population(effective, index, population)
        number = f"{key} = {_native.population(effective, index):g}"
        played = _native.play_source(effective, index, seconds)
        columns = {name: np.frombuffer(column, "<f8") for name, column in played.items()}
        opened = columns["opened_s"]
        # Nothing comes after the last recorded connection: silence that says nothing of the source.
        is_over = traffic["kind"] == "vectors" and len(opened) > 1
        span = min(seconds, float(opened[-1])) if is_over else seconds
        found.append(Description(traffic["name"], traffic["kind"], span, number, columns))
    return found
