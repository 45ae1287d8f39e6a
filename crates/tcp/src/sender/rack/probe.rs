//! The tail loss probe (RFC 8985, section 7): when nothing has come back for two round trips, the last
//! segment goes again, or a new one does. Its ACK tells RACK what is lost before it, long before the
//! retransmission timer.

use aqmlab_net::Time;

/// The time-out without a round trip: that of the first retransmission timer.
const WITHOUT_SAMPLE: Time = Time::from_secs(1);

/// What is known of the last probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// What was out when it was sent, if no ACK has shown its fate: TLP.end_seq.
    pub(super) end: Option<u64>,
    /// It was a segment that had been sent before: TLP.is_retrans.
    pub(super) is_resend: bool,
    /// No round trip has been measured since.
    pub(super) used: bool,
}

impl Probe {
    pub(super) fn on_round_trip(&mut self) {
        self.used = false;
    }

    /// Whether a segment that was sent again is out, and no ACK has shown its fate.
    pub(super) fn is_undecided(&self) -> bool {
        self.end.is_some() && self.is_resend
    }

    /// A time-out takes over.
    pub(super) fn forget(&mut self) {
        self.end = None;
    }
}

/// PTO, as section 7.2 has it; `segments` are out.
pub(super) fn pto(
    srtt: Option<Time>,
    segments: usize,
    (max_ack_delay, margin): (Time, Time),
    rto_left: Time,
) -> Time {
    let pto = srtt.map_or(WITHOUT_SAMPLE, |srtt| {
        srtt * 2 + if segments == 1 { max_ack_delay } else { margin }
    });
    pto.min(rto_left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::rto::{HostClock, Rto};

    /// tlp_timers.csv: both ways of reckoning, and the retransmission time-outs that bound them.
    #[test]
    fn rk09_the_probe_is_due_when_the_trace_says() {
        let rows = include_str!("../../../tests/data/modern/tlp_timers.csv");
        let ms = |cell: &str| Time::from_secs_f64(cell.parse::<f64>().unwrap() / 1e3);
        let delay = Time::from_millis(200);
        let mut count = 0;
        for row in rows.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            let srtt = (!cells[0].is_empty()).then(|| ms(cells[0]));
            let segments = cells[2].parse().unwrap();
            for (margin, rto, alone, armed) in
                [(Time::ZERO, 4, 6, 7), (Time::from_millis(2), 5, 8, 9)]
            {
                let left = if cells[3].is_empty() {
                    cells[rto]
                } else {
                    cells[3]
                };
                let times = (delay, margin);
                let unbounded = pto(srtt, segments, times, Time::NEVER);
                assert_eq!(unbounded, ms(cells[alone]), "{row}");
                assert_eq!(
                    pto(srtt, segments, times, ms(left)),
                    ms(cells[armed]),
                    "{row}"
                );
            }
            count += 1;
        }
        assert_eq!(count, 10);
    }

    #[test]
    fn the_time_out_of_linux_exceeds_the_round_trip_by_its_floor() {
        let profile = Profile::named("linux").unwrap();
        let mut rto = Rto::new(&profile);
        let now = Time::from_millis(500);
        rto.sample(&profile, &HostClock::default(), Time::from_millis(480), now);
        assert_eq!(rto.timeout(&profile), Time::from_millis(220));
    }
}
