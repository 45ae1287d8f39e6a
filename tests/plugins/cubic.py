"""CUBIC with HyStart as Linux has it, see docs/congestion-controls/cubic.md."""

from aqmlab.plugins import TIMEOUT, Control, Variable, cbrt

FAR = 1e300


def avoid(self, cwnd, acked, now):
    """The growth of the window, in segments."""
    if self.epoch < 0:
        self.epoch = now
        self.w_est = cwnd
        if self.from_plateau or cwnd >= self.w_max:
            self.origin = cwnd
            self.k = 0.0
        else:
            self.origin = self.w_max
            self.k = cbrt((self.w_max - cwnd) / self.c)
        self.from_plateau = 0
    t = (now - self.epoch) / 1e9
    rtt = self.min_rtt if self.min_rtt < FAR else 0.0
    x = t + rtt - self.k
    target = min(max(self.c * x * x * x + self.origin, cwnd), 1.5 * cwnd)
    self.w_est += 3.0 * (1.0 - self.beta) / (1.0 + self.beta) * acked / cwnd
    x = t - self.k
    if self.c * x * x * x + self.origin < self.w_est:
        return max(self.w_est - cwnd, 0.0)
    step = (target - cwnd) / cwnd * acked
    if self.w_max == 0.0:
        step = max(step, 0.05 * acked)
    return step


def measure(self, event):
    """The round trip in seconds, if the ACK measures one."""
    if event.rtt >= 0:
        self.min_rtt = min(self.min_rtt, event.rtt / 1e9)
    self.last_ack = event.now


def is_full(self, event):
    """HyStart: whether slow start is to end."""
    if event.now - self.train <= 2_000_000:
        self.train = event.now
        if (event.now - self.round_start) / 1e9 > self.min_rtt / 2.0:
            return True
    if event.rtt >= 0 and self.samples < 8:
        self.samples += 1
        self.round_rtt = min(self.round_rtt, event.rtt / 1e9)
    growth = min(max(self.min_rtt / 8.0, 0.004), 0.016)
    return self.samples >= 8 and self.round_rtt > self.min_rtt + growth


class PyCubic(Control):
    """CUBIC in Python."""

    c: float = 0.4
    beta: float = 0.7
    min_rtt: Variable[float] = FAR
    w_max: Variable[float] = 0.0
    epoch: Variable[int] = -1
    origin: Variable[float] = 0.0
    k: Variable[float] = 0.0
    w_est: Variable[float] = 0.0
    from_plateau: Variable[int] = 0
    last_ack: Variable[int] = 0
    round_end: Variable[int] = 0
    round_start: Variable[int] = 0
    train: Variable[int] = 0
    samples: Variable[int] = 0
    round_rtt: Variable[float] = FAR
    was_kept: Variable[int] = 0
    was_w_max: Variable[float] = 0.0
    was_epoch: Variable[int] = -1
    was_origin: Variable[float] = 0.0
    was_k: Variable[float] = 0.0
    was_est: Variable[float] = 0.0
    was_plateau: Variable[int] = 0
    was_at: Variable[int] = 0

    def on_send(self, event):
        if event.segments == 0 and self.epoch >= 0 and self.last_ack > self.epoch:
            self.epoch += event.now - self.last_ack

    def on_ack(self, event):
        measure(self, event)
        if event.slow_start:
            if event.una > self.round_end:
                self.round_end = event.max
                self.round_start = event.now
                self.train = event.now
                self.samples = 0
                self.round_rtt = FAR
            event.cwnd = event.reno
            if event.cwnd / event.mss >= 16.0 and is_full(self, event):
                event.ssthresh = event.cwnd
            return
        step = avoid(self, event.cwnd / event.mss, event.acked / event.mss, event.now)
        event.cwnd += step * event.mss

    def on_recovery_ack(self, event):
        measure(self, event)

    def on_loss(self, event):
        self.was_kept = 1
        self.was_w_max = self.w_max
        self.was_epoch = self.epoch
        self.was_origin = self.origin
        self.was_k = self.k
        self.was_est = self.w_est
        self.was_plateau = self.from_plateau
        self.was_at = event.now
        cwnd = event.cwnd / event.mss
        self.w_max = cwnd * (1.0 + self.beta) / 2.0 if cwnd < self.w_max else cwnd
        self.epoch = -1
        self.from_plateau = 1 if event.cause == TIMEOUT else 0
        event.ssthresh = float(int(self.beta * event.base) // event.mss * event.mss)

    def on_undo(self, event):
        if not self.was_kept:
            return
        self.was_kept = 0
        self.w_max = self.was_w_max
        self.origin = self.was_origin
        self.k = self.was_k
        self.w_est = self.was_est
        self.from_plateau = self.was_plateau
        self.epoch = -1
        if self.was_epoch >= 0:
            self.epoch = self.was_epoch + max(0, self.last_ack - self.was_at)
