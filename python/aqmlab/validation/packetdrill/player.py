"""Plays a script against one end point of the simulator, in simulated time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aqmlab import _native
from aqmlab.errors import AqmlabError
from aqmlab.validation.packetdrill.asserts import CONSTANTS, assertions
from aqmlab.validation.packetdrill.calls import Calls, MismatchError
from aqmlab.validation.packetdrill.language import (
    NANOSECONDS,
    Call,
    Command,
    Event,
    LanguageError,
    NotApplicableError,
    Source,
    When,
)
from aqmlab.validation.packetdrill.packets import Options, Packet, worded
from aqmlab.validation.packetdrill.settings import System, run, settings_of
from aqmlab.validation.script import Segment, Step, segments

__all__ = ["Player"]

PATIENCE = 600 * NANOSECONDS
"""How long the next segment is waited for, behind the time at which it is expected."""
MICROSECONDS = 10**6
ENDLESS = 1e6
"""A threshold of as many segments is none."""
MOST_SHIFT = 14
"""The largest shift of a window (RFC 7323, section 2.3)."""


def seconds(time: int) -> str:
    """A time for a reader."""
    return f"{time / NANOSECONDS:.6f}".rstrip("0").rstrip(".") + " s"


@dataclass
class Window:
    """What the peer offers."""

    shift: int = 0
    """Of its SYN, if both ends scale."""
    edge: int = 65_535
    """The sequence number behind the last that it takes."""
    ack: int = 0


class Player:
    """One script and the end point that it is played against."""

    def __init__(self, source: Source, system: System) -> None:
        self.source = source
        self.system = system
        self.bench: _native.Bench | None = None
        self.calls = Calls(self, system)
        self.asks = False
        self.opened = False
        self.settings: dict[str, str] = {}
        self.time = 0
        """The time while there is no end point."""
        self.last = 0
        """The time of the event before, as the script has it."""
        self.last_arrived: int | None = None
        """The time of the event before, if it was a packet that arrives."""
        self.sent: deque[tuple[int, Segment]] = deque()
        self.window = Window()
        self.stamps: dict[int, int] = {}
        """Time stamps of ours by those of the script."""
        self.first_stamps: tuple[int, int] | None = None
        self.steps: list[Step] = []
        """What happened, as a packet script."""
        self.line = 0

    # ---- the end point ----

    @property
    def now(self) -> int:
        """Nanoseconds."""
        return self.bench.now if self.bench else self.time

    def end(self) -> _native.Bench:
        """The end point."""
        if self.bench is None:
            raise NotApplicableError(self.line, "nothing listens or connects yet")
        return self.bench

    def open(self, how: str) -> None:
        """The end point connects or listens."""
        self.asks = how == "connect"
        self.settings = settings_of(self.system, self.source.events, self.asks)
        pairs = [f"{key} = {value}" for key, value in self.settings.items()]
        try:
            self.bench = _native.Bench("\n".join(['profile = "linux"', *pairs]))
        except AqmlabError as error:
            raise NotApplicableError(self.line, f"profile linux: {error}") from None
        self.bench.advance(self.time)
        self.opened = True
        self.perform(how)

    def set_nagle(self, on: bool) -> None:
        """Nagle's rule."""
        self.settings["nagle"] = "true" if on else "false"
        self.end().set(f"nagle = {self.settings['nagle']}")

    def perform(self, word: str, length: int = 0) -> None:
        """The application does something."""
        self.steps.append(Step(self.line, self.now / NANOSECONDS, word, length))
        try:
            self.end().perform(word, length)
        except AqmlabError as error:
            raise LanguageError(self.line, str(error)) from None
        self.collect()

    def shown(self, word: str) -> float | None:
        """What the end point shows."""
        return self.end().show(word)

    def is_shown(self, word: str) -> bool:
        """Whether it shows this."""
        return bool(self.opened and self.shown(word))

    @property
    def received(self) -> int:
        """Bytes that have arrived in order."""
        return int(self.shown("received") or 0) if self.opened else 0

    def collect(self) -> None:
        """Takes what was sent; the peer's window must have room for it."""
        for time, text in self.end().take_sent():
            (segment,) = segments(text)
            if segment.length and segment.seq + segment.length > self.window.edge:
                why = "the peer's window is full, and windows that close are not modelled"
                raise NotApplicableError(self.line, why)
            self.sent.append((time, segment))

    def advance(self, time: int) -> None:
        """Time passes: timers fire one by one, and calls that wait look at each."""
        while self.bench and (wake := self.bench.wake_at) is not None and wake <= time:
            self.bench.advance(max(wake, self.now))
            self.collect()
            self.calls.look()
        if self.bench:
            self.bench.advance(max(time, self.now))
        self.time = max(time, self.time)

    # ---- time ----

    def window_of(self, event: Event) -> tuple[int, int]:
        """When an event is due: from, to."""
        if event.when is When.START:
            return event.start, event.end
        base = self.now
        arrives = isinstance(event.what, Packet) and not event.what.outbound
        if arrives and self.last_arrived is not None:
            base = self.last_arrived
        if event.when is When.ANY:
            return base, base
        return base + event.start, base + event.end

    def tolerance(self, due: int) -> int:
        """By how much a time may differ, in nanoseconds."""
        share = (due - self.last) * self.system.tolerance_percent / 100
        return int(max(self.system.tolerance * 1000, share))

    def reach(self, event: Event, due: int) -> None:
        """Time passes up to an event; it may be too late for it."""
        self.advance(due)
        if self.now > due + self.tolerance(due):
            found = f"the line is reached at {seconds(self.now)}"
            raise MismatchError(event.line, f"{event.text} at {seconds(due)}", found)

    # ---- playing ----

    def play(self) -> None:
        """Plays all events.

        Raises:
            MismatchError: Something is not as the script says.
            NotApplicableError: The script asks for what is not modelled.
        """
        if self.source.events[0].start != 0 or self.source.events[0].when is When.ANY:
            line = self.source.events[0].line
            raise LanguageError(line, "found a first event that is later; expected time 0")
        for event in self.source.events:
            self.line = event.line
            due, latest = self.window_of(event)
            match event.what:
                case Packet(outbound=True) as packet:
                    self.expect(event, packet, due, latest)
                case Packet() as packet:
                    self.reach(event, due)
                    self.arrive(event, packet)
                case Call() as call:
                    base = 0 if event.when is When.START else due - event.start
                    self.reach(event, due)
                    self.calls.make(event, call, due, base)
                case Command() as command:
                    self.reach(event, due)
                    self.command(command)
                case str() as code:
                    self.reach(event, due)
                    self.check(event, code)
            self.calls.look()
            self.last = max(due, self.last)
            arrives = isinstance(event.what, Packet) and not event.what.outbound
            self.last_arrived = due if arrives else None
        self.end_calls()

    def end_calls(self) -> None:
        """Calls that still block end in time, or never."""
        for one in sorted(self.calls.pending, key=lambda one: one.due):
            self.line = one.event.line
            self.advance(one.due)
        for one in self.calls.pending:
            expected = f"{one.event.text} at {seconds(one.due)}"
            raise MismatchError(one.event.line, expected, "it still blocks")

    def command(self, command: Command) -> None:
        """A command amid the script: a pause, or one that changes nothing any more."""
        words = command.text.split()
        if len(words) == 2 and words[0] == "sleep" and words[1].replace(".", "", 1).isdigit():
            pause = min(float(words[1]), 1e5)
            self.advance(self.now + int(pause * NANOSECONDS))
            return
        trial = replace(self.system, keys=dict(self.system.keys))
        run(trial, command, None)
        if trial != self.system:
            if self.opened:
                why = "a setting that changes while the connection is open is not modelled"
                raise NotApplicableError(command.line, why)
            self.system.__dict__.update(trial.__dict__)

    # ---- what arrives ----

    def arrive(self, event: Event, packet: Packet) -> None:
        """A packet arrives."""
        options = packet.options or Options()
        is_syn = "S" in packet.flags
        if is_syn and packet.length:
            raise NotApplicableError(event.line, "data in a SYN is not modelled")
        gone = self.is_gone()
        if self.calls.closed and packet.length and not gone:
            raise NotApplicableError(event.line, "data behind close is not modelled")
        self.offer(packet, options, is_syn)
        segment = Segment(
            packet.flags,
            packet.seq,
            packet.length,
            packet.ack if "A" in packet.flags else 0,
            options.sack,
            options.sack_permitted and self.system.sack,
            self.their_stamps(event, packet, options),
            options.accecn,
            options.ect1_first,
            packet.ecn or 0,
        )
        end = self.end()
        self.steps.append(Step(event.line, self.now / NANOSECONDS, "<", segment=segment))
        if gone:
            self.refuse(segment)
            return
        end.inject(str(segment))
        self.collect()

    def is_gone(self) -> bool:
        """Whether the host has no connection any more."""
        ended = self.calls.last and self.is_shown("finished")
        return self.calls.gone or ended or self.is_shown("failed")

    def refuse(self, segment: Segment) -> None:
        """A host without the connection answers by a reset (RFC 9293, section 3.5.2)."""
        if "R" in segment.flags:
            return
        if "A" in segment.flags:
            answer = Segment("R", segment.ack)
        else:
            behind = segment.seq + segment.length + ("S" in segment.flags) + ("F" in segment.flags)
            answer = Segment("RA", 0, ack=behind)
        self.sent.append((self.now, answer))

    def offer(self, packet: Packet, options: Options, is_syn: bool) -> None:
        """The peer's window."""
        window = self.window
        if is_syn and self.system.window_scaling and options.wscale is not None:
            window.shift = min(options.wscale, MOST_SHIFT)
        if packet.window is not None and (is_syn or packet.ack >= window.ack):
            window.ack = packet.ack
            window.edge = max(packet.ack, 1) + (packet.window << (0 if is_syn else window.shift))

    def their_stamps(
        self, event: Event, packet: Packet, options: Options
    ) -> tuple[int, int] | None:
        """Time stamps of a packet that arrives, with the echo in our numbers."""
        if options.stamps is None:
            return None
        value, echo = options.stamps
        if "A" not in packet.flags:
            return value, echo
        if echo in self.stamps:
            return value, self.stamps[echo]
        if self.first_stamps and self.system.ticks:
            theirs, ours = self.first_stamps
            return value, (ours + echo - theirs) % 2**32
        if echo == 0:
            return value, echo
        raise NotApplicableError(event.line, f"TS ecr {echo} echoes no TS val of a line before")

    # ---- what is sent ----

    def expect(self, event: Event, packet: Packet, due: int, latest: int) -> None:
        """A packet must be sent; what segmentation offload sends at once may be several here."""
        tolerance = self.tolerance(due)
        any_time = event.when is When.ANY
        said = event.text if any_time else f"{event.text} at {seconds(due)}"
        if latest > due:
            said += f" to {seconds(latest)}"
        first: Segment | None = None
        length = 0
        while True:
            time, found = self.next_sent(event, latest, said, first, length)
            whole = found if first is None else replace(first, length=length + found.length)
            shown = f"{worded(whole)} at {seconds(time)}"
            in_time = any_time or due - tolerance <= time <= latest + tolerance
            if first is None:
                if not in_time:
                    raise MismatchError(event.line, said, shown)
                self.compare_options(event, packet, found, said, shown)
            elif not in_time or found.seq != first.seq + length:
                alone = f"{worded(replace(first, length=length))}, then {worded(found)}"
                raise MismatchError(event.line, said, f"{alone} at {seconds(time)}")
            first = first or found
            length += found.length
            self.steps.append(Step(event.line, time / NANOSECONDS, ">", segment=found))
            if length >= packet.length:
                break
        self.compare(event, packet, whole, found, said, shown)

    def next_sent(
        self, event: Event, latest: int, said: str, first: Segment | None, length: int
    ) -> tuple[int, Segment]:
        """The next segment that is sent, and when; time passes up to then."""
        limit = latest + PATIENCE
        while not self.sent and self.bench and (wake := self.bench.wake_at) is not None:
            if wake > limit:
                break
            self.advance(wake)
        if self.sent:
            return self.sent.popleft()
        found = "nothing is sent"
        if first is not None:
            found = f"{worded(replace(first, length=length))}, and nothing behind it"
        raise MismatchError(event.line, said, found)

    def compare(
        self, event: Event, packet: Packet, whole: Segment, last: Segment, said: str, shown: str
    ) -> None:
        """Flags, numbers and the ECN field of a packet that is sent."""
        flags = "".join(sorted(set(whole.flags) | (set(last.flags) & {"F"})))
        ecn = packet.ecn is None or whole.ecn == packet.ecn
        if packet.ecn == 4:
            ecn = whole.ecn in (1, 2)
        alike = (
            flags == "".join(sorted(packet.flags))
            and (whole.seq - packet.seq) % 2**32 == 0
            and whole.length == packet.length
            and ("A" not in packet.flags or whole.ack == packet.ack)
            and ecn
        )
        if not alike:
            raise MismatchError(event.line, said, shown)

    def compare_options(
        self, event: Event, packet: Packet, found: Segment, said: str, shown: str
    ) -> None:
        """The options of a packet that is sent."""
        wanted = packet.options
        is_syn = "S" in found.flags
        if wanted is None:
            return
        if not self.system.sack:
            found = replace(found, sack_permitted=False)
        if is_syn and "S" in packet.flags:
            self.compare_opening(event, wanted, said)
        theirs = (wanted.sack_permitted, wanted.sack, wanted.accecn)
        ours = (found.sack_permitted, found.sack, found.accecn)
        order = not wanted.accecn or wanted.ect1_first == found.ect1_first
        same_stamps = (wanted.stamps is None) == (found.stamps is None)
        if theirs != ours or not order or not same_stamps:
            raise MismatchError(event.line, said, shown)
        if wanted.stamps and found.stamps:
            self.compare_stamps(event, wanted.stamps, found.stamps, said, shown)

    def compare_opening(self, event: Event, wanted: Options, said: str) -> None:
        """What a SYN announces: the machine under the end point, not the end point, decides it."""
        mss = self.system.mss()
        scales = self.system.window_scaling and (self.asks or self.window_scales())
        if wanted.mss != mss:
            raise MismatchError(event.line, said, f"mss {mss}")
        if (wanted.wscale is not None) != scales:
            raise MismatchError(event.line, said, f"{'a' if scales else 'no'} wscale option")

    def window_scales(self) -> bool:
        """Whether the peer's SYN scales its window."""
        for event in self.source.events:
            packet = event.what
            if isinstance(packet, Packet) and not packet.outbound and "S" in packet.flags:
                return bool(packet.options and packet.options.wscale is not None)
        return False

    def compare_stamps(
        self, event: Event, wanted: tuple[int, int], found: tuple[int, int], said: str, shown: str
    ) -> None:
        """The echo is exact; the value counts where ticks have a length."""
        (value, echo), (our_value, our_echo) = wanted, found
        self.stamps[value] = our_value
        if echo != our_echo:
            raise MismatchError(event.line, said, shown)
        if self.first_stamps is None:
            self.first_stamps = (value, our_value)
        elif self.system.ticks:
            first, ours = self.first_stamps
            ahead = ((value - first) - (our_value - ours)) * self.system.ticks
            if abs(ahead) > self.system.tolerance:
                text = f"TS val {first + our_value - ours} in the numbers of the script"
                raise MismatchError(event.line, said, text)

    # ---- assertions ----

    def check(self, event: Event, code: str) -> None:
        """Assertions on what the end point shows."""
        for one in assertions(event.line, code):
            self.line = one.line
            values = {name: self.info(one.line, name) for name in one.names()}
            if not one.holds(values):
                found = ", ".join(f"{name} = {value:g}" for name, value in values.items())
                raise MismatchError(one.line, f"assert {one.text}", found or "it does not hold")

    def info(self, line: int, name: str) -> float:
        """A field of ``struct tcp_info``."""
        if name in SCALES:
            word, scale = SCALES[name]
            value = self.shown(word)
            if value is not None and math.isfinite(value):
                return int(value * scale + 1e-6)
        elif name == "tcpi_snd_ssthresh":
            threshold = self.shown("ssthresh") or 0.0
            return CONSTANTS["TCP_INFINITE_SSTHRESH"] if threshold >= ENDLESS else int(threshold)
        elif name == "tcpi_ca_state":
            return self.ca_state(line)
        elif name == "tcpi_state" and (state := self.state()) is not None:
            return state
        raise NotApplicableError(line, f"{name} is nothing that this end point shows")

    def ca_state(self, line: int) -> int:
        """What the sender does about congestion, in the kernel's words."""
        if self.is_shown("going-back"):
            return CONSTANTS["TCP_CA_Loss"]
        if self.is_shown("recovering"):
            return CONSTANTS["TCP_CA_Recovery"]
        counts = [self.shown(word) for word in ("reducing", "sacked", "lost", "retrans")]
        if None in counts:
            raise NotApplicableError(line, "tcpi_ca_state: this sender keeps no log of segments")
        if counts[0]:
            return CONSTANTS["TCP_CA_CWR"]
        return CONSTANTS["TCP_CA_Disorder" if any(counts) else "TCP_CA_Open"]

    def state(self) -> int | None:
        """The connection's state, where it is certain."""
        if self.is_gone():
            return CONSTANTS["TCP_CLOSE"]
        if not self.is_shown("established"):
            return CONSTANTS["TCP_SYN_SENT"] if self.asks else None
        if self.calls.shut:
            return None
        return CONSTANTS["TCP_CLOSE_WAIT" if self.is_shown("eof") else "TCP_ESTABLISHED"]

    # ---- what happened, as a packet script ----

    def played(self) -> Sequence[Step]:
        """The steps of a packet script with the same packets."""
        return tuple(self.steps)


SCALES = {
    "tcpi_snd_cwnd": ("cwnd", 1),
    "tcpi_unacked": ("unacked", 1),
    "tcpi_sacked": ("sacked", 1),
    "tcpi_lost": ("lost", 1),
    "tcpi_retrans": ("retrans", 1),
    "tcpi_total_retrans": ("resent-in-all", 1),
    "tcpi_delivered": ("delivered", 1),
    "tcpi_delivered_ce": ("marks", 1),
    "tcpi_rto": ("rto", MICROSECONDS),
    "tcpi_rtt": ("srtt", MICROSECONDS),
    "tcpi_snd_mss": ("mss", 1),
    "tcpi_bytes_received": ("received", 1),
    "tcpi_notsent_bytes": ("unsent", 1),
}
"""Fields that are numbers of the end point: its word, and units."""
