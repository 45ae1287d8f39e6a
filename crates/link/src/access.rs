//! The hosts' own links.

use aqmlab_aqm::LinkFacts;
use aqmlab_net::{Bytes, Time};
use aqmlab_scenario::Hosts;

use crate::wire::{transmission_time, transmission_times};

/// The hosts' own links in one direction, up or down. Each serves its packets in the order of
/// their arrival, at the same rate, and drops none.
#[derive(Clone, Debug)]
pub struct AccessLinks {
    facts: LinkFacts,
    /// How long packets occupy a link, by their size.
    times: Box<[Time]>,
    /// When the link of each host falls free.
    free: Box<[Time]>,
}

impl AccessLinks {
    /// The links of `count` hosts; nothing if their rate is unlimited.
    pub fn new(hosts: &Hosts, count: usize) -> Option<Self> {
        let facts = LinkFacts {
            rate: hosts.rate?,
            framing: Bytes(u64::from(hosts.framing.0)),
        };
        Some(Self {
            facts,
            times: transmission_times(facts, None),
            free: vec![Time::ZERO; count].into(),
        })
    }

    /// How long a packet of `size` IP bytes occupies a link.
    #[inline]
    pub fn transmission_time(&self, size: u32) -> Time {
        match self.times.get(size as usize) {
            Some(time) => *time,
            None => transmission_time(self.facts, size as usize),
        }
    }

    /// A packet of `size` IP bytes arrives at the link of `host` at `now`: when its transmission
    /// ends.
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[inline]
    pub fn transmit(&mut self, host: usize, now: Time, size: u32) -> Time {
        let occupied = self.transmission_time(size);
        let free = &mut self.free[host];
        *free = now.max(*free) + occupied;
        *free
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::Rate;
    use aqmlab_scenario::Framing;

    use super::*;

    fn hosts(rate: Option<Rate>) -> Hosts {
        Hosts {
            rate,
            framing: Framing(38),
            ..Hosts::default()
        }
    }

    #[test]
    fn each_host_has_a_link_of_its_own_and_framing_costs_time() {
        let mut links = AccessLinks::new(&hosts(Some(Rate::from_mbps(8))), 2).expect("a rate");
        let us = Time::from_micros;
        // 1000 bytes on the wire take 1 ms.
        assert_eq!(links.transmit(0, us(0), 962), us(1000));
        assert_eq!(links.transmit(0, us(300), 962), us(2000));
        assert_eq!(links.transmit(1, us(300), 462), us(800));
        assert_eq!(links.transmit(0, us(5000), 962), us(6000));
        assert_eq!(links.transmit(0, us(6000), 65_462), us(71_500));
    }

    #[test]
    fn an_unlimited_rate_needs_no_links() {
        assert!(AccessLinks::new(&hosts(None), 2).is_none());
    }
}
