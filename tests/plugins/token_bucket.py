"""A token bucket without a queue: a policer in Python, beside which the native one is tested."""

from aqmlab.plugins import ADMIT, SIGNAL, Bytes, Discipline, Rate, Variable


class TokenBucket(Discipline):
    """A policer in Python: tokens are ns at the rate."""

    fill: Rate = "10 Mbit/s"
    burst: Bytes = "30 kB"
    missing: Variable[int] = 0
    looked: Variable[int] = 0

    def on_arrival(self, event):
        missing = max(0, self.missing - (event.now - self.looked))
        missing += event.size * 8_000_000_000 // self.fill
        if missing > self.burst * 8_000_000_000 // self.fill:
            return SIGNAL
        self.missing = missing
        self.looked = event.now
        return ADMIT
