"""CoDel (RFC 8289), as docs/disciplines/codel.md has it."""

from math import sqrt

from aqmlab.plugins import ADMIT, SIGNAL, Bytes, Discipline, Time, Variable


def begin(self, event):
    self.dropping = 1
    delta = self.count - self.last_count
    recent = max(0, event.now - self.drop_next) < 16 * self.interval
    self.count = delta if delta > 1 and recent else 1
    self.drop_next = event.now + int(self.interval / sqrt(self.count))
    self.last_count = self.count


class PyCodel(Discipline):
    """Controlled delay in Python."""

    target: Time = 5_000_000
    interval: Time = 100_000_000
    mtu: Bytes = 1500
    dropping: Variable[int] = 0
    count: Variable[int] = 0
    last_count: Variable[int] = 0
    first_above: Variable[int] = -1
    drop_next: Variable[int] = 0
    least: Variable[int] = 0
    phase: Variable[int] = 0

    def start(self, event):
        three = 24_000_000_000 * (self.mtu + event.framing) // event.rate
        self.least = max(self.target, three // 2)
        return 0

    def on_head(self, event):
        # Whether the delay has been above the target for an interval.
        ok = False
        if event.now - event.arrived < self.least or event.queue_bytes <= self.mtu:
            self.first_above = -1
        elif self.first_above < 0:
            self.first_above = event.now + self.interval
        else:
            ok = event.now >= self.first_above
        # What a packet that was dropped just before has left to do.
        if self.phase == 1:
            self.phase = 0
            begin(self, event)
            return ADMIT
        if self.phase == 2:
            self.phase = 0
            if ok:
                self.drop_next += int(self.interval / sqrt(self.count))
            else:
                self.dropping = 0
        elif self.dropping:
            self.dropping = 1 if ok else 0
        elif ok:
            if event.marks:
                begin(self, event)
            else:
                self.phase = 1
            return SIGNAL
        if self.dropping and event.now >= self.drop_next:
            self.count += 1
            if event.marks:
                self.drop_next += int(self.interval / sqrt(self.count))
            else:
                self.phase = 2
            return SIGNAL
        return ADMIT

    def on_idle(self, event):
        self.first_above = -1
        if self.phase == 1:
            self.phase = 0
            begin(self, event)
        else:
            self.phase = 0
            self.dropping = 0
