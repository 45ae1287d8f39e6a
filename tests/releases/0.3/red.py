"""RED, as docs/disciplines/red.md has it; packets only, without ECN beyond max_th."""

from aqmlab.plugins import (
    ADMIT,
    FORCE,
    SIGNAL,
    Bytes,
    Discipline,
    Packets,
    Variable,
    chance,
    pow,  # noqa: A004
)


class PyRed(Discipline):
    """Random early detection in Python.

    Parameters:
        min_th: average below which nothing is signalled
        max_th: average from which everything is dropped
    """

    min_th: Packets
    max_th: Packets
    w_q: float = 0.002
    max_p: float = 0.1
    mean_packet: Bytes = 500
    avg: Variable[float] = 0.0
    count: Variable[int] = -1
    p_b: Variable[float] = 0.0
    p_a: Variable[float] = 0.0
    idle_since: Variable[int] = 0

    def on_arrival(self, event):
        if self.idle_since < 0:
            self.avg = (1.0 - self.w_q) * self.avg + self.w_q * event.packets
        else:
            idle = max(0, event.now - self.idle_since) / 1e9
            self.avg *= pow(1.0 - self.w_q, idle * (event.rate / (8 * self.mean_packet)))
            self.idle_since = -1
        if self.avg < self.min_th or event.packets < 2:
            self.count = -1
            self.p_b = 0.0
            self.p_a = 0.0
            return ADMIT
        if self.avg >= self.max_th:
            self.count = 0
            self.p_b = 1.0
            self.p_a = 1.0
            return FORCE
        self.count += 1
        self.p_b = self.max_p * (self.avg - self.min_th) / (self.max_th - self.min_th)
        expected = self.count * self.p_b
        self.p_a = 1.0 if expected >= 1.0 else min(1.0, self.p_b / (1.0 - expected))
        if chance(event, self.p_a):
            self.count = 0
            return SIGNAL
        return ADMIT

    def on_overflow(self, event):
        self.count = 0

    def on_idle(self, event):
        if self.idle_since < 0:
            self.idle_since = event.now
