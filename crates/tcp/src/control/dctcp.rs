//! DCTCP. S. Bensley, D. Thaler, P. Balasubramanian, L. Eggert, G. Judd, "Data Center TCP (DCTCP): TCP
//! Congestion Control for Data Centers", RFC 8257, 2017; M. Alizadeh et al., "Data Center TCP
//! (DCTCP)", SIGCOMM 2010. Departures: [`Parameters::ABOUT`].

use aqmlab_declare::{About, Parameters, parameters};

use super::congestion_control::{
    Ack, CongestionControl, ControlMetrics, ControlParameters, Sample,
};
use super::window::Window;
use crate::profile::EcnEcho;
use crate::recovery::RecoveryState;

/// Parameters of DCTCP.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Gain g: weight of the last window in alpha, the share of marks. A larger gain reacts faster.
    #[param(default = 1.0 / 16.0, above = 0.0, below = 1.0)]
    pub gain: f64,
    /// Initial alpha of a connection.
    #[param(default = 1.0, least = 0.0, most = 1.0)]
    pub initial_alpha: f64,
    /// If true, alpha is kept in 1/1024 and the window in whole segments, as in Linux.
    #[param(default)]
    pub integer: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "DCTCP",
        paper: "S. Bensley et al., Data Center TCP (DCTCP), RFC 8257, 2017; M. Alizadeh et al., \
                SIGCOMM 2010",
        purpose: "Cuts the window once per window of data, in proportion to the share of marks. \
                  Needs `ecn` and `recovery = \"rack-tlp\"`. `ecn_echo` is `\"each-change\"` by \
                  default.",
        departures: &[
            "Marks are counted in bytes that ACKs with an echo acknowledge. Linux counts segments, \
             as `integer` does.",
            "After a cut the window does not grow until the data then in flight is acknowledged, \
             as in Linux.",
        ],
        memory: "the fraction of marked packets and two counters",
    };
}

impl ControlParameters for Params {
    type Control = Dctcp;

    const ANSWERS_MARKS: bool = true;
    const ECHO: EcnEcho = EcnEcho::EachChange;
    const LINUX: Option<&'static str> = Some("dctcp");
}

/// One in Linux's fixed point.
const UNIT: f64 = 1024.0;

/// The state of DCTCP.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dctcp {
    /// The share of marks; none: no window has ended yet.
    alpha: Option<f64>,
    /// The window of observation ends when this is acknowledged.
    window_end: u64,
    delivered: u64,
    marked: u64,
    /// No further cut, and no growth, until more than this is acknowledged.
    cut_until: u64,
}

impl Dctcp {
    /// RFC 8257, section 3.3: a window of data has been acknowledged.
    fn renew(&mut self, params: &Params) {
        let alpha = self.alpha.unwrap_or(params.initial_alpha);
        let share = self.marked as f64 / self.delivered.max(1) as f64;
        let next = if params.integer {
            // A share below 1/64 adds nothing, and the last sixteenth is forgotten as a whole.
            let whole = (alpha * UNIT) as u64;
            let part = (whole as f64 * params.gain) as u64;
            let left = whole - if part == 0 { whole } else { part };
            let added = (share * params.gain * UNIT) as u64;
            ((left + added) as f64 / UNIT).min(1.0)
        } else {
            (1.0 - params.gain) * alpha + params.gain * share
        };
        self.alpha = Some(next);
        (self.delivered, self.marked) = (0, 0);
    }

    fn cut(&self, params: &Params, window: &mut Window, mss: f64) {
        let alpha = self.alpha.unwrap_or(params.initial_alpha);
        let cwnd = if params.integer {
            let segments = (window.cwnd / mss) as u64;
            let less = segments * (alpha * UNIT) as u64 / (2 * UNIT as u64);
            (segments - less) as f64 * mss
        } else {
            window.cwnd * (1.0 - alpha / 2.0)
        };
        window.cwnd = cwnd.max(2.0 * mss);
        window.ssthresh = window.cwnd;
    }
}

impl CongestionControl for Dctcp {
    type Params = Params;

    fn on_ack(&mut self, _: &Params, window: &mut Window, ack: &Ack<'_>) {
        if ack.una > self.cut_until {
            window.grow_as_reno(1.0, ack);
        }
    }

