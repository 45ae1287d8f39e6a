"""Fault: drops what a flow has beyond three packets within 10 ms."""

from aqmlab.plugins import ADMIT, DROP, SIGNAL, Discipline, Time, Variable, chance


class Fewer(Discipline):
    """Fault: drops what a flow has beyond three packets within 10 ms."""

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
        self.burst = getattr(self, "burst", {})
        since, held = self.burst.get(event.flow, (0, 0))
        since, held = (event.now, 1) if event.now - since > 10_000_000 else (since, held + 1)
        self.burst[event.flow] = since, held
        if held > 3:
            return DROP
        return SIGNAL if chance(event, self.p * self.p) else ADMIT
