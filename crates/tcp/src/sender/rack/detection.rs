//! RACK: recent acknowledgement. Y. Cheng, N. Cardwell, N. Dukkipati, P. Jha, "The RACK-TLP Loss
//! Detection Algorithm for TCP", RFC 8985, 2021, section 6.
//!
//! A segment is lost when one sent later has arrived and, since it was sent, a round trip and a
//! reordering window have passed. So the last segments of a flight, and segments that were sent again,
//! are found like any others.

use aqmlab_net::Time;

use super::segment_log::Sent;
use crate::filter::Smallest;
use crate::profile::RackRules;

/// Segments reported by SACK without a sign of reordering after which nothing more is waited for.
const DUP_THRESH: u64 = 3;
/// Recoveries without a D-SACK after which the reordering window is the smallest again.
const PERSISTENCE: u8 = 16;
/// The window of the smallest round trip: Linux's 300 s, in parts.
const MIN_RTT_PART: Time = Time::from_secs(30);
const MIN_RTT_PARTS: u64 = 10;

/// The state of RACK; the names are the RFC's where it has some.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Of the segments delivered, the one sent last: when it was, its end, its round trip.
    pub(crate) at: Time,
    pub(crate) end: u64,
    rtt: Time,
    /// Of the delivered segments that were sent once, the one sent last: its time, its end, its
    /// round trip.
    sure: (Time, u64, Time),
    min_rtt: Smallest<Time>,
    /// Behind the highest byte delivered, and what that was before the ACK at hand.
    pub(crate) fack: u64,
    pub(crate) fack_before: u64,
    /// By how many bytes the latest segment came behind the highest one; 0: none has come late.
    latest: u32,
    /// Quarters of the smallest round trip: at most 255, as in Linux.
    reo_wnd_mult: u8,
    reo_wnd_persist: u8,
    /// What was out when a D-SACK came last: a further one below it is of the same round trip.
    dsack_round: Option<u64>,
    rules: RackRules,
    /// A D-SACK is to widen the reordering window.
    dsack_waits: bool,
    /// Where the segment ends whose round trip is the latest.
    rtt_end: u64,
    /// When the segment was sent that the peer's time stamp echoes, to the millisecond; none without
    /// time stamps.
    pub(crate) echoed: Option<Time>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            at: Time::ZERO,
            end: 0,
            rtt: Time::ZERO,
            sure: (Time::ZERO, 0, Time::ZERO),
            min_rtt: Smallest::default(),
            fack: 0,
            fack_before: 0,
            latest: 0,
            reo_wnd_mult: 1,
            reo_wnd_persist: PERSISTENCE,
            dsack_round: None,
            rules: RackRules::default(),
            dsack_waits: false,
            rtt_end: 0,
            echoed: None,
        }
    }
}

impl Rack {
    /// The smallest round trip of the last minutes.
    pub(crate) fn min_rtt(&self) -> Option<Time> {
        self.min_rtt.get()
    }

    /// By how many bytes the latest segment came behind the highest one; 0: none has come late.
    pub(crate) fn latest(&self) -> u64 {
        u64::from(self.latest)
    }

    /// What came at `from` was late.
    pub(crate) fn on_late(&mut self, from: u64) {
        let late = self.fack.saturating_sub(from);
        self.latest = self.latest.max(u32::try_from(late).unwrap_or(u32::MAX));
    }

    /// Whether what it has found lost is looked at no more.
    pub(crate) fn forgets(&self) -> bool {
        self.rules == RackRules::Linux
    }

    /// Whether a segment is late by `now` that is due then. Linux sends each segment of one write a little later
    /// than the one before it, and counts from the one whose round trip is the latest.
    #[inline]
    pub(crate) fn is_late(&self, sent: &Sent, due: Time, now: Time) -> bool {
        due < now
            || (due == now
                && (self.rules != RackRules::Linux || !sent.apart || sent.end < self.rtt_end))
    }

    /// The round trip of the segment that has arrived last.
    pub(crate) fn rtt(&self) -> Time {
        self.rtt
    }

    fn has_reordering(&self) -> bool {
        self.latest > 0
    }

    /// An ACK begins, which echoes a time stamp of that time.
    pub(crate) fn begin(&mut self, echoed: Option<Time>, rules: RackRules) {
        (self.echoed, self.fack_before) = (echoed, self.fack);
        self.rules = rules;
    }

    /// The handshake took so long: the first sample of the round trip.
    pub(crate) fn on_handshake(&mut self, rtt: Time, now: Time) {
        let epoch = now.as_nanos() / MIN_RTT_PART.as_nanos();
        self.min_rtt.add(epoch, rtt, MIN_RTT_PARTS);
    }

