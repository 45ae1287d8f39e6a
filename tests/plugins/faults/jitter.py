"""Fault: holds one packet of 50 behind the next 20 of any flow."""

from aqmlab.plugins import ADMIT, SIGNAL, Discipline, Time, Variable, chance


class Jitter(Discipline):
    """Fault: holds one packet of 50 behind the next 20 of any flow."""

    target: Time = "15 ms"
    every: Time = "16 ms"
    p: Variable[float] = 0.0
    old: Variable[float] = 0.0

    def __init__(self):
        self.lanes = {}

    def start(self, event):
        return event.now + self.every

    def tick(self, event):
        wait = event.bytes * 8.0 / event.rate
        self.p += 0.3125 * (wait - self.target / 1e9) + 3.125 * (wait - self.old)
        self.p, self.old = min(0.6, max(0.0, self.p)), wait
        return event.now + self.every

    def on_arrival(self, event):
        return SIGNAL if chance(event, self.p * self.p) else ADMIT

    def enqueue(self, event):
        lane = 1 if chance(event, 0.02) else 0
        self.lanes[lane] = self.lanes.get(lane, 0) + 1
        return lane

    def dequeue(self, event):
        lane = 0 if self.lanes.get(0) and chance(event, 0.95) else 1 if self.lanes.get(1) else 0
        self.lanes[lane] -= 1
        return lane
