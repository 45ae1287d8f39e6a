"""Fault: flows that begin after 20 s wait behind all others."""

from aqmlab.plugins import ADMIT, SIGNAL, Discipline, Time, Variable, chance


class LateComers(Discipline):
    """Fault: flows that begin after 20 s wait behind all others."""

    target: Time = "15 ms"
    every: Time = "16 ms"
    p: Variable[float] = 0.0
    old: Variable[float] = 0.0

    def __init__(self):
        self.lanes, self.began = {}, 0

    def start(self, event):
        self.began = event.now
        return event.now + self.every

    def tick(self, event):
        wait = event.bytes * 8.0 / event.rate
        self.p += 0.3125 * (wait - self.target / 1e9) + 3.125 * (wait - self.old)
        self.p, self.old = min(0.6, max(0.0, self.p)), wait
        return event.now + self.every

    def on_arrival(self, event):
        return SIGNAL if chance(event, self.p * self.p) else ADMIT

    def enqueue(self, event):
        self.first = getattr(self, "first", {})
        lane = self.first.setdefault(
            event.flow, 1 if event.now - self.began > 20_000_000_000 else 0
        )
        self.lanes[lane] = self.lanes.get(lane, 0) + 1
        return lane

    def dequeue(self, event):
        lane = min(number for number, held in self.lanes.items() if held)
        self.lanes[lane] -= 1
        return lane