    /// Steps 1 to 3 of section 6.2: a segment has arrived, where all up to `fack` could have come before
    /// it.
    #[inline]
    pub(crate) fn on_delivered(&mut self, sent: &Sent, fack: u64, now: Time) {
        if sent.end < fack && !sent.resent {
            let late = fack - sent.end + sent.len;
            self.latest = self.latest.max(u32::try_from(late).unwrap_or(u32::MAX));
        }
        self.fack = self.fack.max(sent.end);
        let rtt = now - sent.at;
        if sent.resent {
            // What was sent first may have arrived, and not what was sent last.
            // Linux goes by the round trip alone.
            let by_stamp = self.rules == RackRules::Rfc8985;
            let is_older = by_stamp && self.echoed.is_some_and(|echoed| echoed < sent.at);
            if is_older || self.min_rtt().is_some_and(|least| rtt < least) {
                return;
            }
        } else {
            let epoch = now.as_nanos() / MIN_RTT_PART.as_nanos();
            self.min_rtt.add(epoch, rtt, MIN_RTT_PARTS);
            if (sent.at, sent.end) > (self.sure.0, self.sure.1) {
                self.sure = (sent.at, sent.end, rtt);
            }
        }
        (self.rtt, self.rtt_end) = (rtt, sent.end);
        if (sent.at, sent.end) > (self.at, self.end) {
            (self.at, self.end) = (sent.at, sent.end);
        }
    }

    /// Step 4: what a D-SACK says of the reordering window, with all below `una` acknowledged and all
    /// below `max` out.
    #[inline]
    pub(crate) fn on_ack(&mut self, una: u64, max: u64, mut dsack: bool, delivers: bool) {
        if self.dsack_round.is_some_and(|round| una >= round) {
            self.dsack_round = None;
        }
        let mut widens = true;
        if self.rules == RackRules::Linux {
            // It waits for an ACK that delivers something, and for a sign of reordering.
            self.dsack_waits |= dsack && self.has_reordering();
            widens = delivers;
            dsack = self.dsack_waits;
            self.dsack_waits &= !delivers;
        }
        if dsack && widens && self.dsack_round.is_none() {
            self.dsack_round = Some(max);
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = PERSISTENCE;
        }
    }

    /// What was sent again had not been lost: what arrived were the first copies.
    pub(crate) fn on_undo(&mut self) {
        (self.at, self.end, self.rtt) = self.sure;
    }

    /// A recovery is over.
    pub(crate) fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// The reordering window.
    pub(crate) fn reo_wnd(&self, srtt: Option<Time>, recovering: bool, sacked: u64) -> Time {
        if !self.has_reordering() && (recovering || sacked >= DUP_THRESH) {
            return Time::ZERO;
        }
        let Some(least) = self.min_rtt() else {
            return Time::ZERO;
        };
        let window = Time::from_nanos(least.as_nanos() / 4 * u64::from(self.reo_wnd_mult));
        srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// How long after its sending a segment is lost.
    pub(crate) fn patience(&self, srtt: Option<Time>, recovering: bool, sacked: u64) -> Time {
        self.rtt + self.reo_wnd(srtt, recovering, sacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rack_reo_wnd.csv: min_rtt, srtt, seen, recovering, three reported, multiple, window, lost after.
    #[test]
    fn rk02_the_reordering_window_is_that_of_the_trace() {
        let rows = include_str!("../../../tests/data/modern/rack_reo_wnd.csv");
        let mut count = 0;
        for row in rows.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            let ms = |cell: &str| Time::from_secs_f64(cell.parse::<f64>().unwrap() / 1e3);
            let mut rack = Rack {
                latest: u32::from(cells[2] == "true"),
                reo_wnd_mult: cells[5].parse().unwrap(),
                rtt: ms(cells[1]),
                ..Rack::default()
            };
            rack.min_rtt.add(0, ms(cells[0]), 1);
            let sacked = if cells[4] == "true" { 3 } else { 2 };
            let (srtt, recovering) = (Some(ms(cells[1])), cells[3] == "true");
            assert_eq!(
                rack.reo_wnd(srtt, recovering, sacked),
                ms(cells[6]),
                "{row}"
            );
            assert_eq!(
                rack.patience(srtt, recovering, sacked),
                ms(cells[9]),
                "{row}"
            );
            count += 1;
        }
        assert_eq!(count, 12);
    }

    #[test]
    fn rk04_a_resent_segment_counts_if_its_round_trip_is_possible() {
        let ms = Time::from_millis;
        let mut rack = Rack::default();
        rack.on_delivered(&Sent::at(1000, ms(0), false), 0, ms(100));
        // Sent again at 150 ms, acknowledged 20 ms later: that was the first copy.
        rack.on_delivered(&Sent::at(2000, ms(150), true), 0, ms(170));
        assert_eq!((rack.at, rack.end, rack.rtt), (ms(0), 1000, ms(100)));
        // The echo says the same, whatever the time that has passed.
        rack.echoed = Some(ms(149));
        rack.on_delivered(&Sent::at(2000, ms(150), true), 0, ms(260));
        assert_eq!(rack.end, 1000);
        rack.echoed = Some(ms(150));
        rack.on_delivered(&Sent::at(2000, ms(150), true), 0, ms(260));
        assert_eq!((rack.at, rack.end, rack.rtt), (ms(150), 2000, ms(110)));
    }

    #[test]
    fn rk05_a_dsack_widens_the_window_once_a_round_trip() {
        let mut rack = Rack::default();
        rack.on_ack(1000, 5000, true, true);
        rack.on_ack(2000, 6000, true, true);
        assert_eq!(rack.reo_wnd_mult, 2, "the same round trip");
        rack.on_ack(5000, 9000, true, true);
        assert_eq!(rack.reo_wnd_mult, 3, "the next one");
        for _ in 0..15 {
            rack.on_recovered();
        }
        assert_eq!(rack.reo_wnd_mult, 3);
        rack.on_recovered();
        assert_eq!(rack.reo_wnd_mult, 1, "sixteen recoveries without one");
    }
}
