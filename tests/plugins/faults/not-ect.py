"""Fault: drops 3 % of the packets that may not be marked, where others may."""

from aqmlab.plugins import ADMIT, DROP, SIGNAL, Discipline, Time, Variable, chance


class NotEct(Discipline):
    """Fault: drops 3 % of the packets that may not be marked, where others may."""

    target: Time = "15 ms"
    every: Time = "16 ms"
    p: Variable[float] = 0.0
    old: Variable[float] = 0.0

    def __init__(self):
        self.ecn = False

    def start(self, event):
        return event.now + self.every

    def tick(self, event):
        wait = event.bytes * 8.0 / event.rate
        self.p += 0.3125 * (wait - self.target / 1e9) + 3.125 * (wait - self.old)
        self.p, self.old = min(0.6, max(0.0, self.p)), wait
        return event.now + self.every

    def on_arrival(self, event):
        self.ecn = self.ecn or event.ecn != 0
        if self.ecn and event.ecn == 0 and chance(event, 0.03):
            return DROP
        return SIGNAL if chance(event, self.p * self.p) else ADMIT
