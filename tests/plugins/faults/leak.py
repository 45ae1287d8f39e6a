"""Fault: its room shrinks by 5 % of a second."""

from aqmlab.plugins import ADMIT, DROP, SIGNAL, Discipline, Time, Variable, chance


class Leak(Discipline):
    """Fault: its room shrinks by 5 % of a second."""

    target: Time = "15 ms"
    every: Time = "16 ms"
    p: Variable[float] = 0.0
    old: Variable[float] = 0.0

    def __init__(self):
        self.began = 0

    def start(self, event):
        self.began = event.now
        return event.now + self.every

    def tick(self, event):
        wait = event.bytes * 8.0 / event.rate
        self.p += 0.3125 * (wait - self.target / 1e9) + 3.125 * (wait - self.old)
        self.p, self.old = min(0.6, max(0.0, self.p)), wait
        return event.now + self.every

    def on_arrival(self, event):
        age = event.now - self.began
        if event.bytes > 225000 * max(0.01, 1 - age / 20e9):
            return DROP
        return SIGNAL if chance(event, self.p * self.p) else ADMIT