    fn on_sample(&mut self, params: &Params, window: &mut Window, sample: &Sample<'_>) {
        let (delivered, marked) = if params.integer {
            let segment = sample.profile.mss.0;
            (sample.acked.div_ceil(segment), sample.marks.segments)
        } else {
            (sample.acked, sample.marks.bytes)
        };
        self.delivered += delivered;
        self.marked += marked;
        if sample.advances && sample.una >= self.window_end {
            self.renew(params);
            self.window_end = sample.max;
        }
        // One reaction a window: what a loss has cut is not cut again (RFC 3168, section 6.1.2).
        let is_open = sample.state == RecoveryState::Open;
        if sample.marks.segments > 0 && is_open && sample.una > self.cut_until {
            self.cut(params, window, sample.profile.mss.0 as f64);
            self.cut_until = sample.max;
        }
    }

    /// The share of marks, in per cent.
    fn metrics(&self) -> ControlMetrics {
        ControlMetrics {
            queueing_delay: None,
            segments: self.alpha.map(|alpha| 100.0 * alpha),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::{Feed, segments};

    /// dctcp_alpha.csv: one ACK per window of data.
    #[test]
    fn dt01_dt02_dt03_alpha_and_window_are_those_of_the_trace() {
        let rows = include_str!("../../tests/data/modern/dctcp_alpha.csv");
        for (integer, alpha_at, cwnd_at) in [(false, 4, 8), (true, 6, 10)] {
            let params = Params {
                integer,
                ..Params::default()
            };
            let mut feed = Feed::default();
            let (mut dctcp, mut window) = (Dctcp::default(), segments(100.0));
            let mut count = 0;
            for row in rows.lines().skip(1) {
                let cells: Vec<f64> = row.split(',').map(|cell| cell.parse().unwrap()).collect();
                let (delivered, ce) = (cells[1] as u64, cells[2] as u64);
                dctcp.on_sample(&params, &mut window, &feed.acks(delivered, ce));
                if ce == 0 {
                    window.cwnd += Feed::MSS as f64;
                }
                let alpha = dctcp.alpha.unwrap();
                let cwnd = window.cwnd / Feed::MSS as f64;
                assert!((alpha - cells[alpha_at]).abs() < 1e-9, "{row}: {alpha}");
                assert!((cwnd - cells[cwnd_at]).abs() < 1e-7, "{row}: {cwnd}");
                count += 1;
            }
            assert_eq!(count, 20);
        }
    }

    #[test]
    fn dt03_a_window_of_marks_cuts_once() {
        let params = Params::default();
        let mut feed = Feed::default();
        let (mut dctcp, mut window) = (Dctcp::default(), segments(40.0));
        feed.send(40);
        for _ in 0..40 {
            dctcp.on_sample(&params, &mut window, &feed.acks_of_what_is_out(1, 1));
        }
        let cwnd = window.cwnd / Feed::MSS as f64;
        assert!((cwnd - 20.0).abs() < 1e-9, "alpha begins at 1: {cwnd}");
    }

    /// RFC 3168, section 6.1.2: a loss has cut the window of this round trip.
    #[test]
    fn a_mark_within_a_recovery_cuts_no_second_time() {
        let params = Params::default();
        let mut feed = Feed::default();
        let (mut dctcp, mut window) = (Dctcp::default(), segments(40.0));
        for (state, left) in [
            (RecoveryState::Recovery, 40.0),
            (RecoveryState::Loss, 40.0),
            (RecoveryState::Open, 20.0),
        ] {
            let mut sample = feed.acks(1, 1);
            sample.state = state;
            dctcp.on_sample(&params, &mut window, &sample);
            let cwnd = window.cwnd / Feed::MSS as f64;
            // The ACKs in recovery have all been marked: the share is still 1.
            assert!((cwnd - left).abs() < 1e-9, "{state:?}: {cwnd}");
        }
    }

    #[test]
    fn dt08_a_share_below_a_sixteenth_of_the_unit_is_forgotten() {
        let params = Params {
            integer: true,
            initial_alpha: 15.0 / 1024.0,
            ..Params::default()
        };
        let mut feed = Feed::default();
        let (mut dctcp, mut window) = (Dctcp::default(), segments(10.0));
        dctcp.on_sample(&params, &mut window, &feed.acks(10, 0));
        assert_eq!(dctcp.alpha, Some(0.0));
    }
}
