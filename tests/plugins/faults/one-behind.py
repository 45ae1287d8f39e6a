"""Fault: serves one flow, or two, only where no other waits."""

from aqmlab.plugins import ADMIT, SIGNAL, Discipline, Time, Variable, chance


class OneBehind(Discipline):
    """Fault: serves one flow, or two, only where no other waits."""

    first: int = 3
    second: int = 3
    target: Time = "15 ms"
    every: Time = "16 ms"
    p: Variable[float] = 0.0
    old: Variable[float] = 0.0

    def __init__(self):
        self.lanes, self.seen = {}, {}

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
        place = self.seen.setdefault(event.flow, len(self.seen) + 1)
        lane = int(place in (self.first, self.second))
        self.lanes[lane] = self.lanes.get(lane, 0) + 1
        return lane

    def dequeue(self, event):
        lane = min(number for number, held in self.lanes.items() if held)
        self.lanes[lane] -= 1
        return lane
