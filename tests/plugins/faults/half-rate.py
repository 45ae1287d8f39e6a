"""Fault: drops above half of the rate."""

from aqmlab.plugins import ADMIT, DROP, SIGNAL, Discipline, Time, Variable, chance


class HalfRate(Discipline):
    """Fault: drops above half of the rate."""

    target: Time = "15 ms"
    every: Time = "16 ms"
    p: Variable[float] = 0.0
    old: Variable[float] = 0.0

    def start(self, event):
        return event.now + self.every

    def tick(self, event):
        wait = event.bytes * 8.0 / event.rate
        self.p += 0.3125 * (wait - self.target / 1e9) + 3.125 * (wait - self.old)
        self.p, self.old = min(0.6, max(0.0, self.p)), wait
        return event.now + self.every

    def on_arrival(self, event):
        self.tokens = min(
            15000.0,
            getattr(self, "tokens", 0.0)
            + (event.now - getattr(self, "was", 0)) * event.rate / 1.6e10,
        )
        self.was = event.now
        if self.tokens < event.size:
            return DROP
        self.tokens -= event.size
        return SIGNAL if chance(event, self.p * self.p) else ADMIT
