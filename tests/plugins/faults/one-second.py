"""Fault: is open for one second of ten, or more."""

from aqmlab.plugins import ADMIT, DROP, SIGNAL, Discipline, Time, Variable, chance


class OneSecond(Discipline):
    """Fault: is open for one second of ten, or more."""

    open_s: int = 1
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
        if event.now // 1_000_000_000 % 10 >= self.open_s:
            return DROP
        return SIGNAL if chance(event, self.p * self.p) else ADMIT
