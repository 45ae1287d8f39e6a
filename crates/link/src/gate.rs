//! When a link may send: outages, and opportunities of a trace.

use std::collections::VecDeque;

use aqmlab_net::{Rate, Time};
use aqmlab_scenario::{Link, OPPORTUNITY_BYTES, Outage};

/// When a link may send, and how long that takes. Times that are asked for never go back.
#[derive(Debug)]
pub(crate) struct Gate {
    outages: VecDeque<Outage>,
    opportunities: Option<Opportunities>,
}

/// The opportunities of a trace, which begins again at its end. What is left of one that nobody uses
/// is lost.
#[derive(Debug)]
struct Opportunities {
    /// When each comes within the trace, in milliseconds.
    stamps: Vec<u32>,
    /// The one that is looked at, when the trace began of which it is one, and what is left of it.
    index: usize,
    began: Time,
    left: u64,
    /// The mean rate, which turns bytes into a share of what the link could have sent.
    mean: Rate,
}

impl Gate {
    /// That of a link; `None` if it may always send.
    pub(crate) fn of(link: &Link) -> Option<Self> {
        let opportunities = link.trace.as_ref().map(|trace| Opportunities {
            stamps: trace.granted(),
            index: 0,
            began: Time::ZERO,
            left: OPPORTUNITY_BYTES,
            mean: link.rate,
        });
        link.is_gated().then(|| Self {
            outages: link.outages.iter().copied().collect(),
            opportunities,
        })
    }

    /// The first time from `now` on at which something may be sent.
    pub(crate) fn opens_at(&mut self, now: Time) -> Time {
        let mut at = now;
        loop {
            if let Some(opportunities) = &mut self.opportunities {
                at = opportunities.next_from(at);
            }
            while self
                .outages
                .front()
                .is_some_and(|outage| outage.end() <= at)
            {
                self.outages.pop_front();
            }
            match self.outages.front() {
                Some(outage) if outage.at <= at => at = outage.end(),
                _ => return at,
            }
        }
    }

    /// When the last of so many bytes leaves that are sent from `now` on, if opportunities say that;
    /// and since when they occupy the link, as a share of what it could have sent.
    pub(crate) fn send(&mut self, now: Time, bytes: u64) -> Option<(Time, Time)> {
        let mut at = now;
        let mut rest = bytes;
        while rest > 0 && self.opportunities.is_some() {
            at = self.opens_at(at);
            if let Some(opportunities) = &mut self.opportunities {
                let part = rest.min(opportunities.left);
                opportunities.left -= part;
                rest -= part;
            }
        }
        let opportunities = self.opportunities.as_ref()?;
        let occupied = opportunities.mean.transmission_time(bytes);
        Some((at.saturating_sub(occupied), at))
    }
}

impl Opportunities {
    fn time(&self) -> Time {
        self.began + Time::from_millis(self.stamps[self.index].into())
    }

    /// When the first opportunity comes from `now` on of which something is left.
    fn next_from(&mut self, now: Time) -> Time {
        loop {
            let time = self.time();
            if time >= now && self.left > 0 {
                return time;
            }
            self.left = OPPORTUNITY_BYTES;
            self.index += 1;
            if self.index == self.stamps.len() {
                self.began = time;
                self.index = 0;
            }
        }
    }
}
